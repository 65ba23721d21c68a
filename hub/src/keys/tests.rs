//! The chain of key sets, rotation, and certificates as TLS really checks them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{ClusterId, EnvelopeError};
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::ServerCertVerifier as _;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{ServerName, UnixTime};
use tempfile::TempDir;

use super::*;

async fn open_store(folder: &TempDir) -> Store {
    Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap()
}

async fn open() -> (TempDir, Store, Keys) {
    let folder = tempfile::tempdir().unwrap();
    let store = open_store(&folder).await;
    let keys = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    (folder, store, keys)
}

fn request(key: &KeyPair) -> String {
    CertificateParams::new(vec!["evil.example".to_owned()]).unwrap().serialize_request(key).unwrap().pem().unwrap()
}

fn cluster_of(key: &KeyPair) -> ClusterId {
    ClusterId::of_public_key(key.public_key_raw().try_into().unwrap())
}

/// What an agent does that trusts these authorities.
fn trusts(roots: &[CertificateDer<'static>], chain: &[CertificateDer<'static>], name: &str) -> bool {
    let mut store = rustls::RootCertStore::empty();
    roots.iter().for_each(|root| store.add(root.clone()).unwrap());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider).build().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], UnixTime::now()).is_ok()
}

#[tokio::test]
async fn a_second_start_has_the_same_keys() {
    let (folder, store, keys) = open().await;
    let again = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    assert_eq!(again.key_set(), keys.key_set());
    assert_eq!(again.authority().fingerprint(), keys.authority().fingerprint());
    assert_eq!(keys.key_set().version, 1);
}

#[tokio::test]
async fn private_halves_are_for_the_owner_only() {
    let (folder, _store, keys) = open().await;
    let key = folder.path().join("keys/signing").join(format!("{}.pk8", keys.key_set().keys[0].id));
    assert!(!crate::private::is_open_to_others(&key).unwrap());
    assert!(!crate::private::is_open_to_others(&folder.path().join("keys")).unwrap());
    assert!(!crate::private::is_open_to_others(&folder.path().join("keys/authority")).unwrap());
}

#[tokio::test]
async fn a_hub_without_the_keys_of_its_database_makes_no_others() {
    let (folder, store, _keys) = open().await;
    let empty = folder.path().join("other");
    let error = Keys::open(&empty, &store).await.unwrap_err();
    assert!(matches!(error, KeysError::NoAuthorityKey { .. } | KeysError::NoSigningKey { .. }), "{error}");
    assert!(error.hint().unwrap().contains("copy the keys folder"));
    assert_eq!(std::fs::read_dir(empty.join("signing")).unwrap().count(), 0);
}

#[tokio::test]
async fn keys_that_a_crash_left_before_the_database_knew_them_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let files = KeyFolder::open(&folder.path().join("keys")).unwrap();
    let left = files.make_signing_key().unwrap();
    let store = open_store(&folder).await;
    let keys = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    assert_eq!(keys.key_set().keys[0].id, left.id());
}

#[tokio::test]
async fn an_agent_that_knows_the_first_set_follows_to_the_fifth() {
    let (_folder, store, keys) = open().await;
    let mut agent = KeySet::first(&keys.key_sets_after(0)[0]).unwrap();
    let old = agent.keys[0].id;
    let new = keys.announce_key(&store).await.unwrap();
    keys.activate_key(new, &store).await.unwrap();
    let authority = keys.announce_authority(&store).await.unwrap();
    keys.retire_key(old, &store).await.unwrap();
    for envelope in keys.key_sets_after(agent.version) {
        agent = agent.follow(&envelope).unwrap();
    }
    assert_eq!(agent.version, 5);
    assert_eq!(agent.active().iter().map(VerifyingKey::id).collect::<Vec<_>>(), [new]);
    assert_eq!(agent.authorities.len(), 2);
    assert_eq!(authority::fingerprint(&agent.authorities[1]).unwrap(), authority);
    assert!(keys.sign(&agent).unwrap().open::<KeySet>(&agent.active()).is_ok());
    assert_eq!(keys.every_key().len(), 2);
}

#[tokio::test]
async fn a_set_by_a_stranger_with_a_gap_or_by_a_retired_key_is_refused() {
    let (folder, store, keys) = open().await;
    let first = KeySet::clone(&keys.key_set());
    let old_id = first.keys[0].id;
    let old = KeyFolder::open(&folder.path().join("keys")).unwrap().signing_key(old_id).unwrap().unwrap();
    let new = keys.announce_key(&store).await.unwrap();
    keys.activate_key(new, &store).await.unwrap();
    keys.retire_key(old_id, &store).await.unwrap();
    let chain = keys.key_sets_after(0);
    let stranger = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
    let forged = Envelope::sign(&KeySet { version: 2, ..first.clone() }, &stranger).unwrap();
    assert!(matches!(first.follow(&forged), Err(KeySetError::Envelope(EnvelopeError::Untrusted(_)))));
    assert!(matches!(first.follow(&chain[2]), Err(KeySetError::Gap { known: 1, found: 3 })));
    let newest = KeySet::clone(&keys.key_set());
    let retired = Envelope::sign(&KeySet { version: newest.version + 1, ..newest.clone() }, &old).unwrap();
    assert!(matches!(newest.follow(&retired), Err(KeySetError::Envelope(EnvelopeError::Untrusted(_)))));
}

