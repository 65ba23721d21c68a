//! How the engine waits: for health, and until the agent should stop. A stop ends every wait at once and takes effect between two steps.

use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The worker may wrap it to show that it is alive.
pub trait Pause: Debug + Send {
    fn stopping(&self) -> bool;
    /// False: the agent should stop.
    fn wait(&self, time: Duration) -> bool;
    /// A clock that only goes on: no jump of the wall clock ends or prolongs a soak.
    fn elapsed(&self) -> Duration;
}

/// Shared between who stops the agent and who waits.
#[derive(Clone, Debug)]
pub struct Stop {
    stopped: Arc<(Mutex<bool>, Condvar)>,
    began: Instant,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop { stopped: Arc::default(), began: Instant::now() }
    }
}

impl Stop {
    pub fn stop(&self) {
        *self.stopped.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stopped.1.notify_all();
    }
}

impl Pause for Stop {
    fn stopping(&self) -> bool {
        *self.stopped.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, time: Duration) -> bool {
        let guard = self.stopped.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.stopped.1.wait_timeout_while(guard, time, |stopped| !*stopped);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_a_wait_at_once() {
        let stop = Stop::default();
        let other = stop.clone();
        let waiter = std::thread::spawn(move || other.wait(Duration::from_secs(600)));
        stop.stop();
        assert!(!waiter.join().unwrap());
        assert!(stop.stopping());
        assert!(Stop::default().wait(Duration::from_millis(1)));
    }
}
