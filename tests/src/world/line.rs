//! A factory line: a booted Debian host with our agent beside the world's hub, and an apt repository. What the sample's cluster
//! type `factory-line` says is delivered to it; tests push changes and wait for what the hub then knows.

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use kedge_model::wire::{Digest, PackagesKey};
use serde_json::Value;

use super::sample::{Sample, edit};
use super::settings::Settings;
use super::workload::{Workload, tool};
use super::{Database, SOON, World};
use crate::lab::apt_repository::AptRepository;
use crate::lab::git_server::GitServer;
use crate::lab::host::{DebianHost, Network, Ran};
use crate::lab::image::Flavour;
use crate::lab::relay::Relay;
use crate::lab::{await_true, skip};

/// The parts, in the order in which they end.
#[derive(Debug)]
pub struct Line {
    pub host: DebianHost,
    pub repository: AptRepository,
    /// The way to the hub of a host with a cable of its own.
    pub relay: Option<Relay>,
    pub world: World,
}

/// The cluster type of hosts in the sample, its first assignment, and our host's name.
pub const CLUSTER_TYPE: &str = "factory-line";
pub const FIRST: &str = "hello-line-test";
pub const HOST: &str = "line-1";

/// A change with debs, health and soak, on a busy machine.
pub const CHANGED_WITHIN: Duration = Duration::from_secs(90);

/// Asking the hub or starting a program of the host costs more than a look at a file.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Debs that the platform team allows.
const ALLOWED: [&str; 4] = ["tool", "toollib", "other", "netcut"];

impl Line {
    /// A host that has joined, with nothing to run yet but the first workload in version 1 on its way.
    pub fn start() -> Option<Line> {
        Line::start_with(Network::Shared, |_, _| {})
    }

    pub fn start_with(network: Network, change: impl FnOnce(&mut Settings, &GitServer)) -> Option<Line> {
        let line = Line::prepare(Flavour::Plain, network, change)?;
        line.install_agent();
        line.join();
        Some(line)
    }

    /// The same before it has joined.
    pub fn start_before_join() -> Option<Line> {
        let line = Line::prepare(Flavour::Plain, Network::Shared, |_, _| {})?;
        line.install_agent();
        Some(line)
    }

    /// On a network of its own.
    pub fn prepare_with_agent(network: Network) -> Option<Line> {
        Line::start_with(network, |_, _| {})
    }

    /// Before the agent is installed.
    pub fn prepare_plain() -> Option<Line> {
        Line::prepare(Flavour::Plain, Network::Shared, |_, _| {})
    }

    /// Everything but the agent.
    pub fn prepare(flavour: Flavour, network: Network, change: impl FnOnce(&mut Settings, &GitServer)) -> Option<Line> {
        agent_deb()?;
        let host = DebianHost::boot(flavour, network)?;
        let git = GitServer::start();
        let sample = Sample::on_server(&git)?;
        shorten(&sample);
        sample.hello_gitops.switch("dev");
        Workload::tool(FIRST, "1.0").push(&sample.hello_gitops, "line-test");
        let here = network.here().filter(|_| matches!(network, Network::Cable(_)));
        let mut world = World::assemble(Database::Sqlite, git, sample, |settings, git| {
            settings.agents_address = here;
            change(settings, git);
        })?;
        let hub = world.hub.places().agents;
        let relay = here.map(|here| Relay::start(SocketAddr::new(here, hub.port()), hub));
        world.hub.start_again();
        world.meet();
        world.await_generation("dev", CLUSTER_TYPE, 1);
        let repository = AptRepository::start();
        for (version, healthy) in [("1.0", true), ("2.0", true), ("3.0", false)] {
            tool(version, healthy).iter().for_each(|deb| repository.add(deb));
        }
        match network {
            Network::Shared => repository.connect(&host),
            Network::Out | Network::Cable(_) => repository.copy_into(&host),
        }
        Some(Line { host, repository, relay, world })
    }

    /// By apt, as people do it.
    pub fn install_agent(&self) {
        let deb = agent_deb().expect("prepare looked for it");
        self.host.copy_in(&deb, "/root/kedge-agent.deb", 0o644);
        self.host.ok(&["apt-get", "-qy", "install", "/root/kedge-agent.deb"]);
    }

    /// With a person's token.
    #[track_caller]
    pub fn join(&self) {
        let token = self.token();
        self.host.ok(&["kedge-agent", "join", "--token", &token, "--name", HOST]);
    }

