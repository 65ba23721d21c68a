//! The run itself: what happens when, links that lose and delay, agents that crash. Owns everything that is simulated.

mod fleet;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use kedge_rollout::{Chain, MainCommit, ring_of};

use crate::Report;
use crate::agent::{Agent, Answer, Request};
use crate::chance::{Chance, mix_all};
use crate::check::Oracle;
use crate::database::{Database, Row};
use crate::git::{Commit, Git};
use crate::plan::{MINUTE, Plan, RINGS, SECOND, START, labels};

/// What must not be, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

#[derive(Debug)]
pub struct World {
    pub plan: Plan,
    pub chance: Chance,
    pub now: i64,
    pub git: Git,
    pub db: Database,
    pub agents: Vec<Agent>,
    pub hub: HubProcess,
    pub oracle: Oracle,
    pub report: Report,
    pub verbose: bool,
    pub(crate) log: Vec<MainCommit>,
    pub(crate) dirty: bool,
    queue: BinaryHeap<Reverse<(i64, u64, Moment)>>,
    sent: BTreeMap<u64, Message>,
    order: u64,
    last_pass: i64,
}

/// The hub that leads now.
#[derive(Debug)]
pub struct HubProcess {
    pub down_until: i64,
    /// How wrong its clock is.
    pub clock: i64,
    /// How many hubs are inside a step of another: at most one.
    pub nested: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Join(usize),
    Poll(usize),
    Arrive(usize, u64),
    Reach(usize, u64),
    Applied(usize, u32),
    Retry(usize, u32),
    Pass,
    Fault,
    Push,
    Person,
    Help,
}

#[derive(Debug)]
enum Message {
    Request(Request),
    Answer(Answer),
}

/// The leader looks so often; sooner only if something changed.
const PASS: i64 = 4 * SECOND;
const IDLE_PASS: i64 = 20 * SECOND;
/// A run that isn't at rest so long after the last fault never will be.
const PATIENCE: i64 = 6 * 60 * MINUTE;

impl World {
    pub fn new(plan: Plan, verbose: bool) -> World {
        let git = Git::new(&plan);
        let streams = plan.environments() * plan.types.len() * RINGS;
        let mut states = vec![Vec::new(); streams];
        for environment in 0..plan.environments() {
            for (kind, list) in plan.of_type.iter().enumerate() {
                for ring in 0..plan.rules(environment).rings.len() {
                    states[plan.stream(environment, kind, ring)].push(vec![[0, 0]; list.len()]);
                }
            }
        }
        let row = |place: &crate::plan::Place| Row {
            joined: false,
            labels: place.labels.clone(),
            stale: false,
            ring: 0,
            sequence: 0,
            version: 0,
            stream: 0,
            generation: 0,
            entries: Vec::new(),
            promise: 0,
            served: None,
        };
        let db = Database {
            term: 1,
            chain: Chain::new(plan.policy.clone()),
            chain_version: 0,
            rollouts: vec![vec![Vec::new(); 1 + plan.workloads]; plan.environments()],
            next_rollout: 1,
            states,
            clusters: plan.fleet.iter().map(row).collect(),
            permits: BTreeMap::new(),
            members: BTreeMap::new(),
        };
        let mut chance = Chance::new(mix_all(&[plan.seed, 1]));
        let agents = (0..plan.fleet.len()).map(|number| fleet::agent(&plan, number, &mut chance)).collect();
        let report = Report { seed: plan.seed, clusters: plan.fleet.len(), ..Report::default() };
        let oracle = Oracle::new(&db.states);
        let hub = HubProcess { down_until: 0, clock: 0, nested: false };
        let mut world = World {
            plan,
            chance,
            now: START,
            git,
            db,
            agents,
            hub,
            oracle,
            report,
            verbose,
            log: Vec::new(),
            dirty: true,
            queue: BinaryHeap::new(),
            sent: BTreeMap::new(),
            order: 0,
            last_pass: 0,
        };
        for cluster in 0..world.agents.len() {
            world.at(world.plan.fleet[cluster].joins, Moment::Join(cluster));
        }
        world.at(START, Moment::Pass);
        for moment in [Moment::Fault, Moment::Push, Moment::Person] {
            world.soon(10 * SECOND, 2 * MINUTE, moment);
        }
        world.at(world.plan.calm, Moment::Help);
        world
    }

