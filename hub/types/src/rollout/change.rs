//! What a rollout does to one assignment: which of its parts move, and to what; and what was there before. Pure: applying a
//! change and undoing it are functions from entry to entry.

use std::sync::Arc;

use kedge_model::wire::{ApplyParameters, Digest, Observation, PackageRef, Packages, PackagesKey};
use serde::{Deserialize, Serialize};

use crate::pack::PackedEntry;

/// The new content of an assignment's parts. Without any the assignment goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<PlatformPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadPart>,
    /// Another reconciler brings it, to all rings at once: it is only counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<PackagesKey>,
}

/// The platform team's: how it is applied, and its package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlatformPart {
    pub parameters: ApplyParameters,
    pub package: PackageRef,
}

/// The application team's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPart {
    pub package: PackageRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What a ring's state held of an assignment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    Absent,
    Apply(Arc<Packages>),
    Observe(Arc<Observation>),
}

impl Change {
    pub fn platform(packages: &Packages) -> Change {
        let part = PlatformPart { parameters: packages.parameters.clone(), package: packages.platform.clone() };
        Change { platform: Some(part), ..Change::default() }
    }

    pub fn workload(packages: &Packages) -> Change {
        let part = WorkloadPart { package: packages.workload.clone(), version: packages.version.clone() };
        Change { workload: Some(part), ..Change::default() }
    }

    pub fn both(packages: &Packages) -> Change {
        Change { workload: Change::workload(packages).workload, ..Change::platform(packages) }
    }

    pub fn observed(observation: &Observation) -> Change {
        Change { observed: Some(observation.key()), ..Change::default() }
    }

    pub fn removes(&self) -> bool {
        *self == Change::default()
    }

    /// Whether two changes move a part in common. A removal moves all.
    pub fn meets(&self, other: &Change) -> bool {
        self.removes()
            || other.removes()
            || (self.platform.is_some() && other.platform.is_some())
            || (self.workload.is_some() && other.workload.is_some())
            || self.observed.is_some() != other.observed.is_some()
            || (self.observed.is_some() && other.observed.is_some())
    }

    /// The same parts with the same content, whatever commits brought it.
    pub fn is_same(&self, other: &Change) -> bool {
        let platform = match (&self.platform, &other.platform) {
            (Some(one), Some(two)) => one.is_same(two),
            (None, None) => true,
            _ => false,
        };
        let workload = match (&self.workload, &other.workload) {
            (Some(one), Some(two)) => same_package(&one.package, &two.package),
            (None, None) => true,
            _ => false,
        };
        platform && workload && self.observed == other.observed
    }

    /// Names the content: a change that went back is known again by it.
    pub fn fingerprint(&self) -> String {
        let package = |package: &PackageRef| {
            let artifacts: Vec<String> = package.artifacts.iter().map(|blob| blob.digest.to_string()).collect();
            format!("{} {} {}", package.digest, package.repo, artifacts.join(","))
        };
        let platform = self.platform.as_ref().map(|part| format!("{} {:?}", package(&part.package), part.parameters));
        let workload = self.workload.as_ref().map(|part| package(&part.package));
        Digest::of(format!("{platform:?} {workload:?} {:?}", self.observed).as_bytes()).to_string()
    }

    /// The entry with this change; none: it goes, or what else an entry needs isn't there yet.
    pub fn apply(&self, entry: Option<&PackedEntry>) -> Option<PackedEntry> {
        if self.observed.is_some() {
            return entry.cloned();
        }
        if self.removes() {
            return None;
        }
        let Some(PackedEntry::Apply(packages)) = entry else {
            let (Some(platform), Some(workload)) = (&self.platform, &self.workload) else { return entry.cloned() };
            return Some(PackedEntry::Apply(Arc::new(Packages {
                parameters: platform.parameters.clone(),
                platform: platform.package.clone(),
                workload: workload.package.clone(),
                version: workload.version.clone(),
            })));
        };
        if self.is_in(packages) {
            return entry.cloned();
        }
        let mut next = (**packages).clone();
        if let Some(part) = &self.platform {
            next.parameters.clone_from(&part.parameters);
            next.platform.clone_from(&part.package);
        }
        if let Some(part) = &self.workload {
            next.workload.clone_from(&part.package);
            next.version.clone_from(&part.version);
        }
        Some(PackedEntry::Apply(Arc::new(next)))
    }

