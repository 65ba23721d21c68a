//! What a host says of itself when it joins: its name, and a few words for people.

use std::fs::File;
use std::io::Read as _;

use kedge_model::wire::Facts;

use super::JoinError;
use crate::paths::Paths;

/// The hub takes no longer fact.
const MAX_FACT: usize = 100;
const OS_RELEASE: &str = "/etc/os-release";
const MAX_OS_RELEASE: u64 = 16 * 1024;

/// What was said, or the host's own name.
pub fn name(said: Option<&str>, most: usize) -> Result<String, JoinError> {
    let own = || nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default();
    let name = said.map_or_else(own, str::to_owned).trim().to_owned();
    if name.is_empty() || name.len() > most || name.chars().any(char::is_control) {
        return Err(JoinError::Name(name.escape_debug().take(120).collect()));
    }
    Ok(name)
}

pub fn gather(paths: &Paths) -> Facts {
    let mut text = String::new();
    if let Ok(file) = File::open(paths.place(OS_RELEASE)).or_else(|_| File::open(OS_RELEASE)) {
        // Half of it is as good as none.
        _ = file.take(MAX_OS_RELEASE).read_to_string(&mut text);
    }
    Facts {
        agent_version: plain(env!("CARGO_PKG_VERSION")),
        architecture: plain(architecture(std::env::consts::ARCH)),
        system: plain(system(&text)),
    }
}

/// As Debian calls it.
fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "arm" => "armhf",
        other => other,
    }
}

fn system(os_release: &str) -> &str {
    let line = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.unwrap_or_default().trim().trim_matches(['"', '\''])
}

fn plain(text: &str) -> String {
    let mut plain: String = text.chars().filter(|letter| !letter.is_control()).collect();
    plain.truncate(plain.floor_char_boundary(MAX_FACT));
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_system_is_what_it_calls_itself() {
        assert_eq!(
            system("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)"
        );
        assert_eq!(system(""), "");
    }

    #[test]
    fn a_name_that_the_hub_would_refuse_is_refused_here() {
        assert_eq!(name(Some(" drone-1 "), 100).unwrap(), "drone-1");
        assert!(name(Some(""), 100).is_err() && name(Some("a\nb"), 100).is_err());
        assert!(name(Some(&"x".repeat(101)), 100).is_err());
    }

    proptest! {
        #[test]
        fn facts_are_short_and_printable(text in any::<String>()) {
            let fact = plain(system(&format!("PRETTY_NAME={text}")));
            prop_assert!(fact.len() <= MAX_FACT && !fact.chars().any(char::is_control));
        }
    }
}
