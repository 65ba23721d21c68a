//! The way to the hub: polls, documents, proofs, renewals and blobs over one kept connection, as an identity that the hub knows.
//! `run` owns the one `HubLink`; requests may overlap (a status document while a poll is held): each takes the idle connection
//! or opens another. Writes `partial/` (downloads) and, through identity, the renewed certificate.

pub mod address;
pub mod connection;
pub mod era;
pub mod error;
pub mod fetch;
mod hold;
pub mod mutual;
pub mod pace;
mod partial;
pub mod trust;
mod verifier;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use kedge_durable::Disk;
use kedge_model::wire::{
    ClusterId, Envelope, EnvelopeError, Payload, PollAnswer, PollRequest, RenewAnswer, RenewRequest, SiteAnswer,
    SiteRequest, Timestamp, VerifyingKey,
};
use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Clock;
use crate::identity::certificate::Validity;
use crate::identity::{Identity, IdentityError};
use crate::paths::Paths;
use address::Address;
use connection::{Connection, Limits};
use era::Era;
pub use error::{LinkError, Next};
pub use fetch::FetchError;
use hold::Hold;
use mutual::Mutual;
pub use pace::{Backoff, Pace};
use trust::Trust;

#[derive(Debug)]
pub struct HubLink {
    address: Address,
    cluster: ClusterId,
    era: Arc<Era>,
    disk: Arc<dyn Disk>,
    paths: Paths,
    partial: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    identity: Identity,
    /// PEM, of the newest key set.
    authorities: Vec<String>,
    config: Arc<ClientConfig>,
    /// For peers, once one was talked to.
    mutual: Option<Mutual>,
    /// Between requests, while the other side keeps it open.
    idle: Option<Connection>,
    hold: Hold,
}

/// A few bytes up, a few bytes back.
const SHORT: Limits = Limits { head: Duration::from_secs(60), body: Duration::from_secs(30), answer: 256 * 1024 };
/// A document of 384 KiB over a thin link needs its time; the answer is empty.
const DOCUMENT: Limits = Limits { head: Duration::from_secs(180), body: Duration::from_secs(30), answer: 64 * 1024 };
/// A state has a ledger's size at most, in an envelope, with a membership and key sets beside it.
const MAX_POLL_ANSWER: usize = 8 * 1024 * 1024;
/// 256 of a site get their news: memberships and holds are small, and each stream's state comes once.
const MAX_SITE_ANSWER: usize = 16 * 1024 * 1024;
/// The hub takes 30 s for the question; a state may come with the answer. Later another agent carries.
const SITE_HEAD_WITHIN: Duration = Duration::from_secs(40);
/// Such an answer over a thin link.
const POLL_BODY_WITHIN: Duration = Duration::from_secs(300);

impl HubLink {
    /// Opens nothing yet. `authorities` and `hub_time` are what memory knows. A copied disk gets no link.
    pub fn new(
        disk: Arc<dyn Disk>,
        paths: &Paths,
        identity: Identity,
        authorities: &[String],
        hub_time: Timestamp,
        clock: Arc<dyn Clock>,
    ) -> Result<HubLink, LinkError> {
        if !identity.is_of_this_machine(paths) {
            return Err(LinkError::MachineChanged);
        }
        let (address, cluster) = (Address::parse(identity.hub())?, identity.cluster());
        let era = Arc::new(Era::new(clock, hub_time));
        let authorities = authorities.to_vec();
        let config = settings(&authorities, &era, &identity)?;
        let partial = paths.state().join("partial");
        let inner =
            Mutex::new(Inner { identity, authorities, config, mutual: None, idle: None, hold: Hold::default() });
        Ok(HubLink { address, cluster, era, disk, paths: paths.clone(), partial, inner })
    }

    /// Another way to the same hub than the join's.
    pub fn towards(self, address: &str) -> Result<HubLink, LinkError> {
        Ok(HubLink { address: Address::parse(address)?, ..self })
    }

    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// `host:port`, for people.
    pub fn hub(&self) -> String {
        self.address.to_string()
    }

