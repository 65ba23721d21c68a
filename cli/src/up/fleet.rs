//! What the hub says about the fleet, as the summary shows it, and the word that lets the first content into production.

use std::collections::BTreeMap;

use anyhow::Result;
use kedge_api::assignments::AssignmentSummary;
use kedge_api::client::Client;
use kedge_api::environments::EnvironmentSummary;
use kedge_api::fleet::{FleetEnvironment, RunningCommit};
use kedge_api::page::Stored;
use kedge_api::promotions::{ApproveRequest, EnvironmentPromotion, PromotionSummary};
use kedge_api::rollouts::{RolloutAction, RolloutActionRequest, RolloutSummary};
use serde_json::{Value, json};

use super::agents::Agents;
use crate::get::columns::one_line;

/// The fleet at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Picture {
    /// Along the way of a commit.
    pub environments: Vec<Environment>,
}

/// How an environment is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    pub name: String,
    pub clusters: u64,
    /// Placements (an assignment on a cluster) by condition.
    pub counts: Counts,
    /// How many there will be when all have reported.
    pub expected: u64,
    /// The commit of `main` that is in force, and its subject.
    pub commit: String,
    pub subject: String,
    /// The commits that clusters run, with their rings where there are several; empty: none has reported yet.
    pub running: Vec<Runs>,
    /// Why the commit in force failed here.
    pub failed: Option<String>,
    /// How far it is here: `Entered` until everything of it has arrived, then `Passed`; `Adopted` when it began with it.
    pub state: String,
    /// What is on its way or waits.
    pub rollouts: Vec<Rollout>,
    /// Why something else runs than that commit.
    pub notices: Vec<String>,
    /// The commit that wants to come in.
    pub next: Option<Next>,
    /// Commits that have passed its gate.
    pub passed: Vec<String>,
}

/// What `up` does about the change that it pushed itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It is on its way to production.
    Wait,
    /// It waits for a yes before production.
    Approve,
    /// It has entered production, or something else has: nothing is left to say.
    Leave,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// A commit that clusters run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    pub commit: String,
    pub subject: String,
    pub rings: Vec<String>,
}

/// A commit of `main` that waits to enter an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Next {
    pub commit: String,
    pub subject: String,
    pub waits_for_approval: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rollout {
    pub id: u64,
    pub subject: String,
    /// `canary rolling, rest waiting`
    pub rings: String,
    /// Somebody has to say yes.
    pub waits_for_approval: bool,
    pub state: String,
}

/// The environments of the sample.
const ENVIRONMENTS: [&str; 3] = ["dev", "stage", "prod"];
/// The one that asks for a person's word.
const PRODUCTION: &str = "prod";
const REASON: &str = "the first content, approved by kedge up";

impl Counts {
    pub fn total(&self) -> u64 {
        self.converged + self.converging + self.failed + self.unknown
    }
}

impl Picture {
    pub fn take(api: &Client, agents: &Agents) -> Result<Picture> {
        let promotions = api.promotions()?.read()?.items;
        let rollouts = api.rollouts_page(&[("unfinished", Some("true".to_owned()))])?.read()?.items;
        let assignments = api.assignments().gather(500, |_| true)?.read()?;
        let fleet = api.fleet(&[])?.read()?;
        let mut picture = Picture::default();
        for name in ENVIRONMENTS {
            let counts = api.counts(&[("environment", Some(name.to_owned()))])?.read()?;
            let promotion = promotions.iter().find(|one| one.environment == name).cloned().unwrap_or_default();
            let (commit, of) = in_force(&promotion);
            let found = fleet.environments.iter().find(|one| one.name == name);
            let mine = rollouts.iter().filter(|rollout| rollout.environment == name);
            picture.environments.push(Environment {
                name: name.to_owned(),
                clusters: agents.members().filter(|member| member.environment == name).count() as u64,
                counts: count(&counts),
                expected: expected(&assignments, name, agents),
                commit,
                subject: one_line(&of.subject),
                running: found.map(running).unwrap_or_default(),
                failed: failed(&of),
                state: of.state,
                notices: found.map(notices).unwrap_or_default(),
                next: Next::of(&promotion),
                passed: passed(&promotion),
                rollouts: mine.map(Rollout::of).collect(),
            });
        }
        Ok(picture)
    }

    /// Whether this commit of `main` has passed everywhere, though a later one may run in some places by now.
    pub fn has_arrived(&self, commit: &str) -> bool {
        let passed = |environment: &Environment| environment.passed.iter().any(|passed| passed == commit);
        !self.environments.is_empty() && self.environments.iter().all(passed)
    }

