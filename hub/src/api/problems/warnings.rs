//! What agents warn of, by environment and code: a thousand clusters with the same warning are one problem. Counted as their documents
//! arrive; what a few of them say is read for the problems that are shown.

use kedge_api::problems::{ProblemExample, ProblemSeverity, ProblemSummary};
use kedge_hub_types::status::warnings::{OTHER, WarningSeverity, about, one_line};
use kedge_model::command::Command;
use std::collections::BTreeMap;

use super::clusters::{counted, of_clusters};
use super::fold::Found;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::page::moment;
use crate::links;
use crate::store::catalog::Visible;

/// The part of an id that says what sort of problem it is.
const WARNS: &str = "AgentWarns";
/// About a single assignment: whose it is only its code says, so that teams find it on the cluster's page.
const OF_ASSIGNMENTS: &str = "DiskLimit";

/// Clusters of an environment that warn of one thing.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    error: bool,
    first: Option<i64>,
}

pub async fn warnings(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    let mut sums: BTreeMap<(String, String), Sum> = BTreeMap::new();
    for one in state.store.warning_sums(visible).await? {
        if *visible != Visible::All && one.kind == OF_ASSIGNMENTS {
            continue;
        }
        let sum = sums.entry((one.environment, one.kind)).or_default();
        sum.count += one.count;
        sum.error |= one.severity == WarningSeverity::Error.as_str();
        sum.first = sum.first.into_iter().chain(one.first).min();
    }
    for ((environment, kind), Sum { count, error, first }) in sums {
        let known = about(&kind);
        let pairs = [("environment", environment.as_str()), ("state", "active"), ("warning", known.code)];
        found.add(ProblemSummary {
            id: format!("clusters/{environment}/{WARNS}/{}", known.code),
            code: known.code.to_owned(),
            count,
            message: format!(
                "{} of {environment} {}: {}",
                counted(count, "cluster"),
                if count == 1 { "warns" } else { "warn" },
                known.told
            ),
            hint: Some(known.way_out.to_owned()),
            command: Command::new("kedge get clusters")
                .option("-e", &environment)
                .option("--warning", known.code)
                .into(),
            link: links::query("/clusters", &pairs),
            since: first.map(moment),
            ..of_clusters(&environment, if error { ProblemSeverity::Error } else { ProblemSeverity::Warning })
        });
    }
    Ok(())
}

/// Whether a problem is one of these.
pub fn is_warning(problem: &ProblemSummary) -> bool {
    problem.id.split('/').nth(2) == Some(WARNS)
}

/// A few of those that warn. What they say is for the platform team alone: it can name other teams' assignments.
pub async fn examples(
    state: &ApiState,
    visible: &Visible,
    problem: &ProblemSummary,
    most: usize,
) -> Result<Vec<ProblemExample>, ApiError> {
    let Some(environment) = problem.environments.first() else { return Ok(Vec::new()) };
    let found = state.store.warnings_of(visible, environment, &problem.code, most).await?;
    let example = |seen: crate::store::api::warnings::WarningSeen| ProblemExample {
        cluster: Some(seen.cluster),
        message: match visible {
            Visible::All if problem.code == OTHER => format!("{}: {}", one_line(&seen.code), seen.message),
            Visible::All => seen.message,
            Visible::Workspaces(_) => String::new(),
        },
        ..ProblemExample::default()
    };
    Ok(found.into_iter().map(example).collect())
}
