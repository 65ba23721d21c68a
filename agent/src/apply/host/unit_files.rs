//! Whose the files are that systemd reads for units: which deb brought each. Asked only where it matters, since dpkg searches text
//! files for the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::command;
use crate::observed::UnitState;

const LIMIT: Duration = Duration::from_secs(30);
/// Where an administrator or the agent puts units; no deb does.
const ADMINISTRATORS: &str = "/etc/systemd/";
/// One folder on newer hosts, under two names.
const SHORT: &str = "/lib/";
const LONG: &str = "/usr/lib/";

/// Fills in the debs of these units.
pub fn name_debs(units: &mut BTreeMap<String, UnitState>, own: &BTreeSet<String>) {
    for (_, state) in units.iter_mut().filter(|(name, _)| own.contains(*name)) {
        state.deb = state.file.as_deref().filter(|file| !file.starts_with(ADMINISTRATORS)).and_then(deb_of);
    }
}

/// The deb that brought a file.
fn deb_of(path: &str) -> Option<String> {
    let other = match path.strip_prefix(LONG) {
        Some(rest) => Some(format!("{SHORT}{rest}")),
        None => path.strip_prefix(SHORT).map(|rest| format!("{LONG}{rest}")),
    };
    let ask = |path: &str| {
        let output = command::run("dpkg-query", &["--search", path], &[], LIMIT).ok()?;
        if output.ok() { holder(&output.stdout, path) } else { None }
    };
    ask(path).or_else(|| ask(&other?))
}

/// `camera:arm64, extras: /lib/…`; lines about diversions say something else.
fn holder(text: &str, path: &str) -> Option<String> {
    let line = text.lines().find(|line| line.ends_with(path) && !line.starts_with("diversion "))?;
    let names = line.strip_suffix(path)?.trim_end().trim_end_matches(':');
    let first = names.split(',').next()?.trim();
    Some(first.split(':').next().unwrap_or(first).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deb_of_a_file_is_read_from_dpkgs_answer() {
        let path = "/lib/systemd/system/x.service";
        for (text, deb) in [
            ("x-server: /lib/systemd/system/x.service\n", Some("x-server")),
            ("x:arm64: /lib/systemd/system/x.service\n", Some("x")),
            ("a, b: /lib/systemd/system/x.service\n", Some("a")),
            ("diversion by d from: /lib/systemd/system/x.service\n", None),
            ("", None),
        ] {
            assert_eq!(holder(text, path).as_deref(), deb);
        }
    }
}
