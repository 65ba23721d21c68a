//! A join by file.

use kedge_bundle::{JoinAnswerFile, JoinRequestFile};
use kedge_model::wire::{ClusterId, Envelope, Facts, JoinAnswer, Membership, Sequence, SigningKey, Stream, Timestamp};

use crate::fleet::Fleet;

fn answer(fleet: &Fleet, member: ClusterId, cluster: ClusterId) -> JoinAnswerFile {
    let membership = Membership {
        cluster: member,
        name: "line-1".to_owned(),
        stream: Stream::new("prod", "line", "all"),
        labels: kedge_model::Labels::new(),
        site: None,
        sequence: Sequence(1),
        issued_at: Timestamp(2),
        remove: Vec::new(),
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    };
    let membership = Envelope::sign(&membership, &fleet.key).unwrap();
    let key_sets = vec![fleet.first.clone()];
    let answer = JoinAnswer { certificate: "PEM".to_owned(), key_sets, membership, time: Timestamp(3) };
    JoinAnswerFile { hub: "https://hub:8443".to_owned(), cluster, answer }
}

#[test]
fn a_request_is_signed_by_the_key_that_it_brings() {
    let (own, other) = (SigningKey::from_seed(&[3; 32]).unwrap(), SigningKey::from_seed(&[4; 32]).unwrap());
    let facts = Facts::default();
    let request =
        JoinRequestFile { csr: "CSR".to_owned(), name: "line-1".to_owned(), machine: None, facts, key: own.public() };
    assert_eq!(JoinRequestFile::open(&Envelope::sign(&request, &own).unwrap()).unwrap(), request);
    assert!(JoinRequestFile::open(&Envelope::sign(&request, &other).unwrap()).is_err());
    assert_eq!(request.cluster(), ClusterId::of_public_key(own.public().as_bytes()));
}

#[test]
fn an_answer_is_of_one_hub_and_for_one_cluster() {
    let (fleet, other) = (Fleet::new(1), Fleet::new(2));
    let host = SigningKey::from_seed(&[3; 32]).unwrap();
    let cluster = ClusterId::of_public_key(host.public().as_bytes());
    let good = answer(&fleet, cluster, cluster);
    let (said, keys, membership) = JoinAnswerFile::open(&Envelope::sign(&good, &fleet.key).unwrap()).unwrap();
    assert_eq!((&said, &keys, membership.cluster), (&good, &fleet.keys, cluster));
    assert!(JoinAnswerFile::open(&Envelope::sign(&good, &other.key).unwrap()).is_err());
    let stranger = ClusterId::of_public_key(&[7; 32]);
    let wrong = answer(&fleet, stranger, cluster);
    assert!(JoinAnswerFile::open(&Envelope::sign(&wrong, &fleet.key).unwrap()).is_err());
    let mixed = JoinAnswerFile { answer: JoinAnswer { key_sets: Vec::new(), ..good.answer.clone() }, ..good };
    assert!(JoinAnswerFile::open(&Envelope::sign(&mixed, &fleet.key).unwrap()).is_err());
}
