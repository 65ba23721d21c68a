//! What this host is, as the hub's page shows it. Read at each start; only what changed is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::paths::Paths;

/// os-release is a few hundred bytes.
const MAX_RELEASE: u64 = 16 * 1024;

/// Names and values; what can't be told is left out.
pub fn gather(paths: &Paths) -> BTreeMap<&'static str, String> {
    let mut facts = BTreeMap::from([("agentVersion", env!("CARGO_PKG_VERSION").to_owned())]);
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    if let Ok(name) = nix::sys::utsname::uname() {
        facts.insert("architecture", text(name.machine()));
        facts.insert("kernel", text(name.release()));
        facts.insert("hostname", text(name.nodename()));
    }
    let release = ["/etc/os-release", "/usr/lib/os-release"].into_iter().find_map(|path| {
        let below = read(&paths.place(path));
        pretty_name(&below.or_else(|| read(Path::new(path)))?)
    });
    facts.extend(release.map(|name| ("system", name)));
    facts
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_RELEASE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"`, without the quotes.
fn pretty_name(release: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    let name = value.trim().trim_matches(['"', '\'']).replace('\\', "");
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;

    #[test]
    fn a_host_is_told_by_its_release_file() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("etc")).unwrap();
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        std::fs::write(place.path().join("etc/os-release"), text).unwrap();
        let facts = gather(&Paths::below(place.path()));
        assert_eq!(facts["system"], "Debian GNU/Linux 12 (bookworm)");
        assert!(["agentVersion", "architecture", "kernel", "hostname"].iter().all(|name| facts.contains_key(name)));
    }

    #[test]
    fn a_release_file_without_a_name_tells_nothing() {
        assert_eq!(pretty_name("NAME=x\nPRETTY_NAME=\n"), None);
        assert_eq!(pretty_name("PRETTY_NAME=plain"), Some("plain".to_owned()));
    }
}
