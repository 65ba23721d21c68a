//! Evidence: an in-toto Statement about a commit in an environment, in a DSSE envelope signed by the hub, made at the moment
//! that it speaks of and kept for ever. `kedge evidence` shows it; anybody with the hub's keys can verify it.

use std::collections::BTreeMap;

use kedge_model::kinds::{Check, Gate, PromotionPolicy};
use kedge_model::wire::{Digest, Envelope, EnvelopeError, Payload, SigningKey, Timestamp, VerifyingKey};
use kedge_rollout::{CheckFact, Counts, Promotion, RingState, Rollout, Say, Word};
use serde::{Deserialize, Serialize};

use crate::keys::Keys;
use crate::store::promotion::PolicyRow;
use crate::store::promotion::evidence::{EvidenceKind, NewEvidence};
use crate::store::{Store, StoreError};

/// Signs statements; the hub's keys do.
pub trait Witness: Send + Sync + std::fmt::Debug {
    fn sign_statement(&self, statement: &Statement) -> Result<Envelope, EnvelopeError>;
}

/// <https://in-toto.io/Statement/v1>
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    #[serde(rename = "_type")]
    pub kind: String,
    pub subject: Vec<Subject>,
    pub predicate_type: String,
    pub predicate: Predicate,
}

/// A commit of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub name: String,
    pub digest: BTreeMap<String, String>,
}

/// What happened to it where, and what was true then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Predicate {
    /// `passed`, `overridden`, `reopened`, `completed`, `ended`, `loosened`
    pub event: String,
    pub environment: String,
    pub at: Timestamp,
    pub subject: String,
    pub author: String,
    /// Environments before this one, and when the commit passed there; none: it hadn't.
    #[serde(default)]
    pub after: BTreeMap<String, Option<Timestamp>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutEvidence>,
    pub approvals: Vec<Word>,
    pub overrides: Vec<Word>,
    /// What else people said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
    /// Commits that this one took over.
    #[serde(default)]
    pub skipped: Vec<String>,
    /// Why, when it ended otherwise than by passing; when it passed, what didn't count against it; of a policy, in which ways it is looser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default)]
    pub late_failed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_digest: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutEvidence {
    pub id: u64,
    pub lane: String,
    /// Of the GitOps branch or of the application's source.
    pub commit: String,
    pub rings: Vec<RingEvidence>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RingEvidence {
    pub name: String,
    pub state: RingState,
    /// The newest generation of each cluster type's stream.
    pub generations: BTreeMap<String, i64>,
    pub gate: Gate,
    pub soak_seconds: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_at: Option<Timestamp>,
    /// Failures that a person forgave.
    #[serde(default)]
    pub forgiven: u64,
    /// Per changed assignment, when the ring passed or stopped.
    pub items: Vec<ItemEvidence>,
    pub offline: OfflineEvidence,
    pub checks: BTreeMap<String, CheckFact>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemEvidence {
    pub cluster_type: String,
    pub assignment: String,
    pub counts: Counts,
}

/// Clusters that were away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfflineEvidence {
    pub count: i64,
    /// The first ones by name.
    pub clusters: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the statement can't be signed or read")]
    Envelope(#[from] EnvelopeError),
    #[error("it isn't a statement about a promotion: {0}")]
    Foreign(String),
}

pub const STATEMENT: &str = "https://in-toto.io/Statement/v1";
pub const PREDICATE: &str = "https://kedge.dev/promotion/v1";

/// So many clusters that were away are named; the rest is a number.
const NAMED: i64 = 100;

/// What is witnessed: a commit of a repository in an environment.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    pub event: &'static str,
    pub environment: &'a str,
    pub repo: &'a str,
    pub at: Timestamp,
    pub policy: Option<&'a PromotionPolicy>,
}

impl Payload for Statement {
    const TYPE: &'static str = "application/vnd.in-toto+json";
}

impl Witness for Keys {
    fn sign_statement(&self, statement: &Statement) -> Result<Envelope, EnvelopeError> {
        self.sign(statement)
    }
}

impl Witness for SigningKey {
    fn sign_statement(&self, statement: &Statement) -> Result<Envelope, EnvelopeError> {
        Envelope::sign(statement, self)
    }
}

/// The statement in an envelope, if one of these keys signed it.
pub fn verify(json: &[u8], keys: &[VerifyingKey]) -> Result<Statement, EvidenceError> {
    let statement: Statement = Envelope::from_json(json)?.open(keys)?;
    match (statement.kind.as_str(), statement.predicate_type.as_str()) {
        (STATEMENT, PREDICATE) => Ok(statement),
        (kind, predicate) => Err(EvidenceError::Foreign(format!("{kind}, {predicate}").chars().take(200).collect())),
    }
}

/// The digest by which evidence names the policy.
pub fn policy_digest(policy: &PromotionPolicy) -> Option<Digest> {
    Some(Digest::of(&serde_json::to_vec(policy).ok()?))
}

/// Of a promotion, with the rollout that carried it.
pub async fn of_promotion(
    store: &Store,
    witness: &dyn Witness,
    event: &Event<'_>,
    promotion: &Promotion,
    after: BTreeMap<String, Option<Timestamp>>,
    rollout: Option<&Rollout>,
) -> Result<NewEvidence, EvidenceError> {
    let carried = match rollout {
        Some(rollout) => Some(gather(store, rollout).await?),
        None => None,
    };
    let mut words = promotion.words.clone();
    words.extend(rollout.iter().flat_map(|rollout| rollout.words.iter().cloned()));
    let mut predicate = event.predicate(&promotion.subject, &promotion.author, words);
    predicate.after = after;
    predicate.entered_at = promotion.entered_at;
    predicate.skipped.clone_from(&promotion.skipped);
    predicate.late_failed = promotion.late_failed;
    predicate.rollout = carried;
    if let kedge_rollout::PromotionPhase::Failed { why } | kedge_rollout::PromotionPhase::Reopened { why } =
        &promotion.phase
    {
        predicate.why = Some(why.clone());
    } else {
        predicate.why.clone_from(&promotion.remark);
    }
    event.sign(witness, &promotion.commit, EvidenceKind::Promotion, promotion.rollout.map(|id| id.0), predicate)
}

/// Of a rollout by itself: an application's source, or an environment's own change.
pub async fn of_rollout(
    store: &Store,
    witness: &dyn Witness,
    event: &Event<'_>,
    rollout: &Rollout,
) -> Result<NewEvidence, EvidenceError> {
    let cause = &rollout.cause;
    let mut predicate = event.predicate(&cause.subject, &cause.author, rollout.words.clone());
    predicate.rollout = Some(gather(store, rollout).await?);
    predicate.late_failed = rollout.late_failed;
    event.sign(witness, &cause.commit, EvidenceKind::Rollout, Some(rollout.id.0), predicate)
}

/// Of a looser policy that people agreed to.
pub fn of_policy(witness: &dyn Witness, event: &Event<'_>, row: &PolicyRow) -> Result<NewEvidence, EvidenceError> {
    let mut predicate = event.predicate(&row.subject, &row.author, row.words.clone());
    predicate.why = Some(row.reasons.join("; "));
    event.sign(witness, &row.commit, EvidenceKind::Policy, None, predicate)
}

impl Event<'_> {
    fn predicate(&self, subject: &str, author: &str, words: Vec<Word>) -> Predicate {
        let (mut approvals, mut overrides, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            match &word.say {
                Say::Approve { .. } => approvals.push(word),
                Say::Override { .. } => overrides.push(word),
                _ => others.push(word),
            }
        }
        Predicate {
            event: self.event.to_owned(),
            environment: self.environment.to_owned(),
            at: self.at,
            subject: subject.to_owned(),
            author: author.to_owned(),
            after: BTreeMap::new(),
            entered_at: None,
            rollout: None,
            approvals,
            overrides,
            words: others,
            skipped: Vec::new(),
            why: None,
            late_failed: 0,
            policy_digest: self.policy.and_then(policy_digest),
        }
    }

    fn sign(
        &self,
        witness: &dyn Witness,
        commit: &str,
        kind: EvidenceKind,
        rollout: Option<u64>,
        predicate: Predicate,
    ) -> Result<NewEvidence, EvidenceError> {
        let digest = BTreeMap::from([("gitCommit".to_owned(), commit.to_owned())]);
        let statement = Statement {
            kind: STATEMENT.to_owned(),
            subject: vec![Subject { name: self.repo.to_owned(), digest }],
            predicate_type: PREDICATE.to_owned(),
            predicate,
        };
        let envelope = witness.sign_statement(&statement)?.to_json()?;
        Ok(NewEvidence {
            environment: self.environment.to_owned(),
            commit: commit.to_owned(),
            kind,
            rollout,
            event: self.event,
            body: String::from_utf8_lossy(&envelope).into_owned(),
        })
    }
}

