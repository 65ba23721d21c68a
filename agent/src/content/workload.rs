//! A HostWorkload's files, artifacts and health checks.

use kedge_model::kinds::{ArtifactSource, FileEntry, HealthProbe, HostWorkload};
use kedge_model::wire::{BlobRef, Digest};

use super::Making;
use super::package::{MAX_TEXT, Package, disk};
use crate::bind::{Names, bind};
use crate::goal::{ArtifactGoal, Check, FileGoal, Part, Probe};
use crate::policy::{Place, unit_file, unit_name};
use crate::record::Failure;

impl Making<'_> {
    pub fn workload_files(&mut self, workload: &HostWorkload, package: &Package<'_>) -> Result<(), Failure> {
        for entry in &workload.files {
            let place = match self.tenant.check_path(&entry.path) {
                Ok(place) => place,
                Err(sentence) => {
                    self.refuse(sentence);
                    continue;
                }
            };
            if let Err(sentence) = self.tenant.check_access(&entry.path, &place, entry.owner.as_deref(), entry.mode) {
                self.refuse(sentence);
            }
            let blob = self.content(entry, package)?;
            if let Place::Unit { named: false, .. } = place {
                let text = self.text(entry, &blob)?;
                self.refused.extend(unit_file::check(&text, &entry.path, &self.tenant));
                self.goal.own_units.extend(unit_file::named(&text, &self.tenant));
            }
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
    fn content(&self, entry: &FileEntry, package: &Package<'_>) -> Result<BlobRef, Failure> {
        let blob = package.file(&entry.file)?;
        if !entry.template {
            return Ok(blob);
        }
        let text = self.text(entry, &blob)?;
        let bound = bind(&text, self.facts, Names::All).map_err(|unbound| unbound.in_file(&entry.file, 1))?;
        let digest = self.objects.put(bound.as_bytes()).map_err(|error| disk("workload", &error))?;
        Ok(BlobRef { digest, size: bound.len() as u64 })
    }

    fn text(&self, entry: &FileEntry, blob: &BlobRef) -> Result<String, Failure> {
        let wrong = |why: String| Failure::new("BadPackage", format!("`{}` must be a text: {why}", entry.file));
        let bytes = self.objects.read_small(&blob.digest, MAX_TEXT).map_err(|error| wrong(error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| wrong("it isn't UTF-8".to_owned()))
    }

    pub fn artifacts(&mut self, workload: &HostWorkload, package: &Package<'_>) -> Result<(), Failure> {
        for artifact in &workload.artifacts {
            match self.tenant.check_path(&artifact.path) {
                Ok(Place::Plain) => {}
                Ok(Place::Unit { .. }) => {
                    self.refuse(format!("`{}` is a unit's place and can't be an artifact; use `files`", artifact.path))
                }
                Err(sentence) => self.refuse(sentence),
            }
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
                HealthProbe::Unit(name) => {
                    if let Err(sentence) = unit_name::check(name) {
                        self.refuse(sentence);
                    }
                    Probe::Unit(name.clone())
                }
                HealthProbe::Http(url) => Probe::Http(url.clone()),
                HealthProbe::Tcp(address) => Probe::Tcp(address.clone()),
                // The tenant's program, with the tenant's rights.
                HealthProbe::Exec(command) => Probe::Exec { command: command.clone(), user: self.goal.user.clone() },
                HealthProbe::Hub => Probe::Hub,
            };
            // Less than a second is no time for a check.
            self.goal.health.push(Check { probe, timeout_seconds: check.timeout.as_secs().max(1) });
        }
    }
}
