//! What systemd hears of us: that we are ready, how it goes, that we are alive, that we stop. Without systemd nothing is said. In a pod
//! the sign of life is a file that the probe looks at.

use std::path::PathBuf;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::Instant;

use crate::alive;
use crate::paths::Paths;

#[derive(Debug)]
pub(super) struct Service {
    /// Between two signs of life; none: nobody waits for them.
    every: Option<Duration>,
    due: Instant,
    said: String,
    /// Written with each sign of life, for who can't be notified.
    file: Option<PathBuf>,
}

impl Service {
    pub(super) fn new() -> Service {
        // Twice within the time, so that one may come late.
        let every = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        Service { every, due: Instant::now(), said: String::new(), file: None }
    }

    /// In a pod: nobody listens, somebody looks.
    pub(super) fn of_pod(paths: &Paths) -> Service {
        let file = Some(alive::path(paths));
        Service { every: Some(alive::EVERY), due: Instant::now(), said: String::new(), file }
    }

    pub(super) fn ready(&self) {
        notify(&[NotifyState::Ready]);
    }

    pub(super) fn stopping(&self) {
        notify(&[NotifyState::Stopping]);
    }

    /// What `systemctl status` shows.
    pub(super) fn say(&mut self, said: String) {
        if self.said != said {
            notify(&[NotifyState::Status(&said)]);
            self.said = said;
        }
    }

    /// A sign of life, when it is time and both loops are alive.
    pub(super) fn beat(&mut self, alive: bool) {
        let Some(every) = self.every else { return };
        if Instant::now() >= self.due {
            self.due = Instant::now() + every;
            match (alive, &self.file) {
                (true, Some(file)) => alive::show(file),
                (true, None) => notify(&[NotifyState::Watchdog]),
                (false, _) => {
                    tracing::error!("the applier shows no sign of life; the watchdog will start the agent again")
                }
            }
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.every.map(|_| self.due)
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd doesn't listen");
    }
}
