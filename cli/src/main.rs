//! `kedge`, the command line: reads what was typed, runs one command, and exits with its code.

mod access;
mod audit;
mod bundle;
mod cluster;
mod command;
mod compare;
mod completions;
mod condition;
mod control_plane;
mod describe;
mod drift;
mod error;
mod evidence;
mod explain;
mod folder;
mod get;
mod history;
mod hold;
mod hub;
mod init;
mod login;
mod man;
mod open;
mod output;
mod person;
mod plan;
mod problems;
mod promote;
mod publish;
mod render;
mod rollout;
mod status;
mod token;
mod up;
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
        Command::Up(args) => up::run(args),
        Command::Init(args) => init::run(args),
        Command::Validate(args) => validate::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Render(args) => render::run(args),
        Command::Login(args) => login::run(args),
        Command::Open(args) => open::run(args),
        Command::Status(args) => status::run(args),
        Command::Drift(args) => drift::run(args),
        Command::Get(args) => get::run(args),
        Command::Describe(args) => describe::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Token(args) => token::run(args),
        Command::Bundle(args) => bundle::run(args),
        Command::Person(args) => person::run(args),
        Command::Access(args) => access::run(args),
        Command::Cluster(args) => cluster::run(args),
        Command::Hold(args) => hold::hold(args),
        Command::Unhold(args) => hold::unhold(args),
        Command::Publish(args) => publish::run(args),
        Command::Rollout(args) => rollout::run(args),
        Command::Promote(args) => promote::run(args),
        Command::Policy(args) => promote::policy(args),
        Command::Evidence(args) => evidence::run(args),
        Command::Restart(args) => rollout::restart(args),
        Command::Reapply(args) => rollout::reapply(args),
        Command::History(args) => history::run(args),
        Command::Audit(args) => audit::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}
