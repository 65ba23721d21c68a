//! What the command `peers` shows of the other pods: a file in the folder that a reboot empties. Nothing depends on it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use super::{end, read, write};
use crate::paths::Paths;

/// As this pod knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Pods {
    /// This one works for the cluster.
    Leads {
        /// Where the others are let in.
        address: SocketAddr,
        /// Who asked for content, and when last.
        asked: BTreeMap<IpAddr, Timestamp>,
    },
    StandsBy {
        leader: Option<String>,
        /// None: it lets nobody in.
        address: Option<SocketAddr>,
        /// Pieces of content that it would have to fetch after taking over; none: not known yet.
        lacks: Option<usize>,
        bytes: u64,
        trouble: Option<String>,
        /// The leader gave what can't be true.
        lied: bool,
    },
}

const FILE: &str = "pods.json";

impl Pods {
    pub fn read(paths: &Paths) -> Option<Pods> {
        read(paths, FILE)
    }

    pub fn show(&self, paths: &Paths) {
        if let Err(error) = write(paths, FILE, self) {
            tracing::debug!(%error, "the other pods can't be shown");
        }
    }

    pub fn end(paths: &Paths) {
        end(paths, FILE);
    }
}
