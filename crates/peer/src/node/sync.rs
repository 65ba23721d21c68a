//! The exchange itself: digests first; if they differ, a list, then the documents. At most two round trips, bounded; the rest goes in the next.

use kedge_model::wire::{ClusterId, Envelope, Timestamp};

use super::peer::{Peer, Stage, UnderWay};
use super::uplink::{Signs, is_fresh, is_recent};
use super::{Action, Node, after};
use crate::message::{MAX_BLOBS, MAX_GIVE, MAX_GIVEN, MAX_WANT, Message, weight};
use crate::misbehavior::{Misbehavior, Taken};
use crate::name::{Name, Version};
use crate::pace::{FRESH, GOSSIP_EVERY, MAX_REFUSED, NEWS_AFTER, REFUSED_FOR, SECOND, SECOND_WITHIN};

impl Node {
    /// A request of a peer whose certificate was seen, and the answer to it. None: it gets none.
    pub fn heard(&mut self, from: ClusterId, message: Message, now: Timestamp) -> (Option<Message>, Vec<Action>) {
        let mut actions = Vec::new();
        let answer = self.hear(from, message, now, &mut actions).unwrap_or_else(|why| {
            self.punish(from, why, now, &mut actions);
            None
        });
        (answer, actions)
    }

    /// The answer to a `Send`.
    pub fn answered(&mut self, from: ClusterId, message: Message, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Err(why) = self.take_answer(from, message, now, &mut actions) {
            self.punish(from, why, now, &mut actions);
        }
        self.plan_uplink(now);
        actions
    }

    /// A `Send` got no answer: the peer is tried again later and later.
    pub fn failed(&mut self, peer: ClusterId, now: Timestamp) -> Vec<Action> {
        self.fail(&peer, now);
        self.choose_uplink(now);
        self.plan_uplink(now);
        Vec::new()
    }

    pub(super) fn fail(&mut self, cluster: &ClusterId, now: Timestamp) {
        let Some(peer) = self.peers.get_mut(cluster).filter(|peer| peer.under_way.is_some()) else { return };
        peer.fail(now, &mut self.chance);
        if self.uplink == Some(*cluster) {
            let retry = peer.retry.unwrap_or(now);
            peer.soon(retry);
            self.uplink_failed(cluster, now);
        } else {
            // What was to be heard from it is heard from another one.
            self.next_gossip = self.next_gossip.min(after(now, self.chance.around(GOSSIP_EVERY)));
        }
    }