    /// What is to be done about a change; `before` is what production ran when it was pushed. Whatever else went there since
    /// is somebody's own work, and `up` keeps out of that.
    pub fn way_of(&self, change: &str, before: Option<&str>) -> Way {
        let Some(production) = self.environments.iter().find(|environment| environment.name == PRODUCTION) else {
            return Way::Wait;
        };
        if production.commit.is_empty() {
            return Way::Wait;
        }
        if Some(production.commit.as_str()) != before || production.passed.iter().any(|passed| passed == change) {
            return Way::Leave;
        }
        match &production.next {
            Some(next) if next.commit == change && next.waits_for_approval => Way::Approve,
            _ => Way::Wait,
        }
    }

    /// What production runs.
    pub fn in_production(&self) -> Option<String> {
        let production = self.environments.iter().find(|environment| environment.name == PRODUCTION)?;
        Some(production.commit.clone()).filter(|commit| !commit.is_empty())
    }

    /// Everything that should run does, everywhere, and nothing is on its way. An environment without agents expects nothing.
    pub fn is_converged(&self) -> bool {
        self.environments.iter().any(|environment| environment.expected > 0)
            && self.environments.iter().all(|environment| {
                let counts = environment.counts;
                counts.converged == environment.expected
                    && counts.total() == counts.converged
                    && environment.rollouts.is_empty()
                    && environment.state != "Entered"
            })
    }

    pub fn to_json(&self) -> Value {
        let environments: Vec<Value> = self.environments.iter().map(Environment::to_json).collect();
        json!({"environments": environments, "converged": self.is_converged()})
    }
}

impl Environment {
    /// Whether clusters run something else than the commit in force, or nothing yet.
    pub fn is_elsewhere(&self) -> bool {
        !self.commit.is_empty()
            && (self.running.is_empty() || self.running.iter().any(|runs| runs.commit != self.commit))
    }

