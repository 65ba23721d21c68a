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
    /// What is on its way or waits.
    pub rollouts: Vec<Rollout>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    pub unknown: u64,
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
        let mut picture = Picture::default();
        for name in ENVIRONMENTS {
            let counts = api.get(&["counts"], &[("environment", Some(name.to_owned()))])?.document;
            let promotion = items(&promotions).find(|item| item["environment"] == name).unwrap_or(&Value::Null);
            let (commit, subject) = in_force(promotion);
            picture.environments.push(Environment {
                name: name.to_owned(),
                clusters: agents.members().filter(|member| member.environment == name).count() as u64,
                counts: count(&counts),
                expected: expected(&assignments, name, agents),
                commit,
                subject,
                rollouts: items(&rollouts).filter(|item| item["environment"] == name).map(Rollout::of).collect(),
            });
        }
        Ok(picture)
    }

    /// Everything that should run does, everywhere, and nothing is on its way.
    pub fn is_converged(&self) -> bool {
        self.environments.iter().all(|environment| {
            let counts = environment.counts;
            environment.expected > 0
                && counts.converged == environment.expected
                && counts.total() == counts.converged
                && environment.rollouts.is_empty()
        })
    }

    pub fn to_json(&self) -> Value {
        let environments: Vec<Value> = self.environments.iter().map(Environment::to_json).collect();
        json!({"environments": environments, "converged": self.is_converged()})
    }
}

impl Environment {
    fn to_json(&self) -> Value {
        let Counts { converged, converging, failed, unknown } = self.counts;
        let rollouts: Vec<Value> = self
            .rollouts
            .iter()
            .map(|rollout| json!({"id": rollout.id, "subject": rollout.subject, "state": rollout.state, "rings": rollout.rings}))
            .collect();
        json!({
            "name": self.name, "clusters": self.clusters, "commit": self.commit, "rollouts": rollouts,
            "converged": converged, "converging": converging, "failed": failed, "unknown": unknown,
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
            waits_for_approval: waits.filter_map(Value::as_str).any(|wait| wait.contains("approv")),
            state: text(&item["state"]),
        }
    }
}

/// Whether the hub has read every environment: before that it makes no join token.
pub(super) fn knows_the_platform(api: &Hub) -> bool {
    let Ok(answer) = api.get(&["environments"], &[]) else { return false };
    let known = |name: &str| items(&answer.document).any(|item| item["name"] == name && item["assignments"] != 0);
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

fn in_force(promotion: &Value) -> (String, String) {
    let commit = text(&promotion["inForce"]);
    let of = promotion["promotions"].as_array().into_iter().flatten().find(|one| one["commit"] == commit.as_str());
    let short = commit.get(..7).unwrap_or(&commit).to_owned();
    (short, of.map(|one| text(&one["subject"])).unwrap_or_default())
}
