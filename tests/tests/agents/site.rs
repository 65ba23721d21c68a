//! What one agent asks for its site.

use std::time::Duration;

use kedge_hub::agents::Changes;
use kedge_hub::store::now;
use kedge_hub_types::status::Carrier;
use kedge_model::wire::site::MAX_STATE;
use kedge_model::wire::{
    DesiredState, Envelope, Generation, HoldEntry, MemberAnswer, Membership, Presence, SiteAnswer, SiteRequest, Stream,
    Timestamp, Turn,
};
use kedge_tests::agent::Agent;

use crate::hub::{Hub, drones, entry};

fn trucks() -> Stream {
    Stream::new("dev", "truck", Stream::ALL)
}

fn presence(agent: &Agent, at: Timestamp) -> Envelope {
    let key = agent.identity.key.public();
    let said = Presence { key, at, poll: agent.request() };
    Envelope::sign(&said, &agent.identity.key).unwrap()
}

async fn carry(carrier: &mut Agent, presences: Vec<Envelope>) -> SiteAnswer {
    let body = serde_json::to_vec(&SiteRequest { presences, since: 0 }).unwrap();
    let reply = carrier.post("/agent/v1/site", &body).await.unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    serde_json::from_slice(&reply.body).unwrap()
}

fn of<'a>(answer: &'a SiteAnswer, agent: &Agent) -> &'a MemberAnswer {
    answer.members.iter().find(|member| member.cluster == agent.identity.cluster).unwrap()
}

/// SQLite, and PostgreSQL where there is one.
async fn hubs() -> Vec<Hub> {
    let mut hubs = vec![Hub::start().await];
    hubs.extend(Hub::on_postgres().await);
    hubs
}

