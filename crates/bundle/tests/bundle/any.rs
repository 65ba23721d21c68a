//! Any byte changed, any cut, any bytes: refused, and nothing grows.

use kedge_bundle::{BundleError, HEAD, MAGIC};
use proptest::prelude::*;

use crate::fleet::{Fleet, open};

const BLOBS: [&[u8]; 2] = [b"a package", b"an artifact that is a little longer"];

fn refused(bytes: &[u8], fleet: &Fleet) -> bool {
    open(bytes).and_then(|reader| reader.verify(&fleet.keys)).and_then(|mut bundle| bundle.check(|_| {})).is_err()
}

#[test]
fn every_cut_is_seen() {
    let fleet = Fleet::new(1);
    let bytes = fleet.bundle(&BLOBS);
    for cut in 0..bytes.len() {
        assert!(refused(&bytes[..cut], &fleet), "cut at {cut}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(refused(&longer, &fleet) && !refused(&bytes, &fleet));
    // Behind the index it is known how much is missing.
    let cut = open(&bytes[..bytes.len() - 1]).unwrap().verify(&fleet.keys);
    assert!(matches!(cut, Err(BundleError::Truncated { expected, found }) if expected == found + 1));
}

#[test]
fn a_length_beyond_all_reason_allocates_nothing() {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&u64::MAX.to_be_bytes());
    assert!(matches!(open(&bytes), Err(BundleError::IndexTooLarge(u64::MAX))));
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&(60 * 1024 * 1024_u64).to_be_bytes());
    assert!(matches!(open(&bytes), Err(BundleError::Truncated { found: HEAD, .. })));
}

proptest! {
    #[test]
    fn any_byte_changed_is_refused(at in any::<prop::sample::Index>(), by in 1..=255_u8) {
        let fleet = Fleet::new(1);
        let mut bytes = fleet.bundle(&BLOBS);
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        prop_assert!(refused(&bytes, &fleet), "byte {}", at);
    }

    #[test]
    fn any_bytes_are_no_bundle(bytes in prop::collection::vec(any::<u8>(), 0..600), magic: bool) {
        let mut all = if magic { MAGIC.to_vec() } else { Vec::new() };
        all.extend_from_slice(&bytes);
        prop_assert!(open(&all).and_then(|reader| reader.look()).is_err());
    }

    #[test]
    fn any_json_is_no_bundle(text in "\\{.{0,200}\\}") {
        let mut all = MAGIC.to_vec();
        all.extend_from_slice(&(text.len() as u64).to_be_bytes());
        all.extend_from_slice(text.as_bytes());
        prop_assert!(open(&all).and_then(|reader| reader.look()).is_err());
    }
}
