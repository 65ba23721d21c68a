//! A control plane of real repositories for this module's tests: main with a policy, a branch for each environment, outcomes
//! on demand, and a server that fails, is raced and refuses pushes on demand.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use kedge_model::wire::SigningKey;
use kedge_rollout::chain::{Outcome, OutcomeState};
use kedge_rollout::{Person, Rollout, RolloutId, Say, Word};

use super::*;
use crate::git::Secret;
use crate::git::testing::{Remote as Origin, git, store};
use crate::platform::testing::{base, environment};
use crate::platform::{EnvironmentReader, PlatformReader};
use crate::publish::{PushError, Remote, RemoteError, Seen};
use crate::store::now;
use crate::store::promotion::words::About;

pub const TERM: Term = Term(0);

/// What became of commits, as the test says.
#[derive(Debug, Default)]
pub struct Fakes {
    pub outcomes: Mutex<BTreeMap<(String, String), OutcomeState>>,
    pub rollouts: Mutex<Vec<Rollout>>,
    pub sources: Mutex<Vec<Rollout>>,
    pub unwitnessed: Mutex<Vec<Rollout>>,
}

#[async_trait]
impl Outcomes for Fakes {
    async fn outcome(&self, environment: &str, main: &str) -> Result<Option<Outcome>, StoreError> {
        let found = self.outcomes.lock().unwrap().get(&(environment.to_owned(), main.to_owned())).cloned();
        let rollout =
            self.rollouts.lock().unwrap().iter().find(|one| one.cause.main.as_deref() == Some(main)).map(|one| one.id);
        Ok(found.map(|state| Outcome { commit: main.to_owned(), rollout, state, remark: None }))
    }

    async fn rollout(&self, id: RolloutId) -> Result<Option<Rollout>, StoreError> {
        Ok(self.rollouts.lock().unwrap().iter().find(|one| one.id == id).cloned())
    }

    async fn unwitnessed(&self) -> Result<Vec<Rollout>, StoreError> {
        Ok(std::mem::take(&mut *self.unwitnessed.lock().unwrap()))
    }

    async fn of_sources(&self) -> Result<Vec<Rollout>, StoreError> {
        Ok(self.sources.lock().unwrap().clone())
    }

    async fn checking(&self) -> Result<Vec<Rollout>, StoreError> {
        Ok(self.rollouts.lock().unwrap().clone())
    }

    async fn headline(&self, _rollout: &Rollout) -> Result<String, StoreError> {
        Ok("66 of 73 converged".to_owned())
    }
}

/// The mirrors, with faults.
#[derive(Debug)]
pub struct Faulty {
    inner: Mirrors,
    /// The next push never arrives, as if the hub died before it.
    pub dies: AtomicBool,
    /// Before the next push somebody else writes this file to this branch.
    pub race: Mutex<Option<(String, String)>>,
    pub pushes: AtomicUsize,
    bare: std::path::PathBuf,
}

#[async_trait]
impl Remote for Faulty {
    async fn head(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError> {
        Remote::head(&self.inner, repo, branch).await
    }

    async fn fetch(&self, repo: &str, branch: &str) -> Result<Seen, RemoteError> {
        Remote::fetch(&self.inner, repo, branch).await
    }

    async fn push(&self, repo: &str, commit: &str, branch: &str, expected: Option<&str>) -> Result<(), PushError> {
        if self.dies.swap(false, Ordering::Relaxed) {
            return Err(PushError::Unreachable { message: "the hub died".to_owned() });
        }
        if let Some((branch, file)) = self.race.lock().unwrap().take() {
            add_file(&self.bare, &branch, &file, "theirs");
        }
        self.pushes.fetch_add(1, Ordering::Relaxed);
        Remote::push(&self.inner, repo, commit, branch, expected).await
    }

    async fn delete(&self, repo: &str, branch: &str, expected: &str) -> Result<(), PushError> {
        Remote::delete(&self.inner, repo, branch, expected).await
    }

    fn credential(&self, _: &str) -> Option<Secret> {
        Some(Secret { username: None, secret: "s3cret".to_owned() })
    }
}

pub struct World {
    _root: tempfile::TempDir,
    pub origin: Origin,
    pub url: String,
    pub store: Store,
    pub mirrors: Mirrors,
    pub config: Config,
    pub fakes: Arc<Fakes>,
    pub faulty: Arc<Faulty>,
    pub controller: PromotionController,
    names: Vec<String>,
    policy: Option<String>,
    count: usize,
}

impl World {
    /// Environments with branches that name main's first commit, and a policy.
    pub async fn new(names: &[&str], policy: &str) -> World {
        let root = tempfile::tempdir().unwrap();
        let origin = Origin::new(root.path(), "control-plane");
        let url = origin.path();
        World::over(root, origin, url, Vec::new(), names, policy).await
    }

