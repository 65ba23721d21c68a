//! A harbour: a real Kubernetes cluster with our agent in it, beside the world's hub. The sample's cluster type `drone` and its
//! templates, with targets that the tests name. Several harbours share one cluster: every name in it that the cluster sees is the
//! test's own.

mod access;
mod ask;
pub mod manifests;
mod platform;

pub use access::Access;
pub use ask::{CHANGED_WITHIN, Seen};
pub use platform::Terms;

use std::path::PathBuf;

use crate::lab::git_server::GitServer;
use crate::lab::kubernetes::{Kubernetes, Proxy};
use crate::lab::pod_agent::PodAgent;
use crate::lab::root_agent;

use super::sample::Sample;
use super::settings::Settings;
use super::{Database, World};
use manifests::Manifests;

/// The cluster type, in the environment `dev`.
pub const CLUSTER_TYPE: &str = "drone";

/// What the cluster calls itself.
pub const CLUSTER: &str = "drone-1";

/// The parts, in the order in which they end.
#[derive(Debug)]
pub struct Harbour {
    pub agents: Vec<PodAgent>,
    /// The agents' way to the API server.
    pub proxy: Proxy,
    pub world: World,
    pub kubernetes: Kubernetes,
    /// A word that no other test of the cluster has.
    id: String,
    kubeconfig: PathBuf,
}

impl Harbour {
    /// One agent, and the targets with what they run at first, wanted by the hub. Without a part the test is marked as skipped and
    /// there is none.
    pub fn start(targets: &[(&str, Manifests)]) -> Option<Harbour> {
        Harbour::start_with(&Terms::default(), targets)
    }

    /// The same on other terms of the Delivery.
    pub fn start_with(terms: &Terms, targets: &[(&str, Manifests)]) -> Option<Harbour> {
        let mut harbour = Harbour::prepare(Kubernetes::shared()?, terms, targets, |_, _| {})?;
        harbour.add_agent();
        Some(harbour)
    }

    /// Everything but an agent.
    pub fn prepare(
        kubernetes: Kubernetes,
        terms: &Terms,
        targets: &[(&str, Manifests)],
        change: impl FnOnce(&mut Settings, &GitServer),
    ) -> Option<Harbour> {
        root_agent::program()?;
        let git = GitServer::start();
        let sample = Sample::on_server(&git)?;
        let id = kubernetes.unique();
        platform::reshape(&sample, terms);
        platform::add_targets(&sample, &git.url("hello-gitops"), &id, targets);
        let mut world = World::assemble(Database::Sqlite, git, sample, |settings, git| {
            settings.wait = "4s".to_owned();
            change(settings, git);
        })?;
        world.hub.start_again();
        world.meet();
        world.await_generation("dev", CLUSTER_TYPE, 1);
        let proxy = kubernetes.proxy();
        let server = if terms.direct { kubernetes.address() } else { proxy.address() };
        let rights = (terms.access, terms.delivery.iter().any(|line| line == "scope: cluster"));
        let kubeconfig = access::grant(&kubernetes, rights, &own_namespace(&id), world.folder.path(), server);
        Some(Harbour { agents: Vec::new(), proxy, world, kubernetes, id, kubeconfig })
    }

    /// Starts one pod more of the agent; its number.
    pub fn add_agent(&mut self) -> usize {
        let token = self.world.token(CLUSTER_TYPE, &["--uses", "10"]).to_string();
        let number = self.agents.len();
        let name = format!("kedge-agent-{number}");
        let agent = PodAgent::prepare(&name, CLUSTER, &self.kubeconfig, &self.own_namespace(), &token);
        let mut agent = agent.expect("the program was there");
        agent.start();
        self.agents.push(agent);
        number
    }

    /// The assignment of a target, as the hub and the cluster's labels call it.
    pub fn assignment(&self, target: &str) -> String {
        platform::assignment(target, &self.id)
    }

    /// Where a target's objects are.
    pub fn namespace(&self, target: &str) -> String {
        format!("dev-{CLUSTER_TYPE}-{}", self.assignment(target))
    }

    /// Where the agent has its Lease and its Secrets.
    pub fn own_namespace(&self) -> String {
        own_namespace(&self.id)
    }

    /// The test's word, for names that belong to the whole cluster.
    pub fn id(&self) -> &str {
        &self.id
    }
}

fn own_namespace(id: &str) -> String {
    format!("kedge-{id}")
}

/// What the cluster got goes when the test is over: others use it. Namespaces end by themselves.
impl Drop for Harbour {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            agent.kill();
        }
        access::leave(&self.kubernetes, &self.id);
    }
}
