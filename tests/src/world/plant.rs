//! A plant: three environments of Debian boxes that are real agents below folders (`--root`), so that a whole fleet converges without
//! rights of root. The sample's platform without its Kubernetes part, with two cluster types and workloads of files only. Tests of
//! promotion and rollouts are told in its words.

mod agents;
mod ask;
mod platform;

pub use ask::{AWAY_WITHIN, MOVED_WITHIN};
pub use platform::{assignment, branch_of, workload};

use crate::lab::git_server::GitServer;
use crate::lab::root_agent::{self, RootAgent};

use super::policy::Policy;
use super::sample::Sample;
use super::settings::Settings;
use super::{Database, World};

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
        platform::reshape(&sample, policy);
        let mut world = World::assemble(database, git, sample, |settings, git| {
            // So that whoever is away is known to be soon: a promise lasts half a minute longer than a poll is held.
            settings.wait = "2s".to_owned();
            change(settings, git);
        })?;
        world.hub.start_again();
        world.meet();
        let plant = Plant { agents: Vec::new(), world };
        for environment in super::sample::ENVIRONMENTS {
            plant.await_published(environment);
        }
        Some(plant)
    }
}
