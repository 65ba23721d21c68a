//! Versions that the content doesn't tell: the tag that a commit has, and the commit that a version was. Tags are asked of
//! the repository's server, once for a new commit and from time to time; owned by the packer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kedge_rollout::version::compare;
use tokio::task::JoinSet;

use super::memory::{Known, Outcome};
use super::sources::{PATIENCE, SourceFault, Sources};

/// A tag that is pushed later than its commit is seen after this.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// Memory for the commits that were asked for; then it starts over.
const MAX_ASKED: usize = 10_000;

/// Name and commit.
pub(super) type Tags = Arc<Vec<(String, String)>>;

/// What is known of the tags of repositories.
#[derive(Debug, Default)]
pub(super) struct TagShelf {
    known: Mutex<BTreeMap<String, Shelved>>,
}

#[derive(Debug)]
struct Shelved {
    tags: Tags,
    at: Instant,
    /// Commits that these tags were looked up for: a new one is worth a question.
    asked: BTreeSet<String>,
}

impl TagShelf {
    /// The tags of a repository, not older than the commit is known here. When its server fails, the last known ones.
    pub async fn of(&self, sources: &Arc<dyn Sources>, repo: &str, commit: Option<&str>) -> Result<Tags, SourceFault> {
        if let Some(tags) = self.fresh(repo, commit) {
            return Ok(tags);
        }
        let answer = tokio::time::timeout(PATIENCE, sources.tags(repo)).await;
        match answer.unwrap_or_else(|_| Err(SourceFault::slow())) {
            Ok(tags) => Ok(self.keep(repo, commit, tags)),
            Err(fault) => {
                let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                known.get(repo).map(|shelved| Arc::clone(&shelved.tags)).ok_or(fault)
            }
        }
    }

    fn fresh(&self, repo: &str, commit: Option<&str>) -> Option<Tags> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let shelved = known.get(repo).filter(|shelved| shelved.at.elapsed() < FRESH)?;
        commit.is_none_or(|commit| shelved.asked.contains(commit)).then(|| Arc::clone(&shelved.tags))
    }

    fn keep(&self, repo: &str, commit: Option<&str>, tags: Vec<(String, String)>) -> Tags {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.remove(repo).map(|shelved| shelved.asked).unwrap_or_default();
        let mut asked = if before.len() < MAX_ASKED { before } else { BTreeSet::new() };
        asked.extend(commit.map(str::to_owned));
        let tags = Arc::new(tags);
        known.insert(repo.to_owned(), Shelved { tags: Arc::clone(&tags), at: Instant::now(), asked });
        tags
    }
}

/// Gives packages whose content tells no version that of their commit's tag.
pub(super) async fn name_by_tags(
    shelf: &Arc<TagShelf>,
    sources: &Arc<dyn Sources>,
    all: &mut BTreeMap<String, BTreeMap<String, Arc<Known>>>,
) {
    let mut wanted: BTreeSet<(String, String)> = BTreeSet::new();
    for known in all.values().flat_map(BTreeMap::values) {
        if let Some((repo, commit)) = unnamed(known) {
            wanted.insert((repo.to_owned(), commit.to_owned()));
        }
    }
    let mut tasks = JoinSet::new();
    for (repo, commit) in wanted {
        let (shelf, sources) = (Arc::clone(shelf), Arc::clone(sources));
        tasks.spawn(async move {
            let version = match shelf.of(&sources, &repo, Some(&commit)).await {
                Ok(tags) => version_of(&tags, &commit),
                Err(fault) => {
                    tracing::debug!(repo, error = fault.message, "the tags of a source can't be asked for");
                    None
                }
            };
            Some(((repo, commit), version?))
        });
    }
    let mut versions: BTreeMap<(String, String), String> = BTreeMap::new();
    while let Some(done) = tasks.join_next().await {
        versions.extend(done.ok().flatten());
    }
    if versions.is_empty() {
        return;
    }
    for known in all.values_mut().flat_map(BTreeMap::values_mut) {
        let version = unnamed(known).and_then(|(repo, commit)| versions.get(&(repo.to_owned(), commit.to_owned())));
        if let (Some(version), Outcome::Apply { packages, notes, key }) = (version, &known.outcome) {
            let mut named = (**packages).clone();
            named.version = Some(version.clone());
            let outcome = Outcome::Apply { packages: Arc::new(named), notes: notes.clone(), key: key.clone() };
            *known = Arc::new(Known { inputs: known.inputs.clone(), outcome });
        }
    }
}

/// Repository and commit of a workload without a version.
fn unnamed(known: &Known) -> Option<(&str, &str)> {
    match &known.outcome {
        Outcome::Apply { packages, .. } if packages.version.is_none() => {
            Some((packages.workload.repo.as_str(), packages.workload.commit.as_str()))
        }
        _ => None,
    }
}

/// The highest version that tags give a commit.
pub(super) fn version_of(tags: &[(String, String)], commit: &str) -> Option<String> {
    let here = tags.iter().filter(|(name, at)| at == commit && is_version(plain(name)));
    here.map(|(name, _)| plain(name)).max_by(|one, other| compare(one, other)).map(str::to_owned)
}

/// The commit of the tag that a version names: `1.4.2`, or `v1.4.2`.
pub(super) fn commit_of<'t>(tags: &'t [(String, String)], version: &str) -> Option<&'t str> {
    let named = |wanted: &str| tags.iter().find(|(name, _)| name == wanted).map(|(_, commit)| commit.as_str());
    named(version).or_else(|| named(&format!("v{version}"))).or_else(|| named(plain(version)))
}

/// Without the `v` that many put before it.
pub(super) fn plain(version: &str) -> &str {
    version.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(version)
}

/// `1.2.3`, with or without a pre-release or build.
fn is_version(text: &str) -> bool {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, commit)| ((*name).to_owned(), (*commit).to_owned())).collect()
    }

    #[test]
    fn a_commit_has_the_version_of_its_tag() {
        let tags = tags(&[("v1.2.3", "a"), ("latest", "a"), ("1.2.3-rc.1", "b"), ("nightly", "c"), ("v2", "d")]);
        assert_eq!(version_of(&tags, "a").as_deref(), Some("1.2.3"));
        assert_eq!(version_of(&tags, "b").as_deref(), Some("1.2.3-rc.1"));
        for commit in ["c", "d", "e"] {
            assert_eq!(version_of(&tags, commit), None, "{commit}");
        }
    }

    #[test]
    fn a_version_is_found_with_and_without_its_v() {
        let tags = tags(&[("v1.0.0", "a"), ("2.0.0", "b"), ("main-build", "c")]);
        for (version, commit) in [("1.0.0", "a"), ("v1.0.0", "a"), ("2.0.0", "b"), ("v2.0.0", "b"), ("main-build", "c")]
        {
            assert_eq!(commit_of(&tags, version), Some(commit), "{version}");
        }
        assert_eq!(commit_of(&tags, "3.0.0"), None);
    }
}
