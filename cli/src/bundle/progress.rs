//! How far a long copy is, on stderr: a bar on a terminal, else a line every few seconds.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::output::say;

#[derive(Debug)]
pub struct Progress {
    /// What happens to the bytes.
    word: &'static str,
    total: Option<u64>,
    done: u64,
    terminal: bool,
    told: Instant,
    begun: Instant,
    drawn: bool,
}

/// A bar moves so often.
const DRAW: Duration = Duration::from_millis(100);
/// In a log a line says so often that it goes on.
const LINE: Duration = Duration::from_secs(5);
const WIDTH: u64 = 30;

impl Progress {
    pub fn new(word: &'static str, total: Option<u64>) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let now = Instant::now();
        Progress { word, total, done: 0, terminal, told: now, begun: now, drawn: false }
    }

    pub fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let every = if self.terminal { DRAW } else { LINE };
        if self.told.elapsed() >= every {
            self.told = Instant::now();
            self.tell();
        }
    }

    /// Leaves an empty line where the bar was.
    pub fn end(&mut self) {
        if self.drawn {
            // Nothing stops because nobody sees it.
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    fn tell(&mut self) {
        let text = self.text();
        if self.terminal {
            self.drawn = true;
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        } else {
            say(&text);
        }
    }

    fn text(&self) -> String {
        let speed = self.done as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let speed = format!("{}/s", bytes(speed as u64));
        match self.total.filter(|total| *total > 0) {
            Some(total) => {
                let full = usize::try_from(self.done.min(total) * WIDTH / total).unwrap_or(0);
                let bar: String = (0..WIDTH as usize).map(|at| if at < full { '#' } else { '.' }).collect();
                let percent = self.done.min(total) * 100 / total;
                format!("[{bar}] {percent:3} %  {} of {} {}, {speed}", bytes(self.done), bytes(total), self.word)
            }
            None => format!("{} {}, {speed}", bytes(self.done), self.word),
        }
    }
}

/// `512 B`, `1.5 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let (mut size, mut unit) = (count as f64 / 1000.0, 0);
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_short() {
        let shown = [0, 999, 1000, 1_500_000, 999_999_999, 4_000_000_000].map(bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.0 kB", "1.5 MB", "1.0 GB", "4.0 GB"]);
    }

    #[test]
    fn a_bar_says_how_much_is_left() {
        let mut progress = Progress::new("written", Some(200));
        progress.done = 100;
        assert!(progress.text().starts_with("[###############...............]  50 %  100 B of 200 B written, "));
    }
}
