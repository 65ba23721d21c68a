//! What this host tells, as a file for who carries it to the hub: the status document, a technician's holds and a sign of life, each
//! signed by the cluster's key; and what it carries for others of its site. The command `export` calls it; nothing here is changed.

use std::collections::BTreeSet;
use std::path::Path;

use kedge_bundle::{Author, BundleError, Index, Output, Sealed, Writer, fingerprint};
use kedge_durable::{Disk, LedgerError};
use kedge_model::wire::{ClusterId, Digest, Envelope, EnvelopeError, HoldDocument, Payload as _, Presence, Timestamp};

use super::carried;
use super::looked;
use crate::contact::Contact;
use crate::desired::MemoryError;
use crate::desired::view::View;
use crate::holds::{HoldError, Holds};
use crate::identity::Identity;
use crate::paths::Paths;
use crate::report::{self, ReportError};

/// What is in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The document of this host is there; without it nothing was ever told.
    pub status: bool,
    /// The sign of life is there: the agent runs and has looked.
    pub presence: bool,
    /// Other clusters of which something is there.
    pub others: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the file can't be written")]
    Bundle(#[from] BundleError),
    #[error("the status can't be read")]
    Report(#[from] ReportError),
    #[error("the holds can't be read")]
    Holds(#[from] HoldError),
    #[error("what this host knows can't be read")]
    Memory(#[from] MemoryError),
    #[error("the sign of life can't be signed")]
    Presence(#[source] EnvelopeError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Writes the file. `runs`: the agent's daemon does.
pub fn export(
    disk: &dyn Disk,
    paths: &Paths,
    identity: &Identity,
    (now, runs): (Timestamp, bool),
    to: &Path,
) -> Result<Exported, ExportError> {
    let (index, exported) = collect(disk, paths, identity, now, runs)?;
    let sealed = Sealed::seal(&index, identity.signing_key())?;
    let output = Output::create(to, None).map_err(BundleError::from)?;
    Writer::new(output, sealed)?.finish()?.finish().map_err(BundleError::from)?;
    Ok(exported)
}

fn collect(
    disk: &dyn Disk,
    paths: &Paths,
    identity: &Identity,
    now: Timestamp,
    runs: bool,
) -> Result<(Index, Exported), ExportError> {
    let (key, cluster) = (identity.signing_key(), identity.cluster());
    let view = View::read(disk, paths, identity)?;
    // One without a readable authority names no fleet; the hub knows the cluster anyway.
    let fleet = fingerprint(view.keys()).unwrap_or_else(|| Digest::of(&[]));
    let mut index = Index::new(fleet, now);
    index.writer = Some(Author { cluster, key: key.public() });
    index.clusters.push(cluster);
    let mut exported = Exported::default();

    let mut poll = view.request_base();
    if let Some((envelope, heads)) = report::sealed(disk, paths, key, now)? {
        index.documents.push(envelope);
        poll.status = heads;
        exported.status = true;
    }
    index.holds.extend(Holds::of(paths).documents()?.0);
    index.holds.extend(Holds::of(paths).outgoing()?);
    // Who doesn't run, or hasn't looked yet, has no sign of life to give: what the document says may be long over.
    if runs && let Some(looked) = looked::read(paths) {
        poll.look_age = u64::try_from(now.0.saturating_sub(looked.0)).unwrap_or(0) / 1000;
        let offset = Contact::read(paths).clock_offset().unwrap_or(0);
        let presence = Presence { key: key.public(), at: Timestamp(now.0.saturating_add(offset)), poll };
        index.presences.push(Envelope::sign(&presence, key).map_err(ExportError::Presence)?);
        exported.presence = true;
    }
    exported.others = add_carried(&mut index, carried::read(paths), cluster);
    Ok((index, exported))
}

/// What others of the site left here, by what it is; of how many clusters. The hub judges each as if its owner had sent it.
fn add_carried(index: &mut Index, carried: Vec<Envelope>, own: ClusterId) -> usize {
    let mut others = BTreeSet::new();
    for envelope in carried {
        let list = match envelope.payload_type.as_str() {
            kedge_status::PAYLOAD_TYPE => &mut index.documents,
            HoldDocument::TYPE => &mut index.holds,
            Presence::TYPE => &mut index.presences,
            _ => continue,
        };
        let signer = envelope.signatures.first().map(|signature| signature.keyid);
        if signer == Some(own.key_id()) {
            continue;
        }
        others.extend(signer);
        list.push(envelope);
    }
    others.len()
}

impl ExportError {
    pub fn hint(&self) -> Option<String> {
        match self {
            ExportError::Bundle(error) => error.hint().map(str::to_owned),
            _ => None,
        }
    }
}
