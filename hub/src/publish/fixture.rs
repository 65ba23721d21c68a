//! For this module's tests: schedules of a few words, and an environment published between two bare repositories on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kedge_model::{AssignmentId, Labels, Origin, Source};
use kedge_scheduler::{Assignment, ConfigFile, Configuration, Files, Outcome as Rendered, Schedule, Target};
use tempfile::TempDir;

use super::remote::{PushError, Remote, RemoteError, Seen};
use super::{Cause, GitOpsTarget, PublishError, PublishJob, Published, Publisher};
use crate::config::{Config, Environment, Forge, PublishMode};
use crate::git::Secret;
use crate::store::{Store, Term};

/// `drone/hello-test=value` is an assignment with that value; `drone/` a cluster type without any.
pub fn schedule(words: &str) -> Schedule {
    let mut schedule =
        Schedule { environment: "dev".to_owned(), promoted_commit: Some("c0ffee".to_owned()), ..Schedule::default() };
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let (cluster_type, target) = name.split_once('/').unwrap();
        schedule.cluster_types.insert(cluster_type.into());
        if !target.is_empty() {
            let files = Files {
                reconciler: format!("name: {target}\n").into(),
                namespace: format!("namespace: {target}\n").into(),
                config: Some((ConfigFile::Yaml, format!("value: {value}\n").into())),
            };
            let assignment = assignment(cluster_type, target, Rendered::Rendered(files));
            schedule.assignments.insert(assignment.id.clone(), Arc::new(assignment));
        }
    }
    schedule
}

pub fn assignment(cluster_type: &str, target: &str, outcome: Rendered) -> Assignment {
    let origin = Origin {
        source: Arc::new(Source { repo: "r".to_owned(), revision: None }),
        file: "f.yaml".into(),
        line: 1,
        column: 1,
    };
    let (workload, short_name) = target.rsplit_once('-').unwrap_or((target, ""));
    Assignment {
        id: AssignmentId { cluster_type: cluster_type.into(), target: target.into() },
        target: Arc::new(Target {
            name: target.into(),
            short_name: short_name.to_owned(),
            workload: workload.into(),
            workspace: "team".to_owned(),
            registration: None,
            environment: "dev".to_owned(),
            labels: Labels::new(),
            platform_labels: BTreeSet::new(),
            manifests: BTreeMap::new(),
            schemas: Vec::new(),
            origin,
        }),
        policies: Vec::new(),
        configuration: Arc::new(Configuration::default()),
        outcome,
        warnings: Vec::new(),
    }
}

pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Ann"), ("GIT_COMMITTER_EMAIL", "ann@example.org")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A server that is a folder, and a mirror of it beside it.
#[derive(Debug)]
pub struct Folders {
    pub origin: PathBuf,
    pub mirror: PathBuf,
    /// The next push arrives, and its answer is lost.
    pub lose_answer: AtomicBool,
    /// The next push finds that somebody else's commit came first.
    pub race: Mutex<Option<(PathBuf, String)>>,
    pub pushes: AtomicUsize,
    pub fetches: AtomicUsize,
    pub refuse: AtomicBool,
}

impl Folders {
    fn seen(&self, branch: &str) -> Seen {
        let reference = format!("refs/heads/{branch}");
        let found = git(&self.mirror, &["for-each-ref", "--format=%(objectname)", &reference]);
        Seen { mirror: self.mirror.clone(), head: Some(found).filter(|text| !text.is_empty()) }
    }
}

#[async_trait]
impl Remote for Folders {
    async fn head(&self, _: &str, branch: &str) -> Result<Seen, RemoteError> {
        match self.seen(branch) {
            seen if seen.head.is_some() => Ok(seen),
            _ => self.fetch("", branch).await,
        }
    }

    async fn fetch(&self, _: &str, branch: &str) -> Result<Seen, RemoteError> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        git(&self.mirror, &["fetch", "-q", "--prune", "origin", "+refs/heads/*:refs/heads/*"]);
        Ok(self.seen(branch))
    }

    async fn push(&self, _: &str, commit: &str, branch: &str, expected: Option<&str>) -> Result<(), PushError> {
        if let Some((work, branch)) = self.race.lock().unwrap().take() {
            git(&work, &["push", "-q", "origin", &branch]);
        }
        if self.refuse.load(Ordering::Relaxed) {
            return Err(PushError::Refused { message: "protected branch hook declined".to_owned() });
        }
        self.pushes.fetch_add(1, Ordering::Relaxed);
        let lease = format!("--force-with-lease=refs/heads/{branch}:{}", expected.unwrap_or_default());
        let there = format!("{commit}:refs/heads/{branch}");
        let pushed =
            Command::new("git").arg("-C").arg(&self.mirror).args(["push", "-q", &lease, "origin", &there]).output();
        if !pushed.unwrap().status.success() {
            return Err(PushError::Moved);
        }
        if self.lose_answer.swap(false, Ordering::Relaxed) {
            return Err(PushError::Unreachable { message: "the connection broke".to_owned() });
        }
        git(&self.mirror, &["update-ref", &format!("refs/heads/{branch}"), commit]);
        Ok(())
    }

    async fn delete(&self, _: &str, branch: &str, expected: &str) -> Result<(), PushError> {
        let lease = format!("--force-with-lease=refs/heads/{branch}:{expected}");
        let there = format!(":refs/heads/{branch}");
        let pushed =
            Command::new("git").arg("-C").arg(&self.mirror).args(["push", "-q", &lease, "origin", &there]).output();
        if !pushed.unwrap().status.success() {
            return Err(PushError::Moved);
        }
        let _ = Command::new("git")
            .arg("-C")
            .arg(&self.mirror)
            .args(["update-ref", "-d", &format!("refs/heads/{branch}")])
            .output();
        Ok(())
    }

    fn credential(&self, _: &str) -> Option<Secret> {
        Some(Secret { username: None, secret: "s3cret".to_owned() })
    }
}

