//! A HostWorkload's debs. One that comes as a file says its name and version itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use kedge_host_policy::judge::Judgement;
use kedge_model::kinds::{Deb, HostWorkload};

use super::super::package::Package;
use super::Making;
use crate::command;
use crate::goal::DebGoal;
use crate::record::Failure;

/// It unpacks one small member.
const LIMIT: Duration = Duration::from_secs(60);

impl Making<'_> {
    pub fn debs(&mut self, debs: Vec<DebGoal>, judgement: &Judgement) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        let allowed = debs.into_iter().zip(&judgement.debs).filter(|(_, allowed)| **allowed);
        for (goal, _) in allowed {
            if !is_version(&goal.version) {
                let message = format!("`{}` can't be a version of {}", goal.version.escape_debug(), goal.name);
                return Err(Failure::new("BadPackage", message));
            }
            if !seen.insert(goal.name.clone()) {
                return Err(Failure::new("BadPackage", format!("the deb {} is wanted twice", goal.name)));
            }
            self.goal.debs.push(goal);
        }
        Ok(())
    }

    /// What each deb of the workload is, allowed or not.
    pub fn named_debs(&self, workload: &HostWorkload, package: &Package<'_>) -> Result<Vec<DebGoal>, Failure> {
        let of = |deb: &Deb| match deb {
            Deb::Apt { name, version } => Ok(DebGoal { name: name.clone(), version: version.clone(), file: None }),
            Deb::File(path) => {
                let blob = package.file(path)?;
                let (name, version) = control(&self.objects.path(&blob.digest), path)?;
                Ok(DebGoal { name, version, file: Some(blob.digest) })
            }
        };
        workload.debs.iter().map(of).collect()
    }
}

/// Name and version of a `.deb`, from its control file.
fn control(archive: &Path, shown: &str) -> Result<(String, String), Failure> {
    let wrong = |why: String| Failure::new("BadPackage", format!("`{shown}` isn't a deb: {why}"));
    let path = archive.to_str().ok_or_else(|| wrong("its path isn't UTF-8".to_owned()))?;
    let output = command::run("dpkg-deb", &["--field", path, "Package", "Version"], &[], LIMIT)
        .map_err(|error| wrong(error.to_string()))?;
    if !output.ok() {
        return Err(wrong(output.stderr.trim().replace(path, shown)));
    }
    fields(&output.stdout).ok_or_else(|| wrong("its control file has no name or version".to_owned()))
}

fn fields(text: &str) -> Option<(String, String)> {
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(key, _)| *key == name)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    Some((field("Package")?, field("Version")?))
}

/// Debian's letters, so that it is never an option or a pattern.
fn is_version(version: &str) -> bool {
    let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-' | b'~' | b':');
    (1..=200).contains(&version.len())
        && version.bytes().all(letters)
        && version.starts_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_file_says_name_and_version() {
        let text = "Package: camera\nVersion: 1:2.3-4~deb12\n";
        assert_eq!(fields(text), Some(("camera".to_owned(), "1:2.3-4~deb12".to_owned())));
        assert_eq!(fields("Package: x\n"), None);
        assert_eq!(fields("Package:\nVersion: 1\n"), None);
    }

    #[test]
    fn a_version_is_no_option_and_no_pattern() {
        for version in ["1.22.1-9+deb12u1", "2:1.0~rc1"] {
            assert!(is_version(version), "{version}");
        }
        for version in ["", "-o", "1*", "1 2", "1\n", "=1", "~"] {
            assert!(!is_version(version), "{version}");
        }
    }
}
