//! Folders that systemd makes for a unit file and gives to the unit's user, or writes into. By their names they are the workload's own, but
//! a host may have one of that name already: the agent asks before every change.

use std::collections::BTreeSet;

use super::Tenant;
use super::lines::{self, Line};
use super::settings::{Rule, rule};

/// Below which folder each of them is.
const BASES: [(&str, &str); 5] = [
    ("RuntimeDirectory", RUNTIME),
    ("StateDirectory", "/var/lib"),
    ("CacheDirectory", "/var/cache"),
    ("LogsDirectory", "/var/log"),
    ("ConfigurationDirectory", "/etc"),
];
/// Where sockets and files with process ids are too.
const RUNTIME: &str = "/run";

/// The folders by their paths. None where the platform team gave the place to the workload.
pub fn claimed(text: &str, tenant: &Tenant) -> BTreeSet<String> {
    let (mut found, mut section) = (BTreeSet::new(), String::new());
    for (_, line) in lines::read(text) {
        match line {
            Line::Section(name) => section = name,
            Line::Setting { key, value } if !value.is_empty() => {
                let base = match rule(&section, &key) {
                    Rule::Folder => BASES.iter().find(|(named, _)| *named == key).map(|(_, base)| *base),
                    Rule::PidFile => Some(RUNTIME),
                    Rule::Listen if value.starts_with('/') => Some(RUNTIME),
                    _ => None,
                };
                found.extend(base.map(|base| format!("{base}/{}", tenant.assignment)));
            }
            _ => {}
        }
    }
    found.retain(|path| !tenant.is_given(path));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tenant;

    #[test]
    fn folders_that_systemd_would_make_are_known() {
        let text = "[Service]\nStateDirectory=hello-test hello-test/cache\nCacheDirectory=\nPIDFile=/run/hello-test/pid\n\
            LogsDirectory=hello-test\n";
        let all = |text| claimed(text, &tenant()).into_iter().collect::<Vec<_>>();
        assert_eq!(all(text), ["/run/hello-test", "/var/lib/hello-test", "/var/log/hello-test"]);
        assert_eq!(all("[Socket]\nListenStream=/run/hello-test/s\nListenStream=8080\n"), ["/run/hello-test"]);
        assert_eq!(all("[Socket]\nListenStream=8080\n"), Vec::<String>::new());
        let mut given = tenant();
        given.given.allow.paths.push("/var/lib/hello-test".to_owned());
        assert_eq!(claimed("[Service]\nStateDirectory=hello-test\n", &given), BTreeSet::new());
    }
}
