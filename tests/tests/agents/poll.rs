//! What a poll waits for and is told.

use std::time::{Duration, Instant};

use kedge_model::wire::{Generation, Profile, Sequence, Stream};
use kedge_tests::agent::AgentError;

use crate::hub::{Hub, drones, entry};

#[tokio::test]
async fn a_held_poll_is_answered_at_once_when_the_streams_state_changes() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let begun = Instant::now();
    let (answer, _) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        hub.issue(&drones(), 1, Vec::new()).await
    });
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert!(answer.unwrap().state.is_some());
    assert_eq!(agent.generation, Generation(1));
}

#[tokio::test]
async fn a_state_of_another_stream_wakes_and_reaches_nobody() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(400)).await;
    let mut agent = hub.agent().await;
    let (answer, _) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        hub.issue(&Stream::new("dev", "truck", Stream::ALL), 1, Vec::new()).await
    });
    let answer = answer.unwrap();
    assert_eq!((answer.state, answer.next), (None, 0));
    assert!(answer.promise >= 30);
}

#[tokio::test]
async fn only_a_newer_generation_is_told() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(100)).await;
    hub.issue(&drones(), 4, Vec::new()).await;
    let mut agent = hub.agent().await;
    assert!(agent.poll().await.unwrap().state.is_some());
    assert!(agent.poll().await.unwrap().state.is_none());
    hub.issue(&drones(), 5, Vec::new()).await;
    assert!(agent.poll().await.unwrap().state.is_some());
    assert_eq!(agent.generation, Generation(5));
}

#[tokio::test]
async fn an_idle_round_trip_is_a_few_hundred_bytes() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    agent.heads.heads = vec!["0123456789abcdef".to_owned()];
    agent.heads.nonce = "0123456789abcdef".to_owned();
    agent.poll().await.unwrap();
    let link = agent.connect().await.unwrap();
    let total = link.sent + link.received;
    assert!(total < 400, "{total} bytes");
}

#[tokio::test]
async fn a_poll_tells_how_far_the_cluster_is_and_when_it_is_expected_again() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    agent.look_age = 7;
    agent.poll().await.unwrap();
    let contacts = hub.services.contacts.lock().unwrap();
    let (cluster, contact) = contacts.last().unwrap();
    assert_eq!((*cluster, contact.look_age, contact.generation), (agent.identity.cluster, 7, Generation(0)));
    assert!(contact.check_in_deadline.0 > kedge_hub::store::now().0 + 20_000);
}

#[tokio::test]
async fn a_hub_that_lacks_the_status_asks_for_it_at_once() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    hub.services.wanted.lock().unwrap().insert(agent.identity.cluster);
    let begun = Instant::now();
    let answer = agent.poll().await.unwrap();
    assert!(answer.want_status && answer.next >= 2);
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_generation_that_the_hub_forgot_is_asked_to_be_proved() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    hub.issue(&drones(), 3, Vec::new()).await;
    agent.generation = Generation(9);
    let answer = agent.poll().await.unwrap();
    assert!(answer.want_proof && answer.next >= 10);
    let lost = hub.sign(&drones(), 9, Vec::new());
    agent.prove(&lost).await.unwrap();
    assert_eq!(*hub.services.proofs.lock().unwrap(), [(drones(), lost)]);
}

#[tokio::test]
async fn a_generation_that_another_hub_issued_this_second_needs_no_proof() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    let state = hub.sign(&drones(), 2, Vec::new());
    hub.store_state(&drones(), 2, &state).await;
    agent.generation = Generation(2);
    assert!(!agent.poll().await.unwrap().want_proof);
}

#[tokio::test]
async fn the_low_profile_is_answered_at_once_and_told_its_interval() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    agent.profile = Profile::Low;
    let begun = Instant::now();
    let answer = agent.poll().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!((810..=990).contains(&answer.next) && answer.promise > answer.next);
    assert!(agent.is_disconnected());
}