#[tokio::test]
async fn a_chain_that_somebody_changed_is_refused_at_the_start() {
    let (folder, store, keys) = open().await;
    let stranger = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
    let forged = Envelope::sign(&KeySet { version: 2, ..KeySet::clone(&keys.key_set()) }, &stranger).unwrap();
    assert!(store.add_key_set(2, &forged).await.unwrap());
    let error = Keys::open(&folder.path().join("keys"), &store).await.unwrap_err();
    assert!(matches!(error, KeysError::Chain(_)), "{error}");
    assert!(keys.refresh(&store).await.is_err(), "a running hub keeps the set that it knows");
    assert_eq!(keys.key_set().version, 1);
}

#[tokio::test]
async fn a_running_hub_follows_a_rotation_by_a_command() {
    let (folder, store, running) = open().await;
    let command = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    let woken = running.changed();
    let new = command.announce_key(&store).await.unwrap();
    command.activate_key(new, &store).await.unwrap();
    assert!(running.refresh(&store).await.unwrap());
    woken.await;
    let signed = running.sign(&*running.key_set()).unwrap();
    assert_eq!(signed.signatures[0].keyid, new);
    assert!(!running.refresh(&store).await.unwrap());
}

#[tokio::test]
async fn the_only_active_key_and_the_issuing_authority_cannot_be_retired() {
    let (_folder, store, keys) = open().await;
    let error = keys.retire_key(keys.key_set().keys[0].id, &store).await.unwrap_err();
    assert!(matches!(error, KeysError::WrongState(..)), "{error}");
    let error = keys.retire_authority(keys.authority().fingerprint(), &store).await.unwrap_err();
    assert!(matches!(error, KeysError::WrongState(..)), "{error}");
    assert_eq!(keys.key_set().version, 1);
}

#[tokio::test]
async fn a_certificate_takes_nothing_but_the_key_from_its_request() {
    let (_folder, _store, keys) = open().await;
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let cluster = cluster_of(&key);
    let issued = keys.authority().issue(&request(&key), &cluster, Duration::from_secs(3600)).unwrap();
    let der = authority::read_certificate(&issued.pem).unwrap();
    let (_, certificate) = x509_parser::parse_x509_certificate(&der).unwrap();
    assert_eq!(certificate.subject().to_string(), format!("CN={cluster}"));
    assert!(certificate.subject_alternative_name().unwrap().is_none());
    assert!(!certificate.is_ca());
    assert_eq!(certificate.raw_serial_as_string().replace(':', ""), issued.serial);
    assert_eq!(certificate.validity().not_after.timestamp(), issued.not_after.0 / 1000);
    let stranger = ClusterId::of_public_key(&[1; 32]);
    let error = keys.authority().issue(&request(&key), &stranger, Duration::from_secs(1)).unwrap_err();
    assert!(matches!(error, AuthorityError::WrongKey { .. }), "{error}");
}

#[tokio::test]
async fn a_request_that_is_cut_forged_or_of_another_algorithm_is_refused() {
    let (_folder, _store, keys) = open().await;
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let good = request(&key);
    assert_eq!(authority::requesting_cluster(&good).unwrap().0, cluster_of(&key));
    let other = request(&KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap());
    let mut forged = rustls_pki_types::CertificateSigningRequestDer::from_pem_slice(good.as_bytes()).unwrap().to_vec();
    let last = forged.len() - 1;
    forged[last] ^= 1;
    let forged = rcgen_pem(&forged);
    for bad in [other, forged, good[..good.len() / 2].to_owned(), String::new(), "x".repeat(100_000)] {
        let issued = keys.authority().issue(&bad, &cluster_of(&key), Duration::from_secs(1));
        assert!(matches!(issued, Err(AuthorityError::Request(_))), "{issued:?}");
    }
}

fn rcgen_pem(der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n")
}

#[tokio::test]
async fn an_agent_that_was_away_for_two_changes_of_authority_still_knows_the_hub() {
    let (_folder, store, keys) = open().await;
    let first = keys.authority().certificate().clone();
    for _ in 0..2 {
        let old = keys.authority().fingerprint();
        let new = keys.announce_authority(&store).await.unwrap();
        assert_eq!(keys.authority().fingerprint(), old, "announced is not yet in use");
        keys.activate_authority(new, &store).await.unwrap();
        assert_eq!(keys.authority().fingerprint(), new);
        keys.retire_authority(old, &store).await.unwrap();
    }
    let newest = keys.authority().certificate().clone();
    assert_eq!(keys.key_set().authorities.len(), 1);
    assert_eq!(keys.authorities().unwrap().len(), 3);
    let (chain, _key) = keys.authority().server_identity(&["hub.example".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    assert!(chain.contains(&newest), "a joining agent finds the authority by its digest");
    for root in [first, newest] {
        assert!(trusts(std::slice::from_ref(&root), &chain, "hub.example"));
        assert!(trusts(std::slice::from_ref(&root), &chain, "127.0.0.1"));
        assert!(!trusts(&[root], &chain, "other.example"));
    }
    let (_folder, _store, stranger) = open().await;
    assert!(!trusts(&[stranger.authority().certificate().clone()], &chain, "hub.example"));
}

proptest::proptest! {
    #[test]
    fn no_request_makes_the_authority_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..600)) {
        let _ = authority::requesting_cluster(&rcgen_pem(&bytes));
        let _ = authority::requesting_cluster(&String::from_utf8_lossy(&bytes));
    }
}
