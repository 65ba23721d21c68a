//! The pod that leads, as a download of one that stands by sees it: the only one to ask. Nobody else has the content, so the first
//! refusal or break is heard at once, instead of waiting for another holder.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kedge_model::wire::{ClusterId, Digest};
use tokio::sync::mpsc;

use super::super::content::{Seat, Way};
use crate::link::mutual::Mutual;
use crate::swarm::{Holder, HolderError, Misbehavior, Pieces, Sources};

/// Why it gives nothing now.
#[derive(Debug)]
pub enum Fault {
    Away(HolderError),
    Misbehaved(Misbehavior),
}

pub struct Leader {
    seat: Arc<Heard>,
}

struct Heard {
    seat: Seat,
    tell: mpsc::Sender<Fault>,
}

impl Leader {
    /// It must show the cluster's own key.
    pub fn at(address: SocketAddr, cluster: ClusterId, mutual: Mutual) -> (Leader, mpsc::Receiver<Fault>) {
        let (tell, faults) = mpsc::channel(1);
        let seat = Seat::new(cluster, Way::Own(mutual), vec![address]);
        (Leader { seat: Arc::new(Heard { seat, tell }) }, faults)
    }
}

impl Heard {
    /// One fault is enough: who hears it stops.
    fn hear(&self, gave: Result<Pieces, HolderError>) -> Result<Pieces, HolderError> {
        gave.inspect_err(|error| _ = self.tell.try_send(Fault::Away(error.clone())))
    }
}

impl Holder for Heard {
    fn cluster(&self) -> ClusterId {
        self.seat.cluster()
    }

    fn chunks(&self, blob: Digest) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        self.seat.chunks(blob).map(|gave| self.hear(gave)).boxed()
    }

    fn range(&self, blob: Digest, range: Range<u64>) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        self.seat.range(blob, range).map(|gave| self.hear(gave)).boxed()
    }
}

impl Sources for Leader {
    fn holders(&self, _blob: &Digest) -> Vec<Arc<dyn Holder>> {
        vec![Arc::clone(&self.seat) as Arc<dyn Holder>]
    }

    fn is_coming(&self, _blob: &Digest) -> bool {
        false
    }

    fn misbehaved(&self, _who: ClusterId, misbehavior: Misbehavior) {
        _ = self.seat.tell.try_send(Fault::Misbehaved(misbehavior));
    }
}
