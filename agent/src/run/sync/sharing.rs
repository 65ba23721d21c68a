//! What the loop and the site's other agents have to do with each other: what is own is told, gathered for a moment; what they bring is
//! judged and followed as if the hub had said it.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Envelope, Generation, Heads, PollAnswer};
use kedge_status::Severity;
use tokio::time::Instant;

use super::super::hub::Hub;
use super::super::runtime::AgentRuntime;
use super::super::surroundings::{Doors, Nearby};
use super::SyncLoop;
use super::content::named_blobs;
use crate::causes::chain;
use crate::contact::Contact;
use crate::desired::Accepted;
use crate::peers::{Content, News, Own, Peers, Place};

#[derive(Default)]
pub(super) struct Sharing {
    peers: Option<Peers>,
    site: Option<String>,
    /// When it is told again.
    at: Option<Instant>,
    /// The status document as it was last signed.
    sealed: Option<(Heads, Envelope)>,
    /// Those that came since the start.
    key_sets: Vec<Envelope>,
    /// For the cluster's other pods; none on a host, and where nobody is let in.
    doors: Option<Box<dyn Doors>>,
}

/// A transaction tells several things; they go together.
const GATHER: Duration = Duration::from_millis(500);
/// As many as are kept.
const MAX_KEY_SETS: usize = 64;

impl Sharing {
    pub(super) fn new(doors: Option<Box<dyn Doors>>) -> Sharing {
        Sharing { doors, ..Sharing::default() }
    }

    pub(super) fn soon(&mut self) {
        if self.site.is_some() {
            self.at.get_or_insert_with(|| Instant::now() + GATHER);
        }
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        self.at
    }

    /// For downloads.
    pub(super) fn content(&self) -> Option<Content> {
        self.peers.as_ref().map(Peers::content)
    }

    /// For downloads too, in a cluster.
    pub(super) fn nearby(&self) -> Option<Arc<dyn Nearby>> {
        self.doors.as_ref().and_then(|doors| doors.nearby())
    }

    /// New keys, as they were signed.
    pub(super) fn came(&mut self, key_sets: &[Envelope]) {
        self.key_sets.extend(key_sets.iter().take(MAX_KEY_SETS).cloned());
        let over = self.key_sets.len().saturating_sub(MAX_KEY_SETS);
        self.key_sets.drain(..over);
    }

    pub(super) async fn news(&mut self) -> News {
        match &mut self.peers {
            Some(peers) => peers.news().await,
            None => std::future::pending().await,
        }
    }
}

impl<H: Hub> SyncLoop<H> {
    /// Begins or ends with the membership's site, and tells what is own when that is due.
    pub(super) fn share(&mut self) {
        let site = self.wanted_site();
        if self.sharing.site != site {
            // Another site's agents have nothing to do with this one.
            self.sharing.peers = None;
            self.sharing.at = site.is_some().then(Instant::now);
            self.sharing.site = site;
        }
        if self.sharing.at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.sharing.at = None;
        let own = self.own();
        if let Some(peers) = &self.sharing.peers {
            return peers.tell(own);
        }
        let link = self.hub.as_ref().and_then(|hub| hub.line());
        let (Some(link), Some(site)) = (link, self.sharing.site.clone()) else { return };
        let place = Place {
            link,
            paths: self.context.paths.clone(),
            clock: Arc::clone(&self.context.clock),
            objects: self.context.objects.clone(),
            config: self.context.config.peers.clone(),
            site,
        };
        self.sharing.peers = Some(Peers::start(place, own));
    }

    /// Tells the cluster's other pods what they may have.
    pub(super) fn offer(&mut self) {
        let Some(doors) = &mut self.sharing.doors else { return };
        let link = self.hub.as_ref().and_then(|hub| hub.line());
        doors.offer(link, named_blobs(&self.memory).collect());
    }

    /// None: there are no peers.
    fn wanted_site(&self) -> Option<String> {
        let membership = self.memory.membership();
        let allowed = self.context.config.peers.enabled != Some(false) && !membership.retired && self.hub.is_some();
        membership.site.clone().filter(|site| allowed && !site.is_empty())
    }

