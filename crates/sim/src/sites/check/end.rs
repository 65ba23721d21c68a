//! What must hold long after the faults: nothing is lost that a living peer had, all have the same documents and run the newest state, the hub
//! hears the truth of all, and rest is quiet.

use std::collections::BTreeMap;

use kedge_model::wire::{ClusterId, DesiredState, Generation};
use kedge_peer::{Name, Node, Version};

use super::super::agent::Agent;
use super::super::hub::read;
use super::super::world::{COUNTED, World};
use crate::Broken;
use crate::plan::{MINUTE, SECOND};

/// Requests of one agent in a minute, when nothing happens: with the uplink, with another, for its sign of life, and some for misbehaving
/// peers.
const IDLE_MOST: u64 = 8;
/// The hub heard of everybody within this, also where an uplink swallows signs of life: a second carrier's turn comes every few minutes.
const TOLD_WITHIN: i64 = 12 * MINUTE;

impl World {
    /// Remembers what living agents have.
    pub fn keep(&mut self) {
        let mut kept: BTreeMap<(usize, Name), Version> = BTreeMap::new();
        for agent in self.agents.iter().filter(|agent| !self.is_retired(&agent.id)) {
            for (name, version, _) in agent.node.iter().flat_map(|node| node.store().documents()) {
                let newest = kept.entry((agent.site, name.clone())).or_default();
                *newest = (*newest).max(version);
            }
        }
        self.notes.kept = kept;
    }

    /// Long after the faults.
    pub fn check_end(&mut self) -> Result<(), Broken> {
        let (mut idle, mut silent) = (0, 0);
        for site in 0..self.sites {
            let members: Vec<(usize, &Agent, &Node)> = self.honest(site).collect();
            for (one, agent, node) in &members {
                for (other, peer, theirs) in &members {
                    self.check_equal((*one, agent, node), (*other, peer, theirs))?;
                }
                self.check_kept(*one, agent, node)?;
                self.check_rest(*one, agent)?;
                idle = idle.max(agent.requests);
            }
            let online: Vec<&Agent> = members.iter().map(|(_, agent, _)| *agent).filter(|agent| agent.online).collect();
            for (index, agent, node) in members.iter().filter(|_| !online.is_empty()) {
                self.check_status(*index, agent)?;
                self.check_told(*index, agent, node)?;
                self.check_newest(*index, agent, &online)?;
                silent = silent.max(self.silent(agent) / SECOND);
            }
        }
        (self.report.idle, self.report.silent) = (idle, u64::try_from(silent).unwrap_or_default());
        Ok(())
    }

    /// Those of a site that follow the rules and that the hub hasn't retired.
    fn honest(&self, site: usize) -> impl Iterator<Item = (usize, &Agent, &Node)> {
        let all = self.of_site(site).map(|index| (index, &self.agents[index]));
        let members = all.filter(|(_, agent)| agent.misbehaving.is_none() && !self.is_retired(&agent.id));
        members.filter_map(|(index, agent)| Some((index, agent, agent.node.as_ref()?)))
    }

    fn check_equal(
        &self,
        (one, agent, node): (usize, &Agent, &Node),
        (other, peer, theirs): (usize, &Agent, &Node),
    ) -> Result<(), Broken> {
        let (mine, yours) = (self.summary(node, &peer.id), self.summary(theirs, &agent.id));
        if mine == yours {
            return Ok(());
        }
        let only = |a: &BTreeMap<Name, Version>, b: &BTreeMap<Name, Version>| {
            let differ = a.iter().filter(|(name, version)| b.get(*name) != Some(*version));
            differ.map(|(name, version)| format!("{name} {version:?}")).collect::<Vec<_>>()
        };
        let (left, right) = (only(&mine, &yours), only(&yours, &mine));
        Err(Broken(format!("agents {one} and {other} differ: {left:?} and {right:?}")))
    }

    /// What a misbehaving peer wrote as itself isn't promised to anybody.
    fn summary(&self, node: &Node, to: &ClusterId) -> BTreeMap<Name, Version> {
        let all = node.store().summary(to).into_iter();
        all.filter(|(name, _)| !name.cluster().is_some_and(|cluster| self.misbehaves(cluster))).collect()
    }

    fn misbehaves(&self, cluster: &ClusterId) -> bool {
        self.places.get(cluster).is_some_and(|place| self.agents[*place].misbehaving.is_some())
    }

