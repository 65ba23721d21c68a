//! How tasks tell each other that something happened: to look again (counts changed, a person spoke, a check answered), and to stop.

use std::sync::Arc;

use tokio::sync::watch;

/// Cheap to clone. All clones are one bell.
#[derive(Clone, Debug)]
pub struct Nudge {
    rung: Arc<watch::Sender<u64>>,
}

impl Nudge {
    pub fn new() -> Nudge {
        Nudge { rung: Arc::new(watch::Sender::new(0)) }
    }

    /// Never waits, and costs nothing when nobody listens.
    pub fn nudge(&self) {
        self.rung.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Changes with each nudge after this moment.
    pub fn listen(&self) -> watch::Receiver<u64> {
        let mut heard = self.rung.subscribe();
        heard.mark_unchanged();
        heard
    }
}

impl Default for Nudge {
    fn default() -> Nudge {
        Nudge::new()
    }
}

/// Returns when the signal says stop. A sender that is gone can't say it any more; that is a stop too.
pub async fn stopped(signal: &mut watch::Receiver<bool>) {
    let _ = signal.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_nudge_of_any_clone_is_heard_once() {
        let nudge = Nudge::new();
        nudge.nudge();
        let mut heard = nudge.listen();
        assert!(!heard.has_changed().unwrap());
        nudge.clone().nudge();
        nudge.nudge();
        heard.changed().await.unwrap();
        assert!(!heard.has_changed().unwrap());
    }
}