    #[track_caller]
    pub fn token(&self) -> String {
        self.world.token(CLUSTER_TYPE, &[]).to_string()
    }

    /// Pushes what a target should run; the hub has made a desired state of it. The assignment's name is `hello-<target>`.
    #[track_caller]
    pub fn deliver(&self, assignment: &str, workload: &Workload) {
        let commit = workload.push(&self.world.sample.hello_gitops, target(assignment));
        await_true(&format!("the hub wants {commit} for {assignment}"), SOON, || {
            self.entry(assignment).is_some_and(|entry| entry["workload"]["commit"] == commit.as_str())
        });
    }

    /// Adds a target of the application with what it runs; an assignment more on this host.
    #[track_caller]
    pub fn add_target(&self, assignment: &str, workload: &Workload) {
        let name = target(assignment);
        let commit = workload.push(&self.world.sample.hello_gitops, name);
        let repo = self.world.git.url("hello-gitops");
        let entry = format!(
            "    - name: {name}\n      environment: dev\n      labels: {{purpose: {name}, runs: host, needs: gpu}}\n      \
             manifests: {{repo: {repo:?}, branch: dev, path: ./{name}}}\n"
        );
        let hello = &self.world.sample.hello;
        edit(hello, "workload/hello.yaml", "  deploymentTargets:\n", &format!("  deploymentTargets:\n{entry}"));
        await_true(&format!("the hub wants {assignment}"), SOON, || {
            self.entry(assignment).is_some_and(|entry| entry["workload"]["commit"] == commit.as_str())
        });
    }

    /// Takes a target out of the application; where that is most of what runs, a person has to confirm it.
    #[track_caller]
    pub fn remove_target(&self, assignment: &str) {
        let hello = &self.world.sample.hello;
        let text = std::fs::read_to_string(hello.path("workload/hello.yaml")).unwrap();
        let begin = text.find(&format!("    - name: {}\n", target(assignment))).expect("the target is there");
        let end = text[begin + 1..].find("    - name: ").map_or(text.len(), |next| begin + 1 + next);
        hello.change("workload/hello.yaml", &format!("{}{}", &text[..begin], &text[end..]));
    }

    /// Says yes to a removal of most of what hosts run.
    #[track_caller]
    pub fn confirm_removal(&self) {
        await_true("the publish waits for a person", SOON, || {
            self.world.api.waiting("dev").iter().any(|name| name == CLUSTER_TYPE)
        });
        self.world.kedge.run(["publish", "confirm", "dev", CLUSTER_TYPE]);
    }

    /// The hub no longer hears of an assignment.
    #[track_caller]
    pub fn await_gone(&self, assignment: &str) {
        await_true(&format!("{assignment} is gone"), CHANGED_WITHIN, || self.condition(assignment).is_none());
    }

    /// Changes the platform's configuration of the first assignment, and nothing else.
    #[track_caller]
    pub fn change_greeting(&self, text: &str) {
        let before = self.key(FIRST);
        self.world.sample.control_plane.switch("dev");
        let file = "cluster-types/south/factory-line/config.yaml";
        let old = std::fs::read_to_string(self.world.sample.control_plane.path(file)).unwrap();
        let line = old.lines().find(|line| line.trim_start().starts_with("CLUSTER_NAME:")).expect("it has a name");
        edit(&self.world.sample.control_plane, file, line, &format!("  CLUSTER_NAME: {text}"));
        await_true("the platform's package changed", SOON, || self.key(FIRST) != before);
    }

    /// What the newest desired state says of an assignment.
    pub fn entry(&self, assignment: &str) -> Option<Value> {
        let state = self.world.api.state("dev", CLUSTER_TYPE, None);
        state["entries"].as_array()?.iter().find(|entry| entry["assignment"] == assignment).cloned()
    }

    /// What should run, as a report names it.
    fn key(&self, assignment: &str) -> Option<String> {
        let entry = self.entry(assignment)?;
        let digest = |part: &str| entry[part]["digest"].as_str()?.parse::<Digest>().ok();
        Some(PackagesKey::of_packages(&digest("platform")?, &digest("workload")?).to_string())
    }

    /// What the hub knows of the host.
    pub fn seen(&self) -> Value {
        self.world.api.get(&format!("/api/v1/clusters/{HOST}"))
    }

    /// What the hub knows of an assignment there.
    pub fn condition(&self, assignment: &str) -> Option<Value> {
        let seen = self.seen();
        seen["conditions"].as_array()?.iter().find(|one| one["assignment"] == assignment).cloned()
    }

