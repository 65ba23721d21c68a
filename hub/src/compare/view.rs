//! A comparison as the API, the page and the CLI show it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Place, Workload};

/// `GET /compare`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompareView {
    pub left: SideView,
    pub right: SideView,
    /// Of the workloads on this page.
    pub totals: CompareTotals,
    /// By name.
    pub workloads: Vec<WorkloadCompared>,
    /// Where clusters report changes by hand: the values there aren't known, and aren't compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// More workloads: ask again with `cursor` set to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SideView {
    /// As a query names it: `prod/drone@2026-11-01T00:00:00Z`
    pub name: String,
    pub environment: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_type: Option<String>,
    /// RFC 3339; absent: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The commit of the environment's GitOps branch that it came from; absent for an application team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompareTotals {
    pub same: u64,
    pub differ: u64,
    pub only_left: u64,
    pub only_right: u64,
}

/// One workload on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadCompared {
    pub workload: String,
    pub same: bool,
    /// `onlyLeft`, `onlyRight`, `version`, `content` (of the same version), `platform` (its other files),
    /// `configuration`, `clusterTypes` (both sides have one, and the workload is on it on one of them), `targets`
    pub differs: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<SideRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<SideRun>,
    /// Keys with different values.
    pub configuration: Vec<KeyCompared>,
    /// The configuration of some place can't be known: it isn't compared.
    #[serde(default, skip_serializing_if = "is_false")]
    pub configuration_unknown: bool,
}

/// What a side runs of a workload, as its clusters reported it; where none has, and at an earlier time, what was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SideRun {
    /// Full names of its deployment targets.
    pub targets: Vec<String>,
    pub cluster_types: Vec<String>,
    /// Set when everything runs the same version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Set when everything comes from the same commit of the workload's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The packages, as `counts` names them.
    pub packages: Vec<String>,
    /// Every version with where it runs.
    pub versions: Vec<VersionRun>,
    /// Assignments that nothing was delivered of yet: their configuration is what Git says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_in_git: Vec<String>,
    /// Assignments that keep what is published because they can't be rendered or packed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

/// A version, and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionRun {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub cluster_types: Vec<String>,
    pub rings: Vec<String>,
    pub targets: Vec<String>,
}

/// A configuration key whose values differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyCompared {
    pub key: String,
    /// On these cluster types, which both sides have; empty when they share none.
    pub cluster_types: Vec<String>,
    /// The values of each side; empty: it isn't set there. Several when its targets or rings have different ones.
    pub left: Vec<ValueAt>,
    pub right: Vec<ValueAt>,
    /// Something is shown to the platform team only.
    pub redacted: bool,
}

/// A value, and the targets and rings that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueAt {
    pub value: serde_json::Value,
    pub targets: Vec<String>,
    /// Empty: nothing was delivered there yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<String>,
}

impl SideRun {
    pub(super) fn of(workload: &Workload) -> SideRun {
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
        SideRun {
            targets: workload.targets.iter().cloned().collect(),
            cluster_types: list(places().map(|place| place.cluster_type.clone())),
            version: only(runs().map(|(_, run)| run.version.clone())),
            commit: only(runs().map(|(_, run)| run.commit.clone())),
            packages: list(runs().map(|(_, run)| run.packages.clone())),
            only_in_git: list(places().filter(|place| place.runs.is_empty()).map(Place::name)),
            quarantined: list(places().filter(|place| place.quarantined).map(Place::name)),
            versions: versions
                .into_iter()
                .map(|((version, repo, commit), places)| VersionRun {
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
}

#[derive(Default)]
struct Places {
    types: BTreeSet<String>,
    rings: BTreeSet<String>,
    targets: BTreeSet<String>,
}

impl CompareTotals {
    pub fn of(workloads: &[WorkloadCompared]) -> CompareTotals {
        let mut totals = CompareTotals::default();
        for one in workloads {
            match (one.same, &one.left, &one.right) {
                (true, _, _) => totals.same += 1,
                (false, Some(_), None) => totals.only_left += 1,
                (false, None, Some(_)) => totals.only_right += 1,
                (false, _, _) => totals.differ += 1,
            }
        }
        totals
    }
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

fn is_false(value: &bool) -> bool {
    !value
}
