//! The write side of the secret ledger: a ledger's bytes become a Secret, compare-and-swap by its version, in several where one is too
//! small. It remembers of each ledger only which value the cluster has.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kedge_durable::{MAX_LEDGER, open_copy};
use kedge_model::wire::Digest;
use tokio::sync::watch;

use super::{Held, Kept, SecretLedgerError, SecretStore, SecretStoreError, bundle, names};
use crate::objects::Objects;

pub(super) struct Mirror {
    pub secret_store: Arc<dyn SecretStore>,
    /// This process in this term.
    pub writer: String,
    held: Held,
    fenced: watch::Sender<bool>,
    objects: Objects,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    entries: BTreeMap<String, Entry>,
    /// Of each record: the contents that are kept beside it.
    contents: BTreeMap<String, BTreeSet<Digest>>,
    /// Until then the API server isn't asked again: a writer waits long enough once.
    away: Option<(Instant, String)>,
}

/// What the cluster has of one ledger.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub version: String,
    pub digest: String,
    pub sequence: u64,
    pub parts: Vec<String>,
    /// A write whose end nobody heard of.
    pub unsure: bool,
}

/// After a request that got no answer, others fail at once for so long.
const REST: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 3 });
/// Ledgers are text; more effort gains little.
const LEVEL: i32 = 3;
/// Contents of many objects may be larger than a ledger.
const MOST_UNPACKED: u64 = 64 << 20;

impl Mirror {
    pub(super) fn new(
        secret_store: Arc<dyn SecretStore>,
        writer: String,
        held: Held,
        fenced: watch::Sender<bool>,
        objects: Objects,
    ) -> Mirror {
        Mirror { secret_store, writer, held, fenced, objects, known: Mutex::default() }
    }

    /// The cluster has this value when it returns. The same value again costs nothing.
    pub(super) fn put(&self, ledger: &str, bytes: &[u8]) -> io::Result<()> {
        let mut known = self.known();
        if known.entries.get(ledger).is_some_and(|entry| !entry.unsure && entry.digest == hex(bytes)) {
            return Ok(());
        }
        self.may_write(&known)?;
        self.put_contents(&mut known, ledger, bytes)?;
        self.put_value(&mut known, ledger, bytes)
    }

    /// A command wrote a newer value into the node's folder.
    pub(super) fn catch_up(&self, ledger: &str, bytes: &[u8]) -> io::Result<()> {
        let Some((sequence, _)) = open_copy(bytes) else { return Ok(()) };
        let kept = self.known().entries.get(ledger).map_or(0, |entry| entry.sequence);
        if sequence > kept { self.put(ledger, bytes) } else { Ok(()) }
    }

    /// The cluster has it no longer when it returns.
    pub(super) fn remove(&self, ledger: &str) -> io::Result<()> {
        let mut known = self.known();
        let contents = names::contents_of(ledger);
        for ledger in std::iter::once(ledger).chain(contents.as_deref()) {
            let Some(entry) = known.entries.get(ledger).cloned() else { continue };
            self.may_write(&known)?;
            let entry = self.settled(&mut known, ledger, entry)?;
            let removed = self.secret_store.remove(&names::secret(ledger), &entry.version);
            self.judge(&mut known, ledger, removed)?;
            known.entries.remove(ledger);
            self.remove_parts(&entry.parts);
        }
        known.contents.remove(ledger);
        Ok(())
    }

    /// What taking over found.
    pub(super) fn learn(&self, ledger: &str, entry: Entry) {
        self.known().entries.insert(ledger.to_owned(), entry);
    }

