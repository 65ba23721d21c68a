//! The begin of a term: every Secret of the secret ledger is read and claimed, so that an agent that still believes to work can't write any
//! more, and the node's folder becomes what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use kedge_durable::{Disk as _, MAX_LEDGER, open_copy};

use super::mirror::{Entry, hex, parts_of, unpack};
use super::{Hydrated, Kept, SecretLedger, SecretLedgerError, SecretStoreError, bundle, names};
use crate::objects::Objects;

/// An agent that is being stopped may still write once or twice.
const TRIES: usize = 5;
/// Written by commands in a pod, also while nobody could carry them over.
const LOCAL_WINS: [&str; 2] = ["holds", "external"];

pub(super) fn hydrate(secret_ledger: &SecretLedger, objects: &Objects) -> Result<Hydrated, SecretLedgerError> {
    let all = claim_all(secret_ledger)?;
    secret_ledger.inner.make_folder(&secret_ledger.state)?;
    secret_ledger.inner.make_folder(&secret_ledger.state.join("records"))?;
    let here = ledgers_here(secret_ledger)?;
    if all.is_empty() {
        return adopt(secret_ledger, &here);
    }
    let (mut found, mut named, mut hydrated) = (BTreeSet::new(), BTreeSet::new(), Hydrated::default());
    for kept in all.values() {
        let Some(ledger) = kept.annotations.get(names::LEDGER) else { continue };
        if names::secret(ledger) != kept.name || !(names::is_ledger(ledger) || names::is_contents(ledger)) {
            continue;
        }
        found.insert(ledger.clone());
        named.extend(parts_of(kept));
        match unpack(kept, &all) {
            Ok(bytes) => take(secret_ledger, objects, kept, ledger, &bytes, &mut hydrated)?,
            Err(error) => {
                // The node's own value, if it has one, is the best there is; the next write mends the Secret.
                tracing::error!(%error, ledger, "a Secret can't be used");
                let entry = Entry { version: kept.version.clone(), ..Entry::default() };
                secret_ledger.mirror.learn(ledger, entry);
            }
        }
    }
    for stale in here.difference(&found) {
        remove_copies(secret_ledger, stale)?;
    }
    clear_leftovers(secret_ledger, &all, &named, &found);
    for folder in [secret_ledger.state.clone(), secret_ledger.state.join("records")] {
        secret_ledger.inner.sync_folder(&folder)?;
    }
    Ok(hydrated)
}

