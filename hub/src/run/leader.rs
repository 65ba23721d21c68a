//! The task that stands for leadership and, while this hub leads, runs the leader's work; the work is dropped at once
//! when leadership is lost. Started by `run`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::signal::stopped;
use crate::store::{Store, StoreError, Term};

/// How soon the next one takes over after the lock is free.
const STAND: Duration = Duration::from_secs(1);
/// A leader whose work ended on its own lets a moment pass, so that a fault doesn't make terms by the thousand.
const BREATH: Duration = Duration::from_secs(1);

/// Stands until told to stop. `lead` is the leader's whole work; it holds no task that outlives it.
pub async fn run<W, F>(store: Store, metrics: Arc<Metrics>, mut shutdown: watch::Receiver<bool>, lead: W)
where
    W: Fn(Term) -> F + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let holder = format!("{}/{}", hostname(), std::process::id());
    let mut said = false;
    while !*shutdown.borrow() {
        match store.stand(&holder).await {
            Ok(Some(mut leadership)) => {
                let term = leadership.term();
                tracing::info!(term = term.0, holder, "this hub leads");
                metrics.leader.set(1);
                let stop = tokio::select! {
                    error = leadership.hold() => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, term = term.0, "this hub leads no longer");
                        false
                    }
                    () = lead(term) => {
                        tracing::warn!(term = term.0, "the leader's work ended; standing again");
                        false
                    }
                    () = stopped(&mut shutdown) => true,
                };
                metrics.leader.set(0);
                leadership.resign().await;
                said = false;
                if stop {
                    return;
                }
                wait(&mut shutdown, BREATH).await;
            }
            Ok(None) => {
                if !said {
                    tracing::info!(holder, "another hub leads; this one stands by");
                    said = true;
                }
                wait(&mut shutdown, STAND).await;
            }
            Err(error) => {
                report(&error);
                wait(&mut shutdown, STAND).await;
            }
        }
    }
}

fn report(error: &StoreError) {
    let shown = error as &dyn std::error::Error;
    match error {
        StoreError::Unavailable(_) => {
            tracing::warn!(error = shown, "no hub can lead while the database can't be reached")
        }
        _ => tracing::error!(error = shown, "the database refuses to say who leads"),
    }
}

async fn wait(shutdown: &mut watch::Receiver<bool>, time: Duration) {
    // Either way the caller looks again.
    let _ = tokio::time::timeout(time, shutdown.wait_for(|stop| *stop)).await;
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_work_begins_with_a_term_and_is_dropped_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let (began, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let metrics = Arc::new(Metrics::new());
        // Its drop is seen as the channel's end.
        let work = move |term| {
            let began = began.clone();
            async move {
                began.send(term).unwrap();
                std::future::pending::<()>().await;
            }
        };
        let task = tokio::spawn(run(store.clone(), Arc::clone(&metrics), stopped, work));
        let term = begun.recv().await.unwrap();
        assert_eq!(metrics.leader.get(), 1);
        assert!(store.write_as(term).await.is_ok());
        stop.send_replace(true);
        task.await.unwrap();
        assert_eq!(begun.recv().await, None);
        assert_eq!(metrics.leader.get(), 0);
    }
}
