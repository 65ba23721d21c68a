//! Units that are called like the workload's own but belong to somebody else: a tenant that is named `cups-browsed` doesn't get
//! Debian's.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Making;
use crate::command;
use crate::policy::path::below_systemd;
use crate::record::Failure;

/// Where debs put units; both are one folder on newer hosts.
const VENDORS: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
/// It searches text files.
const LIMIT: Duration = Duration::from_secs(30);

impl Making<'_> {
    pub fn check_foreign_units(&mut self) -> Result<(), Failure> {
        if !self.paths.is_host() {
            return Ok(());
        }
        let named = self.goal.units.iter().map(|unit| unit.name.as_str());
        let brought = self.goal.files.iter().filter_map(|file| below_systemd(&file.path));
        let brought =
            brought.map(|below| below.split_once('/').map_or(below, |(folder, _)| folder.trim_end_matches(".d")));
        let units: BTreeSet<String> = named.chain(brought).map(str::to_owned).collect();
        let own: BTreeSet<String> = self.goal.debs.iter().map(|deb| deb.name.clone()).collect();
        for unit in units.iter().filter(|unit| self.tenant.owns_unit(unit) && !self.tenant.names_unit(unit)) {
            let exists = VENDORS.iter().any(|folder| self.paths.place(&format!("{folder}/{unit}")).exists());
            if !exists {
                continue;
            }
            let holder = VENDORS.iter().find_map(|folder| deb_of(&format!("{folder}/{unit}")));
            if holder.as_ref().is_some_and(|deb| own.contains(deb)) {
                continue;
            }
            let whose = holder.map_or_else(|| "somebody else".to_owned(), |deb| format!("the deb `{deb}`"));
            let way_out = self.tenant.way_out("units", unit);
            self.refused.push(format!("the unit `{unit}` belongs to {whose}, not to this workload; {way_out}"));
        }
        Ok(())
    }
}

/// The deb that brought a file.
fn deb_of(path: &str) -> Option<String> {
    let output = command::run("dpkg-query", &["--search", path], &[], LIMIT).ok()?;
    if output.ok() { holder(&output.stdout, path) } else { None }
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
