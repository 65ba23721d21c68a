//! The cluster's own source of the platform's branch: whether it reads the branch at all, which commit it is at, and who applies it.
//! Without it nothing that the hub publishes arrives, whatever the assignments say. Pure; called by the observer.

use std::collections::BTreeSet;

use kedge_model::wire::{DesiredState, PlatformSource, Timestamp};

use super::judged::{Judged, Standing};
use super::name::{ARGO, KUSTOMIZE, Kind, Name};
use super::observations::{Facts, Fare};
use crate::external::fits;

/// What is known of the platform's branch in this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// A sentence for a person, where something is wrong.
    pub warning: Option<String>,
    /// Who reads the branch, and its revision.
    pub fact: Option<String>,
    /// Why newly published files aren't in force yet.
    pub behind: Option<String>,
    /// When it is judged again, if nothing happens.
    pub again: Option<Timestamp>,
}

/// Reconcilers look every few minutes; what takes longer is worth a word.
const PATIENCE_MS: i64 = 10 * 60 * 1000;
/// People keep the first few in mind.
const MAX_SAID: usize = 3;

/// None: the watches have only begun.
pub fn platform(state: &DesiredState, wide: &BTreeSet<Kind>, facts: &Facts, now: Timestamp) -> Option<Platform> {
    let Some(source) = state.source.as_ref().filter(|_| !wide.is_empty()) else { return Some(Platform::default()) };
    let watched = |kind: &Kind| facts.watches.iter().find(|(scope, _)| scope.kind == *kind && scope.is_wide());
    let fares: Vec<(&Kind, Option<_>)> = wide.iter().map(|kind| (kind, watched(kind).map(|(_, one)| one))).collect();
    if fares.iter().any(|(_, one)| one.is_none_or(|one| one.is_begun())) {
        return None;
    }
    let readers: Vec<(&Name, &Judged)> = facts.objects.iter().filter(|(_, judged)| judged.is_reading(source)).collect();
    if readers.is_empty() {
        let hidden = fares.iter().find_map(|(kind, one)| match one.map(|one| &one.fare) {
            Some(Fare::Forbidden(why)) => Some(format!("{kind}: {why}")),
            _ => None,
        });
        let warning = match hidden {
            Some(why) => Some(format!("who reads the platform's branch can't be looked for: {why}")),
            None => Some(format!(
                "nothing in this cluster reads the branch {} of {}: what is published doesn't arrive",
                source.branch, source.repo
            )),
        };
        return Some(Platform { warning, ..Platform::default() });
    }
    let names: BTreeSet<&Name> = readers.iter().map(|(name, _)| *name).collect();
    let cluster_type = state.stream.cluster_type.as_str();
    let applies = |name: &Name, judged: &Judged| {
        let by_source =
            name.kind.is(KUSTOMIZE, "Kustomization") && judged.sources.iter().any(|one| names.contains(one));
        let itself = name.kind.is(ARGO, "Application") && names.contains(name);
        (by_source || itself) && covers(judged.path.as_deref(), cluster_type)
    };
    let appliers: Vec<(&Name, &Judged)> = facts.objects.iter().filter(|(name, judged)| applies(name, judged)).collect();
    Some(conclude(source, state.created_at, &readers, &appliers, now))
}

fn conclude(
    source: &PlatformSource,
    published: Timestamp,
    readers: &[(&Name, &Judged)],
    appliers: &[(&Name, &Judged)],
    now: Timestamp,
) -> Platform {
    let parts =
        || readers.iter().chain(appliers.iter().filter(|(name, _)| !readers.iter().any(|(one, _)| one == name)));
    let at = |judged: &Judged| judged.revision.clone().unwrap_or_else(|| "no revision yet".to_owned());
    let is_there = |judged: &Judged| judged.commits.iter().any(|commit| fits(commit, Some(&source.commit)));
    let mut said: Vec<String> = Vec::new();
    for (name, judged) in parts() {
        if judged.standing == Standing::Failed {
            said.push(format!("{name}: {}", judged.message));
        }
        if judged.suspended {
            said.push(format!("{name} is suspended"));
        }
    }
    if appliers.is_empty() {
        let names: Vec<String> = readers.iter().map(|(name, _)| name.to_string()).collect();
        said.push(format!("{} reads the platform's branch, and nothing applies it", names.join(", ")));
    }
    let late = parts().find(|(_, judged)| !is_there(judged));
    let behind = late.map(|(name, judged)| {
        format!("{name} is at {}, and {} of the platform's branch is expected", at(judged), source.commit)
    });
    let overdue = published.0.saturating_add(PATIENCE_MS);
    let is_overdue = behind.is_some() && now.0 >= overdue;
    if let (Some(behind), true, true) = (&behind, is_overdue, said.is_empty()) {
        said.push(behind.clone());
    }
    let facts: Vec<String> = parts().take(MAX_SAID).map(|(name, judged)| format!("{name} at {}", at(judged))).collect();
    said.truncate(MAX_SAID);
    Platform {
        warning: (!said.is_empty()).then(|| said.join("; ")),
        fact: Some(facts.join(", ")),
        again: (behind.is_some() && !is_overdue).then_some(Timestamp(overdue)),
        behind: behind.filter(|_| !appliers.is_empty()),
    }
}

/// Whether a folder that is applied holds the cluster type's.
fn covers(path: Option<&str>, cluster_type: &str) -> bool {
    let mut parts = path.unwrap_or_default().split('/').filter(|part| !matches!(*part, "" | "."));
    match (parts.next(), parts.next()) {
        (None, _) => true,
        (Some(first), None) => first == cluster_type,
        (Some(_), Some(_)) => false,
    }
}

/// One repository in its several spellings: `https://h/a.git`, `ssh://git@h/a`, `git@h:a`.
pub fn same_repo(one: &str, other: &str) -> bool {
    fn plain(url: &str) -> String {
        let url = url.trim();
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        // `host:path` is scp's way; `host:22/path` has a port, which says nothing about the repository.
        let (host, path) = rest.split_once(['/', ':']).unwrap_or((rest, ""));
        let path = match path.split_once('/') {
            Some((port, path)) if rest[host.len()..].starts_with(':') && is_port(port) => path,
            _ => path,
        };
        let path = path.trim_matches('/');
        format!("{}/{}", host.to_ascii_lowercase(), path.strip_suffix(".git").unwrap_or(path))
    }
    fn is_port(text: &str) -> bool {
        !text.is_empty() && text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit())
    }
    plain(one) == plain(other)
}

impl Judged {
    fn is_reading(&self, source: &PlatformSource) -> bool {
        self.reads.as_ref().is_some_and(|reads| {
            same_repo(&reads.repo, &source.repo) && reads.branch.as_ref().is_none_or(|branch| *branch == source.branch)
        })
    }
}