    /// Of the own certificate.
    pub fn validity(&self) -> Validity {
        self.lock().identity.validity()
    }

    /// One poll, waited for as long as `patience` says. Renews the certificate when the hub asks for it or it is time.
    pub async fn poll(&self, request: &PollRequest, patience: Duration) -> Result<PollAnswer, LinkError> {
        self.refuse_replaced()?;
        let answer = match self.hold(request, patience).await {
            Err(error) if error.next() == Next::Renew => {
                self.renew().await?;
                self.hold(request, patience).await?
            }
            other => other?,
        };
        self.era.heard(answer.time);
        if answer.time >= self.lock().identity.renew_at() {
            match self.renew().await {
                Ok(()) => {}
                // There is a third of the lifetime left for other tries.
                Err(error) => tracing::warn!(error = error.sentence(), "the certificate can't be renewed yet"),
            }
        }
        Ok(answer)
    }

    /// A signed document: a status, a hold. Stored on the hub for good when this returns.
    pub async fn send(&self, document: &Envelope) -> Result<(), LinkError> {
        self.tell("/agent/v1/status", document).await
    }

    /// Asks for a whole site: signs of life of the others go up, their news come back.
    pub async fn site(&self, request: &SiteRequest) -> Result<SiteAnswer, LinkError> {
        let limits = Limits { head: SITE_HEAD_WITHIN, body: POLL_BODY_WITHIN, answer: MAX_SITE_ANSWER };
        let answer: SiteAnswer = self.ask("/agent/v1/site", request, limits).await?;
        self.era.heard(answer.time);
        Ok(answer)
    }

    /// What connections between this host and its peers are made with, until the certificate or the authorities change.
    pub fn mutual(&self) -> Result<Mutual, LinkError> {
        let mut inner = self.lock();
        if let Some(mutual) = &inner.mutual {
            return Ok(mutual.clone());
        }
        let made = Mutual::new(&inner.authorities, inner.identity.certificate(), inner.identity.key());
        let made = made.map_err(LinkError::Settings)?;
        inner.mutual = Some(made.clone());
        Ok(made)
    }

    /// Its hash is this cluster.
    pub fn public(&self) -> VerifyingKey {
        self.lock().identity.signing_key().public()
    }

    /// As this cluster.
    pub fn sign<T: Payload>(&self, message: &T) -> Result<Envelope, EnvelopeError> {
        Envelope::sign(message, self.lock().identity.signing_key())
    }

    /// Shows the state that a hub has forgotten.
    pub async fn prove(&self, state: &Envelope) -> Result<(), LinkError> {
        self.tell("/agent/v1/proof", state).await
    }

    /// A new certificate for the same key, durable; the next request uses it.
    pub async fn renew(&self) -> Result<(), LinkError> {
        let csr = self.lock().identity.csr()?;
        let answer: RenewAnswer = self.ask("/agent/v1/renew", &RenewRequest { csr }, SHORT).await?;
        self.era.heard(answer.time);
        let mut inner = self.lock();
        inner.identity.renew(&self.disk, &self.paths, answer.certificate, answer.time)?;
        let until = inner.identity.validity().until;
        tracing::info!(until = until.0, "the certificate was renewed");
        inner.apply(&self.era)
    }

    /// Believes these authorities from now on.
    pub fn trust(&self, authorities: &[String]) -> Result<(), LinkError> {
        let mut inner = self.lock();
        if inner.authorities != authorities {
            inner.authorities = authorities.to_vec();
            inner.apply(&self.era)?;
        }
        Ok(())
    }

    /// Whether the hub can be reached now: a new connection is opened and closed.
    pub async fn reach(&self) -> Result<(), LinkError> {
        self.connect().await.map(drop)
    }

    /// Closes what is idle: an interface or an address changed.
    pub fn disconnect(&self) {
        self.lock().idle = None;
    }

