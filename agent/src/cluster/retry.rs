//! Trying again what passes: the one place that decides how often and how long. Whoever asks the API server for something that must
//! happen goes through it.

use std::time::Duration;

use tokio::time::Instant;

use super::request::ApiError;

/// Whether more may be written: false when another agent leads or this one stops.
pub type Gate = dyn Fn() -> bool + Send + Sync;

const FIRST_GAP: Duration = Duration::from_millis(100);
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// A stop is heard this soon.
const SLICE: Duration = Duration::from_millis(250);

/// Growing gaps, each with some chance in it so that many agents don't knock together.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub fn new(longest: Duration) -> Backoff {
        Backoff { next: FIRST_GAP, longest }
    }

    pub fn gap(&mut self) -> Duration {
        let gap = self.next;
        self.next = (gap * 2).min(self.longest);
        gap.mul_f64(rand::random_range(0.5..1.0))
    }
}

/// Asks until it is done, refused, or the time is over.
pub async fn persist<T, F>(
    time: Duration,
    gate: &(dyn Fn() -> bool + Send + Sync),
    mut ask: impl FnMut() -> F,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    let (end, mut backoff) = (Instant::now() + time, Backoff::new(LONGEST_GAP));
    loop {
        if !gate() {
            return Err(ApiError::NotLeader);
        }
        let (message, after) = match ask().await {
            Err(ApiError::Passing { message, after }) => (message, after),
            done => return done,
        };
        let until = Instant::now() + backoff.gap().max(after.unwrap_or_default());
        if until > end {
            return Err(ApiError::Passing { message, after });
        }
        tracing::debug!(message, "the API server is asked again");
        while Instant::now() < until {
            if !gate() {
                return Err(ApiError::NotLeader);
            }
            tokio::time::sleep_until(until.min(Instant::now() + SLICE)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::cluster::request::Refusal;

    fn busy() -> ApiError {
        ApiError::Passing { message: "busy".to_owned(), after: Some(Duration::from_secs(3)) }
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_asked_again_until_the_time_is_over() {
        let (began, tries) = (Instant::now(), AtomicUsize::new(0));
        let asked = persist(Duration::from_secs(60), &|| true, || async {
            tries.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(busy())
        });
        assert_eq!(asked.await, Err(busy()));
        assert!(began.elapsed() <= Duration::from_secs(61) && began.elapsed() > Duration::from_secs(40));
        assert!((8..=20).contains(&tries.load(Ordering::SeqCst)), "the server's patience is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_and_a_closed_gate_end_it_at_once() {
        let refusal = || ApiError::Refused(Box::new(Refusal { code: 403, ..Refusal::default() }));
        let asked = persist(Duration::from_secs(60), &|| true, || async { Err::<(), _>(refusal()) }).await;
        assert_eq!(asked, Err(refusal()));
        let (began, tries) = (Instant::now(), AtomicUsize::new(0));
        let gate = || tries.load(Ordering::SeqCst) == 0;
        let asked = persist(Duration::from_secs(60), &gate, || async {
            tries.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(busy())
        });
        assert_eq!(asked.await, Err(ApiError::NotLeader));
        assert!(began.elapsed() < Duration::from_secs(1));
    }
}
