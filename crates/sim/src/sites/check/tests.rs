//! Each promise of sites, broken on purpose: the simulation notices.
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use kedge_model::wire::{Envelope, Generation, SigningKey, Timestamp};
use kedge_status::Nonce;

use super::super::agent::{Misbehaving, status};
use super::super::hub::{hold, key};
use super::super::world::{END, World, site_name};
use super::*;

/// A site at its end in which all is well: at least three agents, none of them a misbehaving peer, and some reach the hub. The first one
/// doesn't.
fn world() -> World {
    let fits = |world: &World| {
        let honest = world.agents.iter().all(|agent| agent.misbehaving.is_none());
        honest && world.agents.len() >= 3
    };
    let good = |mut world: World| {
        world.run_until(END).unwrap();
        world.check_end().unwrap();
        let members = world.agents.iter().all(|agent| !world.is_retired(&agent.id));
        (members && !world.agents[0].online && world.agents.iter().any(|agent| agent.online)).then_some(world)
    };
    (0..).map(|seed| World::new(seed, 1, false).unwrap()).filter(fits).find_map(good).unwrap()
}

fn hub_key(world: &World) -> SigningKey {
    let version = world.hub.chain.len() as u64;
    key([world.seed, 1, if version == 1 { 0 } else { version }]).unwrap()
}

/// One that the hub never wrote.
fn state(world: &World, signer: &SigningKey) -> Envelope {
    let (_, envelope) = &world.hub.states[&world.agents[0].disk.stream];
    let mut state: DesiredState = read(envelope).unwrap();
    state.generation = Generation(99);
    Envelope::sign(&state, signer).unwrap()
}

fn put(world: &mut World, agent: usize, envelope: Envelope) {
    world.agents[agent].node.as_mut().unwrap().put(envelope).unwrap();
}

fn end(world: &mut World) -> String {
    world.check_end().unwrap_err().0
}

#[test]
fn a_document_that_its_owner_never_signed_is_noticed() {
    let mut world = world();
    let forged = state(&world, &hub_key(&world));
    put(&mut world, 0, forged);
    assert!(world.check_store(0).unwrap_err().0.ends_with("which its owner never signed"));
}

#[test]
fn a_state_of_another_stream_in_a_store_is_noticed() {
    let mut world = world();
    let (relay, other) = (world.agents[1].id, world.agents[0].id);
    let streams: Vec<Stream> = world.hub.states.keys().cloned().collect();
    world.hub.change(&relay, |membership| membership.relay = true).unwrap();
    world.hub.change(&other, |membership| (membership.relay, membership.stream) = (false, streams[0].clone())).unwrap();
    world.hub.change(&relay, |membership| membership.stream = streams[1].clone()).unwrap();
    let mut store = DocumentStore::new(relay, &site_name(0), world.hub.chain.last().unwrap().0.clone());
    for envelope in
        [&world.hub.memberships[&relay].1, &world.hub.memberships[&other].1, &world.hub.states[&streams[1]].1]
    {
        store.take(envelope.clone()).unwrap();
    }
    let name = Name::State(streams[1].clone());
    assert!(world.check_taken(1, &store, &name).is_ok());
    let broken = world.check_taken(0, &store, &name).unwrap_err().0;
    assert!(broken.ends_with(&format!("and follows {}", streams[0])), "{broken}");
}

#[test]
fn a_version_that_goes_back_is_noticed() {
    let mut world = world();
    let name = Name::Membership(world.agents[1].id);
    world.notes.stores.get_mut(&0).unwrap().insert(name, Version(99, 0));
    assert!(world.check_store(0).unwrap_err().0.contains("agent 0 went back with membership"));
}

#[test]
fn a_document_that_vanishes_by_absence_is_noticed() {
    let mut world = world();
    let stranger = ClusterId::of_public_key(&[3; 32]);
    let stream = Stream::new("prod", "nobody", Stream::ALL);
    let of = world.agents[1].id;
    for name in [
        Name::Keys(0),
        Name::Membership(stranger),
        Name::State(stream),
        Name::Status(stranger),
        Name::Holds { of, by: world.agents[0].id.key_id() },
        Name::Holds { of: stranger, by: stranger.key_id() },
    ] {
        let before = world.notes.stores[&0].clone();
        world.notes.stores.get_mut(&0).unwrap().insert(name.clone(), Version(1, 0));
        if world.agents[0].node.as_ref().unwrap().store().version(&name).is_none() {
            assert!(world.check_store(0).unwrap_err().0.ends_with("nobody signed that it is over"), "{name}");
        }
        world.notes.stores.insert(0, before);
    }
}

