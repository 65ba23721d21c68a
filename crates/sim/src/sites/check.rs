//! What must hold in every simulated site, asked after every step: nobody holds or runs what its owner didn't sign, no version goes back, nothing
//! vanishes without a signed word, nobody honest is blamed. What must hold at the end is in `end`.

mod end;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kedge_model::wire::{ClusterId, DesiredState, Stream};
use kedge_peer::{DocumentStore, Misbehavior, Name, Node, Version};

use super::hub::read;
use super::world::World;
use crate::Broken;

/// The checks' own notes: they know what was there without asking who held it.
#[derive(Default)]
pub(super) struct Notes {
    /// What each running agent held after its last step.
    stores: BTreeMap<usize, BTreeMap<Name, Version>>,
    /// The newest generation that each agent ran of each stream; a restart changes nothing.
    ran: BTreeMap<(usize, Stream), u64>,
    /// What living agents had when the faults ended, by site.
    kept: BTreeMap<(usize, Name), Version>,
}

impl Notes {
    /// Its power was cut: what wasn't on disk is gone.
    pub fn forget(&mut self, agent: usize) {
        self.stores.remove(&agent);
    }
}

impl World {
    /// After every step of an agent.
    pub fn check_store(&mut self, agent: usize) -> Result<(), Broken> {
        let Some(store) = self.agents[agent].node.as_ref().map(Node::store) else { return Ok(()) };
        let before = self.notes.stores.entry(agent).or_default();
        if before
            .iter()
            .map(|(name, version)| (name, *version))
            .eq(store.documents().map(|(name, version, _)| (name, version)))
        {
            return Ok(());
        }
        let before = std::mem::take(before);
        for (name, version, _) in store.documents().filter(|(name, version, _)| before.get(name) != Some(version)) {
            self.check_taken(agent, store, name)?;
            if let Some(was) = before.get(name).filter(|was| **was > version) {
                return Err(Broken(format!("agent {agent} went back with {name} from {was:?} to {version:?}")));
            }
        }
        for name in before.keys().filter(|name| store.version(name).is_none()) {
            if !self.may_vanish(agent, store, &before, name) {
                return Err(Broken(format!("agent {agent} lost {name}, and nobody signed that it is over")));
            }
        }
        let now = store.documents().map(|(name, version, _)| (name.clone(), version)).collect();
        self.notes.stores.insert(agent, now);
        Ok(())
    }

    fn check_taken(&self, agent: usize, store: &DocumentStore, name: &Name) -> Result<(), Broken> {
        if !store.get(name).is_some_and(|envelope| self.hub.was_signed(envelope)) {
            return Err(Broken(format!("agent {agent} took {name}, which its owner never signed")));
        }
        if let (Name::State(stream), Some(own)) = (name, store.member(&self.agents[agent].id))
            && !own.relay
            && own.stream != *stream
        {
            return Err(Broken(format!("agent {agent} took {name} and follows {}", own.stream)));
        }
        Ok(())
    }

    /// Nothing goes because somebody doesn't have it: a signed document says so.
    fn may_vanish(&self, agent: usize, store: &DocumentStore, before: &BTreeMap<Name, Version>, name: &Name) -> bool {
        match name {
            Name::Keys(version) => version + kedge_peer::pace::MAX_KEY_SETS as u64 <= store.keys().version,
            Name::Membership(_) => false,
            // A membership says that it, or the last one that it relayed for, follows another stream; the next may say otherwise again.
            Name::State(_) => {
                let (me, relay) =
                    (self.agents[agent].id, store.member(&self.agents[agent].id).is_some_and(|own| own.relay));
                let counts = |name: &Name| matches!(name, Name::Membership(cluster) if relay || *cluster == me);
                let mut changed = store.documents().filter(|(name, version, _)| before.get(*name) != Some(version));
                changed.any(|(name, ..)| counts(name))
            }
            Name::Turn(cluster) | Name::Status(cluster) => self.is_retired(cluster),
            Name::Holds { of, by } => {
                let writer = self.agents.iter().find(|agent| agent.id.key_id() == *by);
                // The hub is one writer, whichever of its keys signs.
                let replaced = writer.is_none() && store.documents().any(|(name, ..)| self.is_hubs_hold(name, of));
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

    pub fn check_drop(&self, agent: usize, peer: &ClusterId, why: &Misbehavior) -> Result<(), Broken> {
        match self.places.get(peer).map(|place| &self.agents[*place]) {
            Some(other) if other.misbehaving.is_some() => Ok(()),
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
