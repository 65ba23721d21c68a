//! What clusters reported that they run, as a comparison reads it: by cluster type, target and ring. Where nobody has reported, what
//! was delivered stands in.

use std::collections::{BTreeMap, BTreeSet};

use super::states::Published;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::drift::contents;
use crate::compare::{Run, SideName};
use crate::store::api::conditions::MemberFilter;
use crate::store::api::contents::Content;
use crate::store::catalog::Visible;

#[derive(Debug, Default)]
pub(super) struct Reported {
    /// Packages by cluster type, target and ring.
    running: BTreeMap<(String, String, String), BTreeSet<String>>,
    contents: BTreeMap<String, Content>,
}

/// So many clusters are named, and so many assignments.
const CHANGED_ON: usize = 5;
const NOTES: usize = 20;

/// Of these targets, which the caller may see.
pub(super) async fn of(state: &ApiState, side: &SideName, assignments: Vec<String>) -> Result<Reported, ApiError> {
    if assignments.is_empty() {
        return Ok(Reported::default());
    }
    let filter = MemberFilter {
        environment: Some(side.environment.clone()),
        cluster_type: side.cluster_type.clone(),
        assignments: Some(assignments),
        ..MemberFilter::default()
    };
    let mut reported = Reported::default();
    for sum in state.store.running_sums(&Visible::All, &filter).await? {
        if !sum.running.is_empty() {
            let place = (sum.stream.cluster_type, sum.assignment, sum.stream.ring);
            reported.running.entry(place).or_default().insert(sum.running);
        }
    }
    let packages: BTreeSet<&String> = reported.running.values().flatten().collect();
    let packages: Vec<String> = packages.into_iter().cloned().collect();
    let desired = state.desired.streams(&state.store).await?;
    reported.contents = contents(state, &packages, &desired).await?;
    Ok(reported)
}

/// Of these targets: on which clusters somebody changed what runs, in a sentence each.
pub(super) async fn changed(
    state: &ApiState,
    side: &SideName,
    assignments: Vec<String>,
) -> Result<Vec<String>, ApiError> {
    if assignments.is_empty() {
        return Ok(Vec::new());
    }
    let filter = MemberFilter {
        environment: Some(side.environment.clone()),
        cluster_type: side.cluster_type.clone(),
        assignments: Some(assignments),
        ..MemberFilter::default()
    };
    let mut places: BTreeMap<(String, String), (u64, Vec<String>)> = BTreeMap::new();
    for sum in state.store.drift_sums(&Visible::All, &filter).await? {
        let named = state.store.drifted_on(&sum.stream, &sum.assignment, &sum.running, CHANGED_ON).await?;
        let place = places.entry((sum.stream.cluster_type, sum.assignment)).or_default();
        place.0 += sum.count;
        place.1.extend(named);
    }
    let note = |((cluster_type, target), (count, mut names)): ((String, String), (u64, Vec<String>))| {
        names.truncate(CHANGED_ON);
        let more = if count > names.len() as u64 { ", …" } else { "" };
        let clusters = if count == 1 { "cluster" } else { "clusters" };
        format!(
            "{cluster_type}/{target} of {} was changed on {count} {clusters} ({}{more}): the values there aren't known",
            side.environment,
            names.join(", ")
        )
    };
    Ok(places.into_iter().take(NOTES).map(note).collect())
}

impl Reported {
    /// What a ring runs of a target, given what was delivered to it.
    pub fn of(&self, cluster_type: &str, target: &str, delivered: &Published) -> Vec<Published> {
        let place = (cluster_type.to_owned(), target.to_owned(), delivered.run.ring.clone());
        let Some(running) = self.running.get(&place) else { return vec![delivered.clone()] };
        running.iter().map(|packages| self.published(packages, delivered)).collect()
    }

    fn published(&self, packages: &String, delivered: &Published) -> Published {
        if *packages == delivered.run.packages {
            return delivered.clone();
        }
        let ring = delivered.run.ring.clone();
        let Some(content) = self.contents.get(packages) else {
            // Nobody here knows what it is, and nobody guesses.
            return Published { run: Run { ring, packages: packages.clone(), ..Run::default() }, commit: None };
        };
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Published {
            run: Run {
                ring,
                version: content.version.clone(),
                repo: delivered.run.repo.clone(),
                commit: some(&content.workload_commit),
                packages: packages.clone(),
                content: content.workload.map(|digest| digest.to_string()),
                platform: content.platform.map(|digest| digest.to_string()),
            },
            commit: some(&content.platform_commit),
        }
    }
}
