//! What is wrong with changes: rollouts that stopped, were paused, aborted or rolled back, and decisions that somebody owes.

use kedge_api::problems::{ProblemKind, ProblemSeverity, ProblemSummary};
use kedge_api::rollouts::RolloutSummary;
use kedge_model::command::Command;
use kedge_rollout::approval::can_approve;
use kedge_rollout::{Phase, PromotionPhase, RingState};

use super::fold::Found;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::api::page::moment;
use crate::api::promotions::policy_approvals;
use crate::api::rollouts;
use crate::links;
use crate::store::rollout::{RolloutFilter, StoredRollout};

/// Unfinished rollouts that are looked at: more than there are lanes in a large fleet.
const MOST: i64 = 500;
/// Letters of a commit that people know it by.
const SHORT: usize = 7;

/// Rollouts that don't go on by themselves, and those that wait for an approval.
pub async fn rollouts(state: &ApiState, caller: &Caller, found: &mut Found) -> Result<(), ApiError> {
    let filter = RolloutFilter { unfinished: true, limit: MOST, ..RolloutFilter::default() };
    let mut stored = state.store.rollouts(&filter).await?;
    for id in state.store.halted_rollouts().await? {
        stored.extend(state.store.rollout(id).await?);
    }
    for one in stored {
        let halted =
            matches!(one.rollout.phase, Phase::Stopped { .. } | Phase::RolledBack { .. } | Phase::Aborted { .. });
        if !halted && !matches!(one.rollout.phase, Phase::Paused { .. }) && approval(&one).is_none() {
            continue;
        }
        let (rollout, approval) = (one.rollout.id, approval(&one));
        let moved = state.store.rollout_items(rollout).await?;
        let environment = one.rollout.environment.clone();
        let Some(view) = rollouts::seen(state, caller, vec![one]).await?.pop() else { continue };
        let problem = match approval {
            Some((ring, lacks)) if !halted && view.state == "Active" => waits(&view, &ring, &lacks),
            _ => ended(&view),
        };
        if halted {
            for item in moved {
                let assignment = format!("{}/{}", item.item.cluster_type, item.item.assignment);
                found.moved.insert((environment.clone(), assignment), problem.id.clone());
            }
        }
        found.add(problem);
    }
    Ok(())
}

/// Promotions and policies that wait for people, and branches that can't be written.
pub async fn promotions(state: &ApiState, found: &mut Found) -> Result<(), ApiError> {
    for (environment, row) in state.store.promotions().await? {
        if let Some(trouble) = &row.trouble {
            found.add(ProblemSummary {
                id: format!("delivery/{environment}/PromotionNotWritten"),
                kind: ProblemKind::Delivery,
                severity: ProblemSeverity::Error,
                code: "PromotionNotWritten".to_owned(),
                environments: vec![environment.clone()],
                count: 1,
                message: format!("{environment} isn't at the promoted commit: {trouble}"),
                hint: Some(
                    "the hub tries again by itself; its credential must be allowed to write the branch".to_owned(),
                ),
                command: Command::new("kedge promote").names(&[&environment]).into(),
                link: links::promotion(&environment),
                ..ProblemSummary::default()
            });
        }
        let open = row.standing.promotions.iter().find(|promotion| {
            matches!(promotion.phase, PromotionPhase::Waiting | PromotionPhase::Entered)
                && can_approve(&promotion.waits_for)
        });
        if let Some(promotion) = open {
            let commit = short(&promotion.commit);
            found.add(ProblemSummary {
                id: format!("approvals/{environment}/{}", promotion.commit),
                kind: ProblemKind::Approvals,
                severity: ProblemSeverity::Waiting,
                code: "PromotionWaiting".to_owned(),
                environments: vec![environment.clone()],
                count: 1,
                message: format!(
                    "{commit} {} waits to be let into {environment}: {}",
                    promotion.subject,
                    promotion.waits_for.join("; ")
                ),
                hint: Some("look at what it changes, then approve it".to_owned()),
                command: Command::new("kedge promote approve").names(&[&environment]).into(),
                link: links::promotion(&environment),
                since: Some(moment(promotion.created_at.0)),
                ..ProblemSummary::default()
            });
        }
    }
    let policies = state.store.policies().await?;
    if let Some(waiting) = &policies.waiting {
        let given = policy_approvals(&policies).map(|given| format!("; {given}")).unwrap_or_default();
        found.problems.retain(|problem| problem.code != "PolicyLoosened");
        found.add(ProblemSummary {
            id: format!("approvals/policy/{}", waiting.commit),
            kind: ProblemKind::Approvals,
            severity: ProblemSeverity::Waiting,
            code: "PolicyLoosened".to_owned(),
            count: 1,
            message: format!("a looser promotion policy waits for an approval: {}{given}", waiting.reasons.join("; ")),
            hint: Some("the policy before it stays in force until somebody of the platform team agrees".to_owned()),
            command: "kedge policy --approve --reason TEXT".to_owned(),
            link: "/policy".to_owned(),
            since: Some(moment(waiting.since.0)),
            ..ProblemSummary::default()
        });
    }
    Ok(())
}

