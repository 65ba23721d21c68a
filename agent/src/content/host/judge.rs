//! The policy's word on the workload: what `kedge-host-policy` refuses, asked with the files as they would be on this host.

use kedge_host_policy::judge::{self, DebFile, Entry, Judgement, Refused};
use kedge_host_policy::namespace;
use kedge_model::kinds::{Deb, FileEntry, HostWorkload};

use super::super::package::Package;
use super::Making;
use crate::goal::DebGoal;
use crate::record::Failure;

/// The package's files for the policy: templates are bound, debs have told their names.
struct Files<'a> {
    making: &'a Making<'a>,
    package: &'a Package<'a>,
    debs: Vec<(&'a str, &'a DebGoal)>,
}

impl Making<'_> {
    pub fn judge(
        &mut self,
        workload: &HostWorkload,
        package: &Package<'_>,
        debs: &[DebGoal],
    ) -> Result<Judgement, Failure> {
        let by_file = workload.debs.iter().zip(debs).filter_map(|(deb, goal)| match deb {
            Deb::File(file) => Some((file.as_str(), goal)),
            Deb::Apt { .. } => None,
        });
        let files = Files { making: self, package, debs: by_file.collect() };
        let judgement = judge::judge(workload, &self.tenant, &files)?;
        self.refused = namespace::check(&self.tenant);
        self.refused.extend(judgement.refused.iter().map(sentence));
        self.goal.own_units.extend(judgement.named.keys().cloned());
        if self.paths.is_host() {
            self.goal.claimed.extend(judgement.claimed.iter().cloned());
        }
        Ok(judgement)
    }
}

/// With its place: the line of a unit's file, or the entry of the HostWorkload. The package doesn't tell on which line of which
/// file in Git that is.
fn sentence(refused: &Refused) -> String {
    let (list, at) = match refused.entry {
        _ if refused.refusal.line.is_some() => return refused.refusal.to_string(),
        Entry::File(at) => ("files", at),
        Entry::Artifact(at) => ("artifacts", at),
        Entry::Deb(at) => ("debs", at),
        Entry::Unit(at) => ("units", at),
        Entry::Health(at) => ("health", at),
    };
    format!("HostWorkload, spec.{list}[{at}]: {}", refused.refusal)
}

impl judge::Package for Files<'_> {
    type Error = Failure;

    fn text(&self, file: &FileEntry) -> Result<Option<String>, Failure> {
        let blob = self.making.content(file, self.package)?;
        self.making.text(file, &blob).map(Some)
    }

    fn deb(&self, file: &str) -> Result<Option<DebFile>, Failure> {
        let found = self.debs.iter().find(|(named, _)| *named == file);
        let deb = found.and_then(|(_, goal)| Some(DebFile { name: Some(goal.name.clone()), digest: goal.file? }));
        // What nobody could judge is never installed.
        let unknown = || Failure::new("BadPackage", format!("the deb file `{file}` wasn't looked at"));
        deb.map(Some).ok_or_else(unknown)
    }

    fn runs_units(&self) -> bool {
        self.making.paths.is_host()
    }
}
