//! How far a long copy is, on stderr: a line that changes on a terminal, and elsewhere one every few seconds, so that a log isn't
//! filled. Used by `import`.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::airgap::import::Progress;

#[derive(Debug)]
pub struct Bar {
    terminal: bool,
    whole: u64,
    done: u64,
    shown: Instant,
    /// A line is on the terminal that has to be ended.
    open: bool,
}

/// What is copied in a moment needs no bar.
const SMALL: u64 = 8 << 20;
const ON_TERMINAL: Duration = Duration::from_millis(200);
const IN_A_LOG: Duration = Duration::from_secs(5);

impl Bar {
    pub fn new() -> Bar {
        Bar { terminal: io::stderr().is_terminal(), whole: 0, done: 0, shown: Instant::now(), open: false }
    }

    pub fn take(&mut self, progress: Progress) {
        match progress {
            Progress::Whole(whole) => (self.whole, self.done) = (whole, 0),
            Progress::Piece(bytes) => self.done += bytes,
        }
        let every = if self.terminal { ON_TERMINAL } else { IN_A_LOG };
        if self.whole > SMALL && self.shown.elapsed() >= every {
            self.shown = Instant::now();
            self.show();
        }
    }

    pub fn end(&mut self) {
        if std::mem::take(&mut self.open) {
            // Who closed stderr doesn't want to know.
            _ = writeln!(io::stderr());
        }
    }

    fn show(&mut self) {
        let text =
            format!("{} of {} copied, {} %", bytes(self.done), bytes(self.whole), percent(self.done, self.whole));
        let mut err = io::stderr().lock();
        _ = match self.terminal {
            true => write!(err, "\r{text:<60}").and_then(|()| err.flush()),
            false => writeln!(err, "{text}"),
        };
        self.open = self.terminal;
    }
}

/// `12 kB`, `3.4 MB`: as disks are sold.
pub fn bytes(count: u64) -> String {
    match count {
        ..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{} kB", count / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{} MB", count / 1_000_000, count % 1_000_000 / 100_000),
        _ => format!("{}.{} GB", count / 1_000_000_000, count % 1_000_000_000 / 100_000_000),
    }
}

fn percent(done: u64, whole: u64) -> u64 {
    done.saturating_mul(100).checked_div(whole).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let told = [0, 999, 12_345, 3_450_000, 2_000_000_000].map(bytes);
        assert_eq!(told, ["0 B", "999 B", "12 kB", "3.4 MB", "2.0 GB"]);
        assert_eq!((percent(1, 3), percent(0, 0)), (33, 100));
    }
}
