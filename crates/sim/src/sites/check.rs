//! What must hold in every simulated site, asked after every step: nobody holds or runs what its owner didn't sign, no version goes back, nothing
//! vanishes without a signed word, nobody honest is blamed. What must hold at the end is in `end`.

mod end;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kedge_model::wire::{ClusterId, DesiredState, Stream};
use kedge_peer::{Lie, Name, Node, Shelf, Version};

use super::hub::read;
use super::world::World;
use crate::Broken;

/// The checks' own notes: they know what was there without asking who held it.
#[derive(Default)]
pub(super) struct Notes {
    /// What each running agent held after its last step.
    shelves: BTreeMap<usize, BTreeMap<Name, Version>>,
    /// The newest generation that each agent ran of each stream; a restart changes nothing.
    ran: BTreeMap<(usize, Stream), u64>,
    /// What living agents had when the faults ended, by site.
    kept: BTreeMap<(usize, Name), Version>,
}

impl Notes {
    /// Its power was cut: what wasn't on disk is gone.
    pub fn forget(&mut self, agent: usize) {
        self.shelves.remove(&agent);
    }
}

impl World {
    /// After every step of an agent.
    pub fn check_shelf(&mut self, agent: usize) -> Result<(), Broken> {
        let Some(shelf) = self.agents[agent].node.as_ref().map(Node::shelf) else { return Ok(()) };
        let before = self.notes.shelves.entry(agent).or_default();
        if before
            .iter()
            .map(|(name, version)| (name, *version))
            .eq(shelf.documents().map(|(name, version, _)| (name, version)))
        {
            return Ok(());
        }
        let before = std::mem::take(before);
        for (name, version, _) in shelf.documents().filter(|(name, version, _)| before.get(name) != Some(version)) {
            self.check_taken(agent, shelf, name)?;
            if let Some(was) = before.get(name).filter(|was| **was > version) {
                return Err(Broken(format!("agent {agent} went back with {name} from {was:?} to {version:?}")));
            }
        }
        for name in before.keys().filter(|name| shelf.version(name).is_none()) {
            if !self.may_vanish(agent, shelf, &before, name) {
                return Err(Broken(format!("agent {agent} lost {name}, and nobody signed that it is over")));
            }
        }
        let now = shelf.documents().map(|(name, version, _)| (name.clone(), version)).collect();
        self.notes.shelves.insert(agent, now);
        Ok(())
    }

    fn check_taken(&self, agent: usize, shelf: &Shelf, name: &Name) -> Result<(), Broken> {
        if !shelf.get(name).is_some_and(|envelope| self.hub.was_signed(envelope)) {
            return Err(Broken(format!("agent {agent} took {name}, which its owner never signed")));
        }
        if let (Name::State(stream), Some(own)) = (name, shelf.member(&self.agents[agent].id))
            && !own.relay
            && own.stream != *stream
        {
            return Err(Broken(format!("agent {agent} took {name} and follows {}", own.stream)));
        }
        Ok(())
    }

    /// Nothing goes because somebody doesn't have it: a signed document says so.
    fn may_vanish(&self, agent: usize, shelf: &Shelf, before: &BTreeMap<Name, Version>, name: &Name) -> bool {
        match name {
            Name::Keys(version) => version + kedge_peer::pace::MAX_KEY_SETS as u64 <= shelf.keys().version,
            Name::Membership(_) => false,
            // A membership says that it, or the last one that it relayed for, follows another stream; the next may say otherwise again.
            Name::State(_) => {
                let (me, relay) =
                    (self.agents[agent].id, shelf.member(&self.agents[agent].id).is_some_and(|own| own.relay));
                let counts = |name: &Name| matches!(name, Name::Membership(cluster) if relay || *cluster == me);
                let mut changed = shelf.documents().filter(|(name, version, _)| before.get(*name) != Some(version));
                changed.any(|(name, ..)| counts(name))
            }
            Name::Turn(cluster) | Name::Status(cluster) => self.is_retired(cluster),
            Name::Holds { of, by } => {
                let writer = self.agents.iter().find(|agent| agent.id.key_id() == *by);
                // The hub is one writer, whichever of its keys signs.
                let replaced = writer.is_none() && shelf.documents().any(|(name, ..)| self.is_hubs_hold(name, of));
                replaced || self.is_retired(of) || writer.is_some_and(|writer| self.is_retired(&writer.id))
            }
        }
    }

    /// What an agent runs: signed by the hub, of its own stream, never older than before.
    pub fn check_runs(&mut self, agent: usize) -> Result<(), Broken> {
        let disk = &self.agents[agent].disk;
        let Some(envelope) = &disk.state else { return Ok(()) };
        if !self.hub.was_signed(envelope) {
            return Err(Broken(format!("agent {agent} runs what the hub never signed")));
        }
        let DesiredState { stream, generation, .. } = read(envelope)?;
        if stream != disk.stream {
            return Err(Broken(format!("agent {agent} runs {stream} and follows {}", disk.stream)));
        }
        let ran = self.notes.ran.entry((agent, stream)).or_default();
        if generation.0 < *ran {
            return Err(Broken(format!("agent {agent} went back from generation {ran} to {generation}")));
        }
        *ran = generation.0;
        Ok(())
    }

    pub fn check_drop(&self, agent: usize, peer: &ClusterId, why: &Lie) -> Result<(), Broken> {
        match self.places.get(peer).map(|place| &self.agents[*place]) {
            Some(other) if other.liar.is_some() => Ok(()),
            _ => Err(Broken(format!("agent {agent} dropped {peer}, which is honest: {why}"))),
        }
    }

    fn is_hubs_hold(&self, name: &Name, on: &ClusterId) -> bool {
        matches!(name, Name::Holds { of, by } if of == on && self.agents.iter().all(|agent| agent.id.key_id() != *by))
    }

    fn is_retired(&self, cluster: &ClusterId) -> bool {
        self.hub.memberships.get(cluster).is_some_and(|(membership, _)| membership.retired)
    }
}
