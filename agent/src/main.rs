//! The program `kedge-agent`: reads what was typed, runs one command, and exits with its code.

use std::process::ExitCode;

use clap::Parser as _;
use kedge_agent::commands::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprint!("{}", error.to_text());
            ExitCode::FAILURE
        }
    }
}