    pub async fn over(
        root: tempfile::TempDir,
        origin: Origin,
        url: String,
        forges: Vec<crate::config::Forge>,
        names: &[&str],
        policy: &str,
    ) -> World {
        let store = store(root.path()).await;
        let mut config = Config::default_at(root.path());
        config.git = crate::git::testing::settings(&url);
        config.git.forges = forges;
        let mirrors = Mirrors::new(&config.git, root.path().join("mirrors"), store.clone()).unwrap();
        let fakes = Arc::new(Fakes::default());
        let faulty = Arc::new(Faulty {
            inner: mirrors.clone(),
            dies: AtomicBool::new(false),
            race: Mutex::new(None),
            pushes: AtomicUsize::new(0),
            bare: origin.bare.clone(),
        });
        let controller = controller(&config, &store, &mirrors, &fakes, &faulty);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let mut world = World {
            _root: root,
            origin,
            url,
            store,
            mirrors,
            config,
            fakes,
            faulty,
            controller,
            names,
            policy: None,
            count: 0,
        };
        let first = world.commit().await;
        for name in world.names.clone() {
            world.branch(&name, Some(&first)).await;
        }
        world.reader().environments(TERM).await.unwrap();
        world.policy = Some(policy.to_owned());
        world
    }

    /// As after a restart of the hub.
    pub fn restart(&mut self) {
        self.controller = controller(&self.config, &self.store, &self.mirrors, &self.fakes, &self.faulty);
    }

    /// A new commit on main.
    pub async fn commit(&mut self) -> String {
        self.count += 1;
        let mut files: Vec<(String, String)> = self
            .names
            .iter()
            .map(|name| (format!(".environments/{name}.yaml"), environment(name, &self.url, name)))
            .collect();
        files.push((
            "config.yaml".to_owned(),
            crate::platform::testing::config("common", "COUNT", &self.count.to_string()),
        ));
        files.extend(self.policy.clone().map(|policy| ("policy.yaml".to_owned(), policy)));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let commit = self.origin.commit("main", &files);
        self.fetch().await;
        commit
    }

    pub async fn with_policy(&mut self, policy: Option<&str>) -> String {
        self.policy = policy.map(str::to_owned);
        self.commit().await
    }

    /// A person writes the branch of an environment, with a value of its own.
    pub async fn branch(&self, name: &str, commit: Option<&str>) {
        self.branch_with(name, commit, "west").await;
    }

    pub async fn branch_with(&self, name: &str, commit: Option<&str>, region: &str) {
        let base = base("main", &self.url, "main", commit);
        let own = crate::platform::testing::config("region", "REGION", region);
        self.origin.commit(name, &[("base-repo.yaml", &base), ("own.yaml", &own)]);
        let _ = self.mirrors.head(&self.url, name, crate::git::Trust::Platform).await;
        self.fetch().await;
    }

    pub async fn fetch(&self) {
        let _ = self.mirrors.head(&self.url, "main", crate::git::Trust::Platform).await;
        self.mirrors.fetch_now(&self.url).await.unwrap();
    }

