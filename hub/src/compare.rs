//! Two sides of the fleet next to each other, by workload: two environments, two cluster types, or one at two times. Pure
//! over what `api` gathered; it owns nothing. Targets have other names in each environment, so they never count between
//! two of them.

mod configuration;
mod place;
pub mod rendered;
mod versions;
pub mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_api::comparisons::WorkloadComparison;

pub use place::{At, SideError, SideName};
use view::side;

/// What one side has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    pub environment: String,
    /// The side is only this.
    pub cluster_type: Option<String>,
    /// All of it, whether a workload is on them or not.
    pub cluster_types: BTreeSet<String>,
    pub workloads: BTreeMap<String, Workload>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Full names.
    pub targets: BTreeSet<String>,
    pub places: Vec<Place>,
}

/// A workload's target on a cluster type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    pub cluster_type: String,
    pub target: String,
    pub quarantined: bool,
    /// What each ring runs; empty while nothing was delivered.
    pub runs: Vec<Run>,
    /// Its configuration: that of each run, in their order; of what nothing was delivered of, what Git says. None: it can't be known.
    pub values: Option<Vec<Arc<Values>>>,
}

/// What a ring runs of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    pub ring: String,
    pub version: Option<String>,
    pub repo: Option<String>,
    pub commit: Option<String>,
    /// Both packages together, as counts name them.
    pub packages: String,
    /// Digests of the two packages.
    pub content: Option<String>,
    pub platform: Option<String>,
}

pub type Values = BTreeMap<String, Value>;

/// A configuration value as it is, and as the caller may see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    pub exact: serde_json::Value,
    pub shown: serde_json::Value,
}

/// In which ways a workload differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    OnlyLeft,
    OnlyRight,
    Version,
    /// The same version, other content.
    Content,
    /// Files of the platform besides the configuration.
    Platform,
    Configuration,
    /// Both sides have a cluster type, and one has the workload on it.
    ClusterTypes,
    Targets,
}

impl Difference {
    pub fn as_str(self) -> &'static str {
        match self {
            Difference::OnlyLeft => "onlyLeft",
            Difference::OnlyRight => "onlyRight",
            Difference::Version => "version",
            Difference::Content => "content",
            Difference::Platform => "platform",
            Difference::Configuration => "configuration",
            Difference::ClusterTypes => "clusterTypes",
            Difference::Targets => "targets",
        }
    }
}

/// Every workload of either side, by name.
pub fn compare(left: &Side, right: &Side) -> Vec<WorkloadComparison> {
    let names: BTreeSet<&String> = left.workloads.keys().chain(right.workloads.keys()).collect();
    let pair = Pair { left, right };
    names
        .into_iter()
        .map(|name| match (left.workloads.get(name), right.workloads.get(name)) {
            (Some(one), Some(other)) => pair.both(name, one, other),
            (Some(one), None) => alone(name, Some(one), None, Difference::OnlyLeft),
            (None, other) => alone(name, None, other, Difference::OnlyRight),
        })
        .collect()
}

impl Place {
    fn name(&self) -> String {
        format!("{}/{}", self.cluster_type, self.target)
    }
}

impl Workload {
    fn cluster_types(&self) -> BTreeSet<&str> {
        self.places.iter().map(|place| place.cluster_type.as_str()).collect()
    }
}

/// The two sides that a workload is compared between.
#[derive(Clone, Copy)]
struct Pair<'a> {
    left: &'a Side,
    right: &'a Side,
}

impl Pair<'_> {
    fn both(self, name: &str, left: &Workload, right: &Workload) -> WorkloadComparison {
        let groups = configuration::groups(left, right);
        let (configuration, unknown) = configuration::differences(&groups);
        let mut differs = BTreeSet::new();
        differs.extend(versions::differ(left, right, self.is_one_environment()));
        if !configuration.is_empty() {
            differs.insert(Difference::Configuration);
        }
        // What a platform package holds carries the names of its place: only the same place can be compared.
        if self.is_one_place() {
            if configuration.is_empty() && versions::platform_differs(left, right) {
                differs.insert(Difference::Platform);
            }
            if left.targets != right.targets {
                differs.insert(Difference::Targets);
            }
        }
        if self.is_placed_otherwise(left, right) {
            differs.insert(Difference::ClusterTypes);
        }
        WorkloadComparison {
            workload: name.to_owned(),
            same: differs.is_empty(),
            differs: differs.into_iter().map(|one| one.as_str().to_owned()).collect(),
            left: Some(side(left)),
            right: Some(side(right)),
            configuration,
            configuration_unknown: unknown,
        }
    }

    fn is_one_environment(self) -> bool {
        self.left.environment == self.right.environment
    }

    /// The same environment at two times, or the same cluster type of it.
    fn is_one_place(self) -> bool {
        self.is_one_environment() && self.left.cluster_type == self.right.cluster_type
    }

    fn is_placed_otherwise(self, left: &Workload, right: &Workload) -> bool {
        let (left, right) = (left.cluster_types(), right.cluster_types());
        if self.is_one_place() {
            return left != right;
        }
        // Environments have cluster types of their own: only those that both have can be missed.
        let mut shared = self.left.cluster_types.intersection(&self.right.cluster_types);
        shared.any(|name| left.contains(name.as_str()) != right.contains(name.as_str()))
    }
}

fn alone(name: &str, left: Option<&Workload>, right: Option<&Workload>, why: Difference) -> WorkloadComparison {
    WorkloadComparison {
        workload: name.to_owned(),
        same: false,
        differs: vec![why.as_str().to_owned()],
        left: left.map(side),
        right: right.map(side),
        configuration: Vec::new(),
        configuration_unknown: false,
    }
}

#[cfg(test)]
mod tests;
