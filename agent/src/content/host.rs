//! From an assignment's two packages to its goal on this host: read, bound, judged by the policy, resolved to paths, owners and digests.
//! The applier's thread calls it once per pair of packages; it reads objects and the user list, and changes nothing on the host.

mod debs;
mod folders;
mod judge;
mod namespace;
mod platform;
#[cfg(test)]
mod tests;
mod units;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use kedge_host_policy::Tenant;
use kedge_model::kinds::{Destination, HealthProbe, HostWorkload};
use kedge_model::wire::Packages;

use super::package::Package;
use super::{bounds, said};
use crate::goal::{Goal, HostFacts, Owner};
use crate::objects::Objects;
use crate::paths::Paths;
use crate::record::Failure;
use crate::store::index::PackageIndex;

/// What is known while a goal is made.
struct Making<'a> {
    objects: &'a Objects,
    facts: &'a HostFacts,
    paths: &'a Paths,
    tenant: Tenant,
    goal: Goal,
    /// What the policy refuses, each in a sentence.
    refused: Vec<String>,
}

/// What the packages mean here, or why they can't be applied. Nothing of them was applied either way.
pub fn goal_of(
    assignment: &str,
    packages: &Packages,
    objects: &Objects,
    index: &PackageIndex,
    facts: &HostFacts,
    paths: &Paths,
) -> Result<Goal, Failure> {
    if packages.parameters.to != Destination::Host {
        return Err(Failure::new("Unsupported", "this is for a Kubernetes cluster, and here is a plain host"));
    }
    check_name(assignment)?;
    let workload_package = Package::open(&packages.workload, "workload", objects, index)?;
    let workload = workload_package.host_workload()?;
    if !paths.is_host() {
        check_without_root(&workload)?;
    }
    let platform = Package::open(&packages.platform, "platform", objects, index)?;
    let tenant = namespace::tenant(assignment, &platform, packages, facts)?;
    let mut making = Making { objects, facts, paths, tenant, goal: Goal::default(), refused: Vec::new() };
    making.namespace()?;
    making.platform_files(&platform)?;
    let debs = making.named_debs(&workload, &workload_package)?;
    let judgement = making.judge(&workload, &workload_package, &debs)?;
    making.workload_files(&workload, &workload_package, &judgement)?;
    making.artifacts(&workload, &workload_package)?;
    making.debs(debs, &judgement)?;
    making.units(&workload, &judgement)?;
    making.checks(&workload);
    making.goal.bounds = bounds::of(&packages.parameters, &workload);
    making.finish()
}

impl Making<'_> {
    /// Whose the namespace's own things are.
    fn own(&self) -> Owner {
        self.owner(&self.tenant.user, &self.tenant.group)
    }

    fn root(&self) -> Owner {
        self.owner("root", "root")
    }

    /// Below `--root` everything belongs to whoever runs the agent.
    fn owner(&self, user: &str, group: &str) -> Owner {
        match self.paths.is_host() {
            true => Owner { user: user.to_owned(), group: group.to_owned() },
            false => Owner::default(),
        }
    }

    fn refuse(&mut self, sentence: String) {
        self.refused.push(sentence);
    }

    fn finish(mut self) -> Result<Goal, Failure> {
        self.check_twice()?;
        self.check_disk();
        if !self.refused.is_empty() {
            return Err(Failure::new("NotAllowed", said(&self.refused)));
        }
        self.add_folders();
        Ok(self.goal)
    }

    /// One path can be one thing, and nothing is inside of a file.
    fn check_twice(&self) -> Result<(), Failure> {
        let files = self.goal.files.iter().map(|file| &file.path);
        let paths: Vec<&String> = files.chain(self.goal.artifacts.iter().map(|artifact| &artifact.path)).collect();
        let mut seen = BTreeSet::new();
        if let Some(twice) = paths.iter().find(|path| !seen.insert(path.as_str())) {
            return Err(Failure::new("BadPackage", format!("`{twice}` is wanted twice")));
        }
        let inside = |path: &str| {
            let mut ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
            ends.any(|at| seen.contains(&path[..at]))
        };
        if let Some(inside) = paths.iter().find(|path| inside(path)) {
            return Err(Failure::new("BadPackage", format!("`{inside}` would be inside of another file")));
        }
        let is_folder = |path: &&String| self.goal.folders.iter().any(|folder| folder.path == **path);
        match paths.iter().copied().find(is_folder) {
            Some(path) => Err(Failure::new("BadPackage", format!("`{path}` is a folder of the namespace"))),
            None => Ok(()),
        }
    }

    /// What the workload brings must fit into its own limit.
    fn check_disk(&mut self) {
        let Some(limit) = self.goal.disk else { return };
        let mut contents: BTreeMap<_, u64> = self.goal.artifacts.iter().map(|item| (item.content, item.size)).collect();
        contents.extend(self.goal.files.iter().map(|file| (file.content, file.size)));
        let bytes = contents.values().fold(0_u64, |sum, size| sum.saturating_add(*size));
        if bytes > limit {
            let namespace = self.tenant.namespace.clone();
            self.refuse(format!(
                "files and artifacts have {bytes} bytes, over the disk limit of {limit}; the platform team can raise `limits.disk` of HostNamespace `{namespace}`"
            ));
        }
    }
}

/// The name becomes a folder and the beginning of units' names.
fn check_name(assignment: &str) -> Result<(), Failure> {
    let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let fits = (1..=200).contains(&assignment.len())
        && assignment.bytes().all(letters)
        && assignment.starts_with(|c: char| c.is_ascii_alphanumeric());
    match fits {
        true => Ok(()),
        false => Err(Failure::new(
            "Unsupported",
            "on a host an assignment's name has letters, digits, `-`, `_` and `.` only",
        )),
    }
}

/// `--root`: files and artifacts only.
fn check_without_root(workload: &HostWorkload) -> Result<(), Failure> {
    let checks_unit = workload.health.iter().any(|check| matches!(check.probe, HealthProbe::Unit(_)));
    let what = match () {
        () if !workload.debs.is_empty() => "debs",
        () if !workload.units.is_empty() || checks_unit => "units",
        () => return Ok(()),
    };
    Err(Failure::new(
        "Unsupported",
        format!("with `--root` there are files and artifacts only, and this workload has {what}"),
    ))
}
