//! What becomes of messages between agents: they arrive late, twice or not at all, and misbehaving peers answer what they like.

use kedge_model::wire::ClusterId;
use kedge_peer::{Action, Message};

use super::super::misbehaving::misbehaving_answer;
use super::{Moment, World};
use crate::Broken;
use crate::plan::{MINUTE, SECOND};

/// A connection to who is off or cut away fails after this.
const TIMEOUT: i64 = 5 * SECOND;
/// Requests that come twice where the network is bad, in a thousand.
const REPEATED: u64 = 30;

impl World {
    pub(super) fn send(&mut self, from: usize, to: ClusterId, message: Message) {
        self.agents[from].requests += 1;
        self.report.messages += 1;
        let life = self.agents[from].life;
        let Some(to) = self.places.get(&to).copied() else { return };
        if !self.is_connected(from, to) || self.is_lost() {
            self.report.lost += 1;
            return self.at(self.now + TIMEOUT, Moment::Answer { to: from, life, from: to, message: None });
        }
        let at = self.now + self.chance.between(1, 50);
        self.at(at, Moment::Request { from, life, to, message: Box::new(message) });
    }

    pub(super) fn arrive(&mut self, from: usize, life: u64, to: usize, message: Message) -> Result<(), Broken> {
        let sender = self.agents[from].id;
        let answer = if self.agents[to].misbehaving.is_some() {
            let now = self.time();
            let asked = Some(message.digest.as_str());
            Some(misbehaving_answer(&self.agents[to], (&sender, asked), &self.hub, &mut self.chance, now)?)
        } else {
            let repeated = self.loss > 0 && self.chance.permille(REPEATED);
            let copy = repeated.then(|| message.clone());
            let heard: Option<Vec<(Option<Message>, Vec<Action>)>> = self.with(to, |node, now| {
                copy.map(|copy| node.heard(sender, copy, now))
                    .into_iter()
                    .chain([node.heard(sender, message, now)])
                    .collect()
            })?;
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

    /// An answer to a process that is gone is nobody's.
    pub(super) fn answer(
        &mut self,
        to: usize,
        life: u64,
        from: usize,
        message: Option<Box<Message>>,
    ) -> Result<(), Broken> {
        let peer = self.agents[from].id;
        if self.agents[to].life != life {
            return Ok(());
        }
        let actions = self.with(to, |node, now| match message {
            Some(message) => node.answered(peer, *message, now),
            None => node.failed(peer, now),
        })?;
        self.follow(to, actions.unwrap_or_default())
    }

    fn is_lost(&mut self) -> bool {
        self.chance.permille(self.loss)
    }

    fn is_connected(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.agents[one], &self.agents[other]);
        one.site == other.site && one.part == other.part && (other.node.is_some() || other.misbehaving.is_some())
    }

    pub(super) fn misbehave(&mut self, misbehaving: usize) -> Result<(), Broken> {
        let victims: Vec<usize> =
            self.of_site(self.agents[misbehaving].site).filter(|other| *other != misbehaving).collect();
        if let Some(victim) =
            self.chance.pick(&victims).copied().filter(|victim| self.is_connected(misbehaving, *victim))
        {
            let (now, target, sender) = (self.time(), self.agents[victim].id, self.agents[misbehaving].id);
            let message =
                misbehaving_answer(&self.agents[misbehaving], (&target, None), &self.hub, &mut self.chance, now)?;
            if let Some((_, actions)) = self.with(victim, |node, now| node.heard(sender, message, now))? {
                self.follow(victim, actions)?;
            }
        }
        let next = self.now + self.chance.between(5 * SECOND, MINUTE);
        self.at(next, Moment::Misbehave(misbehaving));
        Ok(())
    }
}
