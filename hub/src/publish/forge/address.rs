//! Where a repository is on its forge: from its URL and the configuration. Pure.

use super::ForgeError;
use crate::config::{Forge, ForgeKind};

/// A repository as the REST API names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub kind: ForgeKind,
    /// Without a slash at its end.
    pub api: String,
    pub owner: String,
    pub name: String,
}

impl Address {
    /// None: the repository is on no server that is configured as a forge.
    pub fn of(repo: &str, forges: &[Forge]) -> Option<Result<Address, ForgeError>> {
        let forge =
            forges.iter().filter(|forge| begins_with(repo, &forge.prefix)).max_by_key(|forge| forge.prefix.len())?;
        Some(Address::on(repo, forge))
    }

    fn on(repo: &str, forge: &Forge) -> Result<Address, ForgeError> {
        let unclear = |what: &str| ForgeError::NoAddress(format!("{what} of the forge {} is unclear", forge.prefix));
        let path = after_host(repo).ok_or_else(|| unclear("a repository's address"))?;
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
        let (Some(name), Some(owner)) = (parts.next(), parts.next()) else {
            return Err(unclear("a repository's owner and name"));
        };
        if [owner, name].iter().any(|part| matches!(*part, "." | "..") || part.chars().any(char::is_control)) {
            return Err(unclear("a repository's owner and name"));
        }
        let api = match &forge.api {
            Some(api) => api.trim_end_matches('/').to_owned(),
            None => default_api(forge).ok_or_else(|| unclear("the API's address"))?,
        };
        Ok(Address { kind: forge.kind, api, owner: owner.to_owned(), name: name.to_owned() })
    }
}

/// Whether an address is the prefix or below it: a prefix ends where a part of the path does.
fn begins_with(repo: &str, prefix: &str) -> bool {
    let (repo, prefix) = (lower_host(repo), lower_host(prefix));
    match repo.strip_prefix(prefix.as_str()) {
        Some(rest) => rest.is_empty() || prefix.ends_with(['/', ':']) || rest.starts_with(['/', ':']),
        None => false,
    }
}

/// Scheme and host in lower case, without a user's name.
fn lower_host(url: &str) -> String {
    let url = url.trim();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{}{path}", scheme.to_lowercase(), host.to_lowercase())
}

/// The path, of a URL or of `git@host:path`.
fn after_host(url: &str) -> Option<&str> {
    match url.trim().split_once("://") {
        Some((_, rest)) => rest.split_once('/').map(|(_, path)| path),
        None => url.trim().split_once(':').map(|(_, path)| path),
    }
}

fn default_api(forge: &Forge) -> Option<String> {
    let prefix = lower_host(&forge.prefix);
    let (scheme, host) = match prefix.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest.split('/').next()?),
        // ssh says nothing about the API's port; https is what it has.
        Some((_, rest)) => ("https", rest.split(['/', ':']).next()?),
        None => ("https", prefix.split(':').next()?.rsplit('@').next()?),
    };
    let host = Some(host).filter(|host| !host.is_empty())?;
    Some(match forge.kind {
        ForgeKind::GitHub if host == "github.com" => "https://api.github.com".to_owned(),
        ForgeKind::GitHub => format!("{scheme}://{host}/api/v3"),
        ForgeKind::Gitea => format!("{scheme}://{host}/api/v1"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn forge(prefix: &str, kind: ForgeKind) -> Forge {
        Forge { prefix: prefix.to_owned(), kind, api: None }
    }

    fn found(repo: &str, forges: &[Forge]) -> Option<String> {
        let address = Address::of(repo, forges)?.unwrap();
        Some(format!("{} {} {}", address.api, address.owner, address.name))
    }

    #[test]
    fn repositories_are_found_on_their_forge() {
        let forges = [
            forge("https://github.com/", ForgeKind::GitHub),
            forge("https://ghe.example", ForgeKind::GitHub),
            forge("http://127.0.0.1:3000/", ForgeKind::Gitea),
            forge("git@git.example:", ForgeKind::Gitea),
        ];
        for (repo, wanted) in [
            ("https://github.com/Org/GitOps.git", "https://api.github.com Org GitOps"),
            ("https://GitHub.com/o/r/", "https://api.github.com o r"),
            ("https://me@github.com/o/r", "https://api.github.com o r"),
            ("https://ghe.example/o/r", "https://ghe.example/api/v3 o r"),
            ("http://127.0.0.1:3000/o/r.git", "http://127.0.0.1:3000/api/v1 o r"),
            ("git@git.example:o/r.git", "https://git.example/api/v1 o r"),
        ] {
            assert_eq!(found(repo, &forges).as_deref(), Some(wanted), "{repo}");
        }
        for repo in ["https://github.com.evil/o/r", "https://ghe.example.evil/o/r", "http://github.com/o/r", "/srv/o/r"]
        {
            assert_eq!(found(repo, &forges), None, "{repo}");
        }
        assert!(Address::of("https://github.com/only", &forges).unwrap().is_err());
    }

    #[test]
    fn the_longest_prefix_and_a_given_api_win() {
        let mut team = forge("https://git.example/team", ForgeKind::GitHub);
        team.api = Some("https://api.example/".to_owned());
        let forges = [forge("https://git.example", ForgeKind::Gitea), team];
        assert_eq!(found("https://git.example/team/r", &forges).as_deref(), Some("https://api.example team r"));
        assert_eq!(
            found("https://git.example/teamwork/r", &forges).as_deref(),
            Some("https://git.example/api/v1 teamwork r")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_an_address_or_not(repo in ".{0,80}", prefix in ".{0,40}") {
            let _ = Address::of(&repo, &[forge(&prefix, ForgeKind::Gitea), forge("", ForgeKind::GitHub)]);
        }
    }
}
