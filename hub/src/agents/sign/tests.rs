//! Hosts come in by file.

use kedge_model::wire::{Digest, Facts, Membership, SigningKey};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls_pki_types::PrivatePkcs8KeyDer;

use super::*;
use crate::agents::testing::{World, fleet};
use crate::keys::authority;

struct Host {
    key: SigningKey,
    csr: String,
}

fn host() -> Host {
    let pkcs8 = SigningKey::generate().unwrap();
    let der = PrivatePkcs8KeyDer::from(pkcs8.as_slice());
    let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519).unwrap();
    let csr = CertificateParams::default().serialize_request(&pair).unwrap().pem().unwrap();
    Host { key: SigningKey::from_pkcs8(&pkcs8).unwrap(), csr }
}

impl Host {
    fn request(&self, machine: &str) -> JoinRequestFile {
        JoinRequestFile {
            csr: self.csr.clone(),
            name: "press-7".to_owned(),
            machine: Some(Digest::of(machine.as_bytes())),
            facts: Facts::default(),
            key: self.key.public(),
        }
    }

    fn signed(&self, machine: &str) -> Envelope {
        Envelope::sign(&self.request(machine), &self.key).unwrap()
    }
}

fn order(cluster_type: &str) -> SignOrder {
    SignOrder {
        environment: "prod".to_owned(),
        cluster_type: cluster_type.to_owned(),
        labels: Labels::from([("hall".to_owned(), "7".to_owned())]),
        site: Some("north".to_owned()),
        name: None,
    }
}

async fn sign(world: &World, request: &Envelope, order: SignOrder) -> Result<Signed, SignError> {
    let mut tx = world.store.write().await.unwrap();
    let signed = world.fleet.sign_request(&mut tx, request, order).await?;
    tx.commit().await.unwrap();
    Ok(signed)
}

#[tokio::test]
async fn a_signed_request_makes_a_member_that_believes_the_answer() {
    let (world, host) = (fleet().await, host());
    let signed = sign(&world, &host.signed("m"), order("press")).await.unwrap();
    assert!(!signed.again);
    let (file, keys, membership) = JoinAnswerFile::open(&signed.answer).unwrap();
    assert_eq!((file.hub.as_str(), file.cluster), ("https://hub.example", signed.cluster));
    assert_eq!(membership.stream, Stream::new("prod", "press", Stream::ALL));
    assert_eq!((membership.site.as_deref(), membership.name.as_str()), (Some("north"), "press-7"));
    let certificate = authority::read_certificate(&file.answer.certificate).unwrap();
    let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).unwrap();
    assert_eq!(parsed.public_key().subject_public_key.data.as_ref(), host.key.public().as_bytes().as_slice());
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && usage.server_auth, "it serves its peers too");
    assert!(kedge_bundle::fingerprint(&keys).is_some());
    let row = world.store.cluster(&signed.cluster).await.unwrap().unwrap();
    assert_eq!((row.state, row.token.as_str()), (ClusterState::Active, "file"));
}

#[tokio::test]
async fn the_same_key_again_gives_the_same_membership() {
    let (world, host) = (fleet().await, host());
    let first = sign(&world, &host.signed("m"), order("press")).await.unwrap();
    let second = sign(&world, &host.signed("m"), order("press")).await.unwrap();
    let membership = |signed: &Signed| -> Membership { JoinAnswerFile::open(&signed.answer).unwrap().2 };
    assert!(second.again);
    assert_eq!(membership(&first), membership(&second));
    let elsewhere = sign(&world, &host.signed("m"), order("robot")).await;
    assert!(matches!(elsewhere, Err(SignError::AlreadyAMember(_))));
    let copied = sign(&world, &host.signed("another"), order("press")).await;
    assert!(matches!(copied, Err(SignError::MachineChanged)));
}