#[test]
fn what_runs_unsigned_of_another_stream_or_older_is_noticed() {
    let mut world = world();
    assert!(world.agents[0].disk.state.is_some() && world.check_runs(0).is_ok());
    let forged = state(&world, &world.agents[0].key);
    let stream = world.agents[0].disk.stream.clone();
    let ran = world.notes.ran.insert((0, stream.clone()), 1_000).unwrap();
    assert!(world.check_runs(0).unwrap_err().0.contains("went back from generation 1000"));
    world.notes.ran.insert((0, stream), ran);
    world.agents[0].disk.stream = Stream::new("prod", "nobody", Stream::ALL);
    assert!(world.check_runs(0).unwrap_err().0.ends_with("and follows prod/nobody/all"));
    world.agents[0].disk.state = Some(forged);
    assert!(world.check_runs(0).unwrap_err().0.ends_with("runs what the hub never signed"));
}

#[test]
fn an_honest_peer_that_is_dropped_is_noticed() {
    let mut world = world();
    let peer = world.agents[1].id;
    assert!(world.check_drop(0, &peer, &Misbehavior::Forged).unwrap_err().0.contains("which is honest"));
    world.agents[1].misbehaving = Some(Misbehaving::Loud);
    assert!(world.check_drop(0, &peer, &Misbehavior::Forged).is_ok());
}

#[test]
fn what_the_hub_is_brought_in_anothers_name_is_noticed() {
    let mut world = world();
    let (misbehaving, victim) = (&world.agents[1], world.agents[0].id);
    let written = status(&misbehaving.key, victim, (99, 1), Nonce([9; 16]), world.time());
    let holds = Envelope::sign(&hold(victim, 9, world.time()), &misbehaving.key).unwrap();
    let sign = misbehaving.presence(Timestamp(1)).unwrap();
    for envelope in [written, holds] {
        assert!(world.hub.take(&envelope).unwrap_err().0.ends_with("which its owner never signed"));
    }
    assert!(world.hub.read(&sign).unwrap_err().0.ends_with("that nobody gave"));
}

#[test]
fn a_document_that_a_living_peer_had_and_that_is_lost_is_noticed() {
    let mut world = world();
    let name = Name::Status(world.agents[1].id);
    world.notes.kept.insert((0, name), Version(99, 0));
    assert!(end(&mut world).contains("lacks status:"));
}

#[test]
fn peers_that_end_with_different_documents_are_noticed() {
    let mut world = world();
    let (on, now) = (world.agents[1].id, world.time());
    let envelope = world.agents[0].write_hold(on, now).unwrap();
    put(&mut world, 0, envelope);
    assert!(end(&mut world).contains("differ"));
}

#[test]
fn a_hub_that_does_not_hear_the_truth_is_noticed() {
    let mut world = world();
    let (id, on, now) = (world.agents[0].id, world.agents[1].id, world.time());
    world.agents[0].write_hold(on, now).unwrap();
    assert!(end(&mut world).contains("of agent 0's holds"));
    world.hub.contacts.insert(id, Timestamp(now.0 - 13 * crate::plan::MINUTE));
    assert!(end(&mut world).contains("hasn't heard of agent 0 for 780 s"));
    world.agents[0].change_status(false, now);
    assert!(end(&mut world).contains("the hub knows"));
}

#[test]
fn agents_that_do_not_hear_what_the_hub_says_are_noticed() {
    let mut one = world();
    let (id, now) = (one.agents[0].id, one.time());
    let streams: Vec<Stream> = one.hub.states.keys().cloned().collect();
    streams.iter().for_each(|stream| one.hub.publish(stream, now).unwrap());
    assert!(end(&mut one).contains("the newest is"));
    one.hub.hold(id, now).unwrap();
    assert!(end(&mut one).contains("agent 0 doesn't know the hub's holds"));
    one.hub.change(&id, |membership| membership.relay = !membership.relay).unwrap();
    assert!(end(&mut one).contains("agent 0 doesn't know its newest membership"));
}

#[test]
fn rest_that_is_not_quiet_is_noticed() {
    let mut world = world();
    world.agents[0].requests = 81;
    assert!(end(&mut world).contains("81 requests in ten quiet minutes"));
}
