//! A small world for a test: the sample platform of `kedge init` on a Git server, a hub that reads it, and the people around
//! them. The end-to-end tests and the benchmark are told in its words.

pub mod api;
pub mod cluster;
pub mod harbour;
pub mod kedge;
pub mod large;
pub mod line;
pub mod misbehaving_hub;
pub mod plant;
pub mod policy;
pub mod sample;
pub mod settings;
pub mod workload;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kedge_model::wire::JoinToken;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::git_server::{GitServer, Webhook};
use crate::lab::hub::Hub;
use crate::lab::{await_some, postgres};
use api::Api;
use cluster::Cluster;
use kedge::Kedge;
use sample::Sample;
use settings::Settings;

/// What the hub does by itself is seen by then, also on a busy machine; nothing waits so long when all is well.
pub const SOON: Duration = Duration::from_secs(30);

/// What webhooks are signed with.
pub const HOOK_SECRET: &str = "the webhook's secret";

/// Which database a scenario runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

/// The parts, in the order in which they end.
#[derive(Debug)]
pub struct World {
    pub hub: Hub,
    pub api: Api,
    pub kedge: Kedge,
    pub sample: Sample,
    pub git: GitServer,
    pub settings: Settings,
    /// Secrets and other small files of the test.
    pub folder: TempDir,
}

impl World {
    /// A hub that has read the sample and is led to changes by webhooks alone: it would poll only after an hour.
    pub fn start(database: Database) -> Option<World> {
        World::start_with(database, |_, _| {})
    }

    /// The same with other settings.
    pub fn start_with(database: Database, change: impl FnOnce(&mut Settings, &GitServer)) -> Option<World> {
        let mut world = World::prepare(database, change)?;
        world.hub.start_again();
        world.meet();
        Some(world)
    }

    /// Everything but the start of the hub.
    pub fn prepare(database: Database, change: impl FnOnce(&mut Settings, &GitServer)) -> Option<World> {
        let git = GitServer::start();
        let sample = Sample::on_server(&git)?;
        World::assemble(database, git, sample, change)
    }

    /// The same with a sample that is somewhere already.
    pub fn assemble(
        database: Database,
        git: GitServer,
        sample: Sample,
        change: impl FnOnce(&mut Settings, &GitServer),
    ) -> Option<World> {
        let folder = tempfile::Builder::new().prefix("kedge-world-").tempdir().unwrap();
        let mut settings = Settings::new(&git.url("control-plane"));
        settings.webhook_secret = Some(secret_file(folder.path(), "hook-secret", HOOK_SECRET));
        settings.database = database.url()?;
        change(&mut settings, &git);
        let hub = Hub::prepare(|places| settings.text(places))?;
        for name in sample::REPOSITORIES {
            git.notify(name, Webhook { url: hub.url("/hooks/git"), secret: HOOK_SECRET.to_owned() });
        }
        let api = Api::at(&hub.url(""));
        let kedge = Kedge::new(&hub.url(""))?;
        Some(World { hub, api, kedge, sample, git, settings, folder })
    }

    /// Takes up the platform team's token that the first start wrote.
    pub fn meet(&mut self) {
        let token = platform_token(&self.hub);
        self.api = self.api.with_token(&token);
        self.kedge.set_token(&token);
    }

    /// The API as the first administrator sees it.
    pub fn administrator(&self) -> Api {
        self.api.with_token(&admin_token(&self.hub))
    }

    /// A new person, and the answer of making its token.
    #[track_caller]
    pub fn person(&self, name: &str, role: &str, workspaces: &[&str]) -> Value {
        let administrator = self.administrator();
        let local: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let email = format!("{local}@people.example");
        let person = administrator.post("/api/v1/people", json!({"name": name, "emails": [email]}));
        let body = json!({"person": person["id"], "role": role, "workspaces": workspaces});
        administrator.post("/api/v1/access-tokens", body)
    }

    /// Writes the settings anew and starts the hub again with them.
    pub fn restart_with(&mut self, change: impl FnOnce(&mut Settings)) {
        if self.hub.is_running() {
            self.hub.stop();
        }
        change(&mut self.settings);
        self.hub.configure(|places| self.settings.text(places));
        self.hub.start_again();
    }

    /// Waits until the stream has a desired state with at least this number; its number.
    pub fn await_generation(&self, environment: &str, cluster_type: &str, at_least: u64) -> u64 {
        let what = format!("{environment}/{cluster_type} reaches generation {at_least}");
        await_some(&what, SOON, || {
            self.api.generation(environment, cluster_type).filter(|generation| *generation >= at_least)
        })
    }

    /// The first desired states of dev are there, and nothing more will come by itself.
    pub fn await_first_states(&self) {
        for cluster_type in sample::CLUSTER_TYPES {
            self.await_generation("dev", cluster_type, 1);
        }
    }

    /// Waits until the environment's GitOps branch has moved on from `before`; the new head.
    pub fn await_commit(&self, environment: &str, before: Option<&str>) -> String {
        await_some(&format!("a commit on {environment} after {before:?}"), SOON, || {
            self.git.head("gitops", environment).filter(|head| Some(head.as_str()) != before)
        })
    }

    /// A join token from the real `kedge token create`.
    #[track_caller]
    pub fn token(&self, cluster_type: &str, more: &[&str]) -> JoinToken {
        let mut arguments = vec!["token", "create", "--environment", "dev", "--cluster-type", cluster_type];
        arguments.extend(more);
        cluster::token(&self.kedge.run(arguments))
    }

    /// A new member of dev.
    #[track_caller]
    pub fn join(&self, cluster_type: &str, name: &str) -> Cluster {
        Cluster::join(&self.token(cluster_type, &[]), name)
    }

    /// How many clusters of dev run this assignment in this condition.
    pub fn count(&self, assignment: &str, condition: &str) -> u64 {
        let counts = self.api.get(&format!("/api/v1/counts?environment=dev&assignment={assignment}"));
        let items = counts["items"].as_array().cloned().unwrap_or_default();
        items.iter().filter(|item| item["condition"] == condition).filter_map(|item| item["count"].as_u64()).sum()
    }

    /// Files that `kedge render` writes for an environment, and their bytes.
    pub fn rendered(&self, environment: &str) -> BTreeMap<String, Vec<u8>> {
        self.sample.render(&self.kedge, &self.git, environment)
    }
}

impl Database {
    /// A place for a hub's tables: empty, and this test's own. None: SQLite, in the hub's data folder.
    fn url(self) -> Option<Option<String>> {
        match self {
            Database::Sqlite => Some(None),
            Database::Postgres => postgres::shared_database().map(Some),
        }
    }
}

/// The token of the first administrator, from the file that the hub made.
pub fn admin_token(hub: &Hub) -> String {
    read_token(hub, "admin-token")
}

/// The first token of the platform team.
pub fn platform_token(hub: &Hub) -> String {
    read_token(hub, "platform-token")
}

fn read_token(hub: &Hub, file: &str) -> String {
    let path = hub.places().data.join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).trim().to_owned()
}

/// A file with a secret that only its owner reads.
pub fn secret_file(folder: &Path, name: &str, secret: &str) -> PathBuf {
    use std::io::Write;
    let path = folder.join(name);
    let mut file = fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path).unwrap();
    file.write_all(secret.as_bytes()).unwrap();
    path
}