#[tokio::test]
async fn a_request_that_its_key_did_not_sign_is_refused() {
    let (world, host, thief) = (fleet().await, host(), host());
    let forged = Envelope::sign(&host.request("m"), &thief.key).unwrap();
    assert!(matches!(sign(&world, &forged, order("press")).await, Err(SignError::Request(_))));
    // Its own envelope around somebody else's certificate request.
    let stolen = JoinRequestFile { key: thief.key.public(), ..host.request("m") };
    let stolen = Envelope::sign(&stolen, &thief.key).unwrap();
    assert!(matches!(sign(&world, &stolen, order("press")).await, Err(SignError::Request(_))));
    let named = SignOrder { name: Some("a\nb".to_owned()), ..order("press") };
    assert!(matches!(sign(&world, &host.signed("m"), named).await, Err(SignError::Request(_))));
}

#[tokio::test]
async fn a_revoked_key_stays_out_and_a_retired_one_comes_back() {
    let (world, host) = (fleet().await, host());
    let first = sign(&world, &host.signed("m"), order("press")).await.unwrap();
    let mut tx = world.store.write().await.unwrap();
    world.fleet.retire(&mut tx, &first.cluster).await.unwrap();
    tx.commit().await.unwrap();
    let back = sign(&world, &host.signed("m"), order("robot")).await.unwrap();
    let (_, _, membership) = JoinAnswerFile::open(&back.answer).unwrap();
    assert!(membership.sequence > Sequence(2) && !membership.retired);
    assert_eq!(membership.stream.cluster_type, "robot");
    let mut tx = world.store.write().await.unwrap();
    world.fleet.revoke(&mut tx, &first.cluster).await.unwrap();
    tx.commit().await.unwrap();
    let refused = sign(&world, &host.signed("m"), order("robot")).await;
    assert!(matches!(refused, Err(SignError::Fleet(FleetError::WrongState(ClusterState::Revoked)))));
}

#[tokio::test]
async fn a_host_joins_under_a_name_that_means_nothing_in_a_shell() {
    let (world, host) = (fleet().await, host());
    for name in ["$(id)", "a; touch PWNED #", "--help", "..", "-", "0123456789abcdef0123456789abcdef"] {
        let named = SignOrder { name: Some(name.to_owned()), ..order("press") };
        assert!(matches!(sign(&world, &host.signed("m"), named).await, Err(SignError::Request(_))), "{name}");
    }
    let named = SignOrder { name: Some("press-7.hall.example.com".to_owned()), ..order("press") };
    assert!(sign(&world, &host.signed("m"), named).await.is_ok());
}

#[tokio::test]
async fn a_stolen_agent_speaks_for_its_host_alone_and_fills_no_history() {
    use kedge_model::wire::{HoldDocument, HoldEntry};

    use crate::agents::take_hold;
    use kedge_hub_types::status::TakeError;

    let (world, host) = (fleet().await, host());
    let cluster = sign(&world, &host.signed("m"), order("press")).await.unwrap().cluster;
    let document = |sequence, names: Vec<String>| {
        let hold = |assignment| HoldEntry {
            assignment,
            by: "platform team".to_owned(),
            reason: String::new(),
            since: Timestamp(sequence as i64),
        };
        let holds = names.into_iter().map(hold).collect();
        let document = HoldDocument { cluster, sequence, written_at: now(), holds };
        Envelope::sign(&document, &host.key).unwrap()
    };
    let bad = take_hold(&world.store, &document(1, vec!["x;touch${IFS}/tmp/PWNED".to_owned()])).await;
    assert!(matches!(bad, Err(TakeError::Malformed(_))), "{bad:?}");
    let many = (0..60).map(|number| format!("invented-{number}")).collect();
    let many = take_hold(&world.store, &document(1, many)).await;
    assert!(matches!(many, Err(TakeError::TooLarge(_))), "{many:?}");
    let mut taken = 0;
    for sequence in 1..=150 {
        let names = (0..16).map(|number| format!("invented-{number}")).collect();
        match take_hold(&world.store, &document(sequence, names)).await {
            Ok(_) => taken += 1,
            Err(error) => assert!(matches!(error, TakeError::TooOften { seconds, .. } if seconds > 0), "{error}"),
        }
    }
    assert!(taken <= 8, "{taken} documents");
    let holds = world.store.hold_documents(&cluster).await.unwrap();
    assert_eq!(holds[0].1.holds[0].by, "platform team@press-7");
}
