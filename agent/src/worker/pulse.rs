//! Whether the applier's thread is alive, and whether it should stop. The watchdog reads it; the thread itself and
//! the engine's waits write it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Pause;

#[derive(Debug, Default)]
pub struct Pulse {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stopping: bool,
    /// When the work under way showed a sign of life; none: it waits for work.
    beat: Option<Instant>,
}

/// A single step has limits of its own, and apt's are the longest; whoever is silent for longer hangs.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(3 * 60 * 60);

impl Pulse {
    pub fn begin(&self) {
        self.with(|state| state.beat = Some(Instant::now()));
    }

    /// A sign of life in the midst of a job.
    pub fn beat(&self) {
        self.with(|state| state.beat = state.beat.map(|_| Instant::now()));
    }

    pub fn end(&self) {
        self.with(|state| state.beat = None);
    }

    pub fn is_busy(&self) -> bool {
        self.with(|state| state.beat.is_some())
    }

    /// It waits for work, or showed a sign of life not too long ago.
    pub fn is_alive(&self) -> bool {
        self.with(|state| state.beat.is_none_or(|beat| beat.elapsed() < LONGEST_SILENCE))
    }

    /// From now on nothing new is begun, and waits end.
    pub fn stop(&self) {
        self.with(|state| state.stopping = true);
        self.changed.notify_all();
    }

    pub fn is_stopping(&self) -> bool {
        self.with(|state| state.stopping)
    }

    /// Waits, or less if it is told to stop. True: it is told to stop.
    pub fn rest(&self, time: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, time, |state| !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    fn with<T>(&self, touch: impl FnOnce(&mut State) -> T) -> T {
        touch(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How the engine waits and hears of a stop: each is a sign of life, and it asks before every step and every try of a health check.
#[derive(Clone, Debug)]
pub struct Breath {
    pulse: Arc<Pulse>,
    began: Instant,
}

impl Breath {
    pub fn new(pulse: Arc<Pulse>) -> Breath {
        Breath { pulse, began: Instant::now() }
    }
}

impl Pause for Breath {
    fn stopping(&self) -> bool {
        self.pulse.beat();
        self.pulse.is_stopping()
    }

    fn wait(&self, time: Duration) -> bool {
        self.pulse.beat();
        !self.pulse.rest(time)
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_a_rest_and_stays() {
        let pulse = Pulse::default();
        assert!(!pulse.rest(Duration::from_millis(1)));
        pulse.stop();
        assert!(pulse.rest(Duration::from_secs(60)) && pulse.is_stopping());
    }

    #[test]
    fn who_waits_for_work_is_alive() {
        let pulse = Pulse::default();
        pulse.beat();
        assert!(pulse.is_alive() && !pulse.is_busy());
        pulse.begin();
        assert!(pulse.is_alive() && pulse.is_busy());
    }
}
