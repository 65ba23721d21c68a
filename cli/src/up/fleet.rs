//! What the hub says about the fleet, as the summary shows it, and the word that lets the first content into production.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::agents::Agents;
use crate::get::columns::text;
use crate::hub::Hub;

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
    pub fn take(api: &Hub, agents: &Agents) -> Result<Picture> {
        let promotions = api.get(&["promotions"], &[])?.document;
        let rollouts = api.get(&["rollouts"], &[("unfinished", Some("true".to_owned()))])?.document;
        let assignments = api.get(&["assignments"], &[("limit", Some("500".to_owned()))])?.document;
        let fleet = api.get(&["fleet"], &[])?.document;
        let mut picture = Picture::default();
        for name in ENVIRONMENTS {
            let counts = api.get(&["counts"], &[("environment", Some(name.to_owned()))])?.document;
            let promotion = items(&promotions).find(|item| item["environment"] == name).unwrap_or(&Value::Null);
            let (commit, of) = in_force(promotion);
            picture.environments.push(Environment {
                name: name.to_owned(),
                clusters: agents.members().filter(|member| member.environment == name).count() as u64,
                counts: count(&counts),
                expected: expected(&assignments, name, agents),
                commit,
                subject: text(&of["subject"]),
                running: running(&fleet, name),
                failed: failed(of),
                state: text(&of["state"]),
                notices: notices(&fleet, name),
                next: Next::of(promotion),
                passed: passed(promotion),
                rollouts: items(&rollouts).filter(|item| item["environment"] == name).map(Rollout::of).collect(),
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
fn running(fleet: &Value, name: &str) -> Vec<Runs> {
    let environment = fleet["environments"].as_array().into_iter().flatten().find(|one| one["name"] == name);
    let running = environment.and_then(|environment| environment["running"].as_array()).into_iter().flatten();
    let rings = |one: &Value| one["rings"].as_array().into_iter().flatten().map(text).collect();
    running
        .map(|one| Runs {
            commit: one["commit"].as_str().unwrap_or_default().to_owned(),
            subject: one["subject"].as_str().unwrap_or_default().to_owned(),
            rings: rings(one),
        })
        .collect()
}

/// Why a commit failed; the first of the reasons that are told of it.
fn failed(promotion: &Value) -> Option<String> {
    let failed = promotion["state"] == "Failed" || promotion["state"] == "Reopened";
    failed.then(|| promotion["why"].as_str().unwrap_or("no reason told").to_owned())
}

/// Rollouts that went back or were aborted, and what runs instead.
fn notices(fleet: &Value, name: &str) -> Vec<String> {
    let environments = fleet["environments"].as_array().into_iter().flatten();
    let Some(environment) = environments.into_iter().find(|one| one["name"] == name) else { return Vec::new() };
    let runs = environment["running"].as_array().into_iter().flatten().map(|one| text(&one["commit"]));
    let runs: Vec<String> = runs.map(|commit| commit.chars().take(7).collect()).collect();
    let told = environment["notices"].as_array().into_iter().flatten();
    let told = told.filter(|notice| notice["kind"] == "rolledBack" || notice["kind"] == "aborted");
    told.map(|notice| format!("{}; {} runs", text(&notice["text"]), runs.join(", "))).collect()
}

impl Next {
    fn of(promotion: &Value) -> Option<Next> {
        let newest = promotion["promotions"].as_array()?.iter().find(|one| one["state"] == "Waiting")?;
        let waits = newest["waitsFor"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Some(Next {
            commit: text(&newest["commit"]),
            subject: text(&newest["subject"]),
            waits_for_approval: waits.into_iter().any(is_approval),
        })
    }
}

impl Rollout {
    fn of(item: &Value) -> Rollout {
        let rings: Vec<&Value> = item["rings"].as_array().into_iter().flatten().collect();
        let waits = rings.iter().flat_map(|ring| ring["waitsFor"].as_array().into_iter().flatten());
        let shown = rings.iter().map(|ring| format!("{} {}", text(&ring["ring"]), text(&ring["state"])));
        Rollout {
            id: item["id"].as_u64().unwrap_or_default(),
            subject: text(&item["subject"]),
            rings: shown.collect::<Vec<_>>().join(", "),
            waits_for_approval: waits.filter_map(Value::as_str).any(is_approval),
            state: text(&item["state"]),
        }
    }
}

/// Whether the hub has read every environment: before that it makes no join token.
pub(super) fn knows_the_platform(api: &Hub) -> bool {
    let Ok(answer) = api.get(&["environments"], &[]) else { return false };
    let has_content = |item: &Value| item["totals"]["assignments"].as_u64() > Some(0);
    let known = |name: &str| items(&answer.document).any(|item| item["name"] == name && has_content(item));
    ENVIRONMENTS.iter().all(|name| known(name))
}

/// The sample asks for a person's word before production; for what it begins with nobody is asked.
pub(super) fn approve_first_content(api: &Hub, picture: &Picture) -> Result<()> {
    let waiting = picture.environments.iter().flat_map(|environment| &environment.rollouts);
    for rollout in waiting.filter(|rollout| rollout.waits_for_approval) {
        api.post(&["rollouts", &rollout.id.to_string(), "approve"], &json!({"reason": REASON}))?;
    }
    Ok(())
}

/// The change that `up` pushed itself may enter production too, so that the whole way is seen. That one commit, by its full id.
pub(super) fn approve_change(api: &Hub, commit: &str) -> Result<()> {
    let reason = "the first change, approved by kedge up";
    api.post(&["promotions", PRODUCTION, "approve"], &json!({"commit": commit, "reason": reason}))?;
    Ok(())
}

/// The commits that have passed an environment's gate.
fn passed(promotion: &Value) -> Vec<String> {
    let all = promotion["promotions"].as_array().into_iter().flatten();
    all.filter(|one| one["state"] == "Passed").map(|one| text(&one["commit"])).collect()
}

fn is_approval(wait: &str) -> bool {
    wait.starts_with("needs ") && wait.contains(" approval")
}

fn items(document: &Value) -> impl Iterator<Item = &Value> {
    document["items"].as_array().into_iter().flatten()
}

fn count(document: &Value) -> Counts {
    let mut counts = Counts::default();
    for item in items(document) {
        let count = item["count"].as_u64().unwrap_or_default();
        match item["condition"].as_str() {
            Some("Converged") => counts.converged += count,
            Some("Converging") => counts.converging += count,
            Some("Failed") => counts.failed += count,
            _ => counts.unknown += count,
        }
    }
    counts
}

/// Each agent should run what is assigned to its cluster type.
fn expected(assignments: &Value, environment: &str, agents: &Agents) -> u64 {
    let mut of_type: BTreeMap<&str, u64> = BTreeMap::new();
    for item in items(assignments).filter(|item| item["environment"] == environment) {
        let kind = item["name"].as_str().and_then(|name| name.split('/').next()).unwrap_or_default();
        *of_type.entry(kind).or_default() += 1;
    }
    let members = agents.members().filter(|member| member.environment == environment);
    members.map(|member| of_type.get(member.cluster_type).copied().unwrap_or_default()).sum()
}

/// The commit that the environment is read at, and what is told of it.
fn in_force(promotion: &Value) -> (String, &Value) {
    let commit = text(&promotion["inForce"]);
    let of = promotion["promotions"].as_array().into_iter().flatten().find(|one| one["commit"] == commit.as_str());
    (commit, of.unwrap_or(&Value::Null))
}

/// The first characters, as the page shows them.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

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
        let promotion = json!({"promotions": [
            {"commit": "b", "subject": "s", "state": "Waiting", "waitsFor": ["needs 1 approval from the platform team"]},
        ]});
        assert!(Next::of(&promotion).unwrap().waits_for_approval);
        let passed = json!({"promotions": [{"commit": "b", "state": "Passed"}]});
        assert_eq!(Next::of(&passed), None);
        assert_eq!(Next::of(&Value::Null), None);
    }

    #[test]
    fn what_runs_is_what_clusters_report() {
        let fleet = json!({"environments": [{"name": "dev", "running": [{"commit": "old", "rings": ["rest"]}]}]});
        let environment =
            Environment { commit: "new".to_owned(), running: running(&fleet, "dev"), ..environment(4, 4) };
        assert!(environment.is_elsewhere());
        assert_eq!(environment.runs(), "old (rest)");
        assert_eq!(running(&fleet, "prod"), Vec::new());
        assert_eq!(failed(&json!({"state": "Failed", "why": "no"})).as_deref(), Some("no"));
        assert_eq!(failed(&json!({"state": "Entered"})), None);
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
        let document = json!({"items": [
            {"condition": "Converged", "count": 2}, {"condition": "Converged", "count": 3}, {"condition": "Unknown", "count": 1},
        ]});
        assert_eq!(count(&document), Counts { converged: 5, unknown: 1, ..Counts::default() });
    }
}
