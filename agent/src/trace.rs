//! What a transaction did, line by line, as `why` shows it. Host parts add lines while they work; the journal keeps them.

use std::time::Instant;

use kedge_model::wire::Timestamp;

use crate::clock::Clock;
use crate::record::{Failure, MAX_OUTPUT, Traced};

#[derive(Debug)]
pub struct Tracer<'c> {
    clock: &'c dyn Clock,
    lines: Vec<Traced>,
}

/// A line that is being made.
#[derive(Debug)]
pub struct Line {
    at: Timestamp,
    began: Instant,
    what: String,
}

impl<'c> Tracer<'c> {
    pub fn new(clock: &'c dyn Clock) -> Tracer<'c> {
        Tracer { clock, lines: Vec::new() }
    }

    /// Begins a line; `end` or `fail` finishes it.
    pub fn begin(&self, what: impl Into<String>) -> Line {
        Line { at: self.clock.now(), began: Instant::now(), what: what.into() }
    }

    pub fn end(&mut self, line: Line, output: &str) {
        self.push(line, None, output);
    }

    pub fn fail(&mut self, line: Line, failure: &Failure, output: &str) {
        self.push(line, Some(format!("{}: {}", failure.reason, failure.message)), output);
    }

    /// What was added since the last call.
    pub fn take(&mut self) -> Vec<Traced> {
        std::mem::take(&mut self.lines)
    }

    fn push(&mut self, line: Line, failed: Option<String>, output: &str) {
        let took_ms = u64::try_from(line.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.lines.push(Traced { at: line.at, what: line.what, took_ms, failed, output: shorten(output) });
    }
}

/// The beginning and the end of a long text.
pub fn shorten(text: &str) -> String {
    let text = text.trim_end();
    if text.len() <= MAX_OUTPUT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_OUTPUT / 4);
    let tail = text.ceil_char_boundary(text.len() - MAX_OUTPUT / 4 * 3);
    format!("{}\n… {} bytes left out …\n{}", &text[..head], tail - head, &text[tail..])
}
