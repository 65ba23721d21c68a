//! What people type: the commands and the options that belong to all of them.

use clap::{Parser, Subcommand};

use crate::access::AccessArgs;
use crate::audit::AuditArgs;
use crate::bundle::BundleArgs;
use crate::cluster::ClusterArgs;
use crate::compare::CompareArgs;
use crate::completions::CompletionsArgs;
use crate::describe::DescribeArgs;
use crate::drift::DriftArgs;
use crate::evidence::EvidenceArgs;
use crate::explain::ExplainArgs;
use crate::get::GetArgs;
use crate::history::HistoryArgs;
use crate::hold::{HoldArgs, UnholdArgs};
use crate::init::InitArgs;
use crate::login::LoginArgs;
use crate::man::ManArgs;
use crate::open::OpenArgs;
use crate::person::PersonArgs;
use crate::plan::PlanArgs;
use crate::promote::{PolicyArgs, PromoteArgs};
use crate::publish::PublishArgs;
use crate::render::RenderArgs;
use crate::rollout::{OperationArgs, RolloutArgs};
use crate::status::StatusArgs;
use crate::token::TokenArgs;
use crate::up::UpArgs;
use crate::validate::ValidateArgs;

/// Decide what runs where in a fleet, and with which configuration.
///
/// Kedge reads a control plane from Git, a folder or a repository, and writes the GitOps files of its environments. `up` starts a
/// whole fleet on this machine, to look at. `init` to `render` work offline, on a checkout; `login` to `audit` talk to a hub,
/// which delivers and reports what runs.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "kedge",
    bin_name = "kedge",
    version,
    max_term_width = 120,
    after_help = "\
Examples:
  See a whole fleet on this machine:
    kedge up --open

  Make a sample platform and look around:
    kedge init demo

  In a checkout, check a change, see what it would do, and know why:
    kedge validate
    kedge plan -e dev --from dev --to .
    kedge explain -e dev drone/hello-functional-test

  Write the files of an environment:
    kedge render -e dev -c control-plane.git --out gitops

  With a hub: log in, see what is wrong, add a cluster, follow what runs:
    kedge login https://hub.example:7480 --token-file token
    kedge status
    kedge get problems
    kedge token create -e dev --cluster-type drone
    kedge get clusters --watch
    kedge describe assignment drone/hello-functional-test -e dev
    kedge compare stage prod

  Follow a change through the rings, and wait until every cluster has it:
    kedge promote
    kedge rollout status -e prod --workload hello --wait

  For hosts without a network: deliver by file, and import their status:
    kedge bundle export -e prod --cluster-type press -o press.kedge
    kedge status import press-7.kedge

Exit codes: 0 success, 1 failed or invalid, 2 wrong usage, 3 done, but something was quarantined, left
out or isn't complete yet."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// In the order of a user's day.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    Up(UpArgs),
    Init(InitArgs),
    Validate(ValidateArgs),
    Plan(PlanArgs),
    Explain(ExplainArgs),
    Render(RenderArgs),
    Login(LoginArgs),
    Open(OpenArgs),
    Status(StatusArgs),
    Drift(DriftArgs),
    Get(GetArgs),
    Describe(DescribeArgs),
    Compare(CompareArgs),
    Token(TokenArgs),
    Bundle(BundleArgs),
    Person(PersonArgs),
    Access(AccessArgs),
    Cluster(ClusterArgs),
    Hold(HoldArgs),
    Unhold(UnholdArgs),
    Publish(PublishArgs),
    Rollout(RolloutArgs),
    Promote(PromoteArgs),
    Policy(PolicyArgs),
    Evidence(EvidenceArgs),
    /// Restart a workload on every cluster that the selectors name
    Restart(OperationArgs),
    /// Retry failed content on every cluster that the selectors name
    Reapply(OperationArgs),
    History(HistoryArgs),
    Audit(AuditArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}
