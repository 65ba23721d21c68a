//! Whether two sides run the same of a workload. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{Difference, Run, Workload};

/// By version where the content says one, else by commit. `one_environment`: the same version should be the same content.
pub(super) fn differ(left: &Workload, right: &Workload, one_environment: bool) -> Option<Difference> {
    let same_content = contents(left) == contents(right);
    if same_content && contents(left).is_some() {
        return None;
    }
    if names(left) != names(right) {
        return Some(Difference::Version);
    }
    // Each environment may have a folder of its own for the same version.
    (one_environment && !same_content).then_some(Difference::Content)
}

/// Whether what the platform adds differs where both sides have the same target on the same cluster type.
pub(super) fn platform_differs(left: &Workload, right: &Workload) -> bool {
    let (left, right) = (platforms(left), platforms(right));
    let differs = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| !one.is_empty() && !other.is_empty() && one != other;
    left.iter().any(|(place, one)| right.get(place).is_some_and(|other| differs(one, other)))
}

fn runs(workload: &Workload) -> impl Iterator<Item = &Run> {
    workload.places.iter().flat_map(|place| &place.runs)
}

/// What people call what runs.
fn names(workload: &Workload) -> BTreeSet<(bool, Option<&str>)> {
    runs(workload).map(name).collect()
}

fn name(run: &Run) -> (bool, Option<&str>) {
    match &run.version {
        Some(version) => (true, Some(version)),
        None => (false, run.commit.as_deref().or(run.content.as_deref())),
    }
}

/// None when it isn't known of all.
fn contents(workload: &Workload) -> Option<BTreeSet<&str>> {
    runs(workload).map(|run| run.content.as_deref()).collect()
}

fn platforms(workload: &Workload) -> BTreeMap<(&str, &str), BTreeSet<&str>> {
    let mut found: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for place in &workload.places {
        let digests = place.runs.iter().filter_map(|run| run.platform.as_deref());
        found.entry((&place.cluster_type, &place.target)).or_default().extend(digests);
    }
    found
}
