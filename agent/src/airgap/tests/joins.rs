//! A join by file.

use super::world::{World, disk};
use crate::airgap::enrol::{self, EnrolError};
use crate::identity::Identity;
use crate::join::JoinError;
use crate::link::fake::Authority;
use kedge_durable::RealDisk;
use kedge_model::wire::Digest;

#[test]
fn an_answer_to_the_own_request_makes_a_member_once() {
    let world = World::new();
    let request = world.request();
    assert_eq!(world.request().envelope, request.envelope, "asked again it is the same");
    let answer = world.answer(&world.hub, &request.envelope);
    let pin = world.hub.pin();
    let enrolled = enrol::complete(&disk(), &world.paths, &answer, Some(pin)).unwrap();
    assert_eq!((enrolled.welcome.cluster, enrolled.known), (request.cluster, false));
    assert_eq!(enrolled.authorities, [pin]);
    assert_eq!(world.identity().cluster(), request.cluster);
    assert!(enrol::complete(&disk(), &world.paths, &answer, None).unwrap().known);
    let again = enrol::request(&disk(), &world.paths, None, false);
    assert!(matches!(again, Err(EnrolError::Join(JoinError::AlreadyJoined { .. }))));
}

#[test]
fn an_answer_of_another_hub_or_for_another_host_changes_nothing() {
    let (world, other) = (World::new(), World::new());
    let request = world.request();
    let theirs = other.request();
    let answer = |hub: &Authority| world.answer(hub, &request.envelope);
    let refused = |answer, authority| enrol::complete(&disk(), &world.paths, &answer, authority).unwrap_err();

    let wrong = refused(answer(&other.hub), Some(world.hub.pin()));
    assert!(matches!(wrong, EnrolError::OtherAuthority { expected, .. } if expected == world.hub.pin()));
    let foreign = refused(world.answer(&world.hub, &theirs.envelope), None);
    assert!(matches!(foreign, EnrolError::OtherKey { answer, .. } if answer == theirs.cluster));
    let mut forged = answer(&world.hub);
    forged.payload[20] ^= 1;
    assert!(matches!(refused(forged, None), EnrolError::Answer(_)));
    assert!(Identity::read(&RealDisk, &world.paths).unwrap().is_none());

    let idle = World::new();
    let unasked = enrol::complete(&disk(), &idle.paths, &answer(&world.hub), None);
    assert!(matches!(unasked, Err(EnrolError::NotAsked(_))));
    assert!(
        enrol::is_ours(&RealDisk, &world.paths, request.cluster)
            && !enrol::is_ours(&RealDisk, &idle.paths, request.cluster)
    );
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (world, other) = (World::new(), World::new());
    let request = world.request();
    let (mut said, ..) = kedge_bundle::JoinAnswerFile::open(&world.answer(&world.hub, &request.envelope)).unwrap();
    let (foreign, ..) = kedge_bundle::JoinAnswerFile::open(&world.answer(&other.hub, &request.envelope)).unwrap();
    said.answer.certificate = foreign.answer.certificate;
    let refused = enrol::complete(&disk(), &world.paths, &world.hub.sign(&said), None);
    assert!(matches!(refused, Err(EnrolError::Certificate(_))), "{refused:?}");
    assert_ne!(world.hub.pin(), Digest::of(b""));
}
