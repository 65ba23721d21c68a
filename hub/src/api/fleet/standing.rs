//! How an environment stands: which commit of `main` its rings run, and what makes that another one than Git names: a rollback, a
//! stop, a pause, a hold, a publish that waits, an input that can't be read.

use std::collections::BTreeSet;

use kedge_api::environments::EnvironmentSummary;
use kedge_api::fleet::{FleetEnvironment, StandingNotice};
use kedge_rollout::rollout::stop_words;
use kedge_rollout::{Phase, RolloutId};

use super::reported;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::page::moment;
use crate::store::catalog::Visible;
use crate::store::promotion::PromotionRow;
use crate::store::rollout::{RolloutFilter, StoredRollout};

/// So many rollouts are looked at for the commit that runs.
const LOOKED_AT: i64 = 50;
/// So many notices of one kind.
const NOTICES: usize = 5;

/// What the catalog says of its inputs and of the last publish.
pub(super) fn described(view: &EnvironmentSummary) -> Vec<StandingNotice> {
    let mut notices = Vec::new();
    let mut add = |kind: &str, text: String| {
        notices.push(StandingNotice { kind: kind.to_owned(), text, ..StandingNotice::default() });
    };
    let publish = view.publish.clone().unwrap_or_default();
    let at = publish.link.as_deref().map(|link| format!(": {link}")).unwrap_or_default();
    match publish.outcome.as_str() {
        "pullRequest" => add("publish", format!("what Git describes waits for a pull request to be merged{at}")),
        "branchPushed" => add("publish", format!("what Git describes waits for a branch to be merged{at}")),
        "declined" => add("publish", format!("the pull request with what Git describes was declined{at}")),
        "failing" => {
            let why = publish.message.map(|why| format!(": {why}")).unwrap_or_default();
            add("publish", format!("what Git describes can't be published{why}"));
        }
        _ => {}
    }
    if !view.waiting.is_empty() {
        let names: Vec<&str> = view.waiting.iter().map(|waiting| waiting.cluster_type.as_str()).collect();
        add("publish", format!("removing most of {} waits for `kedge publish confirm`", names.join(", ")));
    }
    let failing = view.totals.as_ref().map_or(0, |totals| totals.failing_inputs);
    if failing > 0 {
        let inputs = if failing == 1 { "1 input".to_owned() } else { format!("{failing} inputs") };
        add("stale", format!("{inputs} can't be read: the last good version stays in force"));
    }
    notices
}

/// What its rollouts and people's holds say.
pub(super) async fn stand(
    environment: &mut FleetEnvironment,
    state: &ApiState,
    visible: &Visible,
    rings: &[String],
    workload: Option<&str>,
    row: Option<&PromotionRow>,
) -> Result<(), ApiError> {
    let own = Own::of(state, visible, &environment.name, workload).await?;
    let mut blocked: BTreeSet<RolloutId> = BTreeSet::new();
    let mut shown: BTreeSet<RolloutId> = BTreeSet::new();
    for row in state.store.rollouts_blocked(&environment.name).await? {
        blocked.insert(row.rollout);
        if own.has(&row.cluster_type, &row.assignment) && workload.is_none_or(|name| name == row.workload) {
            shown.insert(row.rollout);
        }
    }
    let mut notices = Vec::new();
    for id in shown.iter().rev().take(NOTICES) {
        if let Some(stored) = state.store.rollout(*id).await? {
            notices.extend(ended(&stored, *visible == Visible::All));
        }
    }
    if *visible == Visible::All && workload.is_none() {
        let filter = RolloutFilter {
            environment: Some(&environment.name),
            unfinished: true,
            limit: NOTICES as i64,
            ..RolloutFilter::default()
        };
        notices.extend(state.store.rollouts(&filter).await?.iter().filter_map(|stored| ended(stored, true)));
        let filter = RolloutFilter {
            environment: Some(&environment.name),
            lane: Some("platform"),
            limit: LOOKED_AT,
            ..RolloutFilter::default()
        };
        let rollouts = state.store.rollouts(&filter).await?;
        let compared = state.store.compared_head(&environment.name).await?.map(|head| head.main);
        let base = compared.filter(|main| !main.is_empty()).or_else(|| environment.promoted_commit.clone());
        let standing = row.map(|row| &row.standing);
        environment.running =
            reported::commits(state, &environment.name, rollouts, &blocked, rings, base.as_deref(), standing).await?;
        for one in &mut environment.running {
            if Some(&one.commit) == environment.promoted_commit.as_ref() {
                one.subject = environment.promoted_subject.clone().unwrap_or_default();
            }
        }
    }
    notices.append(&mut environment.notices);
    notices.extend(held(state, &environment.name, &own).await?);
    environment.notices = notices;
    Ok(())
}

