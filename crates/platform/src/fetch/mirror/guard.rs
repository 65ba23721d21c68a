//! Ends a transfer that takes too long or brings too much: a server may send for ever, and slowly. Used by the mirror.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub time: Duration,
    /// Of one transfer.
    pub bytes: u64,
    /// How often it is looked.
    pub every: Duration,
}

/// One commit of a control plane takes seconds and megabytes; all of a monorepo's history fits too.
pub(super) const LIMITS: Limits =
    Limits { time: Duration::from_secs(900), bytes: 2 << 30, every: Duration::from_millis(250) };

/// Runs a transfer into a folder. It must end soon after the flag that it gets is set.
pub(super) fn guarded<T>(folder: &Path, limits: Limits, transfer: impl FnOnce(&AtomicBool) -> T) -> T {
    let stop = AtomicBool::new(false);
    let (running, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || watch(folder, limits, &ended, stop));
        let outcome = transfer(stop);
        drop(running);
        outcome
    })
}

fn watch(folder: &Path, limits: Limits, ended: &Receiver<()>, stop: &AtomicBool) {
    let (start, before) = (Instant::now(), size(folder));
    while ended.recv_timeout(limits.every) == Err(RecvTimeoutError::Timeout) {
        if start.elapsed() > limits.time || size(folder).saturating_sub(before) > limits.bytes {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The bytes of a folder's files.
fn size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Limits = Limits { time: Duration::from_secs(60), bytes: 1000, every: Duration::from_millis(1) };

    /// Whether the flag is set before ten seconds are over.
    fn is_stopped(folder: &Path, limits: Limits, bytes: usize) -> bool {
        guarded(folder, limits, |stop| {
            // The watch has begun when some time has passed.
            thread::sleep(Duration::from_millis(50));
            fs::write(folder.join("pack"), vec![0; bytes]).unwrap();
            let start = Instant::now();
            let patience = Duration::from_millis(if bytes > 1000 || limits.time.is_zero() { 10_000 } else { 50 });
            while start.elapsed() < patience && !stop.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            stop.load(Ordering::Relaxed)
        })
    }

    #[test]
    fn too_much_or_too_long_is_stopped_and_the_rest_is_not() {
        let folder = tempfile::TempDir::new().unwrap();
        assert!(!is_stopped(folder.path(), FAST, 900));
        assert!(is_stopped(folder.path(), FAST, 5000));
        assert!(is_stopped(folder.path(), Limits { time: Duration::ZERO, ..FAST }, 0));
    }
}