    pub fn run(&mut self) -> Result<(), Broken> {
        while let Some(Reverse((at, _, moment))) = self.queue.pop() {
            self.now = self.now.max(at);
            self.report.steps += 1;
            self.step(moment)?;
            if moment == Moment::Help {
                if self.at_rest() {
                    return self.check_everything();
                }
                if self.now > self.plan.calm + PATIENCE {
                    return Err(Broken(format!("it doesn't end: {}", self.unrest())));
                }
            }
        }
        Err(Broken("nothing happens any more".to_owned()))
    }

    pub fn calm(&self) -> bool {
        self.now >= self.plan.calm
    }

    fn step(&mut self, moment: Moment) -> Result<(), Broken> {
        match moment {
            Moment::Join(cluster) => self.join(cluster),
            Moment::Poll(cluster) => self.poll(cluster),
            Moment::Arrive(cluster, message) => return self.arrive(cluster, message),
            Moment::Reach(cluster, message) => return self.reach(cluster, message),
            Moment::Applied(cluster, epoch) => return self.applied(cluster, epoch),
            Moment::Retry(cluster, epoch) => self.retry(cluster, epoch),
            Moment::Pass => {
                if self.now >= self.hub.down_until && (self.dirty || self.now - self.last_pass >= IDLE_PASS) {
                    self.last_pass = self.now;
                    self.lead()?;
                }
                self.soon(PASS, PASS, Moment::Pass);
            }
            Moment::Fault if !self.calm() => {
                self.fault();
                self.soon(20 * SECOND, 4 * MINUTE, Moment::Fault);
            }
            Moment::Push if !self.calm() => {
                self.push();
                self.soon(30 * SECOND, 8 * MINUTE, Moment::Push);
            }
            Moment::Person if !self.calm() => {
                self.speak()?;
                self.soon(5 * SECOND, 3 * MINUTE, Moment::Person);
            }
            Moment::Fault | Moment::Push | Moment::Person => {}
            Moment::Help => {
                self.help()?;
                self.soon(20 * SECOND, 20 * SECOND, Moment::Help);
            }
        }
        Ok(())
    }

    fn at(&mut self, at: i64, moment: Moment) {
        self.order += 1;
        self.queue.push(Reverse((at, self.order, moment)));
    }

    fn soon(&mut self, from: i64, to: i64, moment: Moment) {
        let at = self.now + self.chance.between(from, to);
        self.at(at, moment);
    }

    fn join(&mut self, cluster: usize) {
        let place = &self.plan.fleet[cluster];
        let rules = &self.plan.policy.environments[place.environment];
        let row = &mut self.db.clusters[cluster];
        let name = ring_of(&rules.rings, &self.agents[cluster].id, &row.labels);
        row.ring = rules.rings.iter().position(|ring| ring.name == name).unwrap_or_default();
        (row.joined, row.sequence) = (true, 1);
        *self.db.members.entry((place.environment, row.ring)).or_default() += 1;
        self.dirty = true;
        self.soon(0, 20 * SECOND, Moment::Poll(cluster));
    }

    fn fault(&mut self) {
        let now = self.now;
        let until = now + self.chance.between(SECOND, 15 * MINUTE).min(self.plan.calm - now);
        let clusters = self.agents.len();
        match self.chance.below(5) {
            // A part of the fleet is cut off.
            0 => {
                let times = self.chance.draw() % 500;
                for cluster in 0..clusters {
                    if self.chance.permille(times) {
                        self.agents[cluster].cut_until = until;
                    }
                }
            }
            1 => {
                let cluster = self.chance.below(clusters);
                self.agents[cluster].off_until = until;
            }
            2 => self.hub.down_until = until.min(now + 3 * MINUTE),
            3 => self.hub.clock = self.chance.between(-20 * SECOND, 20 * SECOND),
            _ => {
                let cluster = self.chance.below(clusters);
                let row = &mut self.db.clusters[cluster];
                if row.joined {
                    (row.labels, row.stale) = (labels(&mut self.chance), true);
                    self.dirty = true;
                }
            }
        }
    }

    fn push(&mut self) {
        let commit = Commit::draw(&self.plan, &mut self.chance);
        match self.chance.below(5) {
            0 | 1 => self.git.main.push(commit),
            2 => {
                let environment = self.chance.below(self.plan.environments());
                self.git.own[environment].push(commit);
            }
            _ => {
                let work = self.chance.below(self.plan.workloads);
                self.git.sources[work].push(commit);
            }
        }
        self.dirty = true;
    }

    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{:>9.3} {}", (self.now - START) as f64 / 1_000.0, what());
        }
    }
}
