//! Where a file of a repository is shown by its Git server. Only for addresses that a browser may follow; a credential in one is
//! left out.

use kedge_api::source::SourceLocation;

use super::part;

/// How a Git server names a line of a file at a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forge {
    GitHub,
    GitLab,
    Gitea,
}

/// The file at its commit and line; none: the repository isn't one that a browser reaches, or its commit isn't known.
pub fn source(place: &SourceLocation) -> Option<String> {
    let base = repository(&place.repo)?;
    let commit = commit_of(place.revision.as_deref()?)?;
    let file: Vec<String> = place.file.split('/').filter(|name| !matches!(*name, "" | ".")).map(part).collect();
    if file.is_empty() || place.file.split('/').any(|name| name == "..") {
        return None;
    }
    let way = match forge(&base) {
        Forge::GitHub => "blob",
        Forge::GitLab => "-/blob",
        Forge::Gitea => "src/commit",
    };
    let line = place.line.map(|line| format!("#L{line}")).unwrap_or_default();
    Some(format!("{base}/{way}/{commit}/{}{line}", file.join("/")))
}

/// A repository's own page, without a credential and without `.git`.
pub fn repository(repo: &str) -> Option<String> {
    let (scheme, rest) = repo.split_once("://")?;
    let scheme = ["https", "http"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known))?;
    let (authority, path) = rest.split_once('/')?;
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    if host.is_empty() || !host.bytes().all(plain) || path.contains(['?', '#']) {
        return None;
    }
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let parts: Vec<String> = path.split('/').map(part).collect();
    (!path.is_empty()).then(|| format!("{scheme}://{host}/{}", parts.join("/")))
}

/// A repository's address without the credential that may stand in it.
pub fn bare(repo: &str) -> String {
    match repo.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or(authority);
            format!("{scheme}://{host}/{path}")
        }
        None => repo.to_owned(),
    }
}

/// By its name, as people give it; most that are run at home are Gitea or Forgejo.
fn forge(base: &str) -> Forge {
    let host = base.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if host.contains("gitlab") {
        Forge::GitLab
    } else if host.contains("github") {
        Forge::GitHub
    } else {
        Forge::Gitea
    }
}

/// The digits of `branch@sha1:commit`.
fn commit_of(revision: &str) -> Option<&str> {
    let digits = revision.rsplit(':').next()?;
    let fits = digits.len() >= 7 && digits.len() <= 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then_some(digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(repo: &str, file: &str) -> SourceLocation {
        let revision = Some("dev@sha1:1f0e0d0c0b0a".to_owned());
        SourceLocation { repo: repo.to_owned(), revision, file: file.to_owned(), line: Some(12), column: None }
    }

    #[test]
    fn each_server_names_a_line_in_its_own_way() {
        let said = |repo: &str| source(&place(repo, "config/a b.yaml")).unwrap_or_default();
        assert_eq!(
            said("https://github.com/acme/platform.git"),
            "https://github.com/acme/platform/blob/1f0e0d0c0b0a/config/a%20b.yaml#L12"
        );
        assert_eq!(
            said("https://anna:secret@gitlab.acme.example/group/sub/platform"),
            "https://gitlab.acme.example/group/sub/platform/-/blob/1f0e0d0c0b0a/config/a%20b.yaml#L12"
        );
        assert_eq!(
            said("http://git.acme.example:3000/acme/platform"),
            "http://git.acme.example:3000/acme/platform/src/commit/1f0e0d0c0b0a/config/a%20b.yaml#L12"
        );
    }

    #[test]
    fn only_addresses_for_browsers_become_links() {
        for repo in
            ["/srv/git/a", "git@github.com:acme/a", "ssh://git@host/a", "javascript://host/%0aalert(1)", "https://"]
        {
            assert_eq!(source(&place(repo, "a.yaml")), None, "{repo}");
        }
        assert_eq!(source(&place("https://github.com/a/b", "../../settings")), None);
    }

    proptest! {
        #[test]
        fn no_repository_makes_another_link(repo in ".{0,80}", file in ".{0,40}") {
            if let Some(link) = source(&place(&repo, &file)) {
                prop_assert!(link.starts_with("https://") || link.starts_with("http://"));
                prop_assert!(!link.contains(['"', '<', '>', '\'', ' ', '@', '\\']));
            }
        }
    }
}