    pub(super) fn learn_contents(&self, ledger: &str, contents: BTreeSet<Digest>) {
        self.known().contents.insert(ledger.to_owned(), contents);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may_write(&self, known: &Known) -> io::Result<()> {
        if *self.fenced.borrow() {
            return Err(SecretStoreError::Conflict("another agent has taken over".to_owned()).into());
        }
        if !(self.held)() {
            return Err(SecretStoreError::Away("this agent doesn't hold the Lease".to_owned()).into());
        }
        match &known.away {
            Some((until, why)) if Instant::now() < *until => Err(SecretStoreError::Away(why.clone()).into()),
            _ => Ok(()),
        }
    }

    /// What a record's goals are made of is in the cluster before the record names it: another node lacks it otherwise. What is no
    /// longer named stays until something new comes, so that one change writes it once.
    fn put_contents(&self, known: &mut Known, ledger: &str, bytes: &[u8]) -> io::Result<()> {
        let Some(stem) = names::contents_of(ledger) else { return Ok(()) };
        let Some((named, bundle)) = bundle::of_record(bytes, &self.objects, |named| {
            !named.is_empty() && !known.contents.get(ledger).is_some_and(|kept| kept.is_superset(named))
        }) else {
            return Ok(());
        };
        let Some(bundle) = bundle else {
            // The next agent fetches the packages again.
            tracing::warn!(ledger, objects = named.len(), "its objects are too large to be kept in the cluster");
            return Ok(());
        };
        self.put_value(known, &stem, &bundle)?;
        known.contents.insert(ledger.to_owned(), named);
        Ok(())
    }

    fn put_value(&self, known: &mut Known, ledger: &str, bytes: &[u8]) -> io::Result<()> {
        let packed = zstd::bulk::compress(bytes, LEVEL)?;
        let (name, digest) = (names::secret(ledger), hex(bytes));
        let before = known.entries.get(ledger).cloned().unwrap_or_default();
        let before = self.settled(known, ledger, before)?;
        let mut chunks = packed.chunks(names::MOST);
        let first = chunks.next().unwrap_or_default().to_vec();
        let mut parts = Vec::new();
        for (number, chunk) in chunks.enumerate() {
            let part = names::part(&name, &digest, number + 2);
            self.put_part(known, ledger, &part, chunk)?;
            parts.push(part);
        }
        let annotations = BTreeMap::from(
            [(names::LEDGER, ledger.to_owned()), (names::WRITER, self.writer.clone()), (names::DIGEST, digest.clone())]
                .map(|(key, value)| (key.to_owned(), value)),
        );
        let mut kept = Kept {
            name,
            word: names::word(ledger).to_owned(),
            annotations,
            value: first,
            version: before.version.clone(),
        };
        if !parts.is_empty() {
            kept.annotations.insert(names::PARTS.to_owned(), parts.join(" "));
        }
        let version = match self.secret_store.put(&kept) {
            // Somebody touched it, or an answer of ours was lost: what counts is who wrote the value.
            Err(SecretStoreError::Conflict(_)) => {
                let unsure = Entry { unsure: true, ..before.clone() };
                kept.version = self.settled(known, ledger, unsure)?.version;
                let again = self.secret_store.put(&kept);
                self.judge(known, ledger, again)?
            }
            other => self.judge(known, ledger, other)?,
        };
        let sequence = open_copy(bytes).map_or(0, |(sequence, _)| sequence);
        let old = before.parts.into_iter().filter(|part| !parts.contains(part)).collect::<Vec<_>>();
        known.entries.insert(ledger.to_owned(), Entry { version, digest, sequence, parts, unsure: false });
        self.remove_parts(&old);
        Ok(())
    }

    /// Parts are named by their content: one that is there is the same one.
    fn put_part(&self, known: &mut Known, ledger: &str, name: &str, chunk: &[u8]) -> io::Result<()> {
        let annotations = BTreeMap::from([(names::WRITER.to_owned(), self.writer.clone())]);
        let part = Kept {
            name: name.to_owned(),
            word: names::PART.to_owned(),
            annotations,
            value: chunk.to_vec(),
            version: String::new(),
        };
        match self.secret_store.put(&part) {
            Err(SecretStoreError::Conflict(_)) => Ok(()),
            other => self.judge(known, ledger, other).map(|_| ()),
        }
    }

    /// Nobody names them any more; what stays is cleared by the next term.
    fn remove_parts(&self, parts: &[String]) {
        for part in parts {
            if let Ok(Some(kept)) = self.secret_store.get(part) {
                _ = self.secret_store.remove(part, &kept.version);
            }
        }
    }

    /// After a write whose end nobody heard of: which version it has now, if the last word was ours.
    fn settled(&self, known: &mut Known, ledger: &str, entry: Entry) -> io::Result<Entry> {
        if !entry.unsure {
            return Ok(entry);
        }
        let got = self.secret_store.get(&names::secret(ledger));
        let settled = match self.judge(known, ledger, got)? {
            Some(kept) if kept.annotations.get(names::WRITER) == Some(&self.writer) => {
                let digest = kept.annotations.get(names::DIGEST).cloned().unwrap_or_default();
                Entry { version: kept.version, digest, unsure: false, ..entry }
            }
            Some(kept) => {
                let by = kept.annotations.get(names::WRITER).cloned().unwrap_or_default();
                let conflict = SecretStoreError::Conflict(format!("{} was written by {by}", kept.name));
                return self.judge(known, ledger, Err::<Entry, _>(conflict));
            }
            // A person deleted it, or it was never made: it is made anew.
            None => Entry { version: String::new(), digest: String::new(), unsure: false, ..entry },
        };
        known.entries.insert(ledger.to_owned(), settled.clone());
        Ok(settled)
    }

    /// Notes what an answer means for the next write.
    fn judge<T>(&self, known: &mut Known, ledger: &str, result: Result<T, SecretStoreError>) -> io::Result<T> {
        match &result {
            Ok(_) => known.away = None,
            Err(SecretStoreError::Conflict(why)) => {
                tracing::error!(ledger, why, "another agent writes: this one stops");
                self.fenced.send_replace(true);
            }
            Err(SecretStoreError::Away(why)) => {
                known.away = Some((Instant::now() + REST, why.clone()));
                known.entries.entry(ledger.to_owned()).or_default().unsure = true;
            }
            Err(SecretStoreError::Refused(_)) => {}
        }
        Ok(result?)
    }
}

/// A value as it is kept, from its Secret and its parts.
pub(super) fn unpack(kept: &Kept, all: &BTreeMap<String, Kept>) -> Result<Vec<u8>, SecretLedgerError> {
    let broken = |why| SecretLedgerError::Broken { name: kept.name.clone(), why };
    let mut packed = kept.value.clone();
    for part in parts_of(kept) {
        let part = all.get(&part).ok_or_else(|| broken("a part of it is missing"))?;
        packed.extend_from_slice(&part.value);
    }
    let most = if kept.word == "contents" { MOST_UNPACKED } else { MAX_LEDGER as u64 };
    let mut bytes = Vec::new();
    let reader = zstd::Decoder::new(&packed[..]).map_err(|_| broken("it can't be decompressed"))?;
    reader.take(most + 1).read_to_end(&mut bytes).map_err(|_| broken("it can't be decompressed"))?;
    if bytes.len() as u64 > most {
        return Err(broken("it is too large"));
    }
    match kept.annotations.get(names::DIGEST) {
        Some(digest) if *digest == hex(&bytes) => Ok(bytes),
        _ => Err(broken("its digest doesn't fit")),
    }
}

pub(super) fn parts_of(kept: &Kept) -> Vec<String> {
    let parts = kept.annotations.get(names::PARTS).map(String::as_str).unwrap_or_default();
    parts.split_whitespace().take(names::MOST_PARTS).map(str::to_owned).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    Digest::of(bytes).hex()
}