    fn check_kept(&self, index: usize, agent: &Agent, node: &Node) -> Result<(), Broken> {
        let (store, site) = (node.store(), agent.site);
        let first = (site, Name::Keys(0));
        for ((_, name), version) in self.notes.kept.range(first..).take_while(|((of, _), _)| *of == site) {
            let owed = match name {
                Name::Keys(set) => {
                    if store.keys().version < *set {
                        return Err(Broken(format!("agent {index} of site {site} lacks {name}")));
                    }
                    false
                }
                // Who moved to another stream may not keep it for others: then it is the hub's to bring.
                Name::State(stream) => {
                    let follows = store.member(&agent.id).is_some_and(|own| own.stream == *stream);
                    follows && self.honest(site).any(|(_, _, other)| other.store().version(name) >= Some(*version))
                }
                Name::Membership(cluster) => !store.is_gone(cluster) && !self.is_retired(cluster),
                // Of two keys of the hub the later one's document replaces the other's.
                Name::Holds { of, by } => {
                    let writer = self.of_site(site).find(|place| self.agents[*place].id.key_id() == *by);
                    writer.is_some_and(|writer| !self.is_retired(&self.agents[writer].id)) && !self.is_retired(of)
                }
                Name::Turn(cluster) | Name::Status(cluster) => !self.is_retired(cluster),
            };
            if owed && store.version(name).is_none_or(|has| has < *version) {
                return Err(Broken(format!("agent {index} of site {site} lacks {name} {version:?}")));
            }
        }
        Ok(())
    }

    fn check_rest(&self, index: usize, agent: &Agent) -> Result<(), Broken> {
        let most = IDLE_MOST * u64::try_from(COUNTED / MINUTE).unwrap_or_default();
        if agent.requests > most {
            return Err(Broken(format!("agent {index} sent {} requests in ten quiet minutes", agent.requests)));
        }
        Ok(())
    }

    /// Somebody honest of the site reaches the hub: so the hub knows of all.
    fn check_status(&self, index: usize, agent: &Agent) -> Result<(), Broken> {
        let own = agent.disk.version();
        let known = self.hub.statuses.get(&agent.id).copied().unwrap_or_default();
        if known != own {
            return Err(Broken(format!("the hub knows {known:?} of agent {index}, whose status is {own:?}")));
        }
        let silent = self.silent(agent);
        if silent > TOLD_WITHIN {
            return Err(Broken(format!("the hub hasn't heard of agent {index} for {} s", silent / SECOND)));
        }
        // Holds on a misbehaving peer that never says who it is can't be judged by anybody.
        let owed = agent.disk.holds.iter().filter(|(on, _)| !self.is_retired(on) && !self.misbehaves(on));
        for (on, (sequence, _)) in owed {
            let known = self.hub.site_holds.get(&(*on, agent.id.key_id())).copied().unwrap_or_default();
            if known != *sequence {
                return Err(Broken(format!(
                    "the hub knows {known} of agent {index}'s holds on {on}, which wrote {sequence}"
                )));
            }
        }
        Ok(())
    }

    fn silent(&self, agent: &Agent) -> i64 {
        self.time().0 - self.hub.contacts.get(&agent.id).copied().unwrap_or_default().0
    }

    /// And all know what the hub says of them.
    fn check_told(&self, index: usize, agent: &Agent, node: &Node) -> Result<(), Broken> {
        let (newest, _) = &self.hub.memberships[&agent.id];
        let version = node.store().version(&Name::Membership(agent.id)).unwrap_or_default();
        if version.0 != newest.sequence.0 {
            return Err(Broken(format!("agent {index} doesn't know its newest membership")));
        }
        if let Some((sequence, envelope)) = self.hub.holds.get(&agent.id)
            && !node.store().documents().any(|(_, _, known)| known == envelope)
        {
            return Err(Broken(format!("agent {index} doesn't know the hub's holds {sequence}")));
        }
        Ok(())
    }

    /// Who may fetch a stream's state and reaches the hub brings it to all that follow it.
    fn check_newest(&self, index: usize, agent: &Agent, online: &[&Agent]) -> Result<(), Broken> {
        let stream = &self.hub.memberships[&agent.id].0.stream;
        let brings = |carrier: &&Agent| {
            let (own, _) = &self.hub.memberships[&carrier.id];
            own.relay || own.stream == *stream
        };
        let newest = self.hub.states.get(stream).map_or(0, |(generation, _)| *generation);
        let runs = agent.disk.state.as_ref().map(read::<DesiredState>).transpose()?;
        let runs = runs.map_or(Generation(0), |state| state.generation).0;
        if online.iter().any(brings) && runs != newest {
            return Err(Broken(format!("agent {index} runs generation {runs} of {stream}, the newest is {newest}")));
        }
        Ok(())
    }
}
