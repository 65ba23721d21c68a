//! The agent's own precious files: both copies of each ledger are there, whole, and the same. Part of `doctor`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kedge_durable::{Ledger, RealDisk};
use serde_json::Value;

use super::Finding;
use crate::paths::Paths;

pub fn check(paths: &Paths) -> Vec<Finding> {
    let ledgers: BTreeSet<PathBuf> = [paths.state(), paths.records()].iter().flat_map(|folder| list(folder)).collect();
    let mut findings: Vec<Finding> = ledgers.iter().filter_map(|ledger| check_one(ledger)).collect();
    if findings.is_empty() {
        findings.push(Finding::ok("ledgers", format!("{} whole, in two copies each", ledgers.len())));
    }
    findings
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let ledger = |path: PathBuf| match path.extension()?.to_str()? {
        "a" | "b" => Some(path.with_extension("")),
        _ => None,
    };
    entries.filter_map(|entry| ledger(entry.ok()?.path())).collect()
}

fn check_one(ledger: &Path) -> Option<Finding> {
    let name = ledger.display();
    if let Err(error) = Ledger::<Value>::read(&RealDisk, ledger) {
        let way_out = match ledger.file_name().and_then(|name| name.to_str()) {
            Some("identity") => "the identity is lost: ask for a token (kedge cluster replace NAME) and join again",
            _ => {
                "the disk may be failing; restore the file from a backup, or move both copies elsewhere and restart the agent"
            }
        };
        return Some(Finding::problem("ledgers", error.to_string(), way_out));
    }
    let [first, second] = ["a", "b"].map(|copy| fs::read(copy_of(ledger, copy)).ok());
    if first == second {
        return None;
    }
    let message = format!("one copy of {name} is missing, behind or broken; the other is whole");
    Some(Finding::problem(
        "ledgers",
        message,
        "it is healed when the agent starts; if it comes back, the disk is failing",
    ))
}

fn copy_of(ledger: &Path, copy: &str) -> PathBuf {
    let mut name = ledger.as_os_str().to_owned();
    name.push(".");
    name.push(copy);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_broken_copy_is_told_and_two_broken_ones_name_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        fs::create_dir_all(paths.records()).unwrap();
        for name in [paths.state().join("identity"), paths.records().join("hello.world")] {
            let mut ledger = Ledger::<Value>::open(Arc::new(RealDisk), &name).unwrap().ledger;
            ledger.write(&Value::from("x")).unwrap();
        }
        assert_eq!(check(&paths), [Finding::ok("ledgers", "2 whole, in two copies each")]);

        fs::write(paths.records().join("hello.world.b"), b"torn").unwrap();
        let findings = check(&paths);
        assert!(
            findings[0].problem && findings[0].message.contains("records/hello.world is missing, behind or broken")
        );

        fs::write(paths.state().join("identity.a"), b"torn").unwrap();
        fs::write(paths.state().join("identity.b"), b"torn").unwrap();
        assert!(check(&paths)[0].way_out.as_ref().unwrap().contains("join again"));
    }
}
