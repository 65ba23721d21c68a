//! Who carries for the site, without votes: of those that reach the hub, relays first, then the lowest hash. And what the carrier brings up.

use kedge_model::wire::{ClusterId, Digest, Envelope, Timestamp};

use super::{Action, Node, Sign, after};
use crate::message::MAX_PRESENCES;
use crate::misbehavior::Misbehavior;
use crate::name::Name;
use crate::pace::{
    CARRY_EVERY, DOUBT_AFTER, FRESH, GOSSIP_ALONE_EVERY, MAX_PEERS, NEWS_AFTER, SECOND_WITHIN, UPLINK_FAILURES,
    UPLINK_OUT, UPLOAD_AFTER,
};

/// Signs of life that go with a question.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub envelopes: Vec<Envelope>,
    pub own: Option<Timestamp>,
    pub others: Vec<(ClusterId, Timestamp)>,
}

impl Node {
    pub(super) fn choose_uplink(&mut self, now: Timestamp) {
        let reached = self.contact.is_some_and(|contact| is_fresh(contact, now));
        let before = std::mem::replace(&mut self.reaches_hub, reached);
        if reached && !before {
            let me = self.settings.me;
            self.bring_holds_of(&me);
        }
        let me = (self.settings.carries && self.reaches_hub).then_some((self.settings.me, self.rank, false));
        let peers = self.peers.values().filter(|peer| {
            let view = &peer.view;
            peer.present
                && view.dropped.is_none()
                && view.contact.is_some_and(|contact| is_fresh(contact, now))
                && peer.out.is_none_or(|out| out <= now)
        });
        let candidates = peers.map(|peer| (peer.view.cluster, peer.rank, peer.hung.is_some_and(|until| until > now)));
        let members = candidates.chain(me).filter_map(|(cluster, rank, hung)| {
            let member = self.store.member(&cluster)?;
            Some((hung, !member.relay, rank, cluster))
        });
        let chosen = members.min().map(|(.., cluster)| cluster);
        if chosen == self.uplink {
            return;
        }
        self.uplink = chosen;
        // Whoever relied on the one before and hears of no other finds out soon.
        self.next_gossip = self.next_gossip.min(after(now, self.chance.around(GOSSIP_ALONE_EVERY)));
        // Who carries now, or that somebody is looked for, is worth telling at once.
        self.news.site = true;
        if chosen == Some(self.settings.me) {
            // What agents of the site wrote while nobody carried. Status documents the hub asks for itself, where it lacks them.
            let held = self.store.documents().filter(|(name, ..)| matches!(name, Name::Holds { .. }));
            let held: Vec<Name> = held.map(|(name, ..)| name.clone()).collect();
            self.uploads.waiting.extend(held.into_iter().filter(|name| self.store.is_from_here(name)));
        } else if let Some(chosen) = chosen {
            let at = after(now, self.chance.around(NEWS_AFTER));
            if let Some(peer) = self.peers.get_mut(&chosen) {
                peer.presence_sent = None;
                peer.soon(at);
            }
        }
    }

    /// Others that reached the hub lately: an uplink may lie about that, and swallow what it is given.
    pub(super) fn other_carriers(&self, now: Timestamp) -> Vec<ClusterId> {
        let others = self.peers.values().filter(|peer| {
            let lately = peer.view.contact.is_some_and(|contact| is_recent(contact, now));
            lately && peer.is_usable(now) && Some(peer.view.cluster) != self.uplink
        });
        others.map(|peer| peer.view.cluster).filter(|cluster| self.store.member(cluster).is_some()).collect()
    }

    /// The one of them that wasn't chosen for longest: by chance alone the same misbehaving peer would come again and again.
    pub(super) fn second_carrier(&mut self, now: Timestamp) -> Option<ClusterId> {
        let others = self.other_carriers(now);
        let count = others.len();
        let others = self.chance.some(others, count).into_iter();
        let chosen = others.min_by_key(|cluster| self.peers.get(cluster).and_then(|peer| peer.seconded))?;
        self.peers.get_mut(&chosen)?.seconded = Some(now);
        Some(chosen)
    }

    /// What the uplink brings to the hub now.
    pub(super) fn carry(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        // Not the uplink alone: what the hub asked for, and what somebody trusted to a second carrier, goes up through whoever has it.
        if !self.reaches_hub {
            return;
        }
        self.upload(now, actions);
        if self.next_carry > now || !self.settings.carries {
            return;
        }
        let waiting =
            self.presences.values_mut().filter(|sign| !sign.carried).take(kedge_model::wire::site::MAX_MEMBERS);
        let signs: Vec<Envelope> = waiting
            .map(|sign| {
                sign.carried = true;
                sign.envelope.clone()
            })
            .collect();
        if !signs.is_empty() {
            self.next_carry = after(now, self.chance.around(CARRY_EVERY));
            actions.push(Action::Carry(signs));
        }
    }

    fn upload(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        if self.uploads.waiting.is_empty() {
            return;
        }
        let wait = self.chance.around(UPLOAD_AFTER);
        if *self.uploads.due.get_or_insert(after(now, wait)) > now {
            return;
        }
        self.uploads.due = None;
        for name in std::mem::take(&mut self.uploads.waiting) {
            let Some(version) = self.store.version(&name) else { continue };
            if self.uploads.sent.get(&name).is_some_and(|sent| *sent >= version) {
                continue;
            }
            if let Some(envelope) = self.store.get(&name) {
                actions.push(Action::Upload(envelope.clone()));
                self.uploads.sent.insert(name, version);
            }
        }
        let sent = &mut self.uploads.sent;
        sent.retain(|name, _| self.store.version(name).is_some());
    }