    fn own(&mut self) -> Own {
        let heads = self.reporter.heads();
        if self.sharing.sealed.as_ref().is_none_or(|(sealed, _)| *sealed != heads) {
            match self.reporter.seal(self.identity.signing_key()) {
                Ok(envelope) => self.sharing.sealed = Some((heads.clone(), envelope)),
                Err(error) => tracing::warn!(error = chain(&error), "the status can't be shared yet"),
            }
        }
        let mut poll = self.memory.request_base();
        (poll.status, poll.look_age, poll.profile) = (heads, self.reporter.look_age(), self.context.config.traffic);
        let technician = self.holds.documents().ok().and_then(|(technician, _)| technician);
        let hub = self.memory.holds().map(|(_, envelope)| envelope.clone());
        Own {
            keys: self.memory.keys().clone(),
            key_sets: self.sharing.key_sets.clone(),
            membership: self.memory.membership_envelope().clone(),
            state: self.memory.state_envelope().cloned(),
            status: self.sharing.sealed.as_ref().map(|(_, envelope)| envelope.clone()),
            holds: hub.into_iter().chain(technician).chain(self.holds.outgoing().unwrap_or_default()).collect(),
            peer_holds: self.holds.known_of_peers().unwrap_or_default(),
            poll,
            at: Instant::now(),
            online: self.talk.is_online(),
            offset: Contact::read(&self.context.paths).clock_offset().unwrap_or(0),
            wants: self.content.wanted(),
            waits: self.memory.offered().map(|state| state.generation),
        }
    }

    pub(super) fn take_news(&mut self, news: News, agent: &mut AgentRuntime) {
        let News { key_sets, membership, state, turn, hub_holds, peer_holds, lies, content } = news;
        if let Some(lies) = lies {
            self.warn_while("PeerLied", Severity::Warning, Some(lies).filter(|lies| !lies.is_empty()));
            self.talk.news();
        }
        if content {
            self.content.hurry();
            self.tasks.soon();
        }
        let answer = PollAnswer {
            // A peer doesn't say what time it is.
            time: self.memory.hub_time(),
            next: 0,
            promise: 0,
            key_sets,
            membership,
            state,
            holds: hub_holds,
            want_status: false,
            want_proof: false,
        };
        let waited = self.memory.offered().map(|state| state.generation);
        match self.memory.accept_from_peer(&answer, turn.as_ref()) {
            Ok(accepted) if accepted.changed() => {
                tracing::info!("a peer brought news");
                // What was refused is the peer's fault, or came by the hub meanwhile: no warning of the hub's.
                let quiet = PollAnswer { membership: None, state: None, holds: None, ..answer };
                self.follow(&Accepted { refused: Vec::new(), ..accepted }, &quiet, agent);
                self.sharing.soon();
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(error = chain(&error), "what a peer brought can't be kept"),
        }
        self.follow_offer(waited);
        // After the keys and the membership that they are judged by.
        self.take_peer_holds(&peer_holds, agent);
    }

    /// What waits for this cluster's turn is fetched ahead, and the hub is asked for the turn.
    fn follow_offer(&mut self, before: Option<Generation>) {
        let Some(offered) = self.memory.offered().filter(|offered| Some(offered.generation) != before) else { return };
        tracing::info!(generation = %offered.generation, "a newer state is here and waits for this cluster's turn");
        self.tasks.soon();
        self.sharing.soon();
    }

    /// What people at other agents of the site hold here.
    fn take_peer_holds(&mut self, brought: &[(Envelope, Envelope)], agent: &mut AgentRuntime) {
        let keys = self.memory.keys().trusted();
        let mut changed = false;
        for (envelope, writer) in brought {
            match self.holds.take_from_peer(envelope, writer, self.memory.membership(), &keys) {
                Ok(new) => changed |= new,
                Err(error) => tracing::warn!(error = chain(&error), "a peer's holds aren't obeyed"),
            }
        }
        if changed {
            self.count_holds_soon();
            self.follow_holds(agent);
            self.sharing.soon();
        }
    }
}
