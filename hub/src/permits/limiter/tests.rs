//! Permits on a real database: who is let through, what ends a permit, and what is left when a hub dies.

use bytes::Bytes;
use kedge_hub_types::state::Issued;
use kedge_model::wire::{
    DesiredState, Entry, Envelope, Heads, HoldDocument, HoldEntry, PackagesKey, SigningKey, Timestamp,
};
use kedge_status::{Condition, Report};

use super::*;
use crate::status::contacts::Contacts;
use crate::status::tests::fleet::{self, Fleet, Member, databases, failed, member, report, sqlite, start};
use crate::status::{Contact, check_ins};
use crate::store::agents::holds::HoldWriter;

/// A ring of drones in `dev`, on one hub of its own update limiter.
struct Hub {
    fleet: Fleet,
    update_limiter: UpdateLimiter,
}

fn canary() -> Stream {
    Stream::new("dev", "drone", "canary")
}

fn shop(content: u8) -> Entry {
    let digit = char::from(b'0' + content);
    let digest = format!("sha256:{}", digit.to_string().repeat(64));
    let package = |digest: &str| serde_json::json!({"digest": digest, "size": 1, "repo": "r", "commit": "c"});
    let entry = serde_json::json!({
        "assignment": "shop", "mode": "apply", "platform": package(&digest), "workload": package(&digest),
        "parameters": {"to": "host", "scope": "namespace", "conflicts": "fail", "timeoutSeconds": 1, "soakSeconds": 0,
            "rollback": "auto", "drift": "repair"},
    });
    serde_json::from_value(entry).unwrap()
}

impl Hub {
    async fn over(database: fleet::Database) -> Hub {
        Hub::with_cache(database, Arc::default()).await
    }

    async fn with_cache(database: fleet::Database, desired_states: Arc<DesiredStateCache>) -> Hub {
        let fleet = start(database).await;
        let update_limiter = UpdateLimiter::new(desired_states, fleet.intake.permits().clone());
        Hub { fleet, update_limiter }
    }

    /// Another hub on the same database, which shows the same states.
    async fn beside(&self) -> Hub {
        let database = fleet::Database::again(&self.fleet.database);
        Hub::with_cache(database, Arc::clone(&self.update_limiter.desired_states)).await
    }

    async fn limit(&self, permits: i64, closed: bool) {
        let mut tx = self.fleet.store().write().await.unwrap();
        sqlx::query(
            "INSERT INTO ring_limits (environment, ring, slots, closed, tick) VALUES ('dev', 'canary', $1, $2, 1) \
             ON CONFLICT (environment, ring) DO UPDATE SET slots = excluded.slots, closed = excluded.closed",
        )
        .bind(permits)
        .bind(i64::from(closed))
        .execute(tx.connection())
        .await
        .unwrap();
        tx.commit().await.unwrap();
        self.fleet.intake.permits().look().await.unwrap();
    }

    async fn issue(&self, generation: u64, entries: Vec<Entry>) {
        let state = DesiredState {
            stream: canary(),
            generation: Generation(generation),
            created_at: now(),
            confirmed: 1,
            entries,
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: None,
            turns: false,
            requires: Vec::new(),
        };
        let envelope = Envelope::sign(&state, &SigningKey::from_seed(&[9; 32]).unwrap()).unwrap().to_json().unwrap();
        let mut tx = self.fleet.store().write().await.unwrap();
        let tick = tx.tick().await.unwrap();
        sqlx::query(
            "INSERT INTO states (environment, cluster_type, ring, generation, content, envelope, created_at, tick) \
             VALUES ('dev', 'drone', 'canary', $1, '', $2, 0, $3)",
        )
        .bind(i64::try_from(generation).unwrap())
        .bind(envelope.clone())
        .bind(tick)
        .execute(tx.connection())
        .await
        .unwrap();
        tx.commit().await.unwrap();
        self.update_limiter.desired_states.show(&canary(), Issued::of(Generation(generation), Bytes::from(envelope)));
    }

    /// A cluster that runs the shop's first content.
    async fn drone(&self, number: u8) -> Member {
        let mut drone = member(number);
        self.fleet.join(&drone, &canary()).await;
        self.says(&mut drone, 1, Condition::Converged).await;
        drone
    }

    async fn says(&self, drone: &mut Member, content: u8, condition: Condition) {
        let key: PackagesKey = shop(content).packages_key();
        let told = Report { desired: Some(key), running: Some(key), ..report(condition, "", "") };
        drone.document.set_report("shop", &told).unwrap();
        let envelope = drone.seal();
        self.fleet.intake.take(Some(&drone.id), envelope).await.unwrap();
    }

