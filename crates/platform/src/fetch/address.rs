//! Which addresses are opened, and what is said of the others.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::repositories::{RepoError, local_path};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Local(PathBuf),
    /// https, or http to this machine.
    Remote(String),
}

impl Address {
    pub fn parse(repo: &str) -> Result<Address, RepoError> {
        let repo = repo.trim();
        if repo.is_empty() {
            return Err(refused("the repository's address is empty".to_owned(), "write `repo: https://…`"));
        }
        if let Some(path) = local_path(repo) {
            return Ok(Address::Local(path));
        }
        let Some((scheme, rest)) = repo.split_once("://") else {
            let reason = format!("`{repo}` is an ssh address; only https is fetched");
            return Err(refused(reason, "write the repository's https address"));
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            // Not repeated in the message: it may hold a password.
            let reason = "the repository's address contains a user or a password".to_owned();
            return Err(refused(reason, "write it without: what is in Git is not a place for credentials"));
        }
        if authority.is_empty() || repo.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(refused(format!("`{}` is not an address", repo.escape_debug()), "write `https://host/path`"));
        }
        match scheme.to_ascii_lowercase().as_str() {
            "https" => Ok(Address::Remote(format!("https://{rest}"))),
            "http" if is_loopback(authority) => Ok(Address::Remote(format!("http://{rest}"))),
            "http" => {
                let reason = format!("`{repo}` is plain http, which anybody on the way can change");
                Err(refused(reason, "write https; http is for this machine only"))
            }
            other => {
                let reason = format!("`{repo}` can't be fetched: `{other}` isn't supported");
                Err(refused(reason, "write the repository's https address, or a path"))
            }
        }
    }
}

pub(super) fn relative(repo: &str) -> RepoError {
    let reason = format!("`{repo}` is a relative path, and it isn't known from where");
    refused(reason, "write an absolute path or an https address")
}

pub(super) fn refused(reason: String, hint: &str) -> RepoError {
    RepoError::Refused { reason, hint: hint.to_owned() }
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_paths_are_opened() {
        let remote = |text: &str| Address::Remote(text.to_owned());
        assert_eq!(Address::parse("https://host/a/b").unwrap(), remote("https://host/a/b"));
        assert_eq!(Address::parse("HTTPS://host/a").unwrap(), remote("https://host/a"));
        for repo in ["http://localhost:1/a", "http://127.0.0.1/a", "http://[::1]:80/a"] {
            assert_eq!(Address::parse(repo).unwrap(), remote(repo));
        }
        for (repo, path) in [("file:///srv/a", "/srv/a"), ("/srv/a", "/srv/a"), ("../app", "../app")] {
            assert_eq!(Address::parse(repo).unwrap(), Address::Local(path.into()));
        }
    }

    #[test]
    fn everything_else_is_refused_with_a_way_out() {
        for (repo, reason, hint) in [
            ("", "the repository's address is empty", "write `repo: https://…`"),
            (
                "git@github.com:org/repo.git",
                "`git@github.com:org/repo.git` is an ssh address; only https is fetched",
                "write the repository's https address",
            ),
            (
                "ssh://host/x",
                "`ssh://host/x` can't be fetched: `ssh` isn't supported",
                "write the repository's https address, or a path",
            ),
            (
                "http://example.com/x",
                "`http://example.com/x` is plain http, which anybody on the way can change",
                "write https; http is for this machine only",
            ),
            (
                "http://127.0.0.1.example.com/x",
                "`http://127.0.0.1.example.com/x` is plain http, which anybody on the way can change",
                "write https; http is for this machine only",
            ),
        ] {
            let error = Address::parse(repo).unwrap_err();
            assert_eq!(error.to_string(), reason);
            assert_eq!(error.hint().unwrap(), hint);
        }
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_repeated() {
        let error = Address::parse("https://me:s3cret@host/x").unwrap_err();
        assert_eq!(error.to_string(), "the repository's address contains a user or a password");
        assert!(!format!("{error:?}").contains("s3cret"));
    }
}
