//! What can be done about a rollout that went back or was aborted while Git still asks for its content. For `kedge rollout show`
//! and the rollout's page.

use std::collections::BTreeSet;

use kedge_api::rollouts::{RolloutSummary, SuggestedAction};
use kedge_rollout::Lane;

use crate::api::caller::Caller;
use crate::store::rollout::{BlockedRow, StoredItem, StoredRollout};
use crate::store::tokens::Role;

/// Who has more workloads to start than this finds the others in the list of what moves.
const COMMANDS: usize = 10;
/// Digits of a commit that people recognise it by.
const DIGITS: usize = 8;

/// Workloads that stay as they were until a person starts them or Git changes, of those that the caller sees.
pub fn blocked(stored: &StoredRollout, items: &[StoredItem], blocked: &[BlockedRow]) -> BTreeSet<String> {
    let ours = blocked.iter().filter(|row| row.rollout == stored.rollout.id);
    let seen = ours.filter(|row| {
        items.iter().any(|one| one.item.cluster_type == row.cluster_type && one.item.assignment == row.assignment)
    });
    seen.map(|row| row.workload.clone()).collect()
}

/// A name that a shell takes as one word, and nothing else.
fn is_plain(name: &str) -> bool {
    !name.starts_with('-')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_'))
}

pub fn out(
    stored: &StoredRollout,
    view: &RolloutSummary,
    blocked: &BTreeSet<String>,
    caller: &Caller,
) -> Vec<SuggestedAction> {
    if !matches!(view.state.as_str(), "RolledBack" | "Aborted") {
        return Vec::new();
    }
    let say = |text: String| SuggestedAction { text, command: None };
    if view.settled {
        return vec![say("Git doesn't ask for this content any more: nothing is left to do.".to_owned())];
    }
    let rollout = &stored.rollout;
    let commit = rollout.cause.named();
    let commit = commit.get(..DIGITS).unwrap_or(commit);
    let place = match &rollout.lane {
        Lane::Platform if rollout.cause.subject_of.is_some() => String::new(),
        Lane::Platform => " of the platform's files".to_owned(),
        Lane::Source { repo, reference } => format!(" of {repo}@{reference}"),
    };
    let mut ways = vec![say(format!(
        "Git still asks for it: commit {commit}{place}. Revert or fix it there, and the new commit begins a rollout of its own."
    ))];
    if caller.role != Role::Platform {
        ways.push(say("Or ask the platform team to start it again as it is.".to_owned()));
        return ways;
    }
    let environment = &rollout.environment;
    for workload in blocked.iter().take(COMMANDS).filter(|workload| is_plain(workload) && is_plain(environment)) {
        ways.push(SuggestedAction {
            text: format!("Or start {workload} again as it is, once the cause is gone."),
            command: Some(format!(
                "kedge rollout start -e {environment} --workload {workload} --reason \"the cause is gone\""
            )),
        });
    }
    if let Some(more) = blocked.len().checked_sub(COMMANDS).filter(|more| *more > 0) {
        ways.push(say(format!("{more} more workloads can be started again in the same way.")));
    }
    ways
}