    /// `1f2e3d4`, or `1f2e3d4 (canary), 4d3e2f1 (rest)`
    pub fn runs(&self) -> String {
        let shown = self.running.iter().map(|runs| {
            let commit = if runs.commit.is_empty() { "an older commit" } else { short(&runs.commit) };
            let rings = if runs.rings.is_empty() { String::new() } else { format!(" ({})", runs.rings.join(", ")) };
            format!("{commit}{rings}")
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    fn to_json(&self) -> Value {
        let Counts { converged, converging, failed, unknown } = self.counts;
        let rollouts: Vec<Value> = self
            .rollouts
            .iter()
            .map(|rollout| json!({"id": rollout.id, "subject": rollout.subject, "state": rollout.state, "rings": rollout.rings}))
            .collect();
        json!({
            "name": self.name, "clusters": self.clusters, "commit": self.commit, "state": self.state,
            "running": self.running.iter().map(|runs| &runs.commit).collect::<Vec<_>>(), "why": self.failed,
            "rollouts": rollouts,
            "waiting": self.next.as_ref().map(|next| &next.commit),
            "converged": converged, "converging": converging, "failed": failed, "unknown": unknown,
        })
    }
}

/// What clusters run, as `kedge status` says it.
fn running(environment: &FleetEnvironment) -> Vec<Runs> {
    let runs = |one: &RunningCommit| Runs {
        commit: one.commit.clone(),
        subject: one.subject.clone(),
        rings: one.rings.clone(),
    };
    environment.running.iter().map(runs).collect()
}

/// Why a commit failed; the first of the reasons that are told of it.
fn failed(promotion: &PromotionSummary) -> Option<String> {
    let failed = matches!(promotion.state.as_str(), "Failed" | "Reopened");
    let why = if promotion.why.is_empty() { "no reason reported" } else { &promotion.why };
    failed.then(|| why.to_owned())
}

/// Rollouts that went back or were aborted, and what runs instead.
fn notices(environment: &FleetEnvironment) -> Vec<String> {
    let runs: Vec<&str> = environment.running.iter().map(|one| short(&one.commit)).collect();
    let told = environment.notices.iter().filter(|notice| matches!(notice.kind.as_str(), "rolledBack" | "aborted"));
    told.map(|notice| format!("{}; {} runs", one_line(&notice.text), runs.join(", "))).collect()
}

impl Next {
    fn of(promotion: &EnvironmentPromotion) -> Option<Next> {
        let newest = promotion.promotions.iter().find(|one| one.state == "Waiting")?;
        Some(Next {
            commit: newest.commit.clone(),
            subject: one_line(&newest.subject),
            waits_for_approval: newest.waits_for.iter().any(|wait| is_approval(wait)),
        })
    }
}

impl Rollout {
    fn of(rollout: &RolloutSummary) -> Rollout {
        let shown = rollout.rings.iter().map(|ring| format!("{} {}", ring.ring, ring.state));
        let mut waits = rollout.rings.iter().flat_map(|ring| &ring.waits_for);
        Rollout {
            id: rollout.id,
            subject: one_line(&rollout.cause.subject),
            rings: shown.collect::<Vec<_>>().join(", "),
            waits_for_approval: waits.any(|wait| is_approval(wait)),
            state: rollout.state.clone(),
        }
    }
}

/// Whether the hub has read every environment: before that it makes no join token.
pub(super) fn knows_the_platform(api: &Client) -> bool {
    let Ok(Ok(found)) = api.environments().all().map(|list| list.read()) else { return false };
    let has_content = |one: &EnvironmentSummary| one.totals.as_ref().is_some_and(|totals| totals.assignments > 0);
    ENVIRONMENTS.iter().all(|name| found.iter().any(|one| one.object.name == *name && has_content(&one.object)))
}

/// The sample asks for a person's word before production; for what it begins with nobody is asked.
pub(super) fn approve_first_content(api: &Client, picture: &Picture) -> Result<()> {
    let waiting = picture.environments.iter().flat_map(|environment| &environment.rollouts);
    for rollout in waiting.filter(|rollout| rollout.waits_for_approval) {
        let request = RolloutActionRequest { reason: REASON.to_owned(), ring: None };
        api.act_on_rollout(rollout.id, RolloutAction::Approve, &request)?;
    }
    Ok(())
}

/// The change that `up` pushed itself may enter production too, so that the whole way is seen. That one commit, by its full id.
pub(super) fn approve_change(api: &Client, commit: &str) -> Result<()> {
    let reason = "the first change, approved by kedge up".to_owned();
    api.approve_promotion(PRODUCTION, &ApproveRequest { commit: Some(commit.to_owned()), reason })?;
    Ok(())
}

/// The commits that have passed an environment's gate.
fn passed(promotion: &EnvironmentPromotion) -> Vec<String> {
    promotion.promotions.iter().filter(|one| one.state == "Passed").map(|one| one.commit.clone()).collect()
}

fn is_approval(wait: &str) -> bool {
    wait.starts_with("needs ") && wait.contains(" approval")
}

fn count(counts: &kedge_api::counts::Counts) -> Counts {
    let mut sum = Counts::default();
    for item in &counts.items {
        match item.condition.as_str() {
            "Converged" => sum.converged += item.count,
            "Converging" => sum.converging += item.count,
            "Failed" => sum.failed += item.count,
            _ => sum.unknown += item.count,
        }
    }
    sum
}

/// Each agent should run what is assigned to its cluster type.
fn expected(assignments: &[Stored<AssignmentSummary>], environment: &str, agents: &Agents) -> u64 {
    let mut of_type: BTreeMap<&str, u64> = BTreeMap::new();
    for assignment in assignments.iter().filter(|one| one.object.environment == environment) {
        *of_type.entry(&assignment.object.cluster_type).or_default() += 1;
    }
    let members = agents.members().filter(|member| member.environment == environment);
    members.map(|member| of_type.get(member.cluster_type).copied().unwrap_or_default()).sum()
}

/// The commit that the environment is read at, and what is told of it.
fn in_force(promotion: &EnvironmentPromotion) -> (String, PromotionSummary) {
    let commit = promotion.in_force.clone().unwrap_or_default();
    let of = promotion.promotions.iter().find(|one| one.commit == commit);
    (commit, of.cloned().unwrap_or_default())
}

/// The first characters, as the page shows them.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use kedge_api::counts::CountSummary;

    use super::*;

    fn environment(converged: u64, expected: u64) -> Environment {
        Environment { counts: Counts { converged, ..Counts::default() }, expected, ..Environment::default() }
    }

    #[test]
    fn a_fleet_of_which_a_part_has_not_reported_is_not_converged() {
        let whole = Picture { environments: vec![environment(6, 6), environment(5, 5)] };
        assert!(whole.is_converged());
        let partly = Picture { environments: vec![environment(6, 6), environment(4, 5)] };
        assert!(!partly.is_converged());
        let nothing = Picture { environments: vec![environment(0, 0)] };
        assert!(!nothing.is_converged() && !Picture::default().is_converged());
    }

    #[test]
    fn what_fails_or_still_moves_is_not_converged() {
        let mut failed = environment(6, 6);
        failed.counts.failed = 1;
        assert!(!Picture { environments: vec![failed] }.is_converged());
        let mut moving = environment(6, 6);
        moving.rollouts.push(Rollout::default());
        assert!(!Picture { environments: vec![moving] }.is_converged());
        let entered = Environment { state: "Entered".to_owned(), ..environment(6, 6) };
        assert!(!Picture { environments: vec![entered] }.is_converged());
    }

    #[test]
    fn a_promotion_that_asks_for_a_yes_is_seen() {
        let with = |state: &str, waits_for: &[&str]| {
            let waits_for = waits_for.iter().map(|wait| (*wait).to_owned()).collect();
            let one = PromotionSummary { state: state.to_owned(), waits_for, ..PromotionSummary::default() };
            EnvironmentPromotion { promotions: vec![one], ..EnvironmentPromotion::default() }
        };
        let promotion = with("Waiting", &["needs 1 approval from the platform team"]);
        assert!(Next::of(&promotion).unwrap().waits_for_approval);
        assert_eq!(Next::of(&with("Passed", &[])), None);
        assert_eq!(Next::of(&EnvironmentPromotion::default()), None);
    }

    #[test]
    fn what_runs_is_what_clusters_report() {
        let old =
            RunningCommit { commit: "old".to_owned(), rings: vec!["rest".to_owned()], ..RunningCommit::default() };
        let dev = FleetEnvironment { name: "dev".to_owned(), running: vec![old], ..FleetEnvironment::default() };
        let environment = Environment { commit: "new".to_owned(), running: running(&dev), ..environment(4, 4) };
        assert!(environment.is_elsewhere());
        assert_eq!(environment.runs(), "old (rest)");
        assert_eq!(running(&FleetEnvironment::default()), Vec::new());
        let promotion = |state: &str| PromotionSummary {
            state: state.to_owned(),
            why: "no".to_owned(),
            ..PromotionSummary::default()
        };
        assert_eq!(failed(&promotion("Failed")).as_deref(), Some("no"));
        assert_eq!(failed(&promotion("Entered")), None);
    }

    #[test]
    fn only_the_change_that_up_made_is_approved_and_only_while_nothing_else_went_to_production() {
        let production = |commit: &str, next: &str, passed: &[&str]| {
            let next = Next { commit: next.to_owned(), subject: String::new(), waits_for_approval: true };
            let passed = passed.iter().map(|commit| (*commit).to_owned()).collect();
            let (name, commit) = ("prod".to_owned(), commit.to_owned());
            Picture {
                environments: vec![Environment { name, commit, next: Some(next), passed, ..Environment::default() }],
            }
        };
        let way = |picture: Picture| picture.way_of("mine", Some("first"));
        assert_eq!(way(production("first", "mine", &["first"])), Way::Approve);
        assert_eq!(way(production("first", "theirs", &["first"])), Way::Wait);
        assert_eq!(way(production("mine", "theirs", &["first"])), Way::Leave);
        assert_eq!(way(production("theirs", "mine", &["first", "theirs"])), Way::Leave, "main was turned back");
        assert_eq!(way(production("first", "mine", &["first", "mine"])), Way::Leave, "it was there already");
        assert_eq!(way(Picture::default()), Way::Wait);
    }

    #[test]
    fn a_change_has_arrived_though_a_later_one_is_on_its_way() {
        let environment = |passed: &[&str]| Environment {
            passed: passed.iter().map(|commit| (*commit).to_owned()).collect(),
            ..Environment::default()
        };
        let picture = Picture { environments: vec![environment(&["next", "mine"]), environment(&["mine"])] };
        assert!(picture.has_arrived("mine") && !picture.has_arrived("next"));
    }

    #[test]
    fn counts_are_summed_by_condition() {
        let item =
            |condition: &str, count| CountSummary { condition: condition.to_owned(), count, ..CountSummary::default() };
        let items = vec![item("Converged", 2), item("Converged", 3), item("Unknown", 1)];
        let counts = kedge_api::counts::Counts { items, ..kedge_api::counts::Counts::default() };
        assert_eq!(count(&counts), Counts { converged: 5, unknown: 1, ..Counts::default() });
    }
}
