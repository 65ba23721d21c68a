//! Addresses of pages, and of files on the Git servers, for answers of the API and for the pages themselves. Every name in them is encoded: names come from repositories and agents.

mod source;

pub use source::{bare, repository, source};

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

/// The page that asks for a person's word before many removals.
pub fn confirm(environment: &str, cluster_type: &str) -> String {
    format!("/environments/{}/confirm/{}", part(environment), part(cluster_type))
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

/// The page that says what a word would do to a rollout.
pub fn say(id: u64, word: &str) -> String {
    format!("/rollouts/{id}/{}", part(word))
}

pub fn promotion(environment: &str) -> String {
    format!("/promotions/{}", part(environment))
}

pub fn evidence(id: i64) -> String {
    format!("/evidence/{id}")
}

pub fn commit(commit: &str) -> String {
    format!("/commits/{}", part(commit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
