//! The rings of a rollout as steps, from top to bottom: where each is, in numbers, and what its gate waits for. The pages of
//! rollouts and workloads show them.

use axum::extract::{Query, State};
use kedge_api::promotions::PromotionSummary;
use kedge_api::rollout_status::{RolloutStatus, StatusLine};
use kedge_api::rollouts::{MemberCounts, RingProgress, RolloutDetail};
use kedge_model::kinds::Ring;
use kedge_rollout::gate::{Sight, clusters};
use kedge_rollout::moment::Span;
use kedge_rollout::{Counts, Progress, RingState, Rollout, approval};

use super::links;
use super::part::{Bar, Check, Four, Step, Tone, When};
use crate::api::answer::ApiError;
use crate::api::page::moment;
use crate::api::rollouts::status::{StatusQuery, rollout_status};
use crate::api::rollouts::view::ring_word;
use crate::api::{ApiState, Caller};

/// A ring's gate, as the viewer may see it.
struct Gate<'a> {
    rollout: &'a Rollout,
    progress: &'a Progress,
    seen: &'a RingProgress,
    is_current: bool,
    /// It looks at other teams' assignments too.
    partial: bool,
}

/// What a rollout's numbers are lists of.
struct Narrow<'a> {
    environment: &'a str,
    cluster_type: &'a str,
    assignment: &'a str,
    workload: &'a str,
    ring: &'a str,
}

/// How closely a rollout is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Among others: what has passed is shown as it was then.
    Glance,
    /// On its own page: everything as it is now.
    Whole,
}

/// Every ring with its gate; those that move are counted by the exact packages of the change, now.
pub async fn steps(
    state: &ApiState,
    caller: &Caller,
    rollout: &Rollout,
    whole: &RolloutDetail,
    look: Look,
) -> Result<Vec<Step>, ApiError> {
    let current = rollout.current().map(|progress| progress.ring.clone());
    let mut steps = Vec::with_capacity(rollout.rings.len());
    for (progress, seen) in rollout.rings.iter().zip(&whole.rollout.rings) {
        let moves = matches!(progress.state, RingState::Rolling | RingState::Stopped);
        let status = match progress.state.is_new() && (moves || look == Look::Whole) {
            true => Some(counted(state, caller, rollout.id.0, &progress.ring).await?),
            false => None,
        };
        // Where other content has taken its place, what counts is how it passed.
        let replaced = |status: &&RolloutStatus| status.lines.iter().any(|line| !line.replaced.is_empty());
        let now = status.as_ref().filter(|status| !replaced(status)).map(|status| status.counts);
        let is_current = current.as_deref() == Some(&progress.ring);
        let gate = Gate { rollout, progress, seen, is_current, partial: whole.rollout.partial };
        steps.push(Step {
            key: format!("{}-{}", rollout.id, progress.ring),
            name: progress.ring.clone(),
            tone: tone(progress.state),
            word: word(progress).to_owned(),
            when: when(progress),
            bar: now.or(seen.counts).map(|counts| bar(&counts, &Narrow::of(whole, &progress.ring))),
            checks: gate.checks(status.as_ref()),
        });
    }
    Ok(steps)
}

/// The numbers of one ring of a rollout.
pub async fn counted(state: &ApiState, caller: &Caller, id: u64, ring: &str) -> Result<RolloutStatus, ApiError> {
    let query = StatusQuery { rollout: Some(id), ring: Some(ring.to_owned()), ..StatusQuery::default() };
    Ok(rollout_status(State(state.clone()), caller.clone(), Ok(Query(query))).await?.0)
}

/// The numbers of a line of a rollout's answer.
pub fn line_bar(line: &StatusLine) -> Bar {
    bar(
        &line.counts,
        &Narrow {
            environment: &line.environment,
            cluster_type: &line.cluster_type,
            assignment: &line.assignment,
            workload: "",
            ring: "",
        },
    )
}

fn bar(counts: &MemberCounts, narrow: &Narrow<'_>) -> Bar {
    let four = Four {
        converged: counts.converged,
        converging: counts.converging,
        failed: counts.failed,
        unknown: counts.offline,
    };
    let link = |condition: &str, reality: &str| {
        links::query(
            "/conditions",
            &[
                ("environment", narrow.environment),
                ("clusterType", narrow.cluster_type),
                ("workload", narrow.workload),
                ("assignment", narrow.assignment),
                ("ring", narrow.ring),
                ("condition", condition),
                ("reality", reality),
            ],
        )
    };
    // Converged on what was there before isn't meant: those run something else than they should now.
    let of = |tone: Tone| link(tone.word(), if tone == Tone::Converged { "asDesired" } else { "" });
    four.bar_among(counts.waiting, link("", "differs"), of)
}

