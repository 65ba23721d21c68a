//! What a host's driver does around its node: starts it, does what it wants done, asks the hub, and keeps what concerns itself.

use kedge_model::wire::{ClusterId, Envelope};
use kedge_peer::{Action, Name, Node, Taken};

use super::{World, site_name};
use crate::Broken;
use crate::chance::mix_all;
use crate::plan::MINUTE;

const PRESENCE_EVERY: i64 = 2 * MINUTE;

impl World {
    pub(super) fn start(&mut self, agent: usize) -> Result<(), Broken> {
        let now = self.time();
        let (site, seed) = (self.agents[agent].site, mix_all(&[self.seed, agent as u64]));
        if self.agents[agent].node.is_none() {
            self.agents[agent].start(&site_name(site), seed, now);
        }
        let others: Vec<ClusterId> = self.of_site(site).map(|other| self.agents[other].id).collect();
        self.with(agent, |node, now| others.iter().for_each(|other| node.found(*other, now)))?;
        self.poll(agent)
    }

    pub(super) fn follow(&mut self, agent: usize, actions: Vec<Action>) -> Result<(), Broken> {
        for action in actions {
            match action {
                Action::Send { to, message } => self.send(agent, to, message),
                Action::Took(name) => {
                    self.report.taken += 1;
                    self.took(agent, &name)?;
                }
                Action::Carry(signs) => self.carry(agent, &signs)?,
                Action::Upload(envelope) => {
                    self.agents[agent].uploads.push(envelope);
                    self.upload(agent)?;
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

    /// What an agent does every few seconds: it asks the hub, if it reaches it, and else says that it lives.
    pub(super) fn poll(&mut self, agent: usize) -> Result<(), Broken> {
        let (now, one) = (self.time(), &self.agents[agent]);
        let Some(store) = one.node.as_ref().map(Node::store) else { return Ok(()) };
        // Holds that couldn't be judged at the start: now their target is known.
        let judged = one.disk.holds.iter().filter(|(on, _)| store.member(on).is_some());
        let mut news: Vec<Envelope> = judged.map(|(_, (_, envelope))| envelope.clone()).collect();
        let (id, online) = (one.id, one.online);
        if online {
            news.extend(self.hub.news(&id, one.disk.keys.version, |_| true));
            if let Some(status) = one.disk.status.clone().filter(|_| self.hub.lacks(&id, one.disk.version())) {
                self.hub.take(&status)?;
            }
            self.hub.met(id, now);
            self.with(agent, |node, now| node.reach(Some(now)))?;
            self.upload(agent)?;
        } else if now.0 - PRESENCE_EVERY >= one.said.0 {
            let presence = one.presence(now)?;
            self.hub.remember(&presence);
            self.agents[agent].said = now;
            self.with(agent, |node, _| node.presence(presence))?;
        }
        self.put(agent, news)
    }

    pub(super) fn put(&mut self, agent: usize, envelopes: Vec<Envelope>) -> Result<(), Broken> {
        for envelope in envelopes {
            // The hub answers with news only.
            let known = |node: &Node| node.store().documents().any(|(_, _, known)| *known == envelope);
            if self.agents[agent].node.as_ref().is_some_and(known) {
                continue;
            }
            if let Some(Ok(Taken::New(name))) = self.with(agent, |node, _| node.put(envelope))? {
                self.took(agent, &name)?;
            }
        }
        Ok(())
    }

    /// A new document: what concerns oneself goes to disk.
    fn took(&mut self, agent: usize, name: &Name) -> Result<(), Broken> {
        let one = &mut self.agents[agent];
        let Some(store) = one.node.as_ref().map(Node::store) else { return Ok(()) };
        let Some(envelope) = store.get(name).cloned() else { return Ok(()) };
        match name {
            Name::Keys(_) => {
                one.disk.keys = store.keys().clone();
                one.disk.chain.push(envelope);
            }
            Name::Membership(cluster) if *cluster == one.id => one.disk.join(store.member(&one.id), envelope),
            Name::State(_) => {}
            _ => return Ok(()),
        }
        one.run_newest();
        self.check_runs(agent)
    }

    /// The site's question to the hub.
    fn carry(&mut self, agent: usize, signs: &[Envelope]) -> Result<(), Broken> {
        if !self.agents[agent].online {
            self.with(agent, |node, now| node.not_carried(signs, now))?;
            return Ok(());
        }
        let own = self.hub.memberships[&self.agents[agent].id].0.clone();
        let (mut news, mut lacks) = (Vec::new(), Vec::new());
        for sign in signs {
            let presence = self.hub.read(sign)?;
            if self.hub.hear(&presence) {
                lacks.push(presence.cluster());
            }
            let keys = presence.poll.key_set;
            news.extend(self.hub.news(&presence.cluster(), keys, |stream| own.relay || own.stream == *stream));
        }
        self.put(agent, news)?;
        self.with(agent, |node, _| lacks.into_iter().for_each(|cluster| node.lacks(cluster)))?;
        Ok(())
    }

    /// Holds wait for the hub; for status documents it asks again.
    fn upload(&mut self, agent: usize) -> Result<(), Broken> {
        let one = &mut self.agents[agent];
        let waiting = std::mem::take(&mut one.uploads);
        if one.online {
            return waiting.iter().try_for_each(|envelope| self.hub.take(envelope));
        }
        one.uploads =
            waiting.into_iter().filter(|envelope| envelope.payload_type != kedge_status::PAYLOAD_TYPE).collect();
        Ok(())
    }
}
