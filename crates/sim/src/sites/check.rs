//! What must hold in every simulated site: nobody takes what its owner didn't sign, nobody honest is blamed, nothing is lost that a living peer
//! has, all end with the same documents, the hub hears the truth, and rest is quiet.

use std::collections::BTreeMap;

use kedge_model::wire::ClusterId;
use kedge_peer::{Lie, Name, Node, Version};

use super::agent::Agent;
use super::world::{COUNTED, World};
use crate::Broken;
use crate::plan::MINUTE;

/// The newest of a document that a living agent of a site had.
pub(super) struct Kept {
    site: usize,
    name: Name,
    version: Version,
}

/// Requests of one agent in a minute, when nothing happens: with the uplink, with another, for its sign of life, and some for liars.
const IDLE_MOST: u64 = 8;
/// The hub heard of everybody within this, also where an uplink swallows signs of life: a second carrier's turn comes every few minutes.
const TOLD_WITHIN: i64 = 12 * MINUTE;

impl World {
    /// Called for every document that an agent took, from whomever.
    pub fn check_taken(&self, agent: usize, name: &Name) -> Result<(), Broken> {
        let Some(shelf) = self.agents[agent].node.as_ref().map(Node::shelf) else { return Ok(()) };
        let Some(envelope) = shelf.get(name) else { return Ok(()) };
        if !self.hub.was_signed(envelope) {
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

    pub fn check_drop(&self, agent: usize, peer: &ClusterId, why: &Lie) -> Result<(), Broken> {
        match self.agents.iter().find(|other| other.id == *peer) {
            Some(other) if other.liar.is_some() => Ok(()),
            _ => Err(Broken(format!("agent {agent} dropped {peer}, which is honest: {why}"))),
        }
    }

    /// Remembers what living agents have.
    pub fn keep(&mut self) {
        let mut kept: BTreeMap<(usize, Name), Version> = BTreeMap::new();
        for agent in self.agents.iter().filter(|agent| !self.is_retired(&agent.id)) {
            for (name, version, _) in agent.node.iter().flat_map(|node| node.shelf().documents()) {
                let newest = kept.entry((agent.site, name.clone())).or_default();
                *newest = (*newest).max(version);
            }
        }
        self.kept = kept.into_iter().map(|((site, name), version)| Kept { site, name, version }).collect();
    }

    /// Long after the faults.
    pub fn check_end(&mut self) -> Result<(), Broken> {
        for site in 0..self.sites {
            let members: Vec<(usize, &Agent, &Node)> = self.honest(site).collect();
            for (one, agent, node) in &members {
                for (other, peer, theirs) in &members {
                    let (mine, yours) = (self.summary(node, &peer.id), self.summary(theirs, &agent.id));
                    if mine != yours {
                        let only = |a: &BTreeMap<Name, Version>, b: &BTreeMap<Name, Version>| {
                            a.iter()
                                .filter(|(name, version)| b.get(*name) != Some(*version))
                                .map(|(name, version)| format!("{name} {version:?}"))
                                .collect::<Vec<_>>()
                        };
                        let (left, right) = (only(&mine, &yours), only(&yours, &mine));
                        return Err(Broken(format!("agents {one} and {other} differ: {left:?} and {right:?}")));
                    }
                }
                self.check_kept(*one, agent, node)?;
                self.check_rest(*one, agent)?;
            }
            if members.iter().any(|(_, agent, _)| agent.online) {
                members.iter().try_for_each(|(index, agent, node)| self.check_truth(*index, agent, node))?;
            }
        }
        let idle = (0..self.sites).flat_map(|site| self.honest(site)).map(|(_, agent, _)| agent.requests).max();
        self.report.idle = idle.unwrap_or_default();
        Ok(())
    }

    /// Those of a site that follow the rules and that the hub hasn't retired.
    fn honest(&self, site: usize) -> impl Iterator<Item = (usize, &Agent, &Node)> {
        let honest =
            self.agents.iter().enumerate().filter(move |(_, agent)| agent.site == site && agent.liar.is_none());
        let members = honest.filter(|(_, agent)| !self.hub.memberships[&agent.id].0.retired);
        members.filter_map(|(index, agent)| Some((index, agent, agent.node.as_ref()?)))
    }

    /// What a liar wrote as itself isn't promised to anybody.
    fn summary(&self, node: &Node, to: &ClusterId) -> BTreeMap<Name, Version> {
        let of_liar = |name: &Name| {
            let liars = self.agents.iter().filter(|agent| agent.liar.is_some());
            liars.map(|agent| agent.id).any(|liar| name.cluster() == Some(&liar))
        };
        node.shelf().summary(to).into_iter().filter(|(name, _)| !of_liar(name)).collect()
    }

    fn check_kept(&self, index: usize, agent: &Agent, node: &Node) -> Result<(), Broken> {
        let shelf = node.shelf();
        for Kept { site, name, version } in self.kept.iter().filter(|kept| kept.site == agent.site) {
            let owed = match name {
                Name::Keys(set) => {
                    if shelf.keys().version < *set {
                        return Err(Broken(format!("agent {index} of site {site} lacks {name}")));
                    }
                    false
                }
                // Who moved to another stream may not keep it for others: then it is the hub's to bring.
                Name::State(stream) => {
                    let follows = shelf.member(&agent.id).is_some_and(|own| own.stream == *stream);
                    follows && self.honest(*site).any(|(_, _, other)| other.shelf().version(name) >= Some(*version))
                }
                Name::Membership(cluster) => !shelf.is_gone(cluster) && !self.is_retired(cluster),
                // Of two keys of the hub the later one's document replaces the other's.
                Name::Holds { of, by } => {
                    let writer = self.agents.iter().find(|agent| agent.id.key_id() == *by);
                    writer.is_some_and(|writer| !self.is_retired(&writer.id)) && !self.is_retired(of)
                }
                Name::Turn(cluster) | Name::Status(cluster) => !self.is_retired(cluster),
            };
            if owed && shelf.version(name).is_none_or(|has| has < *version) {
                return Err(Broken(format!("agent {index} of site {site} lacks {name} {version:?}")));
            }
        }
        Ok(())
    }

    fn is_retired(&self, cluster: &ClusterId) -> bool {
        self.hub.memberships.get(cluster).is_some_and(|(membership, _)| membership.retired)
    }

    fn check_rest(&self, index: usize, agent: &Agent) -> Result<(), Broken> {
        let most = IDLE_MOST * u64::try_from(COUNTED / MINUTE).unwrap_or_default();
        if agent.requests > most {
            return Err(Broken(format!("agent {index} sent {} requests in ten quiet minutes", agent.requests)));
        }
        Ok(())
    }

    /// Somebody honest of the site reaches the hub: so the hub knows of all.
    fn check_truth(&self, index: usize, agent: &Agent, node: &Node) -> Result<(), Broken> {
        let own = Version(agent.disk.epoch, agent.disk.changes);
        let known = self.hub.statuses.get(&agent.id).copied().unwrap_or_default();
        if known != own {
            return Err(Broken(format!("the hub knows {known:?} of agent {index}, whose status is {own:?}")));
        }
        let contact = self.hub.contacts.get(&agent.id).copied().unwrap_or_default();
        if self.time().0 - contact.0 > TOLD_WITHIN {
            let silent = (self.time().0 - contact.0) / 1_000;
            return Err(Broken(format!("the hub hasn't heard of agent {index} for {silent} s")));
        }
        let (newest, _) = &self.hub.memberships[&agent.id];
        let version = node.shelf().version(&Name::Membership(agent.id)).unwrap_or_default();
        if version.0 != newest.sequence.0 {
            return Err(Broken(format!("agent {index} doesn't know its newest membership")));
        }
        Ok(())
    }
}
