//! The world of simulated sites: time, and what happens next. Faults end at `CALM`; what must hold is in `check`.

mod cables;
mod host;
mod trouble;

use std::collections::BTreeMap;
use std::ops::Range;

use kedge_model::wire::{ClusterId, Membership, Sequence, Stream, Timestamp};
use kedge_peer::{Message, Node};

use super::Report;
use super::agent::{Agent, Disk, Misbehaving};
use super::check::Notes;
use super::hub::{Hub, key};
use crate::Broken;
use crate::chance::{Chance, mix_all};
use crate::plan::{MINUTE, SECOND, START};

pub(super) struct World {
    pub seed: u64,
    pub now: i64,
    pub hub: Hub,
    pub agents: Vec<Agent>,
    pub sites: usize,
    pub report: Report,
    pub notes: Notes,
    /// Where each agent is in the list.
    pub places: BTreeMap<ClusterId, usize>,
    /// Those of each site.
    members: Vec<Range<usize>>,
    chance: Chance,
    /// What happens, in its order: those of one time as they were planned.
    queue: BTreeMap<(i64, u64), Moment>,
    planned: u64,
    /// Messages that are lost, in a thousand.
    loss: u64,
    verbose: bool,
}

pub(super) enum Moment {
    Wake {
        agent: usize,
        token: u64,
    },
    Request {
        from: usize,
        life: u64,
        to: usize,
        message: Box<Message>,
    },
    Answer {
        to: usize,
        life: u64,
        from: usize,
        message: Option<Box<Message>>,
    },
    Poll(usize),
    Start(usize),
    Misbehave(usize),
    /// Of a site.
    Fault(usize),
    /// In a site.
    Change(usize),
    /// What the hub does for all sites.
    Fleet,
    Calm,
    Count,
}

/// Faults and changes end.
pub(super) const CALM: i64 = 40 * MINUTE;
/// Long enough for the longest back-off, for misbehaving peers, and for signs of life.
pub(super) const END: i64 = CALM + 45 * MINUTE;
/// The last minutes are for counting what rest costs.
pub(super) const COUNTED: i64 = 10 * MINUTE;
const MOST_AGENTS: usize = 9;
const STREAMS: [&str; 3] = ["drone", "press", "till"];

impl World {
    pub fn new(seed: u64, sites: usize, verbose: bool) -> Result<World, Broken> {
        let mut chance = Chance::new(mix_all(&[seed, 0x517e5]));
        let hub = Hub::new(seed, Timestamp(START))?;
        let loss = [0, 20, 100, 250][chance.below(4)];
        let mut world = World {
            seed,
            now: 0,
            hub,
            agents: Vec::new(),
            sites,
            report: Report { seed, sites, ..Report::default() },
            notes: Notes::default(),
            places: BTreeMap::new(),
            members: Vec::new(),
            chance,
            queue: BTreeMap::new(),
            planned: 0,
            loss,
            verbose,
        };
        for site in 0..sites {
            let first = world.agents.len();
            for _ in 0..1 + world.chance.below(MOST_AGENTS) {
                world.join(site)?;
            }
            world.members.push(first..world.agents.len());
        }
        world.report.agents = world.agents.len();
        for stream in 0..STREAMS.len() {
            world.hub.publish(&stream_of(stream), Timestamp(START))?;
        }
        world.plan_first();
        Ok(world)
    }

    fn plan_first(&mut self) {
        for agent in 0..self.agents.len() {
            let late = self.chance.between(0, MINUTE);
            self.at(late, Moment::Start(agent));
            self.at(late + SECOND, Moment::Poll(agent));
            if self.agents[agent].misbehaving.is_some() {
                self.at(late, Moment::Misbehave(agent));
            }
        }
        for site in 0..self.sites {
            self.at(SECOND, Moment::Fault(site));
            self.at(SECOND, Moment::Change(site));
        }
        self.at(SECOND, Moment::Fleet);
        self.at(CALM, Moment::Calm);
        self.at(END - COUNTED, Moment::Count);
    }

