//! The problems of one file as they are found: each gets its place and the line it is about.

use crate::problem::Excerpt;
use crate::{Origin, Problem, Severity};

/// A file that is wrong all over is told about so often; the rest is counted.
const MAX_PROBLEMS: usize = 1000;

/// Lines are shown until so many bytes of them were looked at: a file may be one line of 4 MiB with a thousand problems.
const MAX_SHOWN_BYTES: usize = 32 << 20;

/// A place in the file, from 1, and how many characters are meant. Line 0 is the file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub line: usize,
    pub column: usize,
    pub width: usize,
}

#[derive(Debug)]
pub(super) struct Notes<'a> {
    lines: Vec<&'a str>,
    file: &'a Origin,
    /// What messages speak of: "ClusterType `drone`".
    pub subject: String,
    /// A field that nobody asked for is an error now.
    pub strict: bool,
    is_time_zone: Option<fn(&str) -> bool>,
    problems: Vec<Problem>,
    /// Which of the problems are errors.
    error_places: Vec<usize>,
    /// All errors, also those that aren't kept.
    errors: usize,
    shown_bytes: usize,
    dropped: usize,
    /// The last one that was too many.
    overflow: Problem,
}

impl Spot {
    pub const NONE: Spot = Spot { line: 0, column: 0, width: 0 };
}

impl<'a> Notes<'a> {
    pub fn new(text: &'a str, file: &'a Origin, is_time_zone: Option<fn(&str) -> bool>) -> Notes<'a> {
        Notes {
            lines: text.lines().collect(),
            file,
            subject: String::new(),
            strict: false,
            is_time_zone,
            problems: Vec::new(),
            error_places: Vec::new(),
            errors: 0,
            shown_bytes: 0,
            dropped: 0,
            overflow: Problem::error("TooManyProblems", "the file has too many problems").at(file.at(0, 0)),
        }
    }

    /// Whether a name of a time zone may stand, as far as the reader of the file can tell.
    pub fn knows_time_zone(&self, name: &str) -> bool {
        self.is_time_zone.is_none_or(|is_known| is_known(name))
    }

    pub fn line(&self, line: usize) -> Option<&'a str> {
        self.lines.get(line.checked_sub(1)?).copied()
    }

    pub fn origin(&self, spot: Spot) -> Origin {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.file.at(count(spot.line), count(spot.column))
    }

    /// Adds an error and gives it back, so that a hint can be set.
    pub fn error(&mut self, spot: Spot, code: &'static str, message: String) -> &mut Problem {
        self.errors += 1;
        self.add(spot, Problem::error(code, message))
    }

    pub fn warning(&mut self, spot: Spot, code: &'static str, message: String) -> &mut Problem {
        self.add(spot, Problem::warning(code, message))
    }

    /// How many errors there are so far.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The first error after so many.
    pub fn error_after(&self, errors: usize) -> Problem {
        let found = self.error_places.get(errors).and_then(|place| self.problems.get(*place));
        let mut problem = found.unwrap_or(&self.overflow).clone();
        problem.severity = Severity::Error;
        problem
    }

    /// By line; those of one line in the order they were found.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.origin.as_ref().map(|origin| origin.line));
        if self.dropped > 0 {
            let message = format!("the file has {} further problems that aren't shown", self.dropped);
            let only_warnings = self.errors == self.error_places.len();
            let rest = if only_warnings { Problem::warning } else { Problem::error };
            self.problems.push(rest("TooManyProblems", message).at(self.file.at(0, 0)));
        }
        self.problems
    }

    fn add(&mut self, spot: Spot, mut problem: Problem) -> &mut Problem {
        problem.origin = Some(self.origin(spot));
        if self.problems.len() >= MAX_PROBLEMS {
            self.dropped += 1;
            self.overflow = problem;
            return &mut self.overflow;
        }
        if let Some(line) = self.line(spot.line).filter(|_| self.shown_bytes < MAX_SHOWN_BYTES) {
            self.shown_bytes += line.len();
            problem.excerpt = Some(Excerpt::of_line(line, spot.column, spot.width));
        }
        let place = self.problems.len();
        if problem.is_error() {
            self.error_places.push(place);
        }
        self.problems.push(problem);
        &mut self.problems[place]
    }
}