pub fn tone(state: RingState) -> Option<Tone> {
    match state {
        RingState::Passed => Some(Tone::Converged),
        RingState::Rolling => Some(Tone::Converging),
        RingState::Stopped => Some(Tone::Failed),
        RingState::Waiting | RingState::Returned => None,
    }
}

/// A rollout's state as shape and colour; none for what is neither good nor bad.
pub fn tone_of(state: &str) -> Option<Tone> {
    match state {
        "Complete" | "Passed" => Some(Tone::Converged),
        "Active" | "Entered" => Some(Tone::Converging),
        "Stopped" | "Failed" | "Reopened" => Some(Tone::Failed),
        _ => None,
    }
}

/// What a rollout's state looks like: one that went back needs somebody until Git asks for something else.
pub fn tone_of_rollout(state: &str, settled: bool) -> Option<Tone> {
    match state {
        "RolledBack" | "Aborted" => (!settled).then_some(Tone::Failed),
        other => tone_of(other),
    }
}

/// What a promotion looks like among others of its environment, the newest first: a failure that a newer commit has overcome is past.
pub fn tone_of_promotion(promotions: &[PromotionSummary], commit: &str) -> Option<Tone> {
    let at = promotions.iter().position(|one| one.commit == commit)?;
    let overcome = promotions.iter().take(at).any(|newer| matches!(newer.state.as_str(), "Passed" | "Adopted"));
    match tone_of(&promotions.get(at)?.state) {
        Some(Tone::Failed) if overcome => None,
        tone => tone,
    }
}

/// What a rollout's state is called in a sentence.
pub fn said(state: &str) -> &str {
    match state {
        "Active" => "rolling",
        "Paused" => "paused",
        "Stopped" => "stopped",
        "Complete" => "complete",
        "RolledBack" => "rolled back",
        "Aborted" => "aborted",
        "Superseded" => "superseded",
        "Waiting" => "waiting",
        "Entered" => "rolling",
        "Passed" => "passed",
        "Failed" => "failed",
        "Reopened" => "open again",
        "Adopted" => "was there before",
        other => other,
    }
}

/// The name of a commit's author, without the address.
pub fn person(author: &str) -> String {
    let name = author.split('<').next().unwrap_or(author).trim();
    if name.is_empty() { author.to_owned() } else { name.to_owned() }
}

fn word(progress: &Progress) -> &'static str {
    match (progress.state, progress.steady_since) {
        (RingState::Rolling, Some(_)) => "soaks",
        _ => ring_word(progress),
    }
}

fn when(progress: &Progress) -> Option<When> {
    let at = match progress.state {
        RingState::Passed => progress.passed_at,
        RingState::Rolling if progress.steady_since.is_some() => progress.steady_since,
        RingState::Rolling | RingState::Stopped | RingState::Returned => progress.started_at,
        RingState::Waiting => None,
    };
    at.map(|at| When::of(&moment(at.0)))
}

impl Gate<'_> {
    /// The rules of a ring as they stand. What doesn't hold is said in the words of who decides it.
    fn checks(&self, status: Option<&RolloutStatus>) -> Vec<Check> {
        let rules = self.rollout.policy.rings.iter().find(|rules| rules.name == self.progress.ring);
        let waits = || self.seen.waits_for.iter().map(|why| Check::new(Some(false), why.clone()));
        let mut checks = Vec::new();
        match self.progress.state {
            RingState::Waiting => {
                checks.extend(rules.and_then(|rules| approved(self.rollout, rules)));
                match self.is_current {
                    true => checks.extend(waits()),
                    false => checks.extend(rules.into_iter().flat_map(|rules| ahead(self.rollout, rules))),
                }
            }
            RingState::Rolling => {
                let counts = status.map(|status| summed(&status.lines)).unwrap_or_default();
                if !self.partial {
                    checks.extend(rules.into_iter().flat_map(|rules| holding(rules, self.progress, &counts)));
                }
                checks.extend(waits());
            }
            RingState::Stopped => checks.extend(waits()),
            RingState::Passed => {
                checks.extend(self.seen.counts.map(|counts| Check::new(Some(true), passed_with(&counts))));
            }
            RingState::Returned if self.progress.is_going_back() => checks.extend(waits()),
            RingState::Returned => checks.push(Check::new(None, "went back to what it had before")),
        }
        checks
    }
}