/// Which assignments the caller may see.
struct Own(Option<BTreeSet<(String, String)>>);

impl Own {
    async fn of(
        state: &ApiState,
        visible: &Visible,
        environment: &str,
        workload: Option<&str>,
    ) -> Result<Own, ApiError> {
        let mut own: Option<BTreeSet<(String, String)>> = None;
        if let Visible::Workspaces(workspaces) = visible {
            let all = state.store.own_assignments(workspaces).await?;
            let here = all.into_iter().filter(|(of, _)| of == environment);
            own = Some(
                here.filter_map(|(_, name)| {
                    name.split_once('/').map(|(one, other)| (one.to_owned(), other.to_owned()))
                })
                .collect(),
            );
        }
        if let Some(workload) = workload {
            let targets = state.store.targets_of(workload, Some(environment)).await?;
            let types: Vec<String> = state.store.cluster_type_names(environment).await?;
            let named: BTreeSet<(String, String)> = targets
                .iter()
                .flat_map(|(_, target)| types.iter().map(move |name| (name.clone(), target.clone())))
                .filter(|name| own.as_ref().is_none_or(|own| own.contains(name)))
                .collect();
            own = Some(named);
        }
        Ok(Own(own))
    }

    fn has(&self, cluster_type: &str, assignment: &str) -> bool {
        self.0.as_ref().is_none_or(|own| own.contains(&(cluster_type.to_owned(), assignment.to_owned())))
    }
}

/// What became of a rollout that isn't complete; nothing while it moves. `whole`: with the reason, which may be about other teams.
fn ended(stored: &StoredRollout, whole: bool) -> Option<StandingNotice> {
    let rollout = &stored.rollout;
    let halted_by = |by: &String| rollout.halted_by().filter(|_| whole).unwrap_or_else(|| by.clone());
    let (kind, what, at) = match &rollout.phase {
        Phase::RolledBack { why, at } if whole => ("rolledBack", format!("was rolled back: {why}"), at),
        Phase::RolledBack { at, .. } => ("rolledBack", "was rolled back".to_owned(), at),
        Phase::Aborted { by, at } => ("aborted", format!("was aborted by {}", halted_by(by)), at),
        Phase::Stopped { ring, why, at } => ("stopped", format!("stopped: {}", stop_words(ring, why)), at),
        Phase::Paused { by, at } => ("paused", format!("is paused by {}", halted_by(by)), at),
        Phase::Active | Phase::Complete { .. } | Phase::Superseded { .. } => return None,
    };
    let commit = rollout.cause.named();
    Some(StandingNotice {
        kind: kind.to_owned(),
        text: format!("{} “{}” {what}", commit.get(..10).unwrap_or(commit), rollout.cause.subject),
        rollout: Some(rollout.id.0),
        since: Some(moment(at.0)),
    })
}

async fn held(state: &ApiState, environment: &str, own: &Own) -> Result<Option<StandingNotice>, ApiError> {
    let holds = state.store.held_clusters(environment).await?;
    let holds: Vec<_> = holds.iter().filter(|hold| own.has(&hold.stream.cluster_type, &hold.assignment)).collect();
    let Some(first) = holds.first() else { return Ok(None) };
    let text = match holds.len() {
        1 => format!("{} is held on {} by {}", first.assignment, first.cluster, first.by),
        several => format!("{several} holds, the first: {} on {} by {}", first.assignment, first.cluster, first.by),
    };
    Ok(Some(StandingNotice { kind: "held".to_owned(), text, ..StandingNotice::default() }))
}
