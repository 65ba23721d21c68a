//! A HostWorkload's files, artifacts and health checks.

use kedge_host_policy::Place;
use kedge_host_policy::judge::Judgement;
use kedge_model::kinds::{ArtifactSource, FileEntry, HealthProbe, HostWorkload};
use kedge_model::wire::{BlobRef, Digest};

use super::super::package::{MAX_TEXT, Package, disk};
use super::Making;
use crate::bind::{Names, bind};
use crate::goal::{ArtifactGoal, Check, FileGoal, Part, Probe};
use crate::record::Failure;

impl Making<'_> {
    pub fn workload_files(
        &mut self,
        workload: &HostWorkload,
        package: &Package<'_>,
        judgement: &Judgement,
    ) -> Result<(), Failure> {
        for (entry, place) in workload.files.iter().zip(&judgement.files) {
            let Some(place) = place else { continue };
            let blob = self.content(entry, package)?;
            let owner = match place {
                Place::Unit { .. } => self.root(),
                Place::Plain => self.own(),
            };
            let (path, mode, part) = (entry.path.clone(), entry.mode, Part::Workload);
            self.goal.files.push(FileGoal { path, content: blob.digest, size: blob.size, owner, mode, part });
        }
        Ok(())
    }

    /// The file's content, bound if it is a template.
    pub(super) fn content(&self, entry: &FileEntry, package: &Package<'_>) -> Result<BlobRef, Failure> {
        let blob = package.file(&entry.file)?;
        if !entry.template {
            return Ok(blob);
        }
        let text = self.text(entry, &blob)?;
        let bound = bind(&text, self.facts, Names::All).map_err(|unbound| unbound.in_file(&entry.file, 1))?;
        let digest = self.objects.put(bound.as_bytes()).map_err(|error| disk("workload", &error))?;
        Ok(BlobRef { digest, size: bound.len() as u64 })
    }

    pub(super) fn text(&self, entry: &FileEntry, blob: &BlobRef) -> Result<String, Failure> {
        let wrong = |why: String| Failure::new("BadPackage", format!("`{}` must be a text: {why}", entry.file));
        let bytes = self.objects.read_small(&blob.digest, MAX_TEXT).map_err(|error| wrong(error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| wrong("it isn't UTF-8".to_owned()))
    }

    pub fn artifacts(&mut self, workload: &HostWorkload, package: &Package<'_>) -> Result<(), Failure> {
        for artifact in &workload.artifacts {
            let digest: Digest = format!("sha256:{}", artifact.sha256)
                .parse()
                .map_err(|error| Failure::new("BadPackage", format!("`{}`: {error}", artifact.path)))?;
            let blob = match &artifact.source {
                ArtifactSource::Url(_) => package.artifact(&digest)?,
                ArtifactSource::File(file) => package.file(file)?,
            };
            if blob.digest != digest {
                let message =
                    format!("the artifact of `{}` has the digest {}, not {digest}", artifact.path, blob.digest);
                return Err(Failure::new("BadPackage", message));
            }
            self.goal.artifacts.push(ArtifactGoal { path: artifact.path.clone(), content: digest, size: blob.size });
        }
        Ok(())
    }

    pub fn checks(&mut self, workload: &HostWorkload) {
        for check in &workload.health {
            let probe = match &check.probe {
                HealthProbe::Unit(name) => Probe::Unit(name.clone()),
                HealthProbe::Http(url) => Probe::Http(url.clone()),
                HealthProbe::Tcp(address) => Probe::Tcp(address.clone()),
                // The tenant's program, with the tenant's rights and limits.
                HealthProbe::Exec(command) => Probe::Exec {
                    command: command.clone(),
                    user: self.goal.user.clone(),
                    slice: self.paths.is_host().then(|| self.tenant.slice.clone()),
                },
                HealthProbe::Hub => Probe::Hub,
            };
            // Less than a second is no time for a check.
            self.goal.health.push(Check { probe, timeout_seconds: check.timeout.as_secs().max(1) });
        }
    }
}