fn passed_with(all: &MemberCounts) -> String {
    let reached = all.converged + all.converging + all.failed;
    let mut text = format!("passed with {} of {reached} reached converged", all.converged);
    for (count, word) in [(all.failed, "failed"), (all.offline, "away"), (all.waiting, "waiting")] {
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    text
}

fn approved(rollout: &Rollout, rules: &Ring) -> Option<Check> {
    let rule = &rollout.approval(&rules.name)?;
    let authors = [rollout.cause.author.as_str()];
    if approval::missing(rule, &rollout.words, &rules.name, &authors).is_some() {
        return None;
    }
    let people = approval::people(rule, &rollout.words, &rules.name, &authors);
    let people: Vec<String> = people.into_values().collect();
    Some(Check::new(Some(true), format!("approved by {}", people.join(", "))))
}

/// The rules of a ring whose turn hasn't come.
fn ahead(rollout: &Rollout, rules: &Ring) -> Vec<Check> {
    let mut texts = Vec::new();
    if let Some(rule) = rollout.approval(&rules.name) {
        let approvals = if rule.people == 1 { "1 approval".to_owned() } else { format!("{} approvals", rule.people) };
        texts.push(format!("needs {approvals} from the {} team", approval::role(rule.role)));
    }
    texts.push(format!("{} of those reached must be converged", percent(rules.gate.converged)));
    texts.extend(rules.gate.checks.iter().map(|check| format!("check {} must hold", check.name)));
    if !rules.soak.is_zero() {
        texts.push(format!("soaks {}", Span(rules.soak)));
    }
    texts.into_iter().map(|text| Check::new(None, text)).collect()
}

/// What holds of a gate that is open now, and what comes last.
fn holding(rules: &Ring, progress: &Progress, counts: &Counts) -> Vec<Check> {
    let (gate, members, reached) = (&rules.gate, counts.members(), counts.reached());
    let mut checks = Vec::new();
    if reached >= gate.reached.at_least(members).max(1) {
        checks.push(Check::new(Some(true), format!("{reached} of {members} reached")));
        let most = gate.failed.at_most(members);
        if counts.failed <= most {
            checks.push(Check::new(Some(true), format!("{} failed, at most {most} may", counts.failed)));
        }
        let waits = progress.waits_for.iter().any(|why| why.contains("are converged"));
        if !waits {
            let share = percent(gate.converged);
            checks.push(Check::new(Some(true), format!("{} of {reached} converged, {share} needed", counts.converged)));
        }
    }
    for check in &gate.checks {
        let name = format!("check {} ", check.name);
        if !progress.waits_for.iter().any(|why| why.starts_with(&name)) {
            checks.push(Check::new(Some(true), format!("check {} holds", check.name)));
        }
    }
    if !rules.soak.is_zero() && progress.steady_since.is_none() {
        checks.push(Check::new(None, format!("then soaks {}", Span(rules.soak))));
    }
    checks
}

fn summed(lines: &[StatusLine]) -> Counts {
    let sights: Vec<Sight<'_>> = lines
        .iter()
        .map(|line| Sight {
            cluster_type: &line.cluster_type,
            assignment: &line.assignment,
            counts: Counts {
                converged: line.counts.converged,
                converging: line.counts.converging,
                failed: line.counts.failed,
                offline: line.counts.offline,
                waiting: line.counts.waiting,
            },
        })
        .collect();
    clusters(&sights)
}

/// From hundredths of a percent.
fn percent(share: u32) -> String {
    match (share / 100, share % 100) {
        (whole, 0) => format!("{whole} %"),
        (whole, part) => format!("{whole}.{part:02} %"),
    }
}

impl<'a> Narrow<'a> {
    /// As narrow as all of what moves allows.
    fn of(whole: &'a RolloutDetail, ring: &'a str) -> Narrow<'a> {
        fn same<'a>(mut all: impl Iterator<Item = &'a str>) -> &'a str {
            let Some(first) = all.next() else { return "" };
            if all.all(|other| other == first) { first } else { "" }
        }
        let items = || whole.items.iter();
        let assignment = same(items().map(|item| item.assignment.as_str()));
        Narrow {
            environment: &whole.rollout.environment,
            cluster_type: same(items().map(|item| item.cluster_type.as_str())),
            assignment,
            workload: if assignment.is_empty() { same(items().map(|item| item.workload.as_str())) } else { "" },
            ring,
        }
    }
}
