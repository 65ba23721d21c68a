//! What agents without a network send back in a file: status documents, holds and signs of life, each signed by its own cluster.
//! Each is taken as if its owner had sent it; the time at which it was said counts. The file's own writer only vouches that it is whole.

use std::collections::BTreeMap;
use std::io::Cursor;

use futures_util::StreamExt as _;
use kedge_bundle::{BundleError, Index, Reader};
use kedge_hub_types::status::Carrier;
use kedge_hub_types::status::TakeError;
use kedge_model::wire::{ClusterId, Envelope, HoldDocument, Presence, Timestamp};
use kedge_status::Limits;

use super::AirGap;
use crate::agents::take_hold;
use crate::status::{CARRIED_MS, Carried, Contact, Taken};
use crate::store::agents::ClusterState;
use crate::store::{StoreError, now};

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub writer: ClusterId,
    pub written_at: Timestamp,
    pub items: Vec<Imported>,
}

/// What became of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// None: it can't be read.
    pub cluster: Option<ClusterId>,
    pub what: What,
    /// When its owner said it.
    pub observed_at: Option<Timestamp>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Status,
    Hold,
    Presence,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Taken,
    /// The hub had the very same.
    Known,
    /// The hub has heard later news.
    Older,
    Refused {
        reason: &'static str,
        message: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    File(#[from] BundleError),
    #[error("the file was written by {0}, which has never joined this hub")]
    Stranger(ClusterId),
    #[error("the file was written by {0}, whose identity is revoked")]
    ShutOut(ClusterId),
}

/// Documents that are on their way to the database at one time: they share commits.
const AT_ONCE: usize = 64;
/// Clocks of hosts that no time server reaches.
const AHEAD_MS: i64 = 5 * 60 * 1000;

impl AirGap {
    pub async fn import(&self, file: bytes::Bytes) -> Result<Import, ImportError> {
        let read = tokio::task::spawn_blocking(move || Reader::open(Cursor::new(file))?.verify_writer());
        let read = read.await.map_err(|error| BundleError::Io(std::io::Error::other(error)))?;
        let (writer, bundle) = read?;
        match self.store.standing(&writer).await? {
            None => return Err(ImportError::Stranger(writer)),
            Some(row) if row.state.is_shut_out() => return Err(ImportError::ShutOut(writer)),
            Some(_) => {}
        }
        let Index { created_at, documents, holds, presences, .. } = bundle.into_index();
        let mut items = Vec::new();
        let statuses = futures_util::stream::iter(documents).map(|envelope| self.status(envelope));
        items.extend(statuses.buffered(AT_ONCE).collect::<Vec<_>>().await);
        let holds = futures_util::stream::iter(holds).map(|envelope| self.hold(envelope));
        items.extend(holds.buffered(AT_ONCE).collect::<Vec<_>>().await);
        items.extend(self.presences(&presences).await?);
        Ok(Import { writer, written_at: created_at, items })
    }

    async fn status(&self, envelope: Envelope) -> Imported {
        let read = envelope.clone();
        let read = tokio::task::spawn_blocking(move || kedge_status::read(&read, &Limits::default())).await;
        let (cluster, observed_at) = match read {
            Ok(Ok(status)) => (Some(status.cluster), Some(status.written_at_true())),
            Ok(Err(error)) => return refused(None, What::Status, &TakeError::from(error)),
            Err(error) => return refused(None, What::Status, &TakeError::Malformed(error.to_string())),
        };
        let outcome = Outcome::of(self.intake.take(None, envelope).await);
        Imported { cluster, what: What::Status, observed_at, outcome }
    }

    async fn hold(&self, envelope: Envelope) -> Imported {
        let Ok(claimed) = serde_json::from_slice::<HoldDocument>(&envelope.payload) else {
            return refused(None, What::Hold, &TakeError::Malformed("the hold document can't be read".to_owned()));
        };
        let outcome = Outcome::of(take_hold(&self.store, &envelope).await);
        Imported { cluster: Some(claimed.cluster), what: What::Hold, observed_at: Some(claimed.written_at), outcome }
    }

    async fn presences(&self, envelopes: &[Envelope]) -> Result<Vec<Imported>, ImportError> {
        let mut items = Vec::new();
        let mut newest: BTreeMap<ClusterId, Presence> = BTreeMap::new();
        for envelope in envelopes {
            match Presence::open(envelope) {
                Ok(presence) if newest.get(&presence.cluster()).is_some_and(|other| other.at >= presence.at) => {}
                Ok(presence) => _ = newest.insert(presence.cluster(), presence),
                Err(error) => items.push(refused(None, What::Presence, &TakeError::Forged(error.to_string()))),
            }
        }
        let ids: Vec<ClusterId> = newest.keys().copied().collect();
        let mut heard = BTreeMap::new();
        for some in ids.chunks(AT_ONCE) {
            heard.extend(self.store.last_contacts(some).await?);
        }
        for (cluster, presence) in newest {
            let said_at = presence.at;
            let outcome = self.presence(presence, heard.get(&cluster).copied()).await?;
            let observed_at = Some(said_at);
            items.push(Imported { cluster: Some(cluster), what: What::Presence, observed_at, outcome });
        }
        Ok(items)
    }

    async fn presence(&self, presence: Presence, last: Option<Timestamp>) -> Result<Outcome, StoreError> {
        let (cluster, Presence { at, poll, .. }) = (presence.cluster(), presence);
        match self.store.standing(&cluster).await? {
            None => return Ok(Outcome::of(Err(TakeError::UnknownCluster(cluster)))),
            Some(row) if row.state != ClusterState::Active => {
                return Ok(Outcome::of(Err(TakeError::Retired(cluster))));
            }
            Some(_) => {}
        }
        if at.0 > now().0.saturating_add(AHEAD_MS) {
            let message = "its clock is ahead of the hub's".to_owned();
            return Ok(Outcome::Refused { reason: "AheadOfTime", message });
        }
        if last.is_some_and(|last| at <= last) {
            return Ok(if last == Some(at) { Outcome::Known } else { Outcome::Older });
        }
        let at = at.min(now());
        let contact = Contact {
            generation: poll.generation,
            look_age: poll.look_age,
            check_in_deadline: Timestamp(at.0.saturating_add(CARRIED_MS)),
            heads: poll.status,
            carried: Some(Carried { at, by: Carrier::File }),
        };
        self.intake.contact(&cluster, contact).await;
        Ok(Outcome::Taken)
    }
}

fn refused(cluster: Option<ClusterId>, what: What, error: &TakeError) -> Imported {
    Imported { cluster, what, observed_at: None, outcome: Outcome::refused(error) }
}

impl What {
    pub fn as_str(self) -> &'static str {
        match self {
            What::Status => "status",
            What::Hold => "hold",
            What::Presence => "presence",
        }
    }
}

impl Outcome {
    fn of(taken: Result<Taken, TakeError>) -> Outcome {
        match taken {
            Ok(Taken::Stored) => Outcome::Taken,
            Ok(Taken::AlreadyKnown) => Outcome::Known,
            Ok(Taken::Older) => Outcome::Older,
            Err(error) => Outcome::refused(&error),
        }
    }

    fn refused(error: &TakeError) -> Outcome {
        Outcome::Refused { reason: error.reason(), message: error.to_string() }
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::Taken => "taken",
            Outcome::Known => "known",
            Outcome::Older => "older",
            Outcome::Refused { .. } => "refused",
        }
    }
}