async fn gather(store: &Store, rollout: &Rollout) -> Result<RolloutEvidence, StoreError> {
    let generations = store.generations(&rollout.environment).await?;
    let facts = store.check_facts(rollout.id).await?;
    let mut rings = Vec::new();
    for progress in &rollout.rings {
        let rules = rollout.policy.rings.iter().find(|ring| ring.name == progress.ring);
        let (count, clusters) = store.away(&rollout.environment, &progress.ring, NAMED).await?;
        let of_ring = generations.iter().filter(|(ring, _, _)| *ring == progress.ring);
        let asked: Vec<&Check> = rules.iter().flat_map(|ring| &ring.gate.checks).collect();
        let said = asked.into_iter().filter_map(|check| {
            let fact = facts.get(&(progress.ring.clone(), check.name.clone()))?;
            Some((check.name.clone(), fact.clone()))
        });
        let items = rollout.items.iter().zip(&progress.counts).map(|(item, counts)| ItemEvidence {
            cluster_type: item.cluster_type.clone(),
            assignment: item.assignment.clone(),
            counts: *counts,
        });
        rings.push(RingEvidence {
            name: progress.ring.clone(),
            state: progress.state,
            generations: of_ring.map(|(_, cluster_type, number)| (cluster_type.clone(), *number)).collect(),
            gate: rules.map(|ring| ring.gate.clone()).unwrap_or_default(),
            soak_seconds: rules.map_or(0, |ring| ring.soak.as_secs()),
            started_at: progress.started_at,
            steady_since: progress.steady_since,
            passed_at: progress.passed_at,
            forgiven: progress.forgiven,
            items: items.collect(),
            offline: OfflineEvidence { count, clusters },
            checks: said.collect(),
        });
    }
    let (id, lane, commit) = (rollout.id.0, rollout.lane.to_string(), rollout.cause.commit.clone());
    Ok(RolloutEvidence { id, lane, commit, rings })
}
