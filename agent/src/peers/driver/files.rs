//! Where the site and files on a stick meet: what an import brought for others goes into the store, and what is carried while nobody
//! reaches the hub is kept for an export.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kedge_model::wire::{Digest, Envelope};
use kedge_peer::{Name, Taken};
use tokio::time::Instant;

use super::Driver;
use super::tell::is_hubs;
use crate::airgap::carried;
use crate::airgap::inbox::Inbox;

/// What files have to do with the site.
#[derive(Debug)]
pub struct Files {
    look_at: Instant,
    /// When the file that was last read had been written.
    read: Option<SystemTime>,
    keep_at: Instant,
    /// The digest of what was last kept.
    kept: Option<Digest>,
}

/// A look at a file's time.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Who exports waits at most so long for the newest; it wears the disk.
const KEEP_EVERY: Duration = Duration::from_secs(120);
/// What can only be judged by what comes later in the same file.
const ROUNDS: usize = 3;

impl Files {
    pub fn new(now: Instant) -> Files {
        Files { look_at: now, read: None, keep_at: now + KEEP_EVERY, kept: None }
    }
}

impl Driver {
    pub(super) fn mind_files(&mut self) {
        let now = Instant::now();
        if now >= self.files.look_at {
            self.files.look_at = now + LOOK_EVERY;
            self.read_import();
        }
        if now >= self.files.keep_at && self.node.uplink().is_none() {
            self.files.keep_at = now + KEEP_EVERY;
            self.keep_carried();
        }
    }

    fn read_import(&mut self) {
        let inbox = Inbox::of(&self.place.paths);
        let written = inbox.site_written();
        if written.is_none() || written == self.files.read {
            return;
        }
        self.files.read = written;
        let mut waiting = match inbox.site() {
            Ok(documents) => documents,
            Err(error) => return tracing::warn!(%error, "what a file brought for the site can't be read"),
        };
        let brought = waiting.len();
        for _ in 0..ROUNDS {
            let again: Vec<Envelope> =
                waiting.into_iter().filter(|document| self.put(document.clone()) == Some(Taken::NotYet)).collect();
            waiting = again;
        }
        tracing::info!(brought, left = waiting.len(), "a file brought documents for the site");
    }

    /// Status documents, holds and signs of life of the others.
    fn keep_carried(&mut self) {
        let (me, own) = (self.me, Arc::clone(&self.own.borrow()));
        let others = self.node.store().documents().filter(|(name, ..)| match name {
            Name::Status(cluster) => *cluster != me,
            Name::Holds { by, .. } => *by != me.key_id() && !is_hubs(&own, by),
            _ => false,
        });
        let documents: Vec<Envelope> =
            others.map(|(_, _, envelope)| envelope).chain(self.node.signs()).cloned().collect();
        let payloads: Vec<u8> =
            documents.iter().flat_map(|document| Digest::of(&document.payload).as_bytes().to_vec()).collect();
        let digest = Some(Digest::of(&payloads));
        if documents.is_empty() || self.files.kept == digest {
            return;
        }
        match carried::keep(&self.place.paths, &documents) {
            Ok(()) => self.files.kept = digest,
            Err(error) => tracing::warn!(%error, "what is carried for others can't be kept for an export"),
        }
    }
}