    fn join(&mut self, site: usize) -> Result<(), Broken> {
        let number = self.agents.len();
        let key = key([self.seed, 2, number as u64])?;
        let id = ClusterId::of_public_key(key.public().as_bytes());
        let stream = stream_of(self.chance.below(2));
        let membership = Membership {
            cluster: id,
            name: format!("host-{number}"),
            stream: stream.clone(),
            labels: Default::default(),
            site: Some(site_name(site)),
            sequence: Sequence(1),
            issued_at: Timestamp(START),
            remove: Vec::new(),
            unmanage: Vec::new(),
            relay: self.chance.permille(200),
            retired: false,
            requires: Vec::new(),
        };
        self.hub.admit(membership)?;
        let (keys, first) = self.hub.chain[0].clone();
        let disk = Disk::new(keys, first, self.hub.memberships[&id].1.clone(), stream);
        let misbehaving = self
            .chance
            .permille(120)
            .then(|| if self.chance.permille(500) { Misbehaving::Loud } else { Misbehaving::Quiet });
        self.report.misbehaving += usize::from(misbehaving.is_some());
        self.places.insert(id, number);
        let online = self.chance.permille(400);
        self.agents.push(Agent::new(key, id, site, online, misbehaving, disk));
        Ok(())
    }

    /// To its end, with all checks.
    pub fn run(mut self) -> Result<Report, Broken> {
        self.run_until(END)?;
        self.check_end()?;
        Ok(self.report)
    }

    pub fn run_until(&mut self, end: i64) -> Result<(), Broken> {
        while let Some(next) = self.queue.first_entry() {
            let (at, _) = *next.key();
            if at > end {
                break;
            }
            let moment = next.remove();
            self.now = at;
            self.step(moment)?;
        }
        self.now = end;
        Ok(())
    }

    pub fn time(&self) -> Timestamp {
        Timestamp(START + self.now)
    }

    pub fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{:>9.1} s  {}", self.now as f64 / 1_000.0, what());
        }
    }

    pub fn of_site(&self, site: usize) -> Range<usize> {
        self.members[site].clone()
    }

    fn at(&mut self, at: i64, moment: Moment) {
        self.planned += 1;
        self.queue.insert((at, self.planned), moment);
    }

    fn step(&mut self, moment: Moment) -> Result<(), Broken> {
        match moment {
            Moment::Wake { agent, token } => {
                if self.agents[agent].token == token
                    && let Some(actions) = self.with(agent, Node::tick)?
                {
                    self.follow(agent, actions)?;
                }
            }
            Moment::Request { from, life, to, message } => self.arrive(from, life, to, *message)?,
            Moment::Answer { to, life, from, message } => self.answer(to, life, from, message)?,
            Moment::Poll(agent) => {
                self.poll(agent)?;
                let next = self.now + self.chance.between(15 * SECOND, 25 * SECOND);
                self.at(next, Moment::Poll(agent));
            }
            Moment::Start(agent) => self.start(agent)?,
            Moment::Misbehave(agent) => self.misbehave(agent)?,
            Moment::Fault(site) if self.now < CALM => {
                self.fault(site)?;
                let next = self.now + self.chance.between(SECOND, 2 * MINUTE);
                self.at(next, Moment::Fault(site));
            }
            Moment::Change(site) if self.now < CALM => {
                self.change(site)?;
                let next = self.now + self.chance.between(SECOND, MINUTE);
                self.at(next, Moment::Change(site));
            }
            Moment::Fleet if self.now < CALM => {
                self.change_fleet()?;
                let next = self.now + self.chance.between(SECOND, 6 * MINUTE);
                self.at(next, Moment::Fleet);
            }
            Moment::Fault(_) | Moment::Change(_) | Moment::Fleet => {}
            Moment::Calm => self.calm()?,
            Moment::Count => self.agents.iter_mut().for_each(|agent| agent.requests = 0),
        }
        Ok(())
    }

    /// Something with a running node; its store is looked at, and its next wake is set anew.
    fn with<T>(&mut self, agent: usize, act: impl FnOnce(&mut Node, Timestamp) -> T) -> Result<Option<T>, Broken> {
        let now = self.time();
        let Some(node) = self.agents[agent].node.as_mut() else { return Ok(None) };
        let done = act(node, now);
        let wake = (node.wake().0.saturating_sub(START)).max(self.now + 1);
        self.agents[agent].token += 1;
        let token = self.agents[agent].token;
        self.at(wake, Moment::Wake { agent, token });
        self.check_store(agent)?;
        Ok(Some(done))
    }
}

pub(super) fn site_name(site: usize) -> String {
    format!("site-{site}")
}

fn stream_of(number: usize) -> Stream {
    Stream::new("prod", STREAMS.get(number).copied().unwrap_or("drone"), Stream::ALL)
}