    fn ask(&self, drone: &Member) -> UpdatePermit {
        self.update_limiter.ask(drone.id, Arc::new(canary()), Generation(1), true)
    }

    /// What the update limiter says after one turn.
    async fn grant(&self, pass: &mut UpdatePermit) -> Option<Generation> {
        self.update_limiter.grant(self.fleet.store()).await.unwrap();
        pass.try_recv().ok().flatten()
    }

    async fn taken(&self) -> u64 {
        let mut tx = self.fleet.store().write().await.unwrap();
        tx.permits_taken("dev", "canary").await.unwrap()
    }

    /// A poll of that cluster, as the check-ins' task writes it.
    async fn contact(&self, drone: &Member, generation: u64, check_in_deadline: i64) {
        let contacts = Contacts::default();
        let contact = Contact {
            generation: Generation(generation),
            look_age: 1,
            check_in_deadline: Timestamp(check_in_deadline),
            heads: Heads::default(),
            carried: None,
        };
        contacts.put(&drone.id, &contact, now());
        let heard = crate::status::Heard::of(self.fleet.intake.permits());
        check_ins::step(self.fleet.store(), &contacts, &heard, self.fleet.intake.figures(), now()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_the_limit_change_at_once_on_both_hubs_together() {
    for database in databases().await {
        let hub = Hub::over(database).await;
        let other = hub.beside().await;
        let (mut one, two, three) = (hub.drone(1).await, hub.drone(2).await, hub.drone(3).await);
        hub.limit(2, false).await;
        other.fleet.intake.permits().look().await.unwrap();
        hub.issue(2, vec![shop(2)]).await;
        let (mut first, mut second, mut third) = (hub.ask(&one), other.ask(&two), other.ask(&three));
        assert_eq!(hub.grant(&mut first).await, Some(Generation(2)));
        assert_eq!(other.grant(&mut second).await, Some(Generation(2)));
        assert_eq!(other.grant(&mut third).await, None, "both slots are taken, one of them on the other hub");
        // Under way isn't the end.
        hub.says(&mut one, 2, Condition::Converging).await;
        assert_eq!(other.grant(&mut third).await, None);
        hub.says(&mut one, 2, Condition::Converged).await;
        assert_eq!(other.grant(&mut third).await, Some(Generation(2)));
        assert_eq!(hub.taken().await, 2);
        hub.fleet.stop().await;
        other.fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hubs_that_give_permits_at_the_same_moment_stay_below_the_limit() {
    for database in databases().await {
        let hub = Hub::over(database).await;
        let other = hub.beside().await;
        let mut drones = Vec::new();
        for number in 1..=12 {
            drones.push(hub.drone(number).await);
        }
        hub.limit(5, false).await;
        hub.issue(2, vec![shop(2)]).await;
        let _passes: Vec<UpdatePermit> = drones
            .iter()
            .enumerate()
            .map(|(at, drone)| if at % 2 == 0 { hub.ask(drone) } else { other.ask(drone) })
            .collect();
        let (here, there) =
            tokio::join!(hub.update_limiter.grant(hub.fleet.store()), other.update_limiter.grant(other.fleet.store()));
        here.unwrap();
        there.unwrap();
        assert_eq!(hub.taken().await, 5);
        hub.fleet.stop().await;
        other.fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_ends_a_permit_as_success_does() {
    let hub = Hub::over(sqlite().await).await;
    let (mut one, two) = (hub.drone(1).await, hub.drone(2).await);
    hub.limit(1, false).await;
    hub.issue(2, vec![shop(2)]).await;
    let (mut first, mut second) = (hub.ask(&one), hub.ask(&two));
    assert!(hub.grant(&mut first).await.is_some());
    assert_eq!(hub.grant(&mut second).await, None);
    hub.says(&mut one, 2, failed()).await;
    assert!(hub.grant(&mut second).await.is_some());
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_goes_offline_gives_its_permit_back() {
    for database in databases().await {
        let hub = Hub::over(database).await;
        let (one, two) = (hub.drone(1).await, hub.drone(2).await);
        hub.limit(1, false).await;
        hub.issue(2, vec![shop(2)]).await;
        let (mut first, mut second) = (hub.ask(&one), hub.ask(&two));
        assert!(hub.grant(&mut first).await.is_some());
        assert_eq!(hub.grant(&mut second).await, None);
        hub.contact(&one, 1, now().0 - 60_000).await;
        assert_eq!(hub.taken().await, 0);
        assert!(hub.grant(&mut second).await.is_some());
        hub.fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn permits_outlive_the_hub_that_gave_them_and_their_clusters_find_them_again() {
    let hub = Hub::over(sqlite().await).await;
    let (one, two) = (hub.drone(1).await, hub.drone(2).await);
    hub.limit(1, false).await;
    hub.issue(2, vec![shop(2)]).await;
    let mut lost = hub.ask(&one);
    assert!(hub.grant(&mut lost).await.is_some());
    // The answer never reached the cluster: the hub is gone, and another one serves.
    let next = hub.beside().await;
    hub.fleet.stop().await;
    let (mut other, mut again) = (next.ask(&two), next.ask(&one));
    assert_eq!(next.grant(&mut other).await, None);
    assert_eq!(again.try_recv().unwrap(), Some(Generation(2)));
    assert_eq!(next.taken().await, 1);
    next.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_moves_or_is_retired_leaves_its_permit() {
    let hub = Hub::over(sqlite().await).await;
    let drones = [hub.drone(1).await, hub.drone(2).await];
    hub.limit(2, false).await;
    hub.issue(2, vec![shop(2)]).await;
    for drone in &drones {
        assert!(hub.grant(&mut hub.ask(drone)).await.is_some());
    }
    let elsewhere = Stream::new("dev", "truck", "canary");
    fleet::relocate(hub.fleet.store(), &drones[0].id, &canary(), Some(&elsewhere)).await;
    assert_eq!(hub.taken().await, 1);
    fleet::relocate(hub.fleet.store(), &drones[1].id, &canary(), None).await;
    assert_eq!(hub.taken().await, 0);
    let mut gone = hub.ask(&drones[1]);
    assert_eq!(hub.grant(&mut gone).await, None);
    assert_eq!(hub.taken().await, 0, "who isn't a member takes no slot");
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_ring_lets_nobody_begin_but_goes_on_with_who_did() {
    let hub = Hub::over(sqlite().await).await;
    let (one, two) = (hub.drone(1).await, hub.drone(2).await);
    hub.limit(5, false).await;
    hub.issue(2, vec![shop(2)]).await;
    assert!(hub.grant(&mut hub.ask(&one)).await.is_some());
    hub.limit(5, true).await;
    let (mut again, mut second) = (hub.ask(&one), hub.ask(&two));
    assert_eq!(hub.grant(&mut second).await, None);
    assert_eq!(again.try_recv().unwrap(), Some(Generation(2)));
    // Who has nothing of the stream yet: a new cluster runs nothing that could fail, a moved one would else have nothing.
    let new = member(3);
    hub.fleet.join(&new, &canary()).await;
    let mut joined = hub.update_limiter.ask(new.id, Arc::new(canary()), Generation(0), true);
    let mut moved = hub.update_limiter.ask(hub.drone(4).await.id, Arc::new(canary()), Generation(0), true);
    assert_eq!(hub.grant(&mut joined).await, Some(Generation(2)));
    assert_eq!(moved.try_recv().unwrap(), Some(Generation(2)));
    assert_eq!(hub.taken().await, 2, "the new cluster needs no slot, the moved one took one");
    hub.limit(-1, false).await;
    assert_eq!(hub.grant(&mut second).await, Some(Generation(2)));
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_ring_hears_of_a_restart_of_what_it_has_and_of_nothing_new() {
    let hub = Hub::over(sqlite().await).await;
    let (behind, there) = (hub.drone(1).await, hub.drone(2).await);
    hub.issue(1, vec![shop(1)]).await;
    hub.issue(2, vec![shop(2)]).await;
    hub.issue(3, vec![Entry { restart: 1, ..shop(2) }]).await;
    hub.limit(5, true).await;
    let mut old = hub.ask(&behind);
    let mut new = hub.update_limiter.ask(there.id, Arc::new(canary()), Generation(2), true);
    assert_eq!(hub.grant(&mut new).await, Some(Generation(3)));
    assert!(old.try_recv().is_err(), "it would get the content that the ring was closed for");
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_passes_a_ring_that_another_rollout_has_closed_and_nothing_later_does() {
    for database in databases().await {
        let hub = Hub::over(database).await;
        let (one, two) = (hub.drone(1).await, hub.drone(2).await);
        hub.issue(1, vec![shop(1)]).await;
        hub.issue(2, vec![shop(2)]).await;
        hub.limit(5, true).await;
        let mut tx = hub.fleet.store().write().await.unwrap();
        let tick = tx.tick().await.unwrap();
        tx.mark_returned("dev", "canary", tick).await.unwrap();
        tx.commit().await.unwrap();
        hub.issue(3, vec![shop(1)]).await;
        let mut returning = hub.update_limiter.ask(one.id, Arc::new(canary()), Generation(2), true);
        assert_eq!(hub.grant(&mut returning).await, Some(Generation(3)));
        // It has what went back: what comes next is held up as before.
        hub.issue(4, vec![shop(4)]).await;
        let mut later = hub.update_limiter.ask(two.id, Arc::new(canary()), Generation(3), true);
        assert_eq!(hub.grant(&mut later).await, None);
        hub.fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_wait_hears_at_once_that_nothing_is_free() {
    let hub = Hub::over(sqlite().await).await;
    let (one, two) = (hub.drone(1).await, hub.drone(2).await);
    hub.limit(1, false).await;
    hub.issue(2, vec![shop(2)]).await;
    assert!(hub.grant(&mut hub.ask(&one)).await.is_some());
    let mut hasty = hub.update_limiter.ask(two.id, Arc::new(canary()), Generation(1), false);
    hub.update_limiter.grant(hub.fleet.store()).await.unwrap();
    assert_eq!(hasty.try_recv(), Ok(None));
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_asks_for_nothing_new_ends_its_permit_with_the_next_check_in() {
    let hub = Hub::over(sqlite().await).await;
    let one = hub.drone(1).await;
    hub.limit(1, false).await;
    hub.issue(2, vec![shop(1)]).await;
    assert!(hub.grant(&mut hub.ask(&one)).await.is_some());
    hub.contact(&one, 1, now().0 + 60_000).await;
    assert_eq!(hub.taken().await, 1, "it hasn't accepted it yet");
    hub.contact(&one, 2, now().0 + 60_000).await;
    assert_eq!(hub.taken().await, 0);
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_holds_keeps_no_permit() {
    let hub = Hub::over(sqlite().await).await;
    let mut one = hub.drone(1).await;
    let entry = HoldEntry { assignment: "shop".to_owned(), by: "ada".to_owned(), reason: String::new(), since: now() };
    let document = HoldDocument { cluster: one.id, sequence: 1, written_at: now(), holds: vec![entry] };
    let envelope = Envelope::sign(&document, &one.key).unwrap().to_json().unwrap();
    let mut tx = hub.fleet.store().write().await.unwrap();
    tx.put_hold_document(&document, HoldWriter::Cluster, &envelope).await.unwrap();
    tx.commit().await.unwrap();
    hub.limit(1, false).await;
    hub.issue(2, vec![shop(2)]).await;
    assert!(hub.grant(&mut hub.ask(&one)).await.is_some());
    hub.says(&mut one, 2, Condition::Converging).await;
    assert_eq!(hub.taken().await, 0);
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_comes_with_a_state_holds_for_its_first_poll_already() {
    let hub = Hub::over(sqlite().await).await;
    let permits = hub.fleet.intake.permits();
    assert_eq!(permits.limit_of(&canary(), Generation(1)).await.unwrap(), None);
    let mut tx = hub.fleet.store().write().await.unwrap();
    sqlx::query("INSERT INTO ring_limits (environment, ring, slots, closed, tick) VALUES ('dev', 'canary', 3, 0, 1)")
        .execute(tx.connection())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let limit = permits.limit_of(&canary(), Generation(2)).await.unwrap();
    assert_eq!(limit, Some(Limit { permits: Some(3), closed: false, returned: 0 }));
    hub.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permit_that_ends_wakes_who_waits_without_a_tick() {
    let hub = Arc::new(Hub::over(sqlite().await).await);
    let (mut one, two) = (hub.drone(1).await, hub.drone(2).await);
    hub.limit(1, false).await;
    hub.issue(2, vec![shop(2)]).await;
    let (stop, shutdown) = watch::channel(false);
    let running = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move { hub.update_limiter.run(hub.fleet.store(), shutdown).await }
    });
    assert_eq!(hub.ask(&one).await.unwrap(), Some(Generation(2)));
    let second = hub.ask(&two);
    hub.says(&mut one, 2, Condition::Converged).await;
    let within = tokio::time::timeout(Duration::from_millis(900), second).await;
    assert_eq!(within.unwrap().unwrap(), Some(Generation(2)));
    stop.send_replace(true);
    running.await.unwrap();
}