/// All Secrets at one moment, each claimed since. The versions are those after claiming.
fn claim_all(secret_ledger: &SecretLedger) -> Result<BTreeMap<String, Kept>, SecretLedgerError> {
    let mirror = &secret_ledger.mirror;
    for _ in 0..TRIES {
        let mut all: BTreeMap<String, Kept> =
            mirror.secret_store.list()?.into_iter().map(|kept| (kept.name.clone(), kept)).collect();
        let mut contested = false;
        for kept in all.values_mut().filter(|kept| kept.word != names::PART) {
            if kept.annotations.get(names::WRITER) == Some(&mirror.writer) {
                continue;
            }
            match mirror.secret_store.mark(&kept.name, &kept.version, (names::WRITER, &mirror.writer)) {
                Ok(version) => kept.version = version,
                Err(SecretStoreError::Conflict(_)) => {
                    contested = true;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !contested {
            return Ok(all);
        }
    }
    Err(SecretLedgerError::Contested)
}

fn take(
    secret_ledger: &SecretLedger,
    objects: &Objects,
    kept: &Kept,
    ledger: &str,
    bytes: &[u8],
    hydrated: &mut Hydrated,
) -> Result<(), SecretLedgerError> {
    let sequence = open_copy(bytes).map_or(0, |(sequence, _)| sequence);
    let (version, digest, parts) = (kept.version.clone(), hex(bytes), parts_of(kept));
    secret_ledger.mirror.learn(ledger, Entry { version, digest, sequence, parts, unsure: false });
    if names::is_contents(ledger) {
        let contents = bundle::put(bytes, objects)?;
        let record = ledger.replacen("contents/", "records/", 1);
        secret_ledger.mirror.learn_contents(&record, contents);
        return Ok(());
    }
    hydrated.ledgers += 1;
    if LOCAL_WINS.contains(&ledger)
        && let Some((newer, local)) = best_copy(secret_ledger, ledger).filter(|(newer, _)| *newer > sequence)
    {
        tracing::info!(ledger, sequence = newer, "what a command wrote on this node is carried over");
        return Ok(secret_ledger.mirror.put(ledger, &local)?);
    }
    let mut changed = false;
    for which in ["a", "b"] {
        let copy = copy(secret_ledger, ledger, which);
        if secret_ledger.inner.read(&copy, MAX_LEDGER as u64).is_ok_and(|here| here == bytes) {
            continue;
        }
        changed = true;
        let temporary = with_ending(&copy, "new");
        secret_ledger.inner.write(&temporary, bytes)?;
        secret_ledger.inner.sync_file(&temporary)?;
        secret_ledger.inner.rename(&temporary, &copy)?;
    }
    hydrated.changed += usize::from(changed);
    Ok(())
}

/// There is nothing in the cluster: what this node has is all there is.
fn adopt(secret_ledger: &SecretLedger, here: &BTreeSet<String>) -> Result<Hydrated, SecretLedgerError> {
    for ledger in here {
        if let Some((_, bytes)) = best_copy(secret_ledger, ledger) {
            secret_ledger.mirror.put(ledger, &bytes)?;
        }
    }
    Ok(Hydrated { ledgers: here.len(), changed: 0 })
}

/// Parts and contents that nobody names any more: a cut came before they were removed.
fn clear_leftovers(
    secret_ledger: &SecretLedger,
    all: &BTreeMap<String, Kept>,
    named: &BTreeSet<String>,
    found: &BTreeSet<String>,
) {
    let orphan = |kept: &&Kept| {
        let ledger = kept.annotations.get(names::LEDGER).map(String::as_str).unwrap_or_default();
        let record = ledger.replacen("contents/", "records/", 1);
        (kept.word == names::PART && !named.contains(&kept.name))
            || (names::is_contents(ledger) && !found.contains(&record))
    };
    for kept in all.values().filter(orphan) {
        if let Err(error) = secret_ledger.mirror.secret_store.remove(&kept.name, &kept.version) {
            tracing::warn!(%error, secret = kept.name, "a leftover can't be removed yet");
        }
    }
}

/// The ledgers of the node's folder.
fn ledgers_here(secret_ledger: &SecretLedger) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for folder in [secret_ledger.state.clone(), secret_ledger.state.join("records")] {
        found.extend(secret_ledger.inner.list(&folder)?.iter().filter_map(|path| secret_ledger.ledger(path)));
    }
    Ok(found)
}

/// The higher of both copies.
fn best_copy(secret_ledger: &SecretLedger, ledger: &str) -> Option<(u64, Vec<u8>)> {
    let read = |which: &str| {
        let bytes = secret_ledger.inner.read(&copy(secret_ledger, ledger, which), MAX_LEDGER as u64).ok()?;
        open_copy(&bytes).map(|(sequence, _)| (sequence, bytes))
    };
    [read("a"), read("b")].into_iter().flatten().max_by_key(|(sequence, _)| *sequence)
}

fn remove_copies(secret_ledger: &SecretLedger, ledger: &str) -> io::Result<()> {
    for which in ["a", "b"] {
        match secret_ledger.inner.remove(&copy(secret_ledger, ledger, which)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn copy(secret_ledger: &SecretLedger, ledger: &str, which: &str) -> PathBuf {
    with_ending(&secret_ledger.state.join(ledger), which)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}