/// The ring that waits for people and at most for its time, and what is missing.
fn approval(stored: &StoredRollout) -> Option<(String, String)> {
    let ring = stored.rollout.rings.iter().find(|ring| ring.state != RingState::Passed)?;
    can_approve(&ring.waits_for).then(|| (ring.ring.clone(), ring.waits_for.join("; ")))
}

fn waits(view: &RolloutSummary, ring: &str, lacks: &str) -> ProblemSummary {
    // Of a rollout that moves other teams' assignments too, its gate isn't told.
    let lacks = if view.partial { "an approval" } else { lacks };
    ProblemSummary {
        id: format!("approvals/{}/rollout/{}", view.environment, view.id),
        kind: ProblemKind::Approvals,
        severity: ProblemSeverity::Waiting,
        code: "RolloutWaiting".to_owned(),
        message: format!("{} waits before ring {ring}: {lacks}", name(view)),
        hint: Some("look at the ring before it, then approve it".to_owned()),
        command: format!("kedge rollout approve {}", view.id),
        ..of_rollout(view)
    }
}

fn ended(view: &RolloutSummary) -> ProblemSummary {
    let (id, why) = (view.id, &view.why);
    let (code, severity, message, hint) = match view.state.as_str() {
        "Paused" => (
            "RolloutPaused",
            ProblemSeverity::Waiting,
            format!("{} is {why}", name(view)),
            format!("resume it: kedge rollout resume {id}"),
        ),
        "RolledBack" => (
            "RolledBack",
            ProblemSeverity::Error,
            format!("{} was rolled back: {why}", name(view)),
            "what ran before it runs again; fix the change and push: a new rollout takes its place".to_owned(),
        ),
        "Aborted" => (
            "RolloutAborted",
            ProblemSeverity::Error,
            format!("{} was {why}", name(view)),
            format!(
                "clusters that were reached keep what they have; fix the change and push, or start it again as \
                 `kedge rollout show {id}` says"
            ),
        ),
        _ => (
            "RolloutStopped",
            ProblemSeverity::Error,
            format!("{} stopped: {why}", name(view)),
            format!(
                "fix the change and push, or go on with `kedge rollout resume {id}`, or go back with \
                 `kedge rollout rollback {id} --reason TEXT`"
            ),
        ),
    };
    ProblemSummary {
        id: format!("rollouts/{}/{id}", view.environment),
        kind: ProblemKind::Rollouts,
        severity,
        code: code.to_owned(),
        message,
        hint: Some(hint),
        command: format!("kedge rollout show {id}"),
        ..of_rollout(view)
    }
}

fn of_rollout(view: &RolloutSummary) -> ProblemSummary {
    ProblemSummary {
        environments: vec![view.environment.clone()],
        count: 1,
        link: links::rollout(view.id),
        since: Some(view.updated_at.clone()),
        ..ProblemSummary::default()
    }
}

fn name(view: &RolloutSummary) -> String {
    let commit = short(view.cause.named());
    let subject = if view.cause.subject.is_empty() { String::new() } else { format!(" “{}”", view.cause.subject) };
    format!("rollout {} of {commit}{subject} in {}", view.id, view.environment)
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}
