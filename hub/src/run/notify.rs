//! Tells systemd that the hub is ready, alive or stopping. Without systemd it says nothing.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::watch;

pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Feeds the watchdog, if the unit has one, until told to stop: a runtime that is stuck doesn't, and is restarted.
pub async fn watchdog(mut shutdown: watch::Receiver<bool>) {
    let Some(limit) = sd_notify::watchdog_enabled() else { return };
    let every = (limit / 2).max(Duration::from_millis(100));
    loop {
        tell(&[NotifyState::Watchdog]);
        if tokio::time::timeout(every, shutdown.wait_for(|stop| *stop)).await.is_ok() {
            return;
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd can't be told");
    }
}
