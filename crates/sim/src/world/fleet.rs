//! Agents and their links: polls that are lost, late or forged, applying that fails, crashes and starts again.

use std::collections::BTreeMap;

use super::{Broken, Message, Moment, World};
use crate::agent::{Agent, Answer, Offer};
use crate::chance::{Chance, mix_all};
use crate::database::Condition;
use crate::plan::{MINUTE, Plan, SECOND};

impl World {
    pub(super) fn poll(&mut self, cluster: usize) {
        let lost = self.lost();
        let agent = &self.agents[cluster];
        let interval = agent.interval;
        if self.now >= agent.off_until && self.now >= agent.cut_until && !lost {
            let request = agent.request();
            let id = self.send(Message::Request(request));
            self.soon(5, 500, Moment::Arrive(cluster, id));
        }
        self.soon(interval, interval + 5 * SECOND, Moment::Poll(cluster));
    }

    pub(super) fn arrive(&mut self, cluster: usize, message: u64) -> Result<(), Broken> {
        let Some(Message::Request(request)) = self.sent.remove(&message) else { return Ok(()) };
        if self.now < self.hub.down_until {
            return Ok(());
        }
        if let Some(mut answer) = self.serve(cluster, request)? {
            if !self.calm() && self.chance.permille(self.plan.faults.forgery) {
                self.forge(cluster, &mut answer);
            }
            if !self.lost() {
                let id = self.send(Message::Answer(answer));
                // Now and then much later than the next one.
                let slow = if self.chance.permille(5) && !self.calm() { 90 * SECOND } else { 500 };
                self.soon(5, slow, Moment::Reach(cluster, id));
            }
        }
        Ok(())
    }

    pub(super) fn reach(&mut self, cluster: usize, message: u64) -> Result<(), Broken> {
        let Some(Message::Answer(answer)) = self.sent.remove(&message) else { return Ok(()) };
        let now = self.now;
        let agent = &mut self.agents[cluster];
        if now < agent.off_until || now < agent.cut_until {
            return Ok(());
        }
        agent.acknowledged = agent.acknowledged.max(answer.acknowledged);
        if let Some((stream, sequence)) = answer.membership.filter(|(_, sequence)| *sequence > agent.sequence) {
            (agent.stream, agent.sequence) = (Some(stream), sequence);
            agent.write(now);
        }
        self.check_acknowledged(cluster)?;
        let Some(offer) = answer.state else { return Ok(()) };
        let signed = self.oracle.issued(offer.stream, offer.generation) == Some(&offer.state);
        let agent = &mut self.agents[cluster];
        if !agent.believes(&offer, signed) {
            return Ok(());
        }
        let before = agent.generation();
        let applies = agent.accept(&offer, now);
        self.oracle.check_generation(cluster, offer.stream, before, offer.generation)?;
        if applies {
            let epoch = self.agents[cluster].epoch;
            self.soon(2 * SECOND, 25 * SECOND, Moment::Applied(cluster, epoch));
        }
        Ok(())
    }

    pub(super) fn applied(&mut self, cluster: usize, epoch: u32) -> Result<(), Broken> {
        let (now, calm) = (self.now, self.calm());
        let agent = &mut self.agents[cluster];
        if agent.epoch != epoch {
            return Ok(());
        }
        if now < agent.off_until {
            let at = agent.off_until;
            self.at(at, Moment::Applied(cluster, epoch));
            return Ok(());
        }
        if !calm && self.chance.permille(self.plan.faults.crash) {
            // Starts again with what is on its disk.
            agent.epoch += 1;
            let epoch = agent.epoch;
            self.soon(5 * SECOND, 60 * SECOND, Moment::Applied(cluster, epoch));
            return Ok(());
        }
        let place = &self.plan.fleet[cluster];
        let mut again = false;
        for (position, entry) in
            agent.entries.iter_mut().enumerate().filter(|(_, entry)| entry.1 == Condition::Converging)
        {
            let assignment = self.plan.of_type[place.cluster_type][position];
            let fails = self.git.fails(&self.plan, place.environment, assignment, entry.0, cluster);
            entry.1 = match fails {
                None => Condition::Converged,
                Some(true) if !agent.tried.insert((position, entry.0)) => Condition::Converged,
                Some(passing) => {
                    again |= passing;
                    Condition::Failed
                }
            };
        }
        agent.write(now);
        if again {
            self.soon(30 * SECOND, 3 * MINUTE, Moment::Retry(cluster, epoch));
        }
        self.check_converged(cluster)
    }

    /// What failed for a cause that passes is tried again.
    pub(super) fn retry(&mut self, cluster: usize, epoch: u32) {
        let agent = &mut self.agents[cluster];
        if agent.epoch != epoch {
            return;
        }
        let place = &self.plan.fleet[cluster];
        for (position, entry) in agent.entries.iter_mut().enumerate().filter(|(_, entry)| entry.1 == Condition::Failed)
        {
            let assignment = self.plan.of_type[place.cluster_type][position];
            if self.git.fails(&self.plan, place.environment, assignment, entry.0, cluster) == Some(true) {
                entry.1 = Condition::Converging;
            }
        }
        agent.write(self.now);
        self.soon(2 * SECOND, 25 * SECOND, Moment::Applied(cluster, epoch));
    }

    /// Somebody between the hub and the agent tries.
    fn forge(&mut self, cluster: usize, answer: &mut Answer) {
        let Some(stream) = self.agents[cluster].stream else { return };
        let states = &self.db.states[stream];
        let generation = 1 + self.chance.below(states.len()) as u64;
        let mut state = states[generation as usize - 1].clone();
        let old = self.chance.permille(500);
        if !old && let Some(entry) = state.first_mut() {
            entry[0] += 1;
        }
        let generation = if old { generation } else { states.len() as u64 + 1 };
        answer.state = Some(Offer { stream, generation, state });
    }

    fn send(&mut self, message: Message) -> u64 {
        self.order += 1;
        self.sent.insert(self.order, message);
        self.order
    }

    fn lost(&mut self) -> bool {
        !self.calm() && self.chance.permille(self.plan.faults.loss)
    }
}

pub(super) fn agent(plan: &Plan, number: usize, chance: &mut Chance) -> Agent {
    let mut key = [0; 32];
    for (place, byte) in key.iter_mut().enumerate() {
        *byte = (mix_all(&[plan.seed, number as u64, place as u64]) & 0xff) as u8;
    }
    Agent {
        id: kedge_model::wire::ClusterId::of_public_key(&key),
        off_until: 0,
        cut_until: 0,
        interval: chance.between(8 * SECOND, 20 * SECOND),
        clock: if chance.permille(200) { chance.between(-900 * MINUTE, 900 * MINUTE) } else { 0 },
        sequence: 0,
        stream: None,
        generations: BTreeMap::new(),
        entries: Vec::new(),
        version: 0,
        written_at: 0,
        acknowledged: 0,
        epoch: 0,
        tried: Default::default(),
    }
}
