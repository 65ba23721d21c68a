//! What people type: the commands and the options that belong to all of them.

use clap::{Parser, Subcommand};

use crate::completions::CompletionsArgs;
use crate::explain::ExplainArgs;
use crate::init::InitArgs;
use crate::man::ManArgs;
use crate::plan::PlanArgs;
use crate::render::RenderArgs;
use crate::validate::ValidateArgs;

/// Decide what runs where in a fleet, and with which configuration.
///
/// Kedge reads a control plane from Git, a folder or a repository, and writes the GitOps files of its environments.
/// These commands work offline, on a checkout.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "kedge",
    bin_name = "kedge",
    version,
    max_term_width = 120,
    after_help = "\
Examples:
  Make a sample platform and look around:
    kedge init demo

  In a checkout, check a change, see what it would do, and know why:
    kedge validate
    kedge plan -e dev --from dev --to .
    kedge explain -e dev drone/hello-functional-test

  Write the files of an environment:
    kedge render -e dev -c control-plane.git --out gitops

Exit codes: 0 done, 1 failed or invalid, 2 wrong usage, 3 done but something was quarantined or left out."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// In the order of a user's day.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    Init(InitArgs),
    Validate(ValidateArgs),
    Plan(PlanArgs),
    Explain(ExplainArgs),
    Render(RenderArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