#[tokio::test]
async fn a_new_key_set_reaches_a_held_poll_and_later_states_are_believed() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let (answer, ()) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        let id = hub.keys.announce_key(&hub.store).await.unwrap();
        hub.keys.activate_key(id, &hub.store).await.unwrap();
    });
    assert!(!answer.unwrap().key_sets.is_empty());
    hub.issue(&drones(), 1, Vec::new()).await;
    agent.poll().await.unwrap();
    assert_eq!((agent.generation, agent.keys.version), (Generation(1), 3));
}

#[tokio::test]
async fn an_agent_that_was_away_for_a_change_of_the_authority_follows_it() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    agent.disconnect();
    let id = hub.keys.announce_authority(&hub.store).await.unwrap();
    hub.keys.activate_authority(id, &hub.store).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    agent.poll().await.unwrap();
    agent.renew().await.unwrap();
    agent.poll().await.unwrap();
    assert!(agent.keys.version > 1);
}

#[tokio::test]
async fn a_stop_ends_held_polls_at_once_with_an_idle_answer() {
    let hub = Hub::with(|config| config.wait = Duration::from_secs(60)).await;
    let mut agent = hub.agent().await;
    let begun = Instant::now();
    let (answer, ()) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        hub.tell_to_stop();
    });
    let answer = answer.unwrap();
    assert!(answer.state.is_none() && answer.next >= 1);
    assert!(agent.is_disconnected());
    hub.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(matches!(agent.poll().await, Err(AgentError::Link(_))));
}

#[tokio::test]
async fn many_polls_are_told_the_same_state() {
    let hub = Hub::start().await;
    let token = hub.token(50).await;
    let agents = kedge_tests::agent::crowd::Crowd::join(&token, 50).await.unwrap();
    let mut crowd = kedge_tests::agent::crowd::Crowd::start(agents);
    hub.held(50).await;
    let blob = hub.put(b"content");
    let entries = (0..10).map(|number| entry(&format!("app-{number}"), &blob, &blob, Vec::new())).collect();
    let begun = Instant::now();
    hub.issue(&drones(), 1, entries).await;
    let took = crowd.all_reach(Generation(1), begun).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    crowd.stop().await;
}

#[tokio::test]
async fn a_client_that_goes_away_no_longer_counts_as_held() {
    let hub = Hub::with(|config| config.wait = Duration::from_secs(60)).await;
    let mut agent = hub.agent().await;
    tokio::select! {
        answer = agent.poll() => panic!("{answer:?}"),
        () = hub.held(1) => {}
    }
    drop(agent);
    hub.held(0).await;
}

#[tokio::test]
async fn the_first_sequence_is_known_from_the_join() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    assert!(agent.poll().await.unwrap().membership.is_none());
    assert_eq!(agent.sequence(), Sequence(1));
}

#[tokio::test]
async fn a_second_poll_of_a_cluster_ends_the_first() {
    let hub = Hub::with(|config| config.wait = Duration::from_secs(60)).await;
    let mut agent = hub.agent().await;
    let mut second = kedge_tests::agent::link::Link::open(&agent.hub, agent.config()).await.unwrap();
    let request = kedge_tests::agent::body(&agent.request());
    let begun = Instant::now();
    let (first, ()) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        tokio::select! {
            reply = second.post("/agent/v1/poll", &request) => panic!("{reply:?}"),
            () = tokio::time::sleep(Duration::from_secs(1)) => assert_eq!(hub.metrics.polls_held.get(), 1),
        }
    });
    assert_eq!(first.unwrap().next, 60);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn without_the_database_polls_go_on_and_joins_are_asked_to_come_back() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let token = hub.token(1).await;
    agent.wait = Some(0);
    agent.poll().await.unwrap();
    agent.wait = None;
    hub.store.close().await;
    let (answer, ()) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        let state = hub.sign(&drones(), 1, Vec::new());
        hub.show(&drones(), 1, &state);
    });
    assert!(answer.unwrap().state.is_some());
    let refused = kedge_tests::agent::Agent::join(&token, "late").await.unwrap_err();
    assert!(matches!(refused, AgentError::Refused { status: 503, retry_after: Some(5..=15), .. }), "{refused:?}");
    let refused = agent.renew().await.unwrap_err();
    assert!(matches!(refused, AgentError::Refused { status: 503, retry_after: Some(5..=15), .. }), "{refused:?}");
}
