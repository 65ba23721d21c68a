//! What people are shown of the peers, kept in a file that the commands read.

use std::time::Duration;

use tokio::time::Instant;

use super::super::shown::{Peer, Shown};
use super::Driver;

const EVERY: Duration = Duration::from_secs(5);
/// What a misbehavior is called on a terminal.
const MAX_MISBEHAVIOR: usize = 300;

impl Driver {
    pub(super) fn show(&mut self) {
        let now = Instant::now();
        if now < self.show_at {
            return;
        }
        (self.show_at, self.stale) = (now + EVERY, false);
        self.show_content();
        let shown = Shown {
            site: self.place.site.clone(),
            port: self.port,
            uplink: self.node.uplink(),
            own: Some(self.me),
            waits: self.waits,
            peers: self.node.peers().map(|view| self.peer(view)).collect(),
            written_at: self.shown.written_at,
        };
        self.tell_misbehavior(&shown);
        if shown == self.shown {
            return;
        }
        let via = |shown: &Shown| shown.via().map(Peer::title);
        if shown.uplink != self.shown.uplink {
            match (shown.uplink == shown.own && shown.uplink.is_some(), via(&shown)) {
                (true, _) => tracing::info!(site = shown.site, "this agent carries for the site"),
                (false, Some(name)) => {
                    tracing::info!(site = shown.site, uplink = name, "another agent carries for the site")
                }
                (false, None) => tracing::info!(site = shown.site, "nobody of the site reaches the hub"),
            }
        }
        self.shown = Shown { written_at: self.place.clock.now(), ..shown };
        if let Err(error) = self.shown.write(&self.place.paths) {
            tracing::debug!(%error, "the peers can't be shown");
        }
    }

    fn peer(&self, view: &kedge_peer::PeerView) -> Peer {
        let member = self.node.store().member(&view.cluster);
        let turned_away = self.turned_away.get(&view.cluster);
        let lies = view.misbehaviors.iter().map(|told| told.what.chars().take(MAX_MISBEHAVIOR).collect());
        Peer {
            id: view.cluster,
            name: member.map(|member| member.name.clone()),
            stream: member.map(|member| member.stream.to_string()),
            relay: member.is_some_and(|member| member.relay),
            address: self.table.addresses(&view.cluster).first().map(ToString::to_string),
            since: view.since,
            last_heard: view.heard,
            reaches_hub: view.contact.is_some(),
            uplink: self.node.uplink() == Some(view.cluster),
            has: view.has.len(),
            dropped_until: view.dropped,
            lies: lies.chain(turned_away.map(|why| format!("the hub says: {why}"))).collect(),
        }
    }

    /// The warning about misbehaving peers goes when none is left alone any more.
    fn tell_misbehavior(&mut self, shown: &Shown) {
        let lying = |shown: &Shown| shown.peers.iter().any(|peer| peer.dropped_until.is_some());
        if lying(&self.shown) && !lying(shown) {
            self.news.lies = Some(String::new());
            self.has_news = true;
        }
    }
}
