//! Which flags of `kedge get` apply to which list: one that doesn't is refused, never ignored. Called before the hub is asked.

use super::{GetArgs, Listing};
use crate::error::UsageError;

/// A flag as it is typed, and whether it was.
type Given = (&'static str, bool);

pub(super) fn check(args: &GetArgs) -> Result<(), UsageError> {
    let takes = applicable(args.kind);
    match given(args).into_iter().find(|(flag, given)| *given && !takes.contains(flag)) {
        None => Ok(()),
        Some((flag, _)) => {
            let list = args.kind.path().replace("join-", "").replace('-', " ");
            let hint = match takes {
                [] => format!("`kedge get {}` takes no filter", args.kind.path()),
                takes => format!("it takes {}", takes.join(", ")),
            };
            Err(UsageError::new(format!("`{flag}` doesn't apply to {list}"), hint))
        }
    }
}

fn given(args: &GetArgs) -> [Given; 10] {
    [
        (ENVIRONMENT, args.environment.is_some()),
        (SELECTOR, args.selector.is_some()),
        ("--cluster-type", args.cluster_type.is_some()),
        ("--ring", args.ring.is_some()),
        ("--workspace", args.workspace.is_some()),
        ("--workload", args.workload.is_some()),
        ("--condition", args.condition.is_some()),
        ("--warning", args.warning.is_some()),
        ("--drift", args.drift),
        ("--of-kind", args.of_kind.is_some()),
    ]
}

/// Those that a list can be narrowed by, `--state` aside: the hub says which states there are.
fn applicable(kind: Listing) -> &'static [&'static str] {
    match kind {
        Listing::Clusters => &[ENVIRONMENT, SELECTOR, "--cluster-type", "--ring", "--condition", "--warning"],
        Listing::Conditions => &[ENVIRONMENT, "--cluster-type", "--ring", "--workload", "--condition", "--drift"],
        Listing::Environments | Listing::ClusterTypes | Listing::Repositories => &[ENVIRONMENT, SELECTOR],
        Listing::Workloads | Listing::Findings => &[ENVIRONMENT, SELECTOR, "--workspace"],
        Listing::Assignments => &[ENVIRONMENT, SELECTOR, "--cluster-type", "--workspace"],
        Listing::Targets => &[ENVIRONMENT, SELECTOR, "--workload", "--workspace"],
        Listing::Problems => &[ENVIRONMENT, "--of-kind"],
        Listing::DesiredStates => &[ENVIRONMENT, "--cluster-type", "--ring"],
        Listing::Tokens => &[],
    }
}

const ENVIRONMENT: &str = "-e/--environment";
const SELECTOR: &str = "-l/--selector";
