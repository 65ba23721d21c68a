//! With whom to talk, and when: the uplink, the next of the ring, anybody at random; some at once when there is news. A few at a time.

use kedge_model::wire::{ClusterId, Digest, Timestamp};

use super::{Action, News, Node, Turn, after};
use crate::name::Name;
use crate::pace::{
    EXCHANGE_MOST, FANOUT, FOLLOW_EVERY, FRESH, GOSSIP_ALONE_EVERY, GOSSIP_EVERY, GOSSIP_QUIET_EVERY, MAX_IN_FLIGHT,
    MAX_PEERS, NEWS_AFTER, SECOND_EVERY, UPLINK_EVERY, WANT_EVERY,
};

impl Node {
    /// What is to be done now.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Action> {
        let mut actions = Vec::new();
        self.forgive(now);
        self.give_up(now);
        self.suspect(now);
        self.choose_uplink(now);
        self.tell_news(now);
        self.plan_uplink(now);
        self.plan_gossip(now);
        self.plan_second(now);
        self.plan_wants(now);
        self.carry(now, &mut actions);
        self.part();
        self.begin(now, &mut actions);
        self.show();
        actions
    }

    /// When `tick` should be called next, if nothing else happens before.
    pub fn wake(&self) -> Timestamp {
        let under_way = self.peers.values().filter_map(|peer| peer.under_way.as_ref());
        let busy = under_way.clone().count();
        let mut next = self.next_gossip.min(self.next_second);
        for exchange in under_way {
            next = next.min(after(exchange.since, EXCHANGE_MOST));
        }
        for peer in self.peers.values() {
            if peer.under_way.is_none() && busy < MAX_IN_FLIGHT {
                next = peer.wakes().map_or(next, |due| next.min(due));
            }
            next = peer.view.dropped.map_or(next, |until| next.min(until));
        }
        if let Some(uplink) = self.uplink {
            let own = uplink == self.settings.me;
            let contact = if own { self.contact } else { self.peers.get(&uplink).and_then(|peer| peer.view.contact) };
            let hangs = self.peers.get(&uplink).and_then(|peer| peer.hangs_at());
            next = contact.map_or(next, |contact| next.min(after(contact, FRESH)));
            next = hangs.map_or(next, |hangs| next.min(hangs));
        }
        if self.news.site || self.news.uplink {
            next = Timestamp(i64::MIN);
        }
        if self.reaches_hub && !self.uploads.waiting.is_empty() {
            next = next.min(self.uploads.due.unwrap_or(Timestamp(i64::MIN)));
        }
        let carries = self.reaches_hub && self.settings.carries;
        if carries && self.presences.values().any(|sign| !sign.carried) {
            next = next.min(self.next_carry);
        }
        self.next_want.map_or(next, |want| next.min(want))
    }

    /// A new document of another: some hear of it, and the hub if it is from here.
    pub(super) fn note_new(&mut self, name: &Name) {
        match name {
            Name::Status(cluster) => {
                if self.uplink == Some(self.settings.me) || self.uploads.asked.remove(cluster) {
                    self.uploads.waiting.insert(name.clone());
                }
            }
            _ => {
                self.news.site = true;
                let own = matches!(name, Name::Holds { by, .. } if *by == self.settings.me.key_id());
                if own || (self.store.is_from_here(name) && self.uplink == Some(self.settings.me)) {
                    self.uploads.waiting.insert(name.clone());
                }
            }
        }
    }

    /// Content came that others look for: some of them are told, the others ask again anyway.
    pub(super) fn tell_those_who_asked(&mut self, new: &[Digest]) {
        let asked = self.peers.values().filter(|peer| new.iter().any(|blob| peer.asked.contains(blob)));
        let asked: Vec<ClusterId> = asked.map(|peer| peer.view.cluster).collect();
        for cluster in self.chance.some(asked, FANOUT) {
            if let Some(peer) = self.peers.get_mut(&cluster) {
                peer.soon(Timestamp(i64::MIN));
            }
        }
    }

    /// The table is bounded: who was silent longest goes, misbehaving peers last.
    pub(super) fn make_room(&mut self) {
        while self.peers.len() >= MAX_PEERS {
            let oldest = self.peers.values().filter(|peer| Some(peer.view.cluster) != self.uplink);
            let oldest = oldest.min_by_key(|peer| {
                (peer.present, peer.view.dropped.is_some(), peer.view.heard.unwrap_or(peer.view.since))
            });
            let Some(oldest) = oldest.map(|peer| peer.view.cluster) else { return };
            self.peers.remove(&oldest);
        }
    }

    /// Whoever misbehaved long enough ago may talk again.
    fn forgive(&mut self, now: Timestamp) {
        for peer in self.peers.values_mut() {
            if peer.view.dropped.is_some_and(|until| until <= now) {
                peer.view.dropped = None;
            }
        }
        self.refused.retain(|_, (_, until)| *until > now);
    }

    /// Who left the site isn't asked; it may ask, and hears that it left.
    fn part(&mut self) {
        for peer in self.peers.values_mut() {
            if self.store.is_gone(&peer.view.cluster) {
                peer.due = None;
            }
        }
    }

    fn give_up(&mut self, now: Timestamp) {
        let late = self.peers.values().filter(|peer| {
            peer.under_way.as_ref().is_some_and(|exchange| now.0.saturating_sub(exchange.since.0) >= EXCHANGE_MOST)
        });
        for cluster in late.map(|peer| peer.view.cluster).collect::<Vec<_>>() {
            self.fail(&cluster, now);
        }
    }

    fn tell_news(&mut self, now: Timestamp) {
        let News { site, uplink } = std::mem::take(&mut self.news);
        let mut told = Vec::new();
        if site {
            // The next of the ring is always among them: chance alone would leave one in twenty out.
            let usable = self.usable(now);
            told.extend(self.next_of_ring(&usable));
            told.extend(self.chance.some(usable, FANOUT - 1));
        }
        if (site || uplink)
            && let Some(carrier) = self.uplink
        {
            told.push(carrier);
        }
        for cluster in told {
            let at = after(now, self.chance.around(NEWS_AFTER));
            if let Some(peer) = self.peers.get_mut(&cluster) {
                peer.soon(at);
            }
        }
    }

    /// Everybody stays in touch with who carries: whoever reaches the hub too is the next if it dies.
    pub(super) fn plan_uplink(&mut self, now: Timestamp) {
        let wait = self.chance.around(if self.reaches_hub { UPLINK_EVERY } else { FOLLOW_EVERY });
        if let Some(peer) = self.uplink.and_then(|uplink| self.peers.get_mut(&uplink))
            && peer.due.is_none()
            && peer.under_way.is_none()
        {
            peer.due = Some(peer.last_exchange.map_or(now, |last| after(last, wait)));
        }
    }

    fn plan_gossip(&mut self, now: Timestamp) {
        if self.next_gossip > now {
            return;
        }
        let every = match self.uplink {
            None => GOSSIP_ALONE_EVERY,
            // Everybody comes to it.
            Some(uplink) if uplink == self.settings.me => GOSSIP_QUIET_EVERY,
            Some(uplink) if self.peers.get(&uplink).is_some_and(|peer| peer.view.in_step) => GOSSIP_QUIET_EVERY,
            Some(_) => GOSSIP_EVERY,
        };
        self.next_gossip = after(now, self.chance.around(every));
        let usable = self.usable(now);
        self.turn = match self.turn {
            Turn::Ring => Turn::Anybody,
            Turn::Anybody => Turn::Ring,
        };
        let partner = match self.turn {
            Turn::Ring => self.next_of_ring(&usable),
            Turn::Anybody => {
                // Who has something else is more worth than who hasn't; but it may be one that never agrees.
                let mut others = usable.clone();
                others.retain(|peer| self.peers.get(peer).is_some_and(|peer| !peer.view.in_step));
                let differ = !others.is_empty() && self.chance.below(2) == 0;
                self.chance.some(if differ { others } else { usable }, 1).pop()
            }
        };
        if let Some(peer) = partner.and_then(|partner| self.peers.get_mut(&partner)) {
            peer.soon(now);
        }
    }

    /// An uplink may lie about the hub: who doesn't reach it tells another one too, now and then.
    fn plan_second(&mut self, now: Timestamp) {
        if self.next_second > now {
            return;
        }
        self.next_second = after(now, self.chance.around(SECOND_EVERY));
        if self.reaches_hub {
            return;
        }
        if let Some(peer) = self.second_carrier(now).and_then(|second| self.peers.get_mut(&second)) {
            peer.soon(now);
        }
    }

    fn plan_wants(&mut self, now: Timestamp) {
        if self.next_want.is_none_or(|next| next > now) {
            return;
        }
        self.next_want = Some(after(now, self.chance.around(WANT_EVERY)));
        let usable = self.usable(now);
        let asked = self.chance.some(usable, FANOUT);
        for cluster in asked.into_iter().chain(self.uplink) {
            if let Some(peer) = self.peers.get_mut(&cluster) {
                peer.soon(now);
            }
        }
    }

    /// Begins exchanges that are due, a few at a time; the longest due first.
    fn begin(&mut self, now: Timestamp, actions: &mut Vec<Action>) {
        let busy = self.peers.values().filter(|peer| peer.under_way.is_some()).count();
        let ready = self.peers.values().filter(|peer| {
            let due = peer.due.is_some_and(|due| due <= now);
            due && peer.under_way.is_none() && peer.is_usable(now)
        });
        let mut ready: Vec<(Option<Timestamp>, ClusterId)> = ready.map(|peer| (peer.due, peer.view.cluster)).collect();
        ready.sort_unstable();
        for (_, cluster) in ready.into_iter().take(MAX_IN_FLIGHT.saturating_sub(busy)) {
            let message = self.ask(&cluster, now);
            actions.push(Action::Send { to: cluster, message });
        }
    }

    fn usable(&self, now: Timestamp) -> Vec<ClusterId> {
        let usable = self.peers.values().filter(|peer| peer.is_usable(now) && !self.store.is_gone(&peer.view.cluster));
        usable.map(|peer| peer.view.cluster).collect()
    }

    /// Members make the ring: a stranger in it would be somebody's next for ever, and pass nothing on.
    fn next_of_ring(&self, usable: &[ClusterId]) -> Option<ClusterId> {
        let is_member = |peer: &&ClusterId| self.store.member(peer).is_some();
        let ring = || usable.iter().filter(is_member);
        ring().find(|peer| **peer > self.settings.me).or_else(|| ring().next()).or(usable.first()).copied()
    }

    /// What a person is shown of each.
    fn show(&mut self) {
        for peer in self.peers.values_mut() {
            let member = self.store.member(&peer.view.cluster);
            peer.view.name = member.map(|member| member.name.clone());
            peer.view.relay = member.is_some_and(|member| member.relay);
            peer.view.uplink = self.uplink == Some(peer.view.cluster);
        }
    }
}