    /// A sign of life that a peer brought.
    pub(super) fn take_presence(&mut self, envelope: Envelope) -> Result<(), Misbehavior> {
        // It comes again from who didn't hear that it came.
        if self.presences.values().any(|known| known.envelope == envelope) {
            return Ok(());
        }
        let Some(presence) = self.store.check_presence(&envelope)? else { return Ok(()) };
        let (cluster, at) = (presence.cluster(), presence.at);
        if cluster == self.settings.me {
            return Ok(());
        }
        let room = self.presences.len() < MAX_PEERS;
        let known = self.presences.get(&cluster).map(|known| known.at);
        if known.is_none_or(|known| known < at) && (known.is_some() || room) {
            self.presences.insert(cluster, Sign { at, envelope, carried: false });
            if self.settings.carries {
                self.bring_holds_of(&cluster);
            }
        }
        Ok(())
    }

    /// Who is trusted with somebody's sign of life brings up its holds too: the uplink may have swallowed them.
    fn bring_holds_of(&mut self, writer: &ClusterId) {
        let written = self.store.documents().map(|(name, ..)| name);
        let written = written.filter(|name| matches!(name, Name::Holds { by, .. } if *by == writer.key_id()));
        self.uploads.waiting.extend(written.cloned().collect::<Vec<_>>());
    }

    /// Signs of life for a partner: all to the uplink; the own one also to another that reaches the hub, for an uplink may lie about that,
    /// and to anybody while there is no uplink.
    pub(super) fn signs_for(&self, to: &ClusterId) -> Signs {
        let mut signs = Signs::default();
        let Some(peer) = self.peers.get(to).filter(|_| !self.reaches_hub) else { return signs };
        if self.uplink.is_some_and(|uplink| uplink != *to) && peer.view.contact.is_none() {
            return signs;
        }
        if let Some((at, envelope)) = &self.presence
            && peer.presence_sent.is_none_or(|sent| sent < *at)
        {
            signs.own = Some(*at);
            signs.envelopes.push(envelope.clone());
        }
        if self.uplink == Some(*to) {
            let others = self.presences.iter().filter(|(cluster, sign)| !sign.carried && *cluster != to);
            for (cluster, sign) in others.take(MAX_PRESENCES - 1) {
                signs.others.push((*cluster, sign.at));
                signs.envelopes.push(sign.envelope.clone());
            }
        }
        signs
    }

    /// It answered: what went with the question is in its hands.
    pub(super) fn handed_over(&mut self, to: &ClusterId, own: Option<Timestamp>, others: &[(ClusterId, Timestamp)]) {
        if let (Some(own), Some(peer)) = (own, self.peers.get_mut(to)) {
            peer.presence_sent = Some(own);
        }
        for (cluster, at) in others {
            if let Some(sign) = self.presences.get_mut(cluster).filter(|sign| sign.at == *at) {
                sign.carried = true;
            }
        }
    }

    /// An uplink that leaves a question open may hang. If it is the only one, it stays.
    pub(super) fn suspect(&mut self, now: Timestamp) {
        let peer = self.uplink.and_then(|uplink| self.peers.get_mut(&uplink));
        if let Some(peer) = peer.filter(|peer| peer.hangs_at().is_some_and(|hangs| hangs <= now)) {
            peer.hung = Some(after(now, UPLINK_OUT));
        }
    }

    /// Another one that reaches the hub calls, maybe since the uplink is gone: who only follows finds that out now, not at its next turn.
    pub(super) fn doubt_uplink(&mut self, caller: &ClusterId, now: Timestamp) {
        let at = after(now, self.chance.around(NEWS_AFTER));
        let uplink = self.uplink.filter(|uplink| uplink != caller && !self.reaches_hub);
        if let Some(peer) = uplink.and_then(|uplink| self.peers.get_mut(&uplink))
            && peer.last_exchange.is_none_or(|last| now.0.saturating_sub(last.0) >= DOUBT_AFTER)
        {
            peer.soon(at);
        }
    }

    /// A failed exchange takes an uplink out, if it wasn't the first.
    pub(super) fn uplink_failed(&mut self, cluster: &ClusterId, now: Timestamp) {
        let peer = self.peers.get_mut(cluster).filter(|peer| peer.view.failures >= UPLINK_FAILURES);
        if let Some(peer) = peer {
            peer.out = Some(after(now, UPLINK_OUT));
        }
    }
}

pub(super) fn is_fresh(contact: Timestamp, now: Timestamp) -> bool {
    now.0.saturating_sub(contact.0) < FRESH
}

pub(super) fn is_recent(contact: Timestamp, now: Timestamp) -> bool {
    now.0.saturating_sub(contact.0) < SECOND_WITHIN
}

/// The same on every agent, and another order in every site.
pub(super) fn rank(site: &str, cluster: &ClusterId) -> Digest {
    Digest::of(format!("kedge uplink 1\0{site}\0{cluster}").as_bytes())
}