    /// Waits until the hub knows that what should run now has this condition.
    #[track_caller]
    pub fn await_condition(&self, assignment: &str, condition: &str) -> Value {
        let mut last = None;
        let found = await_some_or(CHANGED_WITHIN, || {
            let (seen, key) = (self.condition(assignment), self.key(assignment));
            last = Some((seen.clone(), key.clone()));
            seen.filter(|seen| seen["condition"] == condition && seen["desired"].as_str() == key.as_deref())
        });
        found.unwrap_or_else(|| {
            let why = self.agent(&["why", assignment]);
            panic!(
                "{assignment} isn't {condition}, but {last:?}\n{}{}\n{}",
                why.stdout,
                why.stderr,
                self.host.journal("kedge-agent")
            )
        })
    }

    /// What should run does.
    #[track_caller]
    pub fn await_converged(&self, assignment: &str) -> Value {
        let seen = self.await_condition(assignment, "Converged");
        assert_eq!(seen["running"], seen["desired"], "{seen}");
        seen
    }

    /// It failed for this reason.
    #[track_caller]
    pub fn await_failed(&self, assignment: &str, reason: &str) -> Value {
        let seen = self.await_condition(assignment, "Failed");
        assert_eq!(seen["reason"], reason, "{seen}");
        seen
    }

    /// A command of the agent's own program on the host.
    pub fn agent(&self, arguments: &[&str]) -> Ran {
        let command: Vec<&str> = [&["kedge-agent"], arguments].concat();
        self.host.run(&command)
    }

    /// What `status -o json` says of an assignment, without the hub.
    pub fn local(&self, assignment: &str) -> Option<Value> {
        local(&self.host, assignment)
    }

    /// Waits for something of the host.
    pub fn await_host(&self, what: &str, look: impl Fn(&DebianHost) -> bool) {
        await_true(what, CHANGED_WITHIN, || look(&self.host));
    }
}

/// What `status -o json` of a host says of an assignment.
pub fn local(host: &DebianHost, assignment: &str) -> Option<Value> {
    let ran = host.run(&["kedge-agent", "status", "-o", "json"]);
    let status: Value = serde_json::from_str(&ran.stdout).ok()?;
    status["assignments"].as_array()?.iter().find(|one| one["name"] == assignment).cloned()
}

/// Waits until the host itself says that nothing is under way and that this is an assignment's condition; what it says.
#[track_caller]
pub fn await_local(host: &DebianHost, assignment: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let mut last = None;
    let found = await_some_or(CHANGED_WITHIN, || {
        let seen = local(host, assignment);
        last.clone_from(&seen);
        seen.filter(|one| one["underWay"].is_null() && fits(one))
    });
    found.unwrap_or_else(|| {
        let why = host.run(&["kedge-agent", "why", assignment]);
        panic!("{assignment} is {last:?}\n{}{}\n{}", why.stdout, why.stderr, host.journal("kedge-agent"))
    })
}

/// None: not within this time.
fn await_some_or<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = std::time::Instant::now();
    while began.elapsed() < within {
        if let Some(seen) = look() {
            return Some(seen);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    None
}

/// `hello-line-test` is the target `line-test` of the application `hello`.
fn target(assignment: &str) -> &str {
    assignment.strip_prefix("hello-").expect("assignments of the application hello")
}

/// Our own .deb of the agent, or the test is marked as skipped.
fn agent_deb() -> Option<PathBuf> {
    let found = env::var_os("KEDGE_AGENT_DEB").map(PathBuf::from).filter(|path| path.is_file());
    if found.is_none() {
        skip("KEDGE_AGENT_DEB names no .deb of the agent (./tests/run debian builds it)");
    }
    found
}

/// The sample's times are for real hosts; here a change is healthy in a second. And the platform team allows our debs.
fn shorten(sample: &Sample) {
    let old = sample.control_plane.head("main");
    let debs: Vec<String> = ALLOWED.iter().map(|name| format!("    - {name}\n")).collect();
    sample.edit("main", "configs/hello-host.yaml", "    - hello\n", &debs.concat());
    sample.edit("main", "templates/kedge-host.yaml", "timeout: 10m", "timeout: 20s");
    let main = sample.edit("main", "templates/kedge-host.yaml", "soak: 1m", "soak: 1s");
    sample.edit("dev", "base-repo.yaml", &old, &main);
}
