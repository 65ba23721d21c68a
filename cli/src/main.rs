//! `kedge`, the command line: reads what was typed, runs one command, and exits with its code.

mod command;
mod completions;
mod control_plane;
mod error;
mod explain;
mod folder;
mod init;
mod man;
mod output;
mod plan;
mod problems;
mod render;
mod validate;

use std::process::ExitCode;

use clap::Parser as _;

use command::{Cli, Command};
use error::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli.command) {
        Ok(exit) => exit.into(),
        Err(error) => error::report(&error),
    }
}

fn run(command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::Init(args) => init::run(args),
        Command::Validate(args) => validate::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Render(args) => render::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}
