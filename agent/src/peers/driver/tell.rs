//! Between the loop and the node: what is own goes into the store, signs of life are made, and what others brought for this cluster
//! becomes news.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{ClusterId, Digest, Envelope, KeyId, PollRequest, Presence, Timestamp};
use kedge_peer::{Name, Version};
use tokio::time::Instant;

use super::super::Own;
use super::{Driver, keep};

/// After another one began to carry.
const ANEW: Duration = Duration::from_secs(3);
/// A failing link isn't asked about for ever.
const FRESH_MS: i64 = kedge_peer::pace::FRESH;

impl Driver {
    pub(super) fn take_own(&mut self) {
        let own = Arc::clone(&self.own.borrow_and_update());
        // What came before this start, so that those who were away can follow.
        let kept = keep::read(&self.place.paths);
        let new: Vec<_> = own.key_sets.iter().filter(|envelope| !kept.contains(envelope)).cloned().collect();
        if !new.is_empty() {
            keep::add(&self.place.paths, kept.clone(), &new);
        }
        let documents = [Some(&own.membership), own.state.as_ref(), own.status.as_ref()];
        let first = kept.iter().chain(&new);
        for envelope in first.chain(documents.into_iter().flatten()).chain(&own.holds) {
            if let Err(why) = self.node.put(envelope.clone()) {
                tracing::debug!(%why, kind = envelope.payload_type, "an own document isn't shared");
            }
        }
        self.node.want(own.wants.iter().map(|blob| blob.digest).collect());
        self.count_content();
        if own.online {
            // Once it is no longer heard, it says at once that it lives.
            self.last_said = None;
        } else if self.is_other_presence(&own.poll) {
            self.presence_at = self.presence_at.min(Instant::now() + Duration::from_millis(500));
        }
        self.note_waiting(&own);
        // What was in the store before may be newer than what is own.
        self.bring_all();
    }

    /// Whether the hub is reached, told again and again while it is.
    pub(super) fn reach(&mut self) {
        let blocked = self.unreachable_until.is_some_and(|until| Instant::now() < until);
        let now = self.now();
        let reached = self.own.borrow().online && !blocked;
        self.node.reach(reached.then_some(now));
    }

    /// Makes the next sign of life, for whoever carries it. Who reaches the hub needs none.
    pub(super) fn live(&mut self) {
        let now = Instant::now();
        let carrier = self.node.uplink();
        if std::mem::replace(&mut self.followed, carrier) != carrier && carrier.is_some() {
            // The hub hears anew through whoever carries now; not from all at the same moment.
            self.presence_at = self.presence_at.min(now + ANEW.mul_f64(rand::random_range(0.0..1.0)));
        }
        if now < self.presence_at {
            return;
        }
        self.presence_at = now + self.pace().mul_f64(rand::random_range(0.8..1.0));
        let own = Arc::clone(&self.own.borrow());
        if own.online {
            return;
        }
        let mut poll = own.poll.clone();
        poll.look_age = poll.look_age.saturating_add(own.at.elapsed().as_secs());
        let at = Timestamp(self.place.clock.now().0.saturating_add(own.offset));
        let presence = Presence { key: self.place.link.public(), at, poll };
        match self.place.link.sign(&presence) {
            Ok(envelope) => {
                self.note_sign(at);
                self.last_said = Some(presence.poll);
                self.node.presence(envelope);
            }
            Err(error) => tracing::warn!(%error, "no sign of life can be made"),
        }
    }

    /// Whether the hub should hear it now. A status document travels by itself, and how far it is comes with the next sign of life.
    fn is_other_presence(&self, poll: &PollRequest) -> bool {
        let same = |said: &PollRequest| {
            PollRequest { look_age: said.look_age, status: said.status.clone(), ..poll.clone() } == *said
        };
        !self.last_said.as_ref().is_some_and(same)
    }