    pub(super) fn punish(&mut self, from: ClusterId, why: Misbehavior, now: Timestamp, actions: &mut Vec<Action>) {
        self.meet(from, now);
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.misbehavior(&why, now);
        }
        // Also of myself: then it is my clone, and a person should hear of it.
        actions.push(Action::Dropped { peer: from, why });
        self.choose_uplink(now);
    }

    /// The question that begins an exchange.
    pub(super) fn ask(&mut self, to: &ClusterId, now: Timestamp) -> Message {
        let Signs { envelopes, own, others } = self.signs_for(to);
        let mut message = self.word(to, now);
        message.presences = envelopes;
        message.wants = self.wants.clone();
        // The uplink knows that it is one. Two entries are enough: who carries, and who else could.
        if self.uplink != Some(*to) {
            message.reachable = self.carriers_for(to, now);
        }
        if let Some(peer) = self.peers.get_mut(to) {
            message.has = peer.asked.intersection(&self.has).copied().take(MAX_BLOBS).collect();
            // Said once: who still looks for it asks again.
            peer.asked.retain(|blob| !message.has.contains(blob));
            peer.due = None;
            peer.under_way = Some(UnderWay { since: now, own, others, stage: Stage::Summary });
        }
        message.has.retain(|blob| self.store.may_have(to, blob));
        message
    }

    fn carriers_for(&mut self, to: &ClusterId, now: Timestamp) -> Vec<(ClusterId, u64)> {
        let others = self.other_carriers(now);
        let other = self.chance.some(others, 1);
        let carriers = self.uplink.into_iter().chain(other).filter(|carrier| carrier != to);
        let known = carriers.filter_map(|carrier| Some((carrier, self.peers.get(&carrier)?.view.contact?)));
        let known = known.filter(|(_, contact)| is_recent(*contact, now));
        known.map(|(carrier, contact)| (carrier, seconds(contact, now))).collect()
    }

    /// What every message says: whether the hub is reached, and what is here.
    fn word(&self, to: &ClusterId, now: Timestamp) -> Message {
        let reach = self.contact.filter(|contact| self.settings.carries && is_fresh(*contact, now));
        Message {
            reach: reach.map(|contact| seconds(contact, now)),
            keys: self.store.keys().version,
            digest: self.store.digest(to),
            ..Message::default()
        }
    }

    fn hear(
        &mut self,
        from: ClusterId,
        message: Message,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) -> Result<Option<Message>, Misbehavior> {
        self.meet(from, now);
        let Some(peer) = self.peers.get_mut(&from) else { return Ok(None) };
        if peer.view.dropped.is_some_and(|until| until > now) {
            return Ok(None);
        }
        if !peer.count(now) {
            return Err(Misbehavior::TooMany);
        }
        message.check().map_err(Misbehavior::unreadable)?;
        if self.store.is_gone(&from) {
            // It may not know yet: what it gets is the hub's word about itself, and the key sets by which it can be judged.
            let keys = self.store.keys().version;
            let sets = (message.keys.saturating_add(1)..=keys).map(Name::Keys);
            let names: Vec<Name> = sets.chain([Name::Membership(from)]).collect();
            return Ok(Some(Message { keys, give: self.pick(&from, &names).0, ..Message::default() }));
        }
        self.note(&from, &message, now);
        if message.reach.is_some() {
            self.doubt_uplink(&from, now);
        }
        let documents = !message.want.is_empty() || !message.give.is_empty();
        let (theirs, wants) = (message.digest, message.wants);
        for presence in message.presences {
            self.refuse(&from, now, actions, |node| node.take_presence(presence))?;
        }
        self.take_all(&from, message.give, now, actions)?;
        self.choose_uplink(now);
        let mut answer = self.word(&from, now);
        if self.reaches_hub {
            // Who takes me for the uplink and shouldn't hears who is; who rightly does, who would be the next.
            answer.reachable = self.carriers_for(&from, now);
        }
        answer.has =
            wants.iter().filter(|blob| self.has.contains(blob) && self.store.may_have(&from, blob)).copied().collect();
        let in_step = theirs == self.store.digest_of(&from);
        if documents {
            answer.give = self.pick(&from, &message.want).0;
        } else if !in_step {
            answer.have = self.store.summary(&from);
        }
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.asked = wants.into_iter().collect();
            peer.view.in_step = in_step;
        }
        Ok(Some(answer))
    }

    fn take_answer(
        &mut self,
        from: ClusterId,
        message: Message,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) -> Result<(), Misbehavior> {
        let Some(peer) = self.peers.get_mut(&from) else { return Ok(()) };
        let Some(UnderWay { own, others, stage, .. }) = peer.under_way.take() else { return Ok(()) };
        message.check().map_err(Misbehavior::unreadable)?;
        peer.answer(now);
        self.note(&from, &message, now);
        self.handed_over(&from, own, &others);
        let Message { digest, have, give, .. } = message;
        let given = give.len();
        let took = self.take_all(&from, give, now, actions)?;
        self.choose_uplink(now);
        let in_step = digest == self.store.digest_of(&from);
        let listed = have.len();
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.view.in_step = in_step;
            if in_step {
                peer.rounds = 0;
            }
            peer.view.documents = if have.is_empty() { peer.view.documents } else { listed };
        }
        match stage {
            Stage::Summary if !have.is_empty() && !in_step => self.exchange(&from, &have, now, actions),
            Stage::Summary => {}
            Stage::Documents { wanted, more } => {
                let rest = took > 0 && given < wanted.len();
                // A stranger became a member: now there is more to say.
                let met = took > 0 && wanted.contains(&Name::Membership(from));
                if (more || rest || met) && !in_step {
                    self.go_on(&from, now, MAX_ROUNDS);
                }
            }
        }
        Ok(())
    }

    /// The same peer once more, at once; but not for ever.
    fn go_on(&mut self, with: &ClusterId, now: Timestamp, most: u32) {
        let at = after(now, self.chance.around(NEWS_AFTER));
        if let Some(peer) = self.peers.get_mut(with).filter(|peer| peer.rounds < most) {
            peer.rounds += 1;
            peer.soon(at);
        }
    }

    /// The lists differ: what the other lacks is given, what is missing here is asked for.
    fn exchange(&mut self, with: &ClusterId, have: &[(Name, Version)], now: Timestamp, actions: &mut Vec<Action>) {
        let me = Name::Membership(self.settings.me);
        let mut lacking = self.store.lacking(with, have);
        if !have.iter().any(|(name, _)| *name == me) && lacking.contains(&me) {
            // To a stranger it shows little: who I am comes first, then its whole list.
            lacking.retain(|name| *name == me || matches!(name, Name::Keys(_)));
            self.go_on(with, now, MAX_INTRODUCTIONS);
        }
        lacking.retain(|name| !self.refused.contains_key(name));
        let (give, more) = self.pick(with, &lacking);
        let mut want = self.store.missing(have);
        let refused = |name: &Name| {
            let (version, _) = self.refused.get(name)?;
            have.iter().find(|(listed, _)| listed == name).map(|(_, listed)| listed <= version)
        };
        want.retain(|name| refused(name) != Some(true));
        want.truncate(MAX_WANT);
        if give.is_empty() && want.is_empty() {
            return;
        }
        let mut message = self.word(with, now);
        (message.give, message.want) = (give, want.clone());
        if let Some(peer) = self.peers.get_mut(with) {
            let stage = Stage::Documents { wanted: want, more };
            peer.under_way = Some(UnderWay { since: now, own: None, others: Vec::new(), stage });
        }
        actions.push(Action::Send { to: *with, message });
    }

    /// Documents of these names that the reader may have, as many as a message takes; and whether some are left.
    fn pick(&self, to: &ClusterId, names: &[Name]) -> (Vec<Envelope>, bool) {
        let (mut picked, mut bytes) = (Vec::new(), 0);
        for name in names {
            let Some(envelope) = self.store.get(name).filter(|_| self.may_give(name, to)) else { continue };
            bytes += weight(envelope);
            if !picked.is_empty() && (bytes > MAX_GIVE || picked.len() >= MAX_GIVEN) {
                return (picked, true);
            }
            picked.push(envelope.clone());
        }
        (picked, false)
    }

    /// What a reader may have, and the word that somebody it knows is gone.
    fn may_give(&self, name: &Name, to: &ClusterId) -> bool {
        let farewell = matches!(name, Name::Membership(cluster) if self.store.is_gone(cluster));
        farewell || self.store.may_read(name, to)
    }

    /// Takes what a peer gave; how many were new.
    fn take_all(
        &mut self,
        from: &ClusterId,
        given: Vec<Envelope>,
        now: Timestamp,
        actions: &mut Vec<Action>,
    ) -> Result<usize, Misbehavior> {
        let mut took = 0;
        for envelope in given {
            match self.refuse(from, now, actions, |node| node.store.take(envelope))? {
                Some(Taken::New(name)) => {
                    took += 1;
                    self.note_new(&name);
                    actions.push(Action::Took(name));
                }
                Some(Taken::Known | Taken::Older | Taken::NotYet) | None => {}
            }
        }
        Ok(took)
    }

    /// What can't be taken: a fault ends the exchange, anything else is noted and passed over.
    fn refuse<T>(
        &mut self,
        from: &ClusterId,
        now: Timestamp,
        actions: &mut Vec<Action>,
        take: impl FnOnce(&mut Node) -> Result<T, Misbehavior>,
    ) -> Result<Option<T>, Misbehavior> {
        let why = match take(self) {
            Ok(taken) => return Ok(Some(taken)),
            Err(why) => why,
        };
        // Signed by a key of a set that isn't here yet, perhaps: who is ahead isn't blamed, and not believed either.
        let ahead = self.peers.get(from).is_some_and(|peer| peer.keys > self.store.keys().version);
        if why.is_fault() && !(why == Misbehavior::OtherFleet && ahead) {
            return Err(why);
        }
        if let Some(peer) = self.peers.get_mut(from) {
            peer.view.refused = Some(why.to_string());
        }
        if let Misbehavior::Clone(owner) = why {
            let name = Name::Status(owner);
            let epoch = self.store.version(&name).unwrap_or_default().0;
            let told = self.refused.contains_key(&name);
            if !told && self.refused.len() < MAX_REFUSED {
                self.refused.insert(name, (Version(epoch, u64::MAX), after(now, REFUSED_FOR)));
                // Who carries it is honest; whose key signed both isn't one any more.
                self.punish(owner, Misbehavior::Clone(owner), now, actions);
            }
        }
        Ok(None)
    }

    /// Makes sure that there is an entry. It can't be talked to before it is found.
    fn meet(&mut self, cluster: ClusterId, now: Timestamp) {
        if cluster != self.settings.me && !self.peers.contains_key(&cluster) {
            self.make_room();
            self.peers.insert(cluster, Peer::new(cluster, &self.settings.site, now));
        }
    }

    /// What a message says besides documents.
    fn note(&mut self, from: &ClusterId, message: &Message, now: Timestamp) {
        let Some(peer) = self.peers.get_mut(from) else { return };
        (peer.view.heard, peer.said, peer.keys) = (Some(now), Some(now), message.keys);
        peer.view.contact = message.reach.and_then(|reach| contact(reach, FRESH, now));
        // It lives: what failed before is worth a try, but not at once, for it may be heard and not reached.
        peer.retry = peer.retry.map(|retry| retry.min(after(now, RETRY_HEARD)));
        peer.view.has.extend(message.has.iter().filter(|blob| self.wants.contains(blob)));
        for (cluster, reach) in &message.reachable {
            let other = self.peers.get_mut(cluster).filter(|other| other.view.cluster != *from);
            let (Some(other), Some(contact)) = (other, contact(*reach, SECOND_WITHIN, now)) else { continue };
            // Its own word counts against what was seen before it; and while it is young, if it says that it doesn't reach the hub.
            let denied = other.view.contact.is_none() && other.said.is_some_and(|said| is_fresh(said, now));
            if !denied && other.said.is_none_or(|said| said < contact) {
                other.view.contact = other.view.contact.max(Some(contact));
            }
        }
    }
}

/// An exchange goes on at once so many times, while it brings something: a full store in pieces.
const MAX_ROUNDS: u32 = 300;
/// To say who one is, twice is enough.
const MAX_INTRODUCTIONS: u32 = 2;
/// A peer that failed and is heard is tried after this.
const RETRY_HEARD: i64 = 15 * SECOND;

fn seconds(contact: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.0.saturating_sub(contact.0) / SECOND).unwrap_or_default()
}

/// When somebody heard the hub that did so many seconds ago; None if that is too long ago to count.
fn contact(reach: u64, within: i64, now: Timestamp) -> Option<Timestamp> {
    let millis = i64::try_from(reach).ok()?.checked_mul(SECOND).filter(|millis| *millis < within)?;
    Some(after(now, -millis))
}