    pub async fn pass(&self) {
        self.controller.pass(TERM).await.unwrap();
    }

    /// A commit's rollout in an environment is complete; then a pass.
    pub async fn complete(&self, name: &str, commit: &str) {
        self.outcome(name, commit, OutcomeState::Complete { late_failed: 0 });
        self.pass().await;
    }

    pub fn outcome(&self, name: &str, commit: &str, state: OutcomeState) {
        self.fakes.outcomes.lock().unwrap().insert((name.to_owned(), commit.to_owned()), state);
    }

    /// The commit that an environment's branch names on the server.
    pub fn named(&self, name: &str) -> String {
        let text = git(&self.origin.bare, &["show", &format!("{name}:base-repo.yaml")]);
        let commit = text.split("commit: ").nth(1).unwrap_or_default();
        commit.chars().take_while(char::is_ascii_hexdigit).collect()
    }

    pub async fn row(&self, name: &str) -> crate::store::promotion::PromotionRow {
        self.store.promotion(name).await.unwrap().unwrap()
    }

    pub async fn say(&self, name: &str, commit: Option<&str>, say: Say, reason: &str) -> i64 {
        let about = match name {
            "" => About::Policy,
            name => About::Promotion { environment: name.to_owned(), commit: commit.map(str::to_owned) },
        };
        let mut tx = self.store.write().await.unwrap();
        let number = tx.say_on_promotion(&about, &word("bob", say, reason)).await.unwrap();
        tx.commit().await.unwrap();
        number
    }

    pub fn reader(&self) -> PlatformReader {
        PlatformReader::new(&self.config.git, self.mirrors.clone(), self.store.clone())
    }

    pub async fn environment_reader(&self, name: &str) -> EnvironmentReader {
        let declared = self.store.good_environments().await.unwrap();
        self.reader().environment(declared[name].clone()).await.unwrap()
    }
}

pub fn word(who: &str, say: Say, reason: &str) -> Word {
    let person = Person::new(who, &[&format!("{who}@example.org")]);
    let (who, role, reason) = (who.to_owned(), "platform".to_owned(), reason.to_owned());
    Word { who, person, role, at: now(), reason, say, new_token: false }
}

pub fn key() -> SigningKey {
    SigningKey::from_seed(&[7; 32]).unwrap()
}

fn controller(
    config: &Config,
    store: &Store,
    mirrors: &Mirrors,
    fakes: &Arc<Fakes>,
    faulty: &Arc<Faulty>,
) -> PromotionController {
    let parts = Parts {
        store: store.clone(),
        mirrors: mirrors.clone(),
        witness: Arc::new(key()),
        outcomes: Arc::clone(fakes) as Arc<dyn Outcomes>,
        rollouts: Shared::default(),
    };
    let mut controller = PromotionController::new(config, parts).unwrap();
    controller.branches = Branches::new(Arc::clone(faulty) as Arc<dyn Remote>, config);
    controller.statuses = Statuses::new(store.clone(), controller.branches.clone());
    controller
}

/// Somebody's commit with one more file, straight into the server's repository.
fn add_file(bare: &Path, branch: &str, file: &str, text: &str) {
    let run = |arguments: &[&str], input: &str| {
        use std::io::Write as _;
        let mut command = Command::new("git");
        command.current_dir(bare).args(["-c", "safe.directory=*"]).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_INDEX_FILE", bare.join("race-index"));
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Eve").env(format!("GIT_{who}_EMAIL"), "eve@example.org");
        }
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&["read-tree", branch], "");
    let blob = run(&["hash-object", "-w", "--stdin"], text);
    run(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{file}")], "");
    let tree = run(&["write-tree"], "");
    let commit = run(&["commit-tree", &tree, "-p", branch, "-m", "theirs"], "");
    run(&["update-ref", &format!("refs/heads/{branch}"), &commit], "");
}