/// Environment dev and its branch.
pub struct Lab {
    pub folder: TempDir,
    pub folders: Arc<Folders>,
    pub store: Store,
    pub publisher: Publisher,
    pub config: Config,
    pub target: GitOpsTarget,
}

impl Lab {
    pub async fn direct() -> Lab {
        Lab::with(PublishMode::Direct, "gitops", Vec::new()).await
    }

    pub async fn with(mode: PublishMode, repo: &str, forges: Vec<Forge>) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let (origin, mirror) = (folder.path().join("origin.git"), folder.path().join("mirror.git"));
        for place in [&origin, &mirror] {
            git(folder.path(), &["init", "-q", "--bare", "-b", "main", &place.display().to_string()]);
        }
        git(&mirror, &["remote", "add", "origin", &origin.display().to_string()]);
        let folders = Arc::new(Folders {
            origin,
            mirror,
            lose_answer: AtomicBool::new(false),
            race: Mutex::new(None),
            pushes: AtomicUsize::new(0),
            fetches: AtomicUsize::new(0),
            refuse: AtomicBool::new(false),
        });
        let config = config(mode, forges);
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        let publisher = Publisher::over(Arc::clone(&folders) as Arc<dyn Remote>, store.clone(), &config);
        let target = GitOpsTarget { repo: repo.to_owned(), branch: "dev".to_owned(), path: ".".to_owned() };
        Lab { folder, folders, store, publisher, config, target }
    }

    /// As after a restart of the hub.
    pub fn restart(&mut self) {
        let remote = Arc::clone(&self.folders) as Arc<dyn Remote>;
        self.publisher = Publisher::over(remote, self.store.clone(), &self.config);
    }

    pub async fn try_publish(&self, schedule: &Schedule) -> Result<Published, PublishError> {
        let causes = [Cause {
            repo: "https://git.example/platform".to_owned(),
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            subject: "Raise the value".to_owned(),
            author: "Ann".to_owned(),
        }];
        let job = PublishJob { environment: "dev", target: &self.target, schedule, delta: None, causes: &causes };
        self.publisher.publish(Term(0), job).await
    }

    pub async fn publish(&self, words: &str) -> Published {
        self.try_publish(&schedule(words)).await.unwrap()
    }

    /// Path and text of each file on a branch.
    pub fn files(&self, branch: &str) -> BTreeMap<String, String> {
        let listed = git(&self.folders.origin, &["ls-tree", "-r", "--name-only", branch]);
        let show = |path: &str| git(&self.folders.origin, &["show", &format!("{branch}:{path}")]);
        listed.lines().map(|path| (path.to_owned(), show(path))).collect()
    }

    pub fn commits(&self, branch: &str) -> usize {
        git(&self.folders.origin, &["rev-list", "--count", branch]).parse().unwrap()
    }

    pub fn head(&self, branch: &str) -> String {
        git(&self.folders.origin, &["rev-parse", branch])
    }

    /// A person's clone of a branch, at its newest commit.
    pub fn clone(&self, branch: &str) -> PathBuf {
        let place = self.folder.path().join(format!("clone-{}", rand::random::<u64>()));
        let (origin, there) = (self.folders.origin.display().to_string(), place.display().to_string());
        git(self.folder.path(), &["clone", "-q", "-b", branch, &origin, &there]);
        place
    }

    /// A person writes a file (or deletes it) and pushes; the hub sees it.
    pub async fn edit(&self, branch: &str, path: &str, text: Option<&str>) {
        let place = self.clone(branch);
        match text {
            Some(text) => {
                std::fs::create_dir_all(place.join(path).parent().unwrap()).unwrap();
                std::fs::write(place.join(path), text).unwrap();
            }
            None => std::fs::remove_file(place.join(path)).unwrap(),
        }
        git(&place, &["add", "-A"]);
        git(&place, &["commit", "-q", "-m", "By hand"]);
        git(&place, &["push", "-q", "origin", branch]);
        self.folders.fetch("", branch).await.unwrap();
    }

    /// A person squashes a branch into another.
    pub async fn squash(&self, from: &str, into: &str) {
        let place = self.clone(into);
        git(&place, &["fetch", "-q", "origin", from]);
        git(&place, &["merge", "-q", "--squash", "FETCH_HEAD"]);
        git(&place, &["commit", "-q", "-m", "Squashed"]);
        git(&place, &["push", "-q", "origin", into]);
        self.folders.fetch("", into).await.unwrap();
    }
}

pub fn config(mode: PublishMode, forges: Vec<Forge>) -> Config {
    let mut config = Config::default_at(Path::new(""));
    config.git.forges = forges;
    (config.git.author_name, config.git.author_email) = ("Kedge".to_owned(), "kedge@example.org".to_owned());
    config.environments = BTreeMap::from([("dev".to_owned(), Environment { publish: mode })]);
    config
}
