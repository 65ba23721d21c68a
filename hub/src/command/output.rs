//! What the commands of `kedge-hub` print to stdout. Whoever closed the pipe has seen enough: the command goes on and ends as ever.

use std::fmt;
use std::io::{self, Write as _};

/// A line to stdout, as `println!`; to be followed by `?`.
macro_rules! line {
    ($($part:tt)*) => { $crate::command::output::print_line(format_args!($($part)*)) };
}
pub(super) use line;

pub(super) fn print_line(text: fmt::Arguments<'_>) -> io::Result<()> {
    unless_closed(writeln!(io::stdout().lock(), "{text}"))
}

pub(super) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_closed(out.write_all(bytes).and_then(|()| out.flush()))
}

fn unless_closed(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}
