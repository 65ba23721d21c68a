//! What goes wrong, and what people and the hub change meanwhile.

use kedge_model::wire::{ClusterId, Timestamp};

use super::{CALM, Moment, STREAMS, World, stream_of};
use crate::Broken;
use crate::plan::{MINUTE, SECOND};

impl World {
    pub(super) fn fault(&mut self, site: usize) -> Result<(), Broken> {
        let members = self.of_site(site);
        let agent = members.start + self.chance.below(members.len());
        match self.chance.below(6) {
            0 => {
                self.report.splits += 1;
                for member in members {
                    self.agents[member].part = u8::from(self.chance.permille(500));
                }
            }
            1 => members.for_each(|member| self.agents[member].part = 0),
            2 | 3 => self.agents[agent].online = self.chance.permille(400),
            _ => self.die(agent)?,
        }
        Ok(())
    }

    /// It comes back within a quarter of an hour, with what its disk has.
    fn die(&mut self, agent: usize) -> Result<(), Broken> {
        self.report.restarts += 1;
        self.agents[agent].stop();
        self.notes.forget(agent);
        let back = (self.now + self.chance.between(SECOND, 15 * MINUTE)).min(CALM);
        self.at(back, Moment::Start(agent));
        let id = self.agents[agent].id;
        // Some notice at once that it is gone, and find it again later.
        for other in self.of_site(self.agents[agent].site) {
            if self.chance.permille(300) {
                self.with(other, |node, _| node.lost(id))?;
                self.at(back + SECOND, Moment::Start(other));
            }
        }
        Ok(())
    }

    pub(super) fn change(&mut self, site: usize) -> Result<(), Broken> {
        let (now, members) = (self.time(), self.of_site(site));
        let agent = members.start + self.chance.below(members.len());
        let id = self.agents[agent].id;
        match self.chance.below(17) {
            0 => self.hub.hold(id, now)?,
            1 => self.hub.change(&id, |membership| membership.relay = !membership.relay)?,
            2 => {
                let stream = stream_of(self.chance.below(STREAMS.len()));
                self.hub.change(&id, |membership| membership.stream = stream)?;
            }
            3 if self.chance.permille(150) => self.hub.change(&id, |membership| membership.retired = true)?,
            4 | 5 if self.agents[agent].node.is_some() => {
                let target: ClusterId = self.agents[members.start + self.chance.below(members.len())].id;
                let envelope = self.agents[agent].write_hold(target, now)?;
                self.hub.remember(&envelope);
                self.put(agent, vec![envelope])?;
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

    /// However many sites there are, keys change and states are published as often.
    pub(super) fn change_fleet(&mut self) -> Result<(), Broken> {
        let now = self.time();
        match self.chance.below(3) {
            0 => self.hub.rotate(self.seed, now),
            _ => {
                let stream = stream_of(self.chance.below(STREAMS.len()));
                self.hub.publish(&stream, now)
            }
        }
    }

    /// No more faults: all run, all cables are whole. Who reaches the hub stays as it is, and misbehaving peers go on.
    pub(super) fn calm(&mut self) -> Result<(), Broken> {
        self.loss = 0;
        self.agents.iter_mut().for_each(|agent| agent.part = 0);
        self.keep();
        for agent in 0..self.agents.len() {
            self.start(agent)?;
        }
        Ok(())
    }
}
