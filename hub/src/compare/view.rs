//! A comparison as the API, the page and the CLI show it.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::comparisons::{RunningVersion, SideSummary};

use super::{Place, Workload};

pub(super) fn side(workload: &Workload) -> SideSummary {
    let places = || workload.places.iter();
    let runs = || places().flat_map(|place| place.runs.iter().map(move |run| (place, run)));
    let mut versions: BTreeMap<_, Places> = BTreeMap::new();
    for (place, run) in runs() {
        let name = (run.version.clone(), run.repo.clone(), run.commit.clone());
        let found = versions.entry(name).or_default();
        found.types.insert(place.cluster_type.clone());
        found.rings.insert(run.ring.clone());
        found.targets.insert(place.target.clone());
    }
    SideSummary {
        targets: workload.targets.iter().cloned().collect(),
        cluster_types: list(places().map(|place| place.cluster_type.clone())),
        version: only(runs().map(|(_, run)| run.version.clone())),
        commit: only(runs().map(|(_, run)| run.commit.clone())),
        packages: list(runs().map(|(_, run)| run.packages.clone())),
        only_in_git: list(places().filter(|place| place.runs.is_empty()).map(Place::name)),
        quarantined: list(places().filter(|place| place.quarantined).map(Place::name)),
        versions: versions
            .into_iter()
            .map(|((version, repo, commit), places)| RunningVersion {
                version,
                repo,
                commit,
                cluster_types: list(places.types),
                rings: list(places.rings),
                targets: list(places.targets),
            })
            .collect(),
    }
}

#[derive(Default)]
struct Places {
    types: BTreeSet<String>,
    rings: BTreeSet<String>,
    targets: BTreeSet<String>,
}

fn list(names: impl IntoIterator<Item = String>) -> Vec<String> {
    names.into_iter().collect::<BTreeSet<String>>().into_iter().collect()
}

/// The value that all have.
fn only(values: impl Iterator<Item = Option<String>>) -> Option<String> {
    let all: BTreeSet<Option<String>> = values.collect();
    match all.len() {
        1 => all.into_iter().next().flatten(),
        _ => None,
    }
}
