//! A plant: three environments of Debian boxes that are real agents below folders (`--root`), so that a whole fleet converges without
//! rights of root. The sample's platform without its Kubernetes part, with two cluster types and workloads of files only. Tests of
//! promotion and rollouts are told in its words.

mod agents;
mod ask;
mod platform;
mod second;
pub mod words;

pub use ask::{AWAY_WITHIN, MOVED_WITHIN};
pub use platform::{assignment, branch_of, workload};
pub use second::{TALLY, Tally};
pub use words::Lane;

use crate::lab::await_true;
use crate::lab::git_server::GitServer;
use crate::lab::gitea::Gitea;
use crate::lab::root_agent::{self, RootAgent};

use super::policy::Policy;
use super::sample::{self, Sample};
use super::settings::{Credential, Forge, Settings};
use super::{Database, SOON, World, secret_file};

/// Cluster types of every environment.
pub const LINE: &str = "factory-line";
pub const PRESS: &str = "press";

/// The parts, in the order in which they end.
#[derive(Debug)]
pub struct Plant {
    pub agents: Vec<RootAgent>,
    pub world: World,
}

impl Plant {
    /// A hub that has read the platform, and no cluster yet.
    pub fn start(policy: Option<&Policy>) -> Option<Plant> {
        Plant::start_with(Database::Sqlite, policy, |_, _| {})
    }

    /// The same with another database or other settings.
    pub fn start_with(
        database: Database,
        policy: Option<&Policy>,
        change: impl FnOnce(&mut Settings, &GitServer),
    ) -> Option<Plant> {
        root_agent::program()?;
        let git = GitServer::start();
        let sample = Sample::on_server(&git)?;
        Plant::make(database, git, sample, policy, change)
    }

    /// With the control plane and the application's manifests at a Gitea, which takes commit statuses and sends the webhooks.
    pub fn start_at_gitea(gitea: &Gitea, policy: &Policy) -> Option<Plant> {
        root_agent::program()?;
        let (git, here) = (GitServer::start(), |name: &str| ["control-plane", "hello-gitops"].contains(&name));
        for name in sample::REPOSITORIES {
            if here(name) {
                gitea.create_repository(name);
            } else {
                git.create(name);
            }
        }
        let sample =
            Sample::pushed_to(&|name| if here(name) { gitea.push_url(name) } else { git.url(name) }, &|name| {
                if here(name) { gitea.clone_url(name) } else { git.url(name) }
            })?;
        await_true("gitea knows the branches", SOON, || gitea.branches("control-plane").len() == 4);
        let plant = Plant::make(Database::Sqlite, git, sample, Some(policy), |settings, git| {
            let prefix = format!("{}/", gitea.url());
            let folder = tempfile::Builder::new().prefix("kedge-token-").tempdir().unwrap().keep();
            settings.control_plane = Some(gitea.clone_url("control-plane"));
            settings.credentials.push(Credential {
                prefix: prefix.clone(),
                username: Some(gitea.owner().to_owned()),
                secret_file: secret_file(&folder, "token", gitea.token()),
                workspaces: vec!["hello-team".to_owned()],
            });
            settings.forges.push(Forge { prefix, kind: "gitea" });
            settings.hosts.push(gitea.url().trim_start_matches("http://").to_owned());
            settings.hosts.push(git.url("").trim_start_matches("http://").trim_end_matches("/.git").to_owned());
            settings.poll = "1s".to_owned();
        })?;
        Some(plant)
    }

    fn make(
        database: Database,
        git: GitServer,
        sample: Sample,
        policy: Option<&Policy>,
        change: impl FnOnce(&mut Settings, &GitServer),
    ) -> Option<Plant> {
        platform::reshape(&sample, policy);
        let mut world = World::assemble(database, git, sample, |settings, git| {
            // So that whoever is away is known to be soon: a promise lasts half a minute longer than a poll is held. An agent takes
            // answers within two seconds for those of a hub that is in trouble, and asks less often.
            settings.wait = "4s".to_owned();
            change(settings, git);
        })?;
        world.hub.start_again();
        world.meet();
        let plant = Plant { agents: Vec::new(), world };
        for environment in sample::ENVIRONMENTS {
            plant.await_published(environment);
        }
        Some(plant)
    }
}
