//! Memberships: which stream a cluster follows, signed and numbered per cluster, written in the same transaction as the
//! cluster's row. Called by whoever joins, moves, relabels, replaces or retires clusters.

use std::collections::BTreeSet;

use kedge_model::Labels;
use kedge_model::wire::{
    ClusterId, DesiredState, Envelope, EnvelopeError, Membership, Mode, Sequence, Stream, Timestamp,
};

use super::Signer;
use crate::store::state::Member;
use crate::store::{StoreError, Tx};

/// What becomes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// To another stream: what only the old one has goes with it.
    Move(Stream),
    Relabel {
        labels: Labels,
        site: Option<String>,
    },
    /// It stops, and what runs stays.
    Retire,
}

/// A membership and its signed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    pub membership: Membership,
    pub envelope: Envelope,
}

#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    #[error("there is no cluster {0}")]
    Unknown(ClusterId),
    #[error("the cluster {0} is {1}; only an active one can be changed")]
    NotActive(ClusterId, String),
    #[error("a cluster can't replace itself")]
    Same,
    #[error("the membership can't be signed")]
    Sign(#[from] EnvelopeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The first membership of a cluster that joins; the caller writes it with the row.
pub fn first(
    signer: &dyn Signer,
    cluster: ClusterId,
    name: &str,
    stream: Stream,
    labels: Labels,
    site: Option<String>,
    now: Timestamp,
) -> Result<Issued, EnvelopeError> {
    let membership = Membership {
        cluster,
        name: name.to_owned(),
        stream,
        labels,
        site,
        sequence: Sequence(1),
        issued_at: now,
        remove: Vec::new(),
        unmanage: Vec::new(),
        retired: false,
        requires: Vec::new(),
    };
    let envelope = signer.sign_membership(&membership)?;
    Ok(Issued { membership, envelope })
}

/// Changes an active cluster: a membership with the next number, and its row, in this transaction.
pub async fn change(
    signer: &dyn Signer,
    tx: &mut Tx,
    cluster: &ClusterId,
    change: &Change,
    now: Timestamp,
) -> Result<Issued, MembershipError> {
    let member = active(tx, cluster).await?;
    let mut next = following(&member.membership, now);
    let mut state = "active";
    match change {
        Change::Move(to) => depart(tx, &mut next, to).await?,
        Change::Relabel { labels, site } => {
            next.labels.clone_from(labels);
            next.site.clone_from(site);
        }
        Change::Retire => {
            next.retired = true;
            state = "retired";
        }
    }
    sign_and_write(signer, tx, next, state).await
}

/// A new host takes an old one's place: its name, labels, site and stream; the old one is retired. First the new one's
/// membership, then the old one's.
pub async fn replace(
    signer: &dyn Signer,
    tx: &mut Tx,
    old: &ClusterId,
    new: &ClusterId,
    now: Timestamp,
) -> Result<(Issued, Issued), MembershipError> {
    if old == new {
        return Err(MembershipError::Same);
    }
    let leaving = active(tx, old).await?.membership;
    let arriving = active(tx, new).await?.membership;
    let mut next = following(&arriving, now);
    if next.stream != leaving.stream {
        depart(tx, &mut next, &leaving.stream).await?;
    }
    next.name.clone_from(&leaving.name);
    next.labels.clone_from(&leaving.labels);
    next.site.clone_from(&leaving.site);
    let mut last = following(&leaving, now);
    last.retired = true;
    let last = sign_and_write(signer, tx, last, "replaced").await?;
    let next = sign_and_write(signer, tx, next, "active").await?;
    Ok((next, last))
}

async fn active(tx: &mut Tx, cluster: &ClusterId) -> Result<Member, MembershipError> {
    let member = tx.member(cluster).await?.ok_or(MembershipError::Unknown(*cluster))?;
    match member.state.as_str() {
        "active" => Ok(member),
        other => Err(MembershipError::NotActive(*cluster, other.to_owned())),
    }
}

/// The same place with the next number. What an earlier move takes away is still listed: the cluster may have been away
/// since before it.
fn following(before: &Membership, now: Timestamp) -> Membership {
    Membership { sequence: Sequence(before.sequence.0 + 1), issued_at: now, ..before.clone() }
}

/// What leaving the stream takes away. An assignment of both streams is changed in place by the new one's state.
async fn depart(tx: &mut Tx, next: &mut Membership, to: &Stream) -> Result<(), StoreError> {
    let old = tx.newest_state(&next.stream).await?;
    let new = tx.newest_state(to).await?;
    let (remove, unmanage) = parting(next, old.as_ref(), new.as_ref());
    (next.remove, next.unmanage) = (remove, unmanage);
    next.stream = to.clone();
    Ok(())
}

fn parting(before: &Membership, old: Option<&DesiredState>, new: Option<&DesiredState>) -> (Vec<String>, Vec<String>) {
    let named = |state: Option<&DesiredState>, ours: bool| -> BTreeSet<String> {
        let entries = state.map(|state| state.entries.as_slice()).unwrap_or_default();
        let chosen = entries.iter().filter(|entry| matches!(entry.mode, Mode::Apply(_)) == ours);
        chosen.map(|entry| entry.assignment.clone()).collect()
    };
    let (applied, observed) = (named(new, true), named(new, false));
    let mut unmanage: BTreeSet<String> = before.unmanage.iter().cloned().collect();
    let mut remove: BTreeSet<String> = before.remove.iter().cloned().collect();
    if let Some(old) = old {
        unmanage.extend(old.unmanaged.iter().map(|tombstone| tombstone.assignment.clone()));
        remove.extend(old.removed.iter().map(|tombstone| tombstone.assignment.clone()));
    }
    for assignment in named(old, true) {
        unmanage.remove(&assignment);
        remove.insert(assignment);
    }
    // What another reconciler brings there stays; what ours brings is none of both.
    unmanage.extend(remove.intersection(&observed).cloned());
    unmanage.retain(|assignment| !applied.contains(assignment));
    remove.retain(|assignment| !applied.contains(assignment) && !unmanage.contains(assignment));
    (remove.into_iter().collect(), unmanage.into_iter().collect())
}

async fn sign_and_write(
    signer: &dyn Signer,
    tx: &mut Tx,
    membership: Membership,
    state: &str,
) -> Result<Issued, MembershipError> {
    let envelope = signer.sign_membership(&membership)?;
    tx.set_membership(&membership, &envelope.to_json()?, state).await?;
    Ok(Issued { membership, envelope })
}

#[cfg(test)]
mod tests;
