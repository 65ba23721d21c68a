//! `kedge-hub`: reads what was typed, runs one command, and exits with its code.

use std::process::ExitCode;

use clap::Parser as _;
use kedge_hub::command::{Cli, report};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&anyhow::Error::new(error).context("the runtime can't start")),
    };
    match runtime.block_on(cli.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}
