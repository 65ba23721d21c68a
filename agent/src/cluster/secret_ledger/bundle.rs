//! What the objects of an assignment are made of, as one value: each with its length, named by nothing but their bytes. The secret ledger
//! puts it beside the assignment's record; a new leader puts its parts into the store of its own node.

use std::collections::BTreeSet;
use std::io;

use kedge_durable::open_copy;
use kedge_model::wire::Digest;

use super::names;
use crate::objects::Objects;
use crate::record::Record;
use crate::records;

/// The first bytes: what it is, and its version.
const MAGIC: &[u8; 8] = b"kedge-c1";
/// What compresses to more than all parts hold isn't kept.
const MOST: usize = 48 << 20;
/// One object has 1 MiB at most.
const MOST_OBJECT: u64 = 4 << 20;

/// What a record's copy names, and the bundle of it if `wanted` says so. None: it isn't wanted, or no record. A bundle of none: it would
/// be too large, or the node itself lacks something.
pub fn of_record(
    copy: &[u8],
    objects: &Objects,
    wanted: impl FnOnce(&BTreeSet<Digest>) -> bool,
) -> Option<(BTreeSet<Digest>, Option<Vec<u8>>)> {
    let (_, json) = open_copy(copy)?;
    let record: Record = serde_json::from_slice(&json).ok()?;
    let named = records::contents(&record);
    if !wanted(&named) {
        return None;
    }
    let bundle = pack(&named, objects);
    Some((named, bundle))
}

fn pack(named: &BTreeSet<Digest>, objects: &Objects) -> Option<Vec<u8>> {
    let mut bundle = MAGIC.to_vec();
    for digest in named {
        let bytes = objects.read_small(digest, MOST_OBJECT).ok()?;
        if bundle.len() + bytes.len() > MOST {
            return None;
        }
        bundle.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_be_bytes());
        bundle.extend_from_slice(&bytes);
    }
    // A quick measure: what doesn't compress at all must still fit.
    let packed = zstd::bulk::compress(&bundle, 1).ok()?;
    (packed.len() <= names::MOST * names::MOST_PARTS).then_some(bundle)
}

/// Puts what a bundle holds into the store. Which they are.
pub fn put(bundle: &[u8], objects: &Objects) -> io::Result<BTreeSet<Digest>> {
    let mut named = BTreeSet::new();
    for bytes in parts(bundle) {
        let digest = Digest::of(bytes);
        if !objects.has(&digest) {
            objects.put(bytes)?;
        }
        named.insert(digest);
    }
    Ok(named)
}

/// As far as it is whole.
fn parts(bundle: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bundle.strip_prefix(MAGIC.as_slice()).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (part, behind) = behind.split_at_checked(length)?;
        rest = behind;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn contents_are_the_same_in_the_store_of_another_node() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (one, other) = (Objects::open(one.path()).unwrap(), Objects::open(other.path()).unwrap());
        let named: BTreeSet<Digest> = [b"{}".as_slice(), b"", b"{\"kind\":\"Pod\"}"]
            .into_iter()
            .map(|bytes| {
                one.put(bytes).unwrap();
                Digest::of(bytes)
            })
            .collect();
        let bundle = pack(&named, &one).unwrap();
        assert_eq!(put(&bundle, &other).unwrap(), named);
        assert!(named.iter().all(|digest| other.has(digest)));
        assert_eq!(pack(&[Digest::of(b"missing")].into(), &one), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_grow(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let bundle = [MAGIC.as_slice(), &bytes].concat();
            prop_assert!(parts(&bundle).map(<[u8]>::len).sum::<usize>() <= bytes.len());
            prop_assert_eq!(parts(&bytes).count(), if bytes.starts_with(MAGIC) { parts(&bytes).count() } else { 0 });
        }
    }
}