    async fn hold(&self, request: &PollRequest, patience: Duration) -> Result<PollAnswer, LinkError> {
        let (hold, began) = (self.lock().hold, Instant::now());
        let limits = Limits { head: hold.patience(patience), body: POLL_BODY_WITHIN, answer: MAX_POLL_ANSWER };
        let request = PollRequest { wait: request.wait.or(hold.ask()), ..request.clone() };
        let answer = self.ask("/agent/v1/poll", &request, limits).await;
        let mut inner = self.lock();
        match &answer {
            Ok(_) => inner.hold.answered(began.elapsed()),
            Err(error) => inner.hold.failed(error, began.elapsed()),
        }
        answer
    }

    async fn tell(&self, path: &str, document: &Envelope) -> Result<(), LinkError> {
        let body = json(document)?;
        self.exchange(path, body, DOCUMENT).await.map(drop)
    }

    async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        request: &Q,
        limits: Limits,
    ) -> Result<A, LinkError> {
        let answer = self.exchange(path, json(request)?, limits).await?;
        serde_json::from_slice(&answer).map_err(|why| match answer.first() {
            // A portal's page comes with 200 too.
            Some(b'{') => LinkError::Unreadable(why),
            _ => {
                let said = connection::said(http::StatusCode::OK, &answer);
                LinkError::NotAHub { hub: self.address.to_string(), said }
            }
        })
    }

    /// Over the idle connection, or a fresh one; a kept one that the hub had closed is worth a second try.
    async fn exchange(&self, path: &str, body: Bytes, limits: Limits) -> Result<Bytes, LinkError> {
        if let Some(mut kept) = self.idle() {
            match kept.post(path, body.clone(), limits).await {
                Ok(answer) => {
                    self.keep(kept);
                    return Ok(answer);
                }
                Err(failed) if failed.stale => {}
                Err(failed) => return Err(self.after_refusal(kept, failed.error)),
            }
        }
        let mut fresh = self.connect().await?;
        match fresh.post(path, body, limits).await {
            Ok(answer) => {
                self.keep(fresh);
                Ok(answer)
            }
            Err(failed) => Err(self.after_refusal(fresh, failed.error)),
        }
    }

    /// A refusal that was read to its end leaves a good connection.
    fn after_refusal(&self, connection: Connection, error: LinkError) -> LinkError {
        if error.is_refusal() {
            self.keep(connection);
        }
        error
    }

    async fn connect(&self) -> Result<Connection, LinkError> {
        let config = Arc::clone(&self.lock().config);
        let began = Instant::now();
        let connection = Connection::open(&self.address, config).await?;
        tracing::debug!(hub = %self.address, took_ms = began.elapsed().as_millis(), "connected");
        Ok(connection)
    }

    fn idle(&self) -> Option<Connection> {
        self.lock().idle.take().filter(Connection::is_open)
    }

    fn keep(&self, connection: Connection) {
        if connection.is_open() {
            self.lock().idle = Some(connection);
        }
    }

    /// A join that ran meanwhile has the ledger now.
    fn refuse_replaced(&self) -> Result<(), LinkError> {
        match Identity::read(&*self.disk, &self.paths) {
            Ok(Some(current)) if current.cluster() != self.cluster => Err(IdentityError::Replaced.into()),
            // A ledger that broke under a running agent doesn't silence it: what it needs is in memory.
            _ => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn apply(&mut self, era: &Arc<Era>) -> Result<(), LinkError> {
        self.config = settings(&self.authorities, era, &self.identity)?;
        (self.mutual, self.idle) = (None, None);
        Ok(())
    }
}

fn settings(authorities: &[String], era: &Arc<Era>, identity: &Identity) -> Result<Arc<ClientConfig>, LinkError> {
    let own = Some((identity.certificate(), identity.key()));
    trust::settings(Trust::Authorities(authorities.to_vec()), Arc::clone(era), own).map_err(LinkError::Settings)
}

fn json<T: Serialize>(message: &T) -> Result<Bytes, LinkError> {
    serde_json::to_vec(message).map(Bytes::from).map_err(LinkError::Unwritable)
}
