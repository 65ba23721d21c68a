//! Versions that the content doesn't tell: the tag that a commit has, and the commit that a version was. Tags are asked of
//! the repository's server, once for a new commit and from time to time; owned by the packer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kedge_rollout::version::compare;
use tokio::task::JoinSet;

use super::memory::{Known, Outcome};
use super::sources::{SourceFault, Sources};
use super::tenancy::Tenancy;
use crate::git::Trust;

/// A tag that is pushed later than its commit is seen after this; a server that failed is asked again.
const FRESH: Duration = Duration::from_secs(120);
/// A version is worth a moment; when the answer comes later, the next packing has it.
const MOMENT: Duration = Duration::from_secs(1);
/// Memory for the commits that were asked for; then it starts over.
const MAX_ASKED: usize = 10_000;

/// Name and commit.
pub(super) type Tags = Arc<Vec<(String, String)>>;

type TagsOf = (String, Trust);

/// What is known of the tags of repositories.
#[derive(Debug, Default)]
pub(super) struct TagCache {
    /// By repository and whose it is: another workspace may see other tags, or none.
    known: Mutex<BTreeMap<TagsOf, CachedTags>>,
}

#[derive(Debug, Default)]
struct CachedTags {
    /// The last answer.
    tags: Option<Tags>,
    fault: Option<SourceFault>,
    /// When the server last answered, or failed.
    at: Option<Instant>,
    /// A question is on its way.
    asking: bool,
    /// Commits and versions that a question was for: a new one is worth another.
    asked: BTreeSet<String>,
}

impl TagCache {
    /// The tags of a repository, not older than the commit or version that they are asked about is known here. When its server fails or is slow, the last known
    /// ones; the question goes on behind.
    pub async fn of(
        self: &Arc<TagCache>,
        sources: &Arc<dyn Sources>,
        repo: &str,
        trust: &Trust,
        about: &str,
        patience: Duration,
    ) -> Result<Tags, SourceFault> {
        let of = (repo.to_owned(), trust.clone());
        if self.begin(&of, about) {
            let (cache, sources, of) = (Arc::clone(self), Arc::clone(sources), of.clone());
            let question = tokio::spawn(async move {
                let answer = sources.tags(&of.0, &of.1).await;
                cache.settle(&of, answer);
            });
            // Not awaited to its end: a server may take for ever.
            let _ = tokio::time::timeout(patience, question).await;
        }
        let known = self.lock();
        let cached = known.get(&of);
        let tags = cached.and_then(|cached| cached.tags.clone());
        tags.ok_or_else(|| cached.and_then(|cached| cached.fault.clone()).unwrap_or_else(SourceFault::slow))
    }

    /// Whether somebody should ask now.
    fn begin(&self, of: &TagsOf, about: &str) -> bool {
        let mut known = self.lock();
        let cached = known.entry(of.clone()).or_default();
        let is_new = !cached.asked.contains(about);
        if cached.asking || (!is_new && cached.at.is_some_and(|at| at.elapsed() < FRESH)) {
            return false;
        }
        if cached.asked.len() >= MAX_ASKED {
            cached.asked.clear();
        }
        cached.asked.insert(about.to_owned());
        cached.asking = true;
        true
    }

    fn settle(&self, of: &TagsOf, answer: Result<Vec<(String, String)>, SourceFault>) {
        let mut known = self.lock();
        let cached = known.entry(of.clone()).or_default();
        (cached.asking, cached.at) = (false, Some(Instant::now()));
        match answer {
            Ok(tags) => (cached.tags, cached.fault) = (Some(Arc::new(tags)), None),
            Err(fault) => {
                tracing::debug!(repo = of.0, error = fault.message, "the tags of a source can't be asked for");
                cached.fault = Some(fault);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TagsOf, CachedTags>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives packages whose content tells no version that of their commit's tag.
pub(super) async fn name_by_tags(
    cache: &Arc<TagCache>,
    sources: &Arc<dyn Sources>,
    tenancy: &Tenancy,
    all: &mut BTreeMap<String, BTreeMap<String, Arc<Known>>>,
) {
    let asked = |(name, one)| {
        let (repo, commit) = unnamed(one)?;
        Some((repo, commit, tenancy.trust(name)?))
    };
    let known = all.values().flatten().map(|(name, one)| (name.as_str(), &**one));
    let wanted: BTreeSet<(&str, &str, &Trust)> = known.filter_map(asked).collect();
    let mut tasks = JoinSet::new();
    for (repo, commit, trust) in wanted {
        let (cache, sources, trust) = (Arc::clone(cache), Arc::clone(sources), trust.clone());
        let (repo, commit) = (repo.to_owned(), commit.to_owned());
        tasks.spawn(async move {
            let tags = cache.of(&sources, &repo, &trust, &commit, MOMENT).await.ok()?;
            let version = version_of(&tags, &commit)?;
            Some((repo, commit, version))
        });
    }
    let mut versions: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    while let Some(done) = tasks.join_next().await {
        if let Ok(Some((repo, commit, version))) = done {
            versions.entry(repo).or_default().insert(commit, version);
        }
    }
    if versions.is_empty() {
        return;
    }
    for known in all.values_mut().flat_map(BTreeMap::values_mut) {
        let version = unnamed(known).and_then(|(repo, commit)| versions.get(repo)?.get(commit));
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

    /// A server that never answers, and counts who asks.
    #[derive(Debug, Default)]
    struct Silent(std::sync::atomic::AtomicUsize);

    #[async_trait::async_trait]
    impl Sources for Silent {
        async fn resolve(
            &self,
            _repo: &str,
            _reference: &kedge_model::kinds::SourceRef,
            _trust: &Trust,
        ) -> Result<super::super::SourceHead, SourceFault> {
            Err(SourceFault::slow())
        }

        async fn tags(&self, _repo: &str, _trust: &Trust) -> Result<Vec<(String, String)>, SourceFault> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_waited_for_once_and_asked_once() {
        let (cache, silent) = (Arc::new(TagCache::default()), Arc::new(Silent::default()));
        let sources: Arc<dyn Sources> = Arc::<Silent>::clone(&silent);
        let patience = [Duration::from_millis(10), Duration::MAX, Duration::MAX];
        for (commit, patience) in ["a", "b", "a"].into_iter().zip(patience) {
            assert!(cache.of(&sources, "r", &Trust::Platform, commit, patience).await.is_err());
        }
        assert_eq!(silent.0.load(std::sync::atomic::Ordering::SeqCst), 1);
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
