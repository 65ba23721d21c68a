//! The world of simulated sites: time, cables, faults, and what people and hosts do. Faults end at `CALM`; what must hold then is in `check`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kedge_model::wire::{ClusterId, Envelope, Membership, Presence, Sequence, Stream, Timestamp};
use kedge_peer::{Action, Message, Name, Node, Taken};

use super::Report;
use super::agent::{Agent, Disk, Liar};
use super::check::Kept;
use super::hub::{Hub, key};
use super::liar::lie;
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
    /// What living agents had when the faults ended.
    pub kept: Vec<Kept>,
    chance: Chance,
    queue: BinaryHeap<Reverse<(i64, u64)>>,
    moments: Vec<Option<Moment>>,
    /// Messages that are lost, in a thousand.
    loss: u64,
    verbose: bool,
}

enum Moment {
    Wake { agent: usize, token: u64 },
    Request { from: usize, life: u64, to: usize, message: Box<Message> },
    Answer { to: usize, life: u64, from: usize, message: Option<Box<Message>> },
    Poll(usize),
    Start(usize),
    Lie(usize),
    Fault,
    Change,
    Calm,
    Count,
}

/// Faults and changes end.
pub(super) const CALM: i64 = 40 * MINUTE;
/// Long enough for the longest back-off, for liars, and for signs of life.
const END: i64 = CALM + 45 * MINUTE;
/// The last minutes are for counting what rest costs.
pub(super) const COUNTED: i64 = 10 * MINUTE;
const MOST_AGENTS: usize = 9;
/// A connection to who is off or cut away fails after this.
const TIMEOUT: i64 = 5 * SECOND;
const PRESENCE_EVERY: i64 = 2 * MINUTE;

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
            kept: Vec::new(),
            chance,
            queue: BinaryHeap::new(),
            moments: Vec::new(),
            loss,
            verbose,
        };
        for site in 0..sites {
            for _ in 0..1 + world.chance.below(MOST_AGENTS) {
                world.join(site)?;
            }
        }
        world.report.agents = world.agents.len();
        for stream in 0..3 {
            world.hub.publish(&stream_of(stream), Timestamp(START))?;
        }
        for agent in 0..world.agents.len() {
            let late = world.chance.between(0, MINUTE);
            world.at(late, Moment::Start(agent));
            world.at(late + SECOND, Moment::Poll(agent));
            if world.agents[agent].liar.is_some() {
                world.at(late, Moment::Lie(agent));
            }
        }
        world.at(SECOND, Moment::Fault);
        world.at(SECOND, Moment::Change);
        world.at(CALM, Moment::Calm);
        world.at(END - COUNTED, Moment::Count);
        Ok(world)
    }

    fn join(&mut self, site: usize) -> Result<(), Broken> {
        let number = self.agents.len() as u64;
        let key = key([self.seed, 2, number])?;
        let id = ClusterId::of_public_key(key.public().as_bytes());
        let membership = Membership {
            cluster: id,
            name: format!("host-{number}"),
            stream: stream_of(self.chance.below(2)),
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
        let membership = self.hub.memberships[&id].1.clone();
        let liar = self.chance.permille(120).then(|| if self.chance.permille(500) { Liar::Loud } else { Liar::Quiet });
        self.report.liars += usize::from(liar.is_some());
        self.agents.push(Agent {
            key,
            id,
            site,
            node: None,
            life: 0,
            token: 0,
            online: self.chance.permille(400),
            part: 0,
            liar,
            disk: Disk {
                keys,
                chain: vec![first],
                membership,
                state: None,
                status: None,
                epoch: 0,
                changes: 0,
                holds: Default::default(),
            },
            said: Timestamp(i64::MIN),
            requests: 0,
        });
        Ok(())
    }

    pub fn run(mut self) -> Result<Report, Broken> {
        while let Some(Reverse((at, number))) = self.queue.pop() {
            if at > END {
                break;
            }
            self.now = at;
            let moment = usize::try_from(number).ok().and_then(|number| self.moments.get_mut(number)?.take());
            if let Some(moment) = moment {
                self.step(moment)?;
            }
        }
        self.check_end()?;
        Ok(self.report)
    }

    pub fn time(&self) -> Timestamp {
        Timestamp(START + self.now)
    }

    pub fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{:>9.1} s  {}", self.now as f64 / 1_000.0, what());
        }
    }

    fn at(&mut self, at: i64, moment: Moment) {
        self.queue.push(Reverse((at, self.moments.len() as u64)));
        self.moments.push(Some(moment));
    }

    fn step(&mut self, moment: Moment) -> Result<(), Broken> {
        match moment {
            Moment::Wake { agent, token } => {
                if self.agents[agent].token == token
                    && let Some(actions) = self.with(agent, Node::tick)
                {
                    self.follow(agent, actions)?;
                }
            }
            Moment::Request { from, life, to, message } => self.arrive(from, life, to, *message)?,
            Moment::Answer { to, life, from, message } => {
                let peer = self.agents[from].id;
                if self.agents[to].life == life {
                    let actions = self.with(to, |node, now| match message {
                        Some(message) => node.answered(peer, *message, now),
                        None => node.failed(peer, now),
                    });
                    self.follow(to, actions.unwrap_or_default())?;
                }
            }
            Moment::Poll(agent) => {
                self.poll(agent)?;
                let next = self.now + self.chance.between(15 * SECOND, 25 * SECOND);
                self.at(next, Moment::Poll(agent));
            }
            Moment::Start(agent) => self.start(agent)?,
            Moment::Lie(agent) => self.say_a_lie(agent)?,
            Moment::Fault if self.now < CALM => {
                self.fault();
                let next = self.now + self.chance.between(SECOND, 2 * MINUTE / self.sites.max(1) as i64 + SECOND);
                self.at(next, Moment::Fault);
            }
            Moment::Change if self.now < CALM => {
                self.change()?;
                let next = self.now + self.chance.between(SECOND, MINUTE / self.sites.max(1) as i64 + SECOND);
                self.at(next, Moment::Change);
            }
            Moment::Fault | Moment::Change => {}
            Moment::Calm => self.calm()?,
            Moment::Count => self.agents.iter_mut().for_each(|agent| agent.requests = 0),
        }
        Ok(())
    }

    /// Something with a running node; its next wake is set anew.
    fn with<T>(&mut self, agent: usize, act: impl FnOnce(&mut Node, Timestamp) -> T) -> Option<T> {
        let now = self.time();
        let node = self.agents[agent].node.as_mut()?;
        let done = act(node, now);
        let wake = (node.wake().0.saturating_sub(START)).max(self.now + 1);
        self.agents[agent].token += 1;
        let token = self.agents[agent].token;
        self.at(wake, Moment::Wake { agent, token });
        Some(done)
    }

    fn start(&mut self, agent: usize) -> Result<(), Broken> {
        let now = self.time();
        let (site, seed) = (self.agents[agent].site, mix_all(&[self.seed, agent as u64]));
        if self.agents[agent].node.is_none() {
            self.agents[agent].start(&site_name(site), seed, now);
        }
        let others: Vec<ClusterId> = self.of_site(site).map(|other| self.agents[other].id).collect();
        self.with(agent, |node, now| others.iter().for_each(|other| node.found(*other, now)));
        self.poll(agent)
    }

    fn of_site(&self, site: usize) -> impl Iterator<Item = usize> {
        self.agents.iter().enumerate().filter(move |(_, agent)| agent.site == site).map(|(index, _)| index)
    }

    fn follow(&mut self, agent: usize, actions: Vec<Action>) -> Result<(), Broken> {
        for action in actions {
            match action {
                Action::Send { to, message } => self.send(agent, to, message),
                Action::Took(name) => {
                    self.report.taken += 1;
                    self.took(agent, &name)?;
                }
                Action::Carry(signs) => self.carry(agent, &signs)?,
                Action::Upload(envelope) => {
                    if self.agents[agent].online {
                        self.hub.take(&envelope)?;
                    }
                }
                Action::Dropped { peer, why } => {
                    self.report.drops += 1;
                    self.tell(|| format!("agent {agent} drops {peer}: {why}"));
                    self.check_drop(agent, &peer, &why)?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, to: ClusterId, message: Message) {
        self.agents[from].requests += 1;
        self.report.messages += 1;
        let life = self.agents[from].life;
        let Some(to) = self.agents.iter().position(|agent| agent.id == to) else { return };
        if !self.is_connected(from, to) || self.is_lost() {
            self.report.lost += 1;
            return self.at(self.now + TIMEOUT, Moment::Answer { to: from, life, from: to, message: None });
        }
        let at = self.now + self.chance.between(1, 50);
        self.at(at, Moment::Request { from, life, to, message: Box::new(message) });
    }

    fn arrive(&mut self, from: usize, life: u64, to: usize, message: Message) -> Result<(), Broken> {
        let sender = self.agents[from].id;
        let answer = if self.agents[to].liar.is_some() {
            let now = self.time();
            Some(lie(&self.agents[to], &sender, &self.hub, &mut self.chance, now)?)
        } else {
            let repeated = self.loss > 0 && self.chance.permille(30);
            let copy = repeated.then(|| message.clone());
            let heard: Option<Vec<(Option<Message>, Vec<Action>)>> = self.with(to, |node, now| {
                copy.map(|copy| node.heard(sender, copy, now))
                    .into_iter()
                    .chain([node.heard(sender, message, now)])
                    .collect()
            });
            let mut last = None;
            for (answer, actions) in heard.unwrap_or_default() {
                self.follow(to, actions)?;
                last = answer;
            }
            last
        };
        let lost = self.is_lost();
        let (at, message) = match answer.filter(|_| !lost) {
            Some(answer) => (self.chance.between(1, 50), Some(Box::new(answer))),
            None => (TIMEOUT, None),
        };
        self.at(self.now + at, Moment::Answer { to: from, life, from: to, message });
        Ok(())
    }

    fn is_lost(&mut self) -> bool {
        self.chance.permille(self.loss)
    }

    fn is_connected(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.agents[one], &self.agents[other]);
        one.site == other.site && one.part == other.part && (other.node.is_some() || other.liar.is_some())
    }

    fn say_a_lie(&mut self, liar: usize) -> Result<(), Broken> {
        let victims: Vec<usize> = self.of_site(self.agents[liar].site).filter(|other| *other != liar).collect();
        if let Some(victim) = self.chance.pick(&victims).copied().filter(|victim| self.is_connected(liar, *victim)) {
            let (now, target, sender) = (self.time(), self.agents[victim].id, self.agents[liar].id);
            let message = lie(&self.agents[liar], &target, &self.hub, &mut self.chance, now)?;
            if let Some((_, actions)) = self.with(victim, |node, now| node.heard(sender, message, now)) {
                self.follow(victim, actions)?;
            }
        }
        let next = self.now + self.chance.between(5 * SECOND, MINUTE);
        self.at(next, Moment::Lie(liar));
        Ok(())
    }

    /// What an agent does every few seconds: it asks the hub, if it reaches it, and else says that it lives.
    fn poll(&mut self, agent: usize) -> Result<(), Broken> {
        let (now, one) = (self.time(), &self.agents[agent]);
        if one.node.is_none() {
            return Ok(());
        }
        // Holds that couldn't be judged at the start.
        let mut news: Vec<Envelope> = one.disk.holds.values().map(|(_, envelope)| envelope.clone()).collect();
        let (id, online) = (one.id, one.online);
        if online {
            news.extend(self.hub.news(&id, one.disk.keys.version, |_| true));
            if let Some(status) = one.disk.status.clone() {
                self.hub.take(&status)?;
            }
            let contact = self.hub.contacts.entry(id).or_default();
            *contact = (*contact).max(now);
            self.with(agent, |node, now| node.reach(Some(now)));
        } else if now.0 - PRESENCE_EVERY >= one.said.0 {
            let presence = one.presence(now)?;
            self.agents[agent].said = now;
            self.with(agent, |node, _| node.presence(presence));
        }
        self.put(agent, news)
    }

    fn put(&mut self, agent: usize, envelopes: Vec<Envelope>) -> Result<(), Broken> {
        for envelope in envelopes {
            // The hub answers with news only.
            let known = |node: &Node| node.shelf().documents().any(|(_, _, known)| *known == envelope);
            if self.agents[agent].node.as_ref().is_some_and(known) {
                continue;
            }
            if let Some(Ok(Taken::New(name))) = self.with(agent, |node, _| node.put(envelope)) {
                self.took(agent, &name)?;
            }
        }
        Ok(())
    }

    /// A new document: what concerns oneself goes to disk.
    fn took(&mut self, agent: usize, name: &Name) -> Result<(), Broken> {
        self.check_taken(agent, name)?;
        let one = &mut self.agents[agent];
        let Some(node) = &one.node else { return Ok(()) };
        let Some(envelope) = node.shelf().get(name).cloned() else { return Ok(()) };
        match name {
            Name::Keys(_) => {
                one.disk.keys = node.shelf().keys().clone();
                one.disk.chain.push(envelope);
            }
            Name::Membership(cluster) if *cluster == one.id => one.disk.membership = envelope,
            Name::State(stream) if node.shelf().member(&one.id).is_some_and(|own| own.stream == *stream) => {
                one.disk.state = Some(envelope);
            }
            _ => {}
        }
        Ok(())
    }

    /// The site's question to the hub.
    fn carry(&mut self, agent: usize, signs: &[Envelope]) -> Result<(), Broken> {
        if !self.agents[agent].online {
            self.with(agent, |node, now| node.not_carried(signs, now));
            return Ok(());
        }
        let own = self.hub.memberships[&self.agents[agent].id].0.clone();
        let (mut news, mut lacks) = (Vec::new(), Vec::new());
        for sign in signs {
            let presence = Presence::open(sign).map_err(super::hub::broken)?;
            if self.hub.hear(&presence) {
                lacks.push(presence.cluster);
            }
            let keys = presence.poll.key_set;
            news.extend(self.hub.news(&presence.cluster, keys, |stream| own.relay || own.stream == *stream));
        }
        self.put(agent, news)?;
        self.with(agent, |node, _| lacks.into_iter().for_each(|cluster| node.lacks(cluster)));
        Ok(())
    }

    fn fault(&mut self) {
        let agent = self.chance.below(self.agents.len());
        let site = self.agents[agent].site;
        match self.chance.below(6) {
            0 => {
                self.report.splits += 1;
                let members: Vec<usize> = self.of_site(site).collect();
                for member in members {
                    self.agents[member].part = u8::from(self.chance.permille(500));
                }
            }
            1 => {
                let members: Vec<usize> = self.of_site(site).collect();
                members.into_iter().for_each(|member| self.agents[member].part = 0);
            }
            2 | 3 => self.agents[agent].online = self.chance.permille(400),
            _ => {
                self.report.restarts += 1;
                self.agents[agent].node = None;
                let back = self.now + self.chance.between(SECOND, 15 * MINUTE);
                self.at(back.min(CALM), Moment::Start(agent));
                let id = self.agents[agent].id;
                // Some notice at once that it is gone, and find it again later.
                for other in self.of_site(site).collect::<Vec<_>>() {
                    if self.chance.permille(300) {
                        self.with(other, |node, _| node.lost(id));
                        self.at(back.min(CALM) + SECOND, Moment::Start(other));
                    }
                }
            }
        }
    }

    fn change(&mut self) -> Result<(), Broken> {
        let (now, agent) = (self.time(), self.chance.below(self.agents.len()));
        let id = self.agents[agent].id;
        match self.chance.below(20) {
            0 => self.hub.rotate(self.seed, now)?,
            1 | 2 => self.hub.publish(&stream_of(self.chance.below(3)), now)?,
            3 => self.hub.hold(id, now)?,
            4 => self.hub.change(&id, |membership| membership.relay = !membership.relay)?,
            5 => {
                let stream = stream_of(self.chance.below(3));
                self.hub.change(&id, |membership| membership.stream = stream)?;
            }
            6 if self.chance.permille(150) => self.hub.change(&id, |membership| membership.retired = true)?,
            7 | 8 if self.agents[agent].node.is_some() => {
                let members: Vec<usize> = self.of_site(self.agents[agent].site).collect();
                if let Some(target) = self.chance.pick(&members).map(|target| self.agents[*target].id) {
                    let envelope = self.agents[agent].write_hold(target, now)?;
                    self.hub.remember(&envelope);
                    self.put(agent, vec![envelope])?;
                }
            }
            _ if self.agents[agent].node.is_some() => {
                let new_epoch = self.chance.permille(100);
                let envelope = self.agents[agent].change_status(new_epoch, now);
                self.hub.remember(&envelope);
                self.put(agent, vec![envelope])?;
                self.agents[agent].said = Timestamp(i64::MIN);
            }
            _ => {}
        }
        Ok(())
    }

    /// No more faults: all run, all cables are whole. Who reaches the hub stays as it is, and liars go on.
    fn calm(&mut self) -> Result<(), Broken> {
        self.loss = 0;
        self.agents.iter_mut().for_each(|agent| agent.part = 0);
        self.keep();
        for agent in 0..self.agents.len() {
            self.start(agent)?;
        }
        Ok(())
    }
}

pub(super) fn site_name(site: usize) -> String {
    format!("site-{site}")
}

fn stream_of(number: usize) -> Stream {
    Stream::new("prod", ["drone", "press", "till"].get(number).copied().unwrap_or("drone"), Stream::ALL)
}
