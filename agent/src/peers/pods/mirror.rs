//! A pod that stands by: whenever the Lease says that the leader has other content, what the desired state names and this node lacks is
//! fetched from the leader. Nothing is asked of the hub, nothing is applied, no ledger is written. A task of its own, started by `run`
//! while the agent stands by and dropped when it takes over; what fails is tried again and stops nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::BlobRef;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::super::shown::pods::Pods;
use super::known::{self, Known, KnownError};
use super::leader::{Fault, Leader};
use crate::causes::chain;
use crate::cluster::lease::{Offer, Standing};
use crate::cluster::secret_ledger::SecretStore;
use crate::link::{Backoff, FetchError};
use crate::objects::Objects;
use crate::objects::collect::free;
use crate::paths::Paths;
use crate::swarm::{HolderError, Misbehavior, Swarm, SwarmError};

/// Ends when it is dropped; what came stays.
#[derive(Debug)]
pub struct Mirror {
    task: JoinHandle<()>,
    paths: Paths,
}

/// A node's content.
#[derive(Clone, Debug)]
pub struct NodeContent {
    pub paths: Paths,
    pub objects: Objects,
    /// Bytes of the disk that stay free.
    pub reserve: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Lacks {
    pub blobs: usize,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub(in super::super) enum MirrorError {
    #[error(transparent)]
    Known(#[from] KnownError),
    #[error("the pod that leads can't be asked: {0}")]
    Away(HolderError),
    #[error("the pod that leads gave wrong bytes: {0}")]
    Misbehaved(Misbehavior),
    #[error(transparent)]
    Disk(#[from] FetchError),
    #[error("{0} bytes are to be fetched, and the disk has no room for them")]
    Full(u64),
    #[error("the node's folder can't be used")]
    Folder(#[from] io::Error),
}

/// As with a peer that misbehaved; the next leader isn't the one that did.
const LEFT_ALONE: Duration = Duration::from_secs(600);

impl Mirror {
    /// Must be called in the runtime.
    pub fn start(
        content: NodeContent,
        secret_store: Arc<dyn SecretStore>,
        standing: watch::Receiver<Standing>,
    ) -> Mirror {
        let paths = content.paths.clone();
        Mirror { task: tokio::spawn(content.follow(secret_store, standing)), paths }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.task.abort();
        Pods::end(&self.paths);
    }
}

impl NodeContent {
    /// Until nobody tells any more who leads.
    async fn follow(self, secret_store: Arc<dyn SecretStore>, mut standing: watch::Receiver<Standing>) {
        let (mut backoff, mut known) = (Backoff::default(), None);
        loop {
            let (holder, offer) = match standing.borrow_and_update().clone() {
                Standing::By { holder, offer } => (holder, offer),
                Standing::Holds { .. } => (None, None),
            };
            let show = |lacks: Option<Lacks>, error: Option<&MirrorError>| {
                Pods::StandsBy {
                    leader: holder.clone(),
                    address: offer.as_ref().map(|offer| offer.address),
                    lacks: lacks.map(|lacks| lacks.blobs),
                    bytes: lacks.map_or(0, |lacks| lacks.bytes),
                    trouble: error.map(|error| chain(error)),
                    lied: matches!(error, Some(MirrorError::Misbehaved(_))),
                }
                .show(&self.paths);
            };
            let told = if let Some(offer) = &offer {
                let fetched = self.fetch(&secret_store, offer, &mut known, |lacks| show(Some(lacks), None)).await;
                show(fetched.as_ref().ok().copied(), fetched.as_ref().err());
                match fetched {
                    Ok(Lacks { blobs: 0, .. }) => {
                        (backoff, known) = (Backoff::default(), None);
                        standing.changed().await.is_ok()
                    }
                    Err(MirrorError::Misbehaved(_)) => {
                        let another = |now: &Standing| address_of(now) != Some(offer.address);
                        rest(LEFT_ALONE, standing.wait_for(another)).await
                    }
                    fetched => {
                        let error = fetched.err().map(|error| chain(&error));
                        tracing::debug!(address = %offer.address, error, "this node isn't ready to take over yet; trying again");
                        rest(backoff.next(rand::random_range(0.0..1.0)), standing.changed()).await
                    }
                }
            } else {
                show(None, None);
                standing.changed().await.is_ok()
            };
            if !told {
                return;
            }
        }
    }

    /// All that the leader gives; what is still lacking then. The API server is asked once for each mark.
    async fn fetch(
        &self,
        secret_store: &Arc<dyn SecretStore>,
        offer: &Offer,
        known: &mut Option<(String, Known)>,
        tell: impl Fn(Lacks),
    ) -> Result<Lacks, MirrorError> {
        let fresh = match known.take() {
            Some((mark, known)) if mark == offer.mark => known,
            _ => {
                let secret_store = Arc::clone(secret_store);
                let read = tokio::task::spawn_blocking(move || known::read(&*secret_store));
                let Some(known) = read.await.map_err(io::Error::other)?? else { return Ok(Lacks::default()) };
                known
            }
        };
        let (_, known) = known.insert((offer.mark.clone(), fresh));
        self.gather(offer.address, known, tell).await
    }

    /// What isn't here of all that is known, as far as the one at this address gives it.
    pub(in super::super) async fn gather(
        &self,
        address: SocketAddr,
        known: &Known,
        tell: impl Fn(Lacks),
    ) -> Result<Lacks, MirrorError> {
        let (missing, mut lacks) = self.make_room(known)?;
        let (leader, mut faults) = Leader::at(address, known.cluster, known.mutual.clone());
        let swarm = Swarm::new(&self.paths);
        for blob in missing {
            tell(lacks);
            let fault = tokio::select! {
                fetched = swarm.fetch(blob, &leader, &self.objects) => match fetched {
                    Ok(()) => None,
                    Err(SwarmError::Nobody(_)) => continue,
                    Err(SwarmError::Disk(error)) => return Err(error.into()),
                },
                Some(fault) = faults.recv() => Some(fault),
            };
            match fault {
                None => lacks = Lacks { blobs: lacks.blobs - 1, bytes: lacks.bytes.saturating_sub(blob.size) },
                // It is on its way to the leader itself.
                Some(Fault::Away(HolderError::Refused(_))) => {}
                Some(Fault::Away(error)) => return Err(MirrorError::Away(error)),
                Some(Fault::Misbehaved(misbehavior)) => return Err(MirrorError::Misbehaved(misbehavior)),
            }
        }
        Ok(lacks)
    }

    /// What isn't here, the least first; what nobody names any more goes as it does where the agent works.
    fn make_room<'k>(&self, known: &'k Known) -> Result<(Vec<&'k BlobRef>, Lacks), MirrorError> {
        let mut missing: Vec<&BlobRef> = known.blobs.values().filter(|blob| !self.objects.has(&blob.digest)).collect();
        missing.sort_by_key(|blob| blob.size);
        let lacks = Lacks { blobs: missing.len(), bytes: missing.iter().map(|blob| blob.size).sum() };
        let need = lacks.bytes.saturating_add(self.reserve);
        self.objects.collect(&known.blobs.keys().copied().collect(), need)?;
        // A file system that doesn't say is tried.
        if !missing.is_empty() && free(&self.paths.objects()).is_ok_and(|free| free < need) {
            return Err(MirrorError::Full(lacks.bytes));
        }
        Ok((missing, lacks))
    }
}

fn address_of(standing: &Standing) -> Option<SocketAddr> {
    match standing {
        Standing::By { offer, .. } => offer.as_ref().map(|offer| offer.address),
        Standing::Holds { .. } => None,
    }
}

/// At most so long. False: nobody tells any more.
async fn rest<T>(most: Duration, news: impl Future<Output = Result<T, watch::error::RecvError>>) -> bool {
    !matches!(tokio::time::timeout(most, news).await, Ok(Err(_)))
}