async fn truck(hub: &Hub, name: &str) -> Agent {
    Agent::join(&hub.token_for("truck", 1, Duration::from_secs(60)).await, name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_said_counts_from_then_and_their_news_come_back() {
    for hub in hubs().await {
        let (mut carrier, silent) = (hub.agent().await, hub.agent().await);
        let state = hub.issue(&drones(), 3, Vec::new()).await;
        hub.change(async |fleet, tx| {
            let held =
                HoldEntry { assignment: "x".to_owned(), by: "anna".to_owned(), reason: String::new(), since: now() };
            fleet.hold(tx, &silent.identity.cluster, held).await.unwrap();
            let changes = Changes { name: Some("drone-2".to_owned()), ..Changes::default() };
            fleet.relabel(tx, &silent.identity.cluster, changes).await.unwrap();
        })
        .await;
        hub.services.wanted.lock().unwrap().insert(silent.identity.cluster);
        let at = now();
        let answer = carry(&mut carrier, vec![presence(&silent, at)]).await;
        let member = of(&answer, &silent);
        assert_eq!((member.refused.as_deref(), member.want_status), (None, true));
        let renamed: Membership = member.membership.as_ref().unwrap().open(&silent.keys.trusted()).unwrap();
        assert_eq!(renamed.name, "drone-2");
        assert!(member.holds.is_some());
        // It has another membership to take first: what that one's stream is, the next question says.
        assert!(answer.states.is_empty());
        let contacts = hub.services.contacts.lock().unwrap().clone();
        let (cluster, contact) = contacts.last().unwrap();
        let carried = contact.carried.unwrap();
        assert_eq!((*cluster, carried.at), (silent.identity.cluster, at));
        assert_eq!(carried.by, Carrier::Cluster(carrier.identity.cluster));
        assert!(contact.check_in_deadline > at && contact.check_in_deadline.0 < at.0 + 15 * 60 * 1000);

        let mut known = silent;
        known.membership = renamed;
        let answer = carry(&mut carrier, vec![presence(&known, now())]).await;
        assert_eq!(answer.states, [state]);
        assert!(of(&answer, &known).membership.is_none() && (20..60).contains(&answer.next));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_fetches_for_other_streams_and_nobody_else_does() {
    for hub in hubs().await {
        let (mut carrier, other) = (hub.agent().await, truck(&hub, "truck-1").await);
        let blob = hub.put(b"a truck's package");
        hub.issue(&drones(), 1, Vec::new()).await;
        hub.issue(&trucks(), 5, vec![entry("load", &blob, &blob, Vec::new())]).await;
        let answer = carry(&mut carrier, vec![presence(&other, now())]).await;
        assert_eq!(of(&answer, &other).refused.as_deref(), Some("NotARelay"));
        assert!(answer.states.is_empty());
        assert_eq!(carrier.fetch(&blob.digest, 0).await.unwrap().status, 404);

        let cluster = carrier.identity.cluster;
        hub.change(async |fleet, tx| {
            let changes = Changes { relay: Some(true), ..Changes::default() };
            fleet.relabel(tx, &cluster, changes).await.unwrap();
        })
        .await;
        assert!(carrier.poll().await.unwrap().membership.is_some());
        assert!(carrier.membership.relay);
        let answer = carry(&mut carrier, vec![presence(&other, now())]).await;
        let state: DesiredState = answer.states[0].open(&other.keys.trusted()).unwrap();
        assert_eq!((state.stream, state.generation), (trucks(), Generation(5)));
        assert_eq!(carrier.fetch(&blob.digest, 0).await.unwrap().status, 200);

        // A relay of another site has nothing to do with it.
        hub.change(async |fleet, tx| {
            let changes = Changes { site: Some(Some("elsewhere".to_owned())), ..Changes::default() };
            fleet.relabel(tx, &cluster, changes).await.unwrap();
        })
        .await;
        assert_eq!(carrier.fetch(&blob.digest, 0).await.unwrap().status, 404);
        let answer = carry(&mut carrier, vec![presence(&other, now())]).await;
        assert_eq!(of(&answer, &other).refused.as_deref(), Some("OtherSite"));
    }
}

/// Clusters of the ring change so many at a time.
async fn limit(hub: &Hub, permits: i64) {
    let mut tx = hub.store.write().await.unwrap();
    let put = sqlx::query(
        "INSERT INTO ring_limits (environment, ring, slots, closed, tick) VALUES ('dev', 'all', $1, 0, 1) \
         ON CONFLICT (environment, ring) DO UPDATE SET slots = excluded.slots",
    );
    put.bind(permits).execute(tx.connection()).await.unwrap();
    tx.commit().await.unwrap();
}

/// A state as the issuer signs it for a ring that is held up.
async fn issue_with_turns(hub: &Hub, generation: u64) -> Envelope {
    let signed = hub.sign(&drones(), generation, Vec::new());
    let state: DesiredState = serde_json::from_slice(&signed.payload).unwrap();
    let envelope = hub.keys.sign(&DesiredState { turns: true, ..state }).unwrap();
    hub.store_state(&drones(), generation, &envelope).await;
    hub.show(&drones(), generation, &envelope);
    envelope
}

/// Whose turn it is, and that the turn is what the hub says of it.
async fn turns(carrier: &mut Agent, members: &[Agent], state: &Envelope) -> Vec<usize> {
    let at = now();
    let answer = carry(carrier, members.iter().map(|member| presence(member, at)).collect()).await;
    let issued: DesiredState = state.open(&carrier.keys.trusted()).unwrap();
    let lacking = members.iter().any(|member| member.generation < issued.generation);
    assert_eq!(answer.states, if lacking { vec![state.clone()] } else { Vec::new() });
    let mut whose = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let Some(envelope) = &of(&answer, member).turn else { continue };
        let turn: Turn = envelope.open(&member.keys.trusted()).unwrap();
        assert!(turn.admits(&member.identity.cluster, &issued) && turn.asked == Some(at), "{turn:?}");
        whose.push(number);
    }
    whose
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_comes_for_all_of_a_site_and_the_turn_to_follow_it_for_as_many_as_the_limit_says() {
    for hub in hubs().await {
        let mut carrier = hub.agent().await;
        let mut members = vec![hub.agent().await, hub.agent().await, hub.agent().await];
        members.iter_mut().for_each(|member| member.generation = Generation(1));
        hub.issue(&drones(), 1, Vec::new()).await;
        limit(&hub, 1).await;
        let second = issue_with_turns(&hub, 2).await;
        let mut waiting = std::collections::BTreeSet::from([0, 1, 2]);
        while !waiting.is_empty() {
            let whose = turns(&mut carrier, &members, &second).await;
            assert!(whose.len() == 1 && waiting.remove(&whose[0]), "{whose:?} of {waiting:?}");
            assert_eq!(turns(&mut carrier, &members, &second).await, whose, "until it came to an end with it");
            members[whose[0]].generation = Generation(2);
            assert_eq!(turns(&mut carrier, &members, &second).await, Vec::<usize>::new(), "it still has the slot");
            let mut tx = hub.store.write().await.unwrap();
            assert!(tx.end_permit(&members[whose[0]].identity.cluster).await.unwrap());
            tx.commit().await.unwrap();
        }
        // Nothing is held up any more: who hasn't it yet may have it.
        limit(&hub, -1).await;
        let third = issue_with_turns(&hub, 3).await;
        assert_eq!(turns(&mut carrier, &members, &third).await, [0, 1, 2]);
    }
}

#[tokio::test]
async fn a_state_that_peers_cannot_carry_takes_no_turn() {
    let hub = Hub::start().await;
    let (mut carrier, mut member) = (hub.agent().await, hub.agent().await);
    member.generation = Generation(1);
    hub.issue(&drones(), 1, Vec::new()).await;
    limit(&hub, 1).await;
    let signed = hub.sign(&drones(), 2, Vec::new());
    let state: DesiredState = serde_json::from_slice(&signed.payload).unwrap();
    let large = DesiredState { turns: true, requires: vec!["x".repeat(MAX_STATE)], ..state };
    let large = hub.keys.sign(&large).unwrap();
    hub.store_state(&drones(), 2, &large).await;
    hub.show(&drones(), 2, &large);
    let answer = carry(&mut carrier, vec![presence(&member, now())]).await;
    assert_eq!(of(&answer, &member).refused.as_deref(), Some("TooLarge"));
    assert!(of(&answer, &member).turn.is_none() && answer.states.is_empty());
    // The one permit is still free for who gets it from the hub.
    let third = issue_with_turns(&hub, 3).await;
    assert_eq!(turns(&mut carrier, &[member], &third).await, [0]);
}

#[tokio::test]
async fn what_is_not_to_be_believed_is_refused_one_by_one() {
    let hub = Hub::start().await;
    let (mut carrier, good, mut late) = (hub.agent().await, hub.agent().await, hub.agent().await);
    let (revoked, retired, victim, fast) = (hub.agent().await, hub.agent().await, hub.agent().await, hub.agent().await);
    let elsewhere = Hub::start().await;
    let stranger = elsewhere.agent().await;
    hub.change(async |fleet, tx| {
        fleet.revoke(tx, &revoked.identity.cluster).await.unwrap();
        fleet.retire(tx, &retired.identity.cluster).await.unwrap();
    })
    .await;
    let at = now();
    let forged = Presence { key: victim.identity.key.public(), at, poll: victim.request() };
    let forged = Envelope::sign(&forged, &carrier.identity.key).unwrap();
    let garbage = Envelope { payload: b"{}".to_vec(), ..forged.clone() };
    late.look_age = 3;
    let presences = vec![
        presence(&good, at),
        presence(&revoked, at),
        presence(&retired, at),
        presence(&stranger, at),
        presence(&fast, Timestamp(at.0 + 3_600_000)),
        presence(&late, Timestamp(1)),
        forged,
        garbage,
    ];
    let answer = carry(&mut carrier, presences).await;
    let why = |agent: &Agent| of(&answer, agent).refused.as_deref();
    assert_eq!(why(&good), None);
    assert_eq!((why(&revoked), why(&retired)), (Some("Revoked"), Some("Retired")));
    assert!(of(&answer, &retired).membership.is_some(), "it hears that it is retired");
    let farewell = |answer: &SiteAnswer| {
        let envelope = of(answer, &revoked).membership.clone().unwrap();
        envelope.open::<Membership>(&revoked.keys.trusted()).unwrap().retired
    };
    assert!(farewell(&answer), "its peers hear that it is revoked");
    let unasked = carry(&mut carrier, Vec::new()).await;
    assert!(farewell(&unasked), "also if it keeps silent");
    let body = serde_json::to_vec(&SiteRequest { presences: Vec::new(), since: unasked.tick }).unwrap();
    let again: SiteAnswer = serde_json::from_slice(&carrier.post("/agent/v1/site", &body).await.unwrap().body).unwrap();
    assert!(again.members.is_empty() && again.tick == unasked.tick, "once is enough");
    assert_eq!((why(&stranger), why(&fast)), (Some("UnknownCluster"), Some("AheadOfTime")));
    assert_eq!((why(&late), why(&victim)), (Some("TooOld"), Some("Forged")));
    let contacts = hub.services.contacts.lock().unwrap();
    assert_eq!(contacts.iter().map(|(cluster, _)| *cluster).collect::<Vec<_>>(), [good.identity.cluster]);
}

#[tokio::test]
async fn who_belongs_to_no_site_carries_for_nobody() {
    let hub = Hub::start().await;
    let mut carrier = hub.agent().await;
    let cluster = carrier.identity.cluster;
    hub.change(async |fleet, tx| {
        fleet.relabel(tx, &cluster, Changes { site: Some(None), ..Changes::default() }).await.unwrap();
    })
    .await;
    let reply = carrier.post("/agent/v1/site", br#"{"presences":[]}"#).await.unwrap();
    assert_eq!(reply.status, 403);
    let many = SiteRequest { presences: vec![presence(&carrier, Timestamp(1)); 257], since: 0 };
    let reply = carrier.post("/agent/v1/site", &serde_json::to_vec(&many).unwrap()).await.unwrap();
    assert_eq!(reply.status, 400);
}
