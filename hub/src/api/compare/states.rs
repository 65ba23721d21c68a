//! Desired states as a comparison reads them: what each ring should run, and which commit its configuration was published in.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::kinds::PromotionPolicy;
use kedge_model::wire::{DesiredState, Entry, Envelope, Mode, PlatformSource, Stream};

use crate::api::answer::ApiError;
use crate::compare::Run;
use crate::store::StoreError;
use crate::store::api::states::StateSeen;

/// A stream's state.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub cluster_type: String,
    /// By target.
    pub entries: BTreeMap<String, Published>,
    pub source: Option<PlatformSource>,
}

/// What a ring should run, and the commit of the GitOps branch that has its files.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub run: Run,
    pub commit: Option<String>,
}

/// Opens the states that count. Thousands of entries take a while: on a thread of their own.
pub(super) async fn open(seen: Vec<StateSeen>) -> Result<Vec<Opened>, ApiError> {
    let opening = tokio::task::spawn_blocking(move || seen.iter().map(open_one).collect::<Result<Vec<_>, _>>());
    match opening.await {
        Ok(opened) => Ok(opened?),
        Err(_) => Err(ApiError::unavailable("the hub stops")),
    }
}

/// Without those of rings that are no more.
pub(super) fn current(mut seen: Vec<StateSeen>, policy: Option<&PromotionPolicy>, environment: &str) -> Vec<StateSeen> {
    let named = policy.and_then(|policy| policy.environments.iter().find(|one| one.name == environment));
    let rings: BTreeSet<&str> = match named {
        Some(policy) => policy.rings.iter().map(|ring| ring.name.as_str()).collect(),
        None => BTreeSet::from([Stream::ALL]),
    };
    // A type that has none of them yet has its states of before.
    let known: BTreeSet<String> = seen
        .iter()
        .filter(|one| rings.contains(one.stream.ring.as_str()))
        .map(|one| one.stream.cluster_type.clone())
        .collect();
    seen.retain(|one| !known.contains(&one.stream.cluster_type) || rings.contains(one.stream.ring.as_str()));
    seen
}

/// At an earlier time nobody knows the rings any more: one ring for all, or several, whichever was issued last.
pub(super) fn latest(mut seen: Vec<StateSeen>) -> Vec<StateSeen> {
    let mut newest: BTreeMap<String, (i64, bool)> = BTreeMap::new();
    for one in &seen {
        let issued = (one.created_at, one.stream.ring == Stream::ALL);
        let known = newest.entry(one.stream.cluster_type.clone()).or_insert(issued);
        *known = issued.max(*known);
    }
    seen.retain(|one| {
        newest.get(&one.stream.cluster_type).is_none_or(|(_, all)| *all == (one.stream.ring == Stream::ALL))
    });
    seen
}

fn open_one(seen: &StateSeen) -> Result<Opened, StoreError> {
    let corrupt = |error: String| StoreError::Corrupt(format!("state of {}: {error}", seen.stream));
    let envelope = Envelope::from_json(&seen.envelope).map_err(|error| corrupt(error.to_string()))?;
    let state: DesiredState = serde_json::from_slice(&envelope.payload).map_err(|error| corrupt(error.to_string()))?;
    let ring = &seen.stream.ring;
    let source = state.source;
    let published = |entry: &Entry| published(entry, ring, source.as_ref().map(|source| source.commit.as_str()));
    Ok(Opened {
        cluster_type: seen.stream.cluster_type.clone(),
        entries: state.entries.iter().map(|entry| (entry.assignment.clone(), published(entry))).collect(),
        source: source.clone(),
    })
}

fn published(entry: &Entry, ring: &str, head: Option<&str>) -> Published {
    let (ring, packages) = (ring.to_owned(), entry.packages_key().to_string());
    match &entry.mode {
        Mode::Apply(apply) => Published {
            run: Run {
                ring,
                version: apply.version.clone(),
                repo: Some(apply.workload.repo.clone()),
                commit: Some(apply.workload.commit.clone()),
                packages,
                content: Some(apply.workload.digest.to_string()),
                platform: Some(apply.platform.digest.to_string()),
            },
            commit: Some(apply.platform.commit.clone()),
        },
        Mode::Observe(observed) => Published {
            run: Run {
                ring,
                commit: observed.expected_commit.clone(),
                packages,
                platform: Some(observed.content.to_string()),
                ..Run::default()
            },
            commit: head.map(str::to_owned),
        },
    }
}