    /// The entry with the parts that this change moves as they were.
    pub fn undo(&self, held: &Held, entry: Option<&PackedEntry>) -> Option<PackedEntry> {
        if self.observed.is_some() {
            return entry.cloned();
        }
        match (held, entry) {
            (Held::Absent, _) => None,
            (Held::Observe(observation), _) => Some(PackedEntry::Observe(Arc::clone(observation))),
            (Held::Apply(before), Some(PackedEntry::Apply(_))) => {
                let all = Change::both(before);
                let platform = all.platform.filter(|_| self.platform.is_some());
                let workload = all.workload.filter(|_| self.workload.is_some());
                Change { platform, workload, observed: None }.apply_some(entry)
            }
            (Held::Apply(before), _) => Some(PackedEntry::Apply(Arc::clone(before))),
        }
    }

    fn apply_some(&self, entry: Option<&PackedEntry>) -> Option<PackedEntry> {
        if self.removes() { entry.cloned() } else { self.apply(entry) }
    }

    /// Whether the packages have all the parts of this change.
    pub fn is_in(&self, packages: &Packages) -> bool {
        let platform = self.platform.as_ref().is_none_or(|part| {
            part.parameters == packages.parameters && same_package(&part.package, &packages.platform)
        });
        let workload = self.workload.as_ref().is_none_or(|part| same_package(&part.package, &packages.workload));
        !self.removes() && self.observed.is_none() && platform && workload
    }
}

impl PlatformPart {
    fn is_same(&self, other: &PlatformPart) -> bool {
        self.parameters == other.parameters && same_package(&self.package, &other.package)
    }
}

impl Held {
    pub fn of(entry: Option<&PackedEntry>) -> Held {
        match entry {
            Some(PackedEntry::Apply(packages)) => Held::Apply(Arc::clone(packages)),
            Some(PackedEntry::Observe(observation)) => Held::Observe(Arc::clone(observation)),
            Some(PackedEntry::Quarantined) | None => Held::Absent,
        }
    }
}

/// A later commit with the same content is the same package.
pub fn same_package(one: &PackageRef, other: &PackageRef) -> bool {
    one.digest == other.digest && one.repo == other.repo && one.artifacts == other.artifacts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ours;

    fn packages(content: &str) -> Arc<Packages> {
        match ours(content) {
            PackedEntry::Apply(packages) => packages,
            _ => unreachable!(),
        }
    }

    fn digests(entry: Option<PackedEntry>) -> (Digest, Digest) {
        match entry {
            Some(PackedEntry::Apply(packages)) => (packages.platform.digest, packages.workload.digest),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_part_moves_and_goes_back_without_the_other() {
        let (old, new) = (packages("1"), packages("2"));
        let entry = PackedEntry::Apply(Arc::clone(&old));
        let moved = Change::platform(&new).apply(Some(&entry));
        assert_eq!(digests(moved.clone()), (new.platform.digest, old.workload.digest));
        let later = Change::workload(&new).apply(moved.as_ref());
        assert_eq!(digests(later.clone()), (new.platform.digest, new.workload.digest));
        let back = Change::platform(&new).undo(&Held::Apply(Arc::clone(&old)), later.as_ref());
        assert_eq!(digests(back), (old.platform.digest, new.workload.digest));
    }

    #[test]
    fn half_of_a_newcomer_is_nothing_and_going_back_takes_it_away() {
        let new = packages("2");
        assert_eq!(Change::workload(&new).apply(None), None);
        let whole = Change::both(&new).apply(None);
        assert_eq!(digests(whole.clone()), (new.platform.digest, new.workload.digest));
        assert_eq!(Change::both(&new).undo(&Held::Absent, whole.as_ref()), None);
        assert_eq!(Change::default().apply(whole.as_ref()), None);
    }

    #[test]
    fn the_same_content_of_a_later_commit_is_the_same_change() {
        let PackedEntry::Apply(later) = crate::testing::ours_at("1", "c2") else { panic!() };
        let (one, two) = (Change::both(&packages("1")), Change::both(&later));
        assert!(one.is_same(&two) && one.fingerprint() == two.fingerprint());
        assert!(!one.is_same(&Change::both(&packages("2"))));
        assert!(!one.is_same(&Change::platform(&later)));
    }
}
