//! The beginning of addresses: what `spec.sources` of a WorkloadRegistration lists, what a credential is for, where a redirect may
//! lead. Compared by whole parts of a path, on addresses that were taken apart, so that `team` isn't the beginning of `team-b`. The
//! only place that compares them.

use std::fmt;

use super::{Address, Refused, Scheme, Server};

/// Addresses of Git and chart repositories, or of an OCI registry, that begin so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// `oci://`: for artifacts of a registry, never for Git.
    oci: bool,
    server: Server,
}

const OCI: &str = "oci://";

/// The first part of ssh's short form: from the user's home.
const HOME: &str = "~";

impl Prefix {
    pub fn parse(text: &str) -> Result<Prefix, Refused> {
        let text = text.trim();
        let is_oci = text.get(..OCI.len()).is_some_and(|start| start.eq_ignore_ascii_case(OCI));
        let address = match text.get(OCI.len()..) {
            Some(rest) if is_oci => Address::parse_prefix(&format!("https://{rest}"))?,
            _ => Address::parse_prefix(text)?,
        };
        match address {
            Address::Server(server) => Ok(Prefix { oci: is_oci, server }),
            Address::Local(path) => Err(Refused::new(
                format!("`{}` is a path, and paths of the hub's machine can't be listed", path.display()),
                "write the beginning of an address: `https://git.example.com/team`",
            )),
        }
    }

    /// The owner's repositories: the address without its last part. An address of one part has no owner, so it is meant
    /// alone and not its whole server.
    pub fn owner_of(server: &Server) -> Prefix {
        let segments = server.segments();
        let named = segments.iter().filter(|part| **part != HOME).count();
        let kept = if named > 1 { segments.len() - 1 } else { segments.len() };
        let path = segments.iter().take(kept).map(|part| format!("/{part}")).collect();
        Prefix { oci: false, server: Server { path, ..server.clone() } }
    }

    /// All addresses that begin as this one does.
    pub fn of(server: Server) -> Prefix {
        Prefix { oci: false, server }
    }

    /// Everything on an address's server.
    pub fn server_of(server: &Server) -> Prefix {
        Prefix::of(Server { path: String::new(), ..server.clone() })
    }

    /// How many parts of a path it has: of two that cover an address, the one with more is the one that was meant.
    pub fn depth(&self) -> usize {
        self.server.segments().len()
    }

    /// Whether a repository's address begins so.
    pub fn covers(&self, server: &Server) -> bool {
        !self.oci && self.server.begins(server)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.server.to_string();
        match (self.oci, text.strip_prefix(Scheme::Https.as_str())) {
            (true, Some(rest)) => write!(f, "oci{rest}"),
            _ => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(text: &str) -> Server {
        match Address::parse(text).unwrap() {
            Address::Server(server) => server,
            Address::Local(_) => unreachable!(),
        }
    }

    #[test]
    fn a_prefix_covers_whole_parts_of_the_same_server_only() {
        let team = Prefix::parse("https://Git.Example.com:443/team/").unwrap();
        for inside in ["https://git.example.com/team/app", "HTTPS://GIT.example.com//team//sub/app.git/"] {
            assert!(team.covers(&server(inside)), "{inside}");
        }
        for outside in [
            "https://git.example.com/team-b/app",
            "https://git.example.com/Team/app",
            "https://git.example.com/x/team/app",
            "https://git.example.com:8443/team/app",
            "http://git.example.com/team/app",
            "ssh://git@git.example.com/team/app",
            "git@git.example.com:team/app",
            "https://git.example.com.evil/team/app",
            "https://xn--git-9la.example.com/team/app",
        ] {
            assert!(!team.covers(&server(outside)), "{outside}");
        }
    }

    #[test]
    fn addresses_that_climb_out_of_a_prefix_are_no_addresses() {
        for text in [
            "https://h/team/../other/app",
            "https://h/team/%2e%2e/other/app",
            "https://h/team/%252e%252e/other/app",
            "https://h/team/..;/other/app",
            "https://h/team/..%3bx/other/app",
            "https://h/team/..%2fother/app",
            "https://h/team\\..\\other/app",
            "https://h@evil/team/app",
            "https://h/team/app?x=/../..",
            "https://h/team/app#x",
            "https://gıt.example.com/team/app",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_owner_is_the_address_without_its_last_part() {
        for (address, owner) in [
            ("https://h/team/app.git", "https://h/team"),
            ("https://h/group/sub/app/", "https://h/group/sub"),
            ("git@h:team/app.git", "ssh://git@h/~/team"),
            ("https://h/app", "https://h/app"),
            ("git@h:app.git", "ssh://git@h/~/app"),
        ] {
            assert_eq!(Prefix::owner_of(&server(address)).to_string(), owner, "{address}");
        }
    }

    #[test]
    fn a_registry_is_never_a_git_server() {
        let charts = Prefix::parse("OCI://registry.example.com/team").unwrap();
        assert_eq!(charts.to_string(), "oci://registry.example.com/team");
        assert!(!charts.covers(&server("https://registry.example.com/team/app")));
    }

    #[test]
    fn what_is_no_beginning_of_an_address_is_refused() {
        for text in
            ["", "/srv/app", "../app", "file:///srv", "https://", "https://u:p@h/x", "git://h/x", "https://h/*?"]
        {
            assert!(Prefix::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_an_owner_has_it_covers_and_no_text_panics(text in "(https://|git@|ssh://)?h[:/][a-z./%;~-]{0,30}") {
            if let Ok(Address::Server(server)) = Address::parse(&text) {
                prop_assert!(Prefix::owner_of(&server).covers(&server), "{}", text);
            }
            let _ = Prefix::parse(&text);
        }
    }
}
