//! Addresses of pages. Every name in them is encoded: names come from repositories and agents.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stays readable in a part of an address.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// One name as a part of a path or a query.
pub fn part(name: &str) -> String {
    // A part that is dots alone would be a way up.
    match name {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        name => utf8_percent_encode(name, KEPT).to_string(),
    }
}

/// A path with a query of those pairs that have a value.
pub fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| format!("{key}={}", part(value)))
        .collect();
    match pairs.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", pairs.join("&")),
    }
}

pub fn login(next: &str) -> String {
    query("/login", &[("next", if next == "/" { "" } else { next })])
}

pub fn environment(name: &str) -> String {
    format!("/environments/{}", part(name))
}

pub fn cluster_type(environment: &str, name: &str) -> String {
    format!("/types/{}/{}", part(environment), part(name))
}

pub fn cluster(id: &str) -> String {
    format!("/clusters/{}", part(id))
}

pub fn workload(name: &str) -> String {
    format!("/workloads/{}", part(name))
}

/// `name` is `<cluster type>/<workload>-<target>`.
pub fn assignment(environment: &str, name: &str) -> String {
    let (cluster_type, target) = name.split_once('/').unwrap_or(("", name));
    format!("/assignments/{}/{}/{}", part(environment), part(cluster_type), part(target))
}

pub fn rollout(id: u64) -> String {
    format!("/rollouts/{id}")
}

pub fn commit(commit: &str) -> String {
    format!("/commits/{}", part(commit))
}

/// A file at a commit on the pages of its Git server: GitHub's form, GitLab's, else Gitea's. None where there are no pages.
pub fn source(repo: &str, commit: &str, file: &str, line: Option<u32>) -> Option<String> {
    let (scheme, rest) = repo.split_once("://")?;
    let (host, path) = rest.trim_end_matches('/').split_once('/')?;
    // A password in an address is nobody's business.
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let plain = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-._~:/".contains(letter));
    let known = matches!(scheme, "http" | "https") && plain(host) && plain(path) && !host.is_empty();
    if !known || file.is_empty() || commit.is_empty() || !commit.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let folder = match host {
        host if host.contains("github") => "blob",
        host if host.contains("gitlab") => "-/blob",
        _ => "src/commit",
    };
    let path = path.strip_suffix(".git").unwrap_or(path);
    let file: Vec<String> = file.split('/').map(part).collect();
    let line = line.map(|line| format!("#L{line}")).unwrap_or_default();
    Some(format!("{scheme}://{host}/{path}/{folder}/{commit}/{}{line}", file.join("/")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_place_leads_to_its_line_on_the_git_server() {
        let link = |repo: &str| source(repo, "1f0e", "a b/c.yaml", Some(7));
        let expected = "https://github.com/acme/fleet/blob/1f0e/a%20b/c.yaml#L7";
        assert_eq!(link("https://github.com/acme/fleet.git").as_deref(), Some(expected));
        let expected = "https://gitlab.acme.example/fleet/-/blob/1f0e/a%20b/c.yaml#L7";
        assert_eq!(link("https://me:secret@gitlab.acme.example/fleet").as_deref(), Some(expected));
        assert_eq!(
            link("http://git.local:3000/acme/fleet").as_deref(),
            Some("http://git.local:3000/acme/fleet/src/commit/1f0e/a%20b/c.yaml#L7")
        );
        for repo in ["file:///srv/fleet.git", "git@github.com:acme/fleet", "javascript://x/%0aalert(1)", "https://x/\"y"] {
            assert_eq!(link(repo), None, "{repo}");
        }
        assert_eq!(source("https://github.com/acme/fleet", "not a commit", "c.yaml", None), None);
    }

    #[test]
    fn names_stay_names() {
        assert_eq!(assignment("dev", "drone/hello-a b"), "/assignments/dev/drone/hello-a%20b");
        assert_eq!(cluster(".."), "/clusters/%2E%2E");
        assert_eq!(query("/x", &[("a", ""), ("b", "1&c=2")]), "/x?b=1%26c%3D2");
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_part(name in ".{0,60}") {
            let made = part(&name);
            prop_assert!(!made.contains(['/', '?', '#', '&', '"', '<', '>', '\'', ' ', '\\']));
        }
    }
}