    /// What is new in the store and meant for this cluster.
    pub(super) fn bring(&mut self, name: &Name) {
        let own = Arc::clone(&self.own.borrow());
        let Some(version) = self.node.store().version(name) else { return };
        let Some(envelope) = self.node.store().get(name).cloned() else { return };
        let is_own = matches!(name, Name::State(stream) if self.is_own(stream));
        match name {
            Name::Keys(number) if *number > own.keys.version => {
                if !self.news.key_sets.contains(&envelope) {
                    self.news.key_sets.push(envelope);
                }
            }
            Name::Membership(cluster) if *cluster == self.me && version > Version(own.poll.membership.0, 0) => {
                self.news.membership = Some(envelope);
            }
            Name::State(_) if is_own && version > Version(own.poll.generation.0, 0) => {
                (self.news.state, self.news.turn) = (Some(envelope), self.turn());
            }
            Name::Turn(cluster) if *cluster == self.me => {
                let Some(stream) = self.node.store().member(&self.me).map(|own| own.stream.clone()) else { return };
                return self.bring(&Name::State(stream));
            }
            Name::Holds { of, by } if *of == self.me && is_hubs(&own, by) && version > Version(own.poll.holds, 0) => {
                self.news.hub_holds = Some(envelope);
            }
            Name::Holds { of, by } if *of == self.me && self.is_news_of_a_peer(&own, by, version) => {
                let Some(writer) = self.membership_of(by) else { return };
                let pair = (envelope, writer);
                if !self.news.peer_holds.contains(&pair) {
                    self.news.peer_holds.push(pair);
                }
            }
            _ => return,
        }
        self.has_news = true;
    }

    /// Somebody's at another agent: neither the hub's nor the own.
    fn is_news_of_a_peer(&self, own: &Own, by: &KeyId, version: Version) -> bool {
        let known = own.peer_holds.get(by).copied().unwrap_or(0);
        !is_hubs(own, by) && *by != self.me.key_id() && version > Version(known, 0)
    }

    fn membership_of(&self, key: &KeyId) -> Option<Envelope> {
        let store = self.node.store();
        let writer = store.members().find(|member| member.cluster.key_id() == *key)?.cluster;
        store.get(&Name::Membership(writer)).cloned()
    }

    fn bring_all(&mut self) {
        let names: Vec<Name> = self.node.store().documents().map(|(name, ..)| name.clone()).collect();
        names.iter().for_each(|name| self.bring(name));
    }

    fn is_own(&self, stream: &kedge_model::wire::Stream) -> bool {
        self.node.store().member(&self.me).is_some_and(|own| own.stream == *stream)
    }

    /// What is here of the content that the site's states name, who has what is looked for, and whether somebody fetches it.
    pub(super) fn count_content(&mut self) {
        let store = self.node.store();
        let streams: BTreeSet<_> = store.members().map(|member| &member.stream).collect();
        let named: BTreeSet<Digest> =
            streams.into_iter().filter_map(|stream| store.blobs(stream)).flatten().copied().collect();
        let objects = &self.place.objects;
        let here = named.into_iter().filter(|blob| objects.has(blob)).collect();
        self.node.have(here);
        self.show_content();
    }

    pub(super) fn show_content(&mut self) {
        let own = Arc::clone(&self.own.borrow());
        let holders = |blob: &Digest| {
            let all = self.node.holders(blob).into_iter().map(|peer| (peer, self.table.addresses(&peer)));
            all.filter(|(_, addresses)| !addresses.is_empty()).collect::<Vec<_>>()
        };
        let wanted: BTreeMap<_, _> = own.wants.iter().map(|blob| (blob.digest, holders(&blob.digest))).collect();
        let found = wanted.values().any(|holders| !holders.is_empty());
        if found && !std::mem::replace(&mut self.found, found) {
            (self.news.content, self.has_news) = (true, true);
        }
        self.found = found;
        self.sources.show(wanted, self.carrier().is_some_and(|carrier| carrier != self.me));
    }

    /// Who fetches this cluster's content from the hub for all who need it: the uplink if it may have it, else the first of the stream
    /// that reaches the hub.
    fn carrier(&self) -> Option<ClusterId> {
        let store = self.node.store();
        let own = store.member(&self.me)?;
        let fits =
            |cluster: &ClusterId| store.member(cluster).is_some_and(|other| other.relay || other.stream == own.stream);
        if let Some(uplink) = self.node.uplink().filter(fits) {
            return Some(uplink);
        }
        let now = self.now();
        let fresh = |contact: Timestamp| now.0.saturating_sub(contact.0) < FRESH_MS;
        let others = self.node.peers().filter(|peer| peer.contact.is_some_and(fresh) && peer.dropped.is_none());
        let others = others.map(|peer| peer.cluster).filter(fits);
        others.chain(self.own.borrow().online.then_some(self.me)).min()
    }
}

pub(super) fn is_hubs(own: &Own, key: &KeyId) -> bool {
    own.keys.keys.iter().any(|known| known.id == *key)
}
