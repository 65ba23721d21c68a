//! Whom a bundle is believed.

use kedge_bundle::{Author, BundleError, Index, Sealed, Writer};
use kedge_model::wire::{ClusterId, Digest, Envelope, EnvelopeError, KeyState, Payload as _, SigningKey, Timestamp};

use crate::fleet::{Fleet, open, set, write};

#[test]
fn what_is_written_is_read_again() {
    let fleet = Fleet::new(1);
    let blobs: [&[u8]; 3] = [b"one", b"", b"three"];
    let bytes = fleet.bundle(&blobs);
    let mut bundle = open(&bytes).unwrap().verify(&fleet.keys).unwrap();
    assert_eq!(*bundle.index(), fleet.index(&blobs));
    let mut copied = 0;
    bundle.check(|more| copied += more).unwrap();
    assert_eq!(copied, 8);
    let mut out = Vec::new();
    bundle.copy(&Digest::of(b"three"), &mut out, |_| {}).unwrap();
    assert_eq!(out, b"three");
    assert!(matches!(bundle.copy(&Digest::of(b"four"), &mut out, |_| {}), Err(BundleError::NoBlob(_))));
    assert!(open(&bytes).unwrap().look().is_ok());
}

#[test]
fn the_keys_are_followed_from_the_pinned_ones_on() {
    let fleet = Fleet::new(1);
    let next = SigningKey::from_seed(&[9; 32]).unwrap();
    let second = set(2, &[(&fleet.key, KeyState::Active), (&next, KeyState::Announced)], 1);
    let third = set(3, &[(&fleet.key, KeyState::Retired), (&next, KeyState::Active)], 1);
    let mut index = fleet.index(&[]);
    index.key_sets.push(Envelope::sign(&second, &fleet.key).unwrap());
    // Announced in the newest set that is there: not believed yet.
    let early = write(&index, &next, &[]);
    assert!(matches!(
        open(&early).unwrap().verify(&fleet.keys),
        Err(BundleError::Signature(EnvelopeError::Untrusted(_)))
    ));
    index.key_sets.push(Envelope::sign(&third, &fleet.key).unwrap());
    let bytes = write(&index, &next, &[]);
    for pinned in [&fleet.keys, &second, &third] {
        let bundle = open(&bytes).unwrap().verify(pinned).unwrap();
        assert_eq!(bundle.keys(), Some(&third));
    }
    // An older bundle, for who knows more.
    assert_eq!(open(&fleet.bundle(&[])).unwrap().verify(&third).unwrap().keys(), Some(&third));
}

#[test]
fn another_fleets_bundle_is_refused_by_name() {
    let (own, other) = (Fleet::new(1), Fleet::new(2));
    let bytes = other.bundle(&[b"x"]);
    let name = other.index(&[]).fleet;
    assert!(matches!(open(&bytes).unwrap().verify(&own.keys), Err(BundleError::OtherFleet(fleet)) if fleet == name));
    // It has our key sets, and another signature.
    let stolen = write(&own.index(&[]), &other.key, &[]);
    assert!(matches!(open(&stolen).unwrap().verify(&own.keys), Err(BundleError::Signature(_))));
    assert!(open(&stolen).unwrap().look().is_err());
}

#[test]
fn a_clusters_file_is_its_own() {
    let (own, other) = (SigningKey::from_seed(&[3; 32]).unwrap(), SigningKey::from_seed(&[4; 32]).unwrap());
    let author =
        |key: &SigningKey| Author { cluster: ClusterId::of_public_key(key.public().as_bytes()), key: key.public() };
    let mut index = Index::new(Digest::of(b"fleet"), Timestamp(7));
    index.writer = Some(author(&own));
    let (cluster, _) = open(&write(&index, &own, &[])).unwrap().verify_writer().unwrap();
    assert_eq!(cluster, author(&own).cluster);
    assert!(open(&write(&index, &other, &[])).unwrap().verify_writer().is_err());
    index.writer = Some(Author { cluster: author(&own).cluster, ..author(&other) });
    assert!(open(&write(&index, &other, &[])).unwrap().verify_writer().is_err());
    // And it is no bundle of a hub.
    assert!(open(&write(&index, &own, &[])).unwrap().verify(&Fleet::new(1).keys).is_err());
}

#[test]
fn signed_nonsense_is_refused_too() {
    let fleet = Fleet::new(1);
    let mut index = fleet.index(&[b"one", b"two"]);
    index.blobs[1].offset = 2;
    assert!(matches!(Sealed::seal(&index, &fleet.key), Err(BundleError::Malformed(_))));
    index.blobs[1].offset = 3;
    index.blobs[1].size = u64::MAX;
    assert!(matches!(Sealed::seal(&index, &fleet.key), Err(BundleError::Malformed(_))));
    let mut index = fleet.index(&[b"one"]);
    index.blobs.push(kedge_bundle::BlobEntry { offset: 3, ..index.blobs[0] });
    assert!(matches!(Sealed::seal(&index, &fleet.key), Err(BundleError::Malformed(_))));
    let mut index = fleet.index(&[]);
    index.requires.push("teleport".to_owned());
    assert!(matches!(Sealed::seal(&index, &fleet.key), Err(BundleError::Unsupported(_))));
}

#[test]
fn a_writer_takes_only_what_its_index_says() {
    let fleet = Fleet::new(1);
    let sealed = || Sealed::seal(&fleet.index(&[b"one"]), &fleet.key).unwrap();
    let mut writer = Writer::new(Vec::new(), sealed()).unwrap();
    assert!(matches!(writer.write(&b"two"[..]), Err(BundleError::WrongBlob(_))));
    let mut writer = Writer::new(Vec::new(), sealed()).unwrap();
    assert!(matches!(writer.write(&b"on"[..]), Err(BundleError::WrongBlob(_))));
    assert!(matches!(Writer::new(Vec::new(), sealed()).unwrap().finish(), Err(BundleError::NoBlob(_))));
}

#[test]
fn a_digest_that_is_a_path_is_no_digest() {
    let fleet = Fleet::new(1);
    let mut index = serde_json::to_value(fleet.index(&[b"x"])).unwrap();
    for wrong in ["../../etc/shadow", "sha256:../../etc/shadow", "/etc/shadow", ""] {
        index["blobs"][0]["digest"] = wrong.into();
        let envelope = Envelope::sign_bytes(Index::TYPE, serde_json::to_vec(&index).unwrap(), &fleet.key);
        let json = envelope.to_json().unwrap();
        let mut bytes = kedge_bundle::MAGIC.to_vec();
        bytes.extend_from_slice(&(json.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&json);
        bytes.push(b'x');
        assert!(open(&bytes).unwrap().verify(&fleet.keys).is_err(), "{wrong}");
    }
}
