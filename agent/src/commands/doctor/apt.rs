//! What stands in the way of installing debs, as the part of the agent that installs them sees it. Part of `doctor`.

use super::Finding;
use crate::apply::host::debs::Debs;
use crate::objects::Objects;
use crate::paths::Paths;

/// Holds are how Kedge keeps its versions: worth a line, no problem.
const HELD: &str = "held debs";

/// Only a host has debs.
pub fn check(paths: &Paths) -> Vec<Finding> {
    if !paths.is_host() {
        return Vec::new();
    }
    let objects = match Objects::open(&paths.objects()) {
        Ok(objects) => objects,
        Err(error) => {
            let message = format!("{}: {error}", paths.objects().display());
            return vec![Finding::problem("apt", message, "see that the disk is whole and has room")];
        }
    };
    let found = Debs::new(paths, &objects).doctor();
    let mut findings: Vec<Finding> = found
        .iter()
        .map(|found| match found.what.as_str() {
            HELD => Finding::ok("apt", format!("{}: {}", found.what, found.problem)),
            what => Finding::problem("apt", format!("{what}: {}", found.problem), &found.way_out),
        })
        .collect();
    if !findings.iter().any(|finding| finding.problem) {
        findings.insert(0, Finding::ok("apt", "sources are readable, no lock is left, no deb is half installed"));
    }
    findings
}
