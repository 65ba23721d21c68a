//! Who is there: announced places are tried a few at a time, those of the configuration again and again until they answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::ClusterId;
use tokio::time::Instant;

use super::super::dial::{self, Line};
use super::super::mdns;
use super::{Driver, Ended};
use crate::link::LinkError;
use crate::link::address::Address;

/// `host:port` of the configuration.
#[derive(Debug)]
pub struct Fixed {
    text: String,
    /// When it is tried again.
    pub at: Instant,
    wait: Duration,
    cluster: Option<ClusterId>,
}

/// Handshakes with strangers at a time.
const PROBES: usize = 2;
/// Announced places that wait; more come again.
const MAX_PROBES: usize = 64;
/// Of one host: who announces a thousand ports keeps nobody else waiting.
const PROBES_EACH: usize = 8;
const FIXED_FIRST: Duration = Duration::from_secs(10);
const FIXED_MOST: Duration = Duration::from_secs(600);
/// Whether one that answered still does.
const FIXED_LOOK: Duration = Duration::from_secs(60);
/// A name that isn't resolved in this time is tried again later.
const RESOLVE_WITHIN: Duration = Duration::from_secs(10);
/// Where an agent listens, mostly: for one that called and wasn't announced.
const USUAL_PORT: u16 = 7443;

impl Fixed {
    pub fn new(text: &str, now: Instant) -> Fixed {
        Fixed { text: text.to_owned(), at: now, wait: FIXED_FIRST, cluster: None }
    }
}

impl Driver {
    pub(super) fn announcement(&self) -> mdns::Settings {
        mdns::Settings {
            cluster: self.me,
            site: mdns::hash_of(&self.place.site),
            port: self.port,
            interfaces: self.place.config.interfaces.clone(),
        }
    }

    /// It came by itself and showed its key.
    pub(super) fn visited(&mut self, from: ClusterId, address: SocketAddr) {
        let now = self.now();
        if self.table.addresses(&from).is_empty() {
            self.table.tell(from, SocketAddr::new(address.ip().to_canonical(), USUAL_PORT), now);
        }
        self.node.found(from, now);
    }

    pub(super) fn probe_soon(&mut self, address: SocketAddr) {
        let same_host = self.probes.iter().filter(|known| known.ip() == address.ip()).count();
        if self.probes.len() < MAX_PROBES && same_host < PROBES_EACH && !self.probes.contains(&address) {
            self.probes.push_back(address);
        }
    }

    pub(super) fn find_more(&mut self) {
        while self.probing < PROBES {
            let Some(address) = self.probes.pop_front() else { break };
            self.probing += 1;
            let link = Arc::clone(&self.place.link);
            self.under_way.spawn(async move {
                let result = async { dial::dial(&link.mutual()?, address).await }.await;
                Ended::Probed { address, fixed: None, result }
            });
        }
        let now = Instant::now();
        for index in 0..self.fixed.len() {
            self.try_fixed(index, now);
        }
    }

    fn try_fixed(&mut self, index: usize, now: Instant) {
        let Some(fixed) = self.fixed.get_mut(index).filter(|fixed| now >= fixed.at) else { return };
        let answers = |cluster: ClusterId| {
            let mut peers = self.node.peers();
            peers.any(|peer| peer.cluster == cluster && peer.failures < 2)
        };
        if fixed.cluster.is_some_and(answers) {
            fixed.at = now + FIXED_LOOK;
            return;
        }
        fixed.wait = (fixed.wait * 2).min(FIXED_MOST);
        fixed.at = now + fixed.wait.mul_f64(rand::random_range(0.8..1.2));
        let (link, text) = (Arc::clone(&self.place.link), fixed.text.clone());
        self.probing += 1;
        self.under_way.spawn(async move {
            let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
            let found = tokio::time::timeout(RESOLVE_WITHIN, tokio::net::lookup_host(text)).await;
            let address = found.ok().and_then(Result::ok).and_then(|mut found| found.next()).unwrap_or(unknown);
            let result = match address == unknown {
                true => Err(Address::of_peer(address).slow("be found by its name", RESOLVE_WITHIN)),
                false => async { dial::dial(&link.mutual()?, address).await }.await,
            };
            Ended::Probed { address, fixed: Some(index), result }
        });
    }

    pub(super) fn probed(&mut self, address: SocketAddr, fixed: Option<usize>, result: Result<Line, LinkError>) {
        self.probing = self.probing.saturating_sub(1);
        let line = match result {
            Ok(line) => line,
            Err(error) => return tracing::debug!(%address, error = error.sentence(), "no peer answers there"),
        };
        let (cluster, now) = (line.cluster, self.now());
        if cluster == self.me {
            return;
        }
        if let Some(fixed) = fixed.and_then(|index| self.fixed.get_mut(index)) {
            (fixed.cluster, fixed.wait, fixed.at) = (Some(cluster), FIXED_FIRST, Instant::now() + FIXED_LOOK);
        }
        self.table.prove(cluster, address, now);
        self.node.found(cluster, now);
        self.keep(line);
    }
}
