//! Addresses of pages, for answers that lead to one. Every name in them is encoded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stays readable in a part of an address.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

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

/// The list of an environment's problems, at one of them.
pub fn problem(environment: &str, id: &str) -> String {
    format!("/problems?environment={}#{}", part(environment), part(id))
}

fn part(name: &str) -> String {
    // A part that is dots alone would be a way up.
    match name {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        name => utf8_percent_encode(name, KEPT).to_string(),
    }
}
