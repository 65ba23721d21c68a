//! States are numbered, signed, stored, then shown; never twice, never backwards.

use super::*;
use kedge_hub_types::pack::PackedEntry::Quarantined as PackedEntryQuarantined;
use kedge_hub_types::permits::RingLimit;
use kedge_hub_types::testing::{observed, ours, source};
use kedge_model::wire::{Envelope, Mode};

use crate::state::follow::follow;
use crate::state::testing::{Unconfirmed, key, packed, store};
use crate::store::test_database;

const TERM: Term = Term(0);

fn issuer(store: &Store) -> (Issuer, Arc<DesiredStateCache>) {
    let desired_states = Arc::new(DesiredStateCache::default());
    (Issuer::new(store.clone(), Arc::clone(&desired_states), Arc::new(key()), Arc::new(Unconfirmed)), desired_states)
}

fn drone() -> Stream {
    Stream::new("dev", "drone", Stream::ALL)
}

fn shown(desired_states: &DesiredStateCache, stream: &Stream) -> DesiredState {
    let issued = desired_states.watch(stream).borrow().clone().unwrap();
    Envelope::from_json(&issued.envelope).unwrap().open(&[key().public()]).unwrap()
}

#[tokio::test]
async fn a_state_is_signed_numbered_stored_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, desired_states) = issuer(&store);
    let issued =
        issuer.issue(TERM, &packed(&[("drone", &[("a", ours("1"))]), ("large", &[("b", observed("1"))])])).await;
    assert_eq!(issued.unwrap(), [(drone(), Generation(1)), (Stream::new("dev", "large", "all"), Generation(1))]);
    let state = shown(&desired_states, &drone());
    assert_eq!((state.generation, state.entries.len(), state.confirmed), (Generation(1), 1, 1));
    let other = DesiredStateCache::default();
    other.load(&store).await.unwrap();
    assert_eq!(shown(&other, &drone()), state);
    let picks = store.picks("dev").await.unwrap();
    assert_eq!(picks.iter().map(|pick| pick.package.as_str()).collect::<Vec<_>>(), ["platform", "workload"]);
}

#[tokio::test]
async fn unchanged_content_is_never_issued_again_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (first, _) = issuer(&store);
    let same = || packed(&[("drone", &[("a", ours("1"))])]);
    assert_eq!(first.issue(TERM, &same()).await.unwrap().len(), 1);
    assert_eq!(first.issue(TERM, &same()).await.unwrap(), []);
    let (second, _) = issuer(&store);
    assert_eq!(second.issue(TERM, &same()).await.unwrap(), []);
    let changed = second.issue(TERM, &packed(&[("drone", &[("a", ours("2"))])])).await.unwrap();
    assert_eq!(changed, [(drone(), Generation(2))]);
}

#[tokio::test]
async fn turns_are_asked_for_while_the_ring_is_held_up_and_no_state_is_issued_for_that_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, desired_states) = issuer(&store);
    let limit = async |permits| {
        let mut tx = store.write().await.unwrap();
        tx.put_limit("dev", Stream::ALL, Some(&RingLimit { permits, closed: false }), 1).await.unwrap();
        tx.commit().await.unwrap();
    };
    let content = |number| packed(&[("drone", &[("a", ours(number))])]);
    issuer.issue(TERM, &content("1")).await.unwrap();
    assert!(!shown(&desired_states, &drone()).turns);
    limit(Some(1)).await;
    assert_eq!(issuer.issue(TERM, &content("1")).await.unwrap(), []);
    issuer.issue(TERM, &content("2")).await.unwrap();
    assert!(shown(&desired_states, &drone()).turns && desired_states.watch(&drone()).borrow().as_ref().unwrap().turns);
    let other = DesiredStateCache::default();
    other.load(&store).await.unwrap();
    assert!(other.watch(&drone()).borrow().as_ref().unwrap().turns, "another hub sees it too");
    limit(None).await;
    assert_eq!(issuer.issue(TERM, &content("2")).await.unwrap(), []);
    let (again, _) = super::tests::issuer(&store);
    assert_eq!(again.issue(TERM, &content("2")).await.unwrap(), []);
    issuer.issue(TERM, &content("3")).await.unwrap();
    assert!(!shown(&desired_states, &drone()).turns);
}

#[tokio::test]
async fn going_back_is_a_new_generation_with_the_old_content() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, desired_states) = issuer(&store);
    for content in ["1", "2", "1"] {
        issuer.issue(TERM, &packed(&[("drone", &[("a", ours(content))])])).await.unwrap();
    }
    assert_eq!(shown(&desired_states, &drone()).generation, Generation(3));
    let picks = store.picks("dev").await.unwrap();
    assert_ne!(Some(&picks[0].digest), picks[0].previous_digest.as_ref());
    // Both are kept: the current one and the way back.
    assert_eq!(store.picked_blobs().await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_change_of_one_type_reaches_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, _) = issuer(&store);
    let (a, b) = ([("a", ours("1"))], [("a", ours("1"))]);
    let mut now = packed(&[("drone", &a), ("large", &b)]);
    issuer.issue(TERM, &now).await.unwrap();
    let next = packed(&[("drone", &[("a", ours("2"))])]);
    now.types.extend(next.types);
    now.source = source("c2");
    assert_eq!(issuer.issue(TERM, &now).await.unwrap(), [(drone(), Generation(2))]);
}

#[tokio::test]
async fn a_type_that_is_gone_from_the_branch_lists_what_to_remove() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, desired_states) = issuer(&store);
    issuer.issue(TERM, &packed(&[("drone", &[("a", ours("1"))]), ("large", &[])])).await.unwrap();
    issuer.issue(TERM, &packed(&[("large", &[])])).await.unwrap();
    let state = shown(&desired_states, &drone());
    assert_eq!((state.entries.len(), state.removed.len()), (0, 1));
    assert!(store.picks("dev").await.unwrap().is_empty());
}

/// Everything is confirmed, and the set had five.
struct Confirmed;

#[async_trait]
impl Confirmations for Confirmed {
    async fn confirmed_sizes(&self, _environment: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        Ok(BTreeMap::from([("drone".to_owned(), 5)]))
    }

    async fn settled(&self, _stream: &Stream, tombstones: &[Tomb]) -> Result<BTreeSet<String>, StoreError> {
        Ok(tombstones.iter().map(|tomb| tomb.assignment.clone()).collect())
    }
}

#[tokio::test]
async fn a_state_carries_the_confirmed_size_and_loses_confirmed_tombstones() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let desired_states = Arc::new(DesiredStateCache::default());
    let issuer = Issuer::new(store, Arc::clone(&desired_states), Arc::new(key()), Arc::new(Confirmed));
    issuer.issue(TERM, &packed(&[("drone", &[("a", ours("1")), ("b", ours("1"))])])).await.unwrap();
    assert_eq!(shown(&desired_states, &drone()).confirmed, 5);
    let fewer = packed(&[("drone", &[("a", ours("1"))])]);
    issuer.issue(TERM, &fewer).await.unwrap();
    assert_eq!(shown(&desired_states, &drone()).removed.len(), 1);
    issuer.issue(TERM, &fewer).await.unwrap();
    assert_eq!(
        (shown(&desired_states, &drone()).generation, shown(&desired_states, &drone()).removed.len()),
        (Generation(3), 0)
    );
    assert_eq!(issuer.issue(TERM, &fewer).await.unwrap(), []);
}

/// Two hubs on one database: SQLite, which only tests share, or PostgreSQL.
async fn a_leader_whose_term_is_over(one: Store, other: Store) {
    let ((old, old_cache), (new, _)) = (issuer(&one), issuer(&other));
    let content = |text: &str| packed(&[("drone", &[("a", ours(text))])]);
    old.issue(TERM, &content("1")).await.unwrap();
    sqlx::query("UPDATE leader SET term = term + 1").execute(other.pool()).await.unwrap();
    let refused = old.issue(TERM, &content("2")).await;
    assert!(matches!(refused, Err(IssueError::Store(StoreError::Fenced(_)))), "{refused:?}");
    assert_eq!(shown(&old_cache, &drone()).generation, Generation(1));
    let issued = new.issue(Term(TERM.0 + 1), &content("3")).await.unwrap();
    assert_eq!(issued, [(drone(), Generation(2))]);
    // The old one's cache follows.
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(follow(one.clone(), Arc::clone(&old_cache), 0, stopped));
    let mut seen = old_cache.watch(&drone());
    seen.wait_for(|state| state.as_ref().is_some_and(|state| state.generation == Generation(2))).await.unwrap();
    stop.send(true).unwrap();
    task.await.unwrap();
}

async fn two_issuers_of_one_term(one: Store, other: Store) {
    let ((left, _), (right, _)) = (issuer(&one), issuer(&other));
    let mut issued = Vec::new();
    for round in 0..20 {
        let content = |who: &str| packed(&[("drone", &[("a", ours(&format!("{who} {round}")))])]);
        let (from_left, from_right) = (content("left"), content("right"));
        let (a, b) = tokio::join!(left.issue(TERM, &from_left), right.issue(TERM, &from_right));
        issued.extend([a, b].into_iter().flatten().flatten().map(|(_, generation)| generation));
    }
    let distinct: BTreeSet<Generation> = issued.iter().copied().collect();
    assert_eq!(distinct.len(), issued.len());
    let stored: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM states").fetch_one(one.pool()).await.unwrap();
    assert_eq!(usize::try_from(stored).unwrap(), issued.len());
}

async fn twice(url: &str) -> (Store, Store) {
    (Store::open(url).await.unwrap(), Store::open(url).await.unwrap())
}

fn file(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("hub.db").display())
}

#[tokio::test]
async fn a_leader_whose_term_is_over_issues_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = twice(&file(&folder)).await;
    a_leader_whose_term_is_over(one, other).await;
}

#[tokio::test]
async fn a_leader_whose_term_is_over_issues_nothing_on_postgres() {
    let Some(url) = test_database::postgres_url().await else { return };
    let (one, other) = twice(&url).await;
    a_leader_whose_term_is_over(one, other).await;
}

#[tokio::test]
async fn two_issuers_of_one_term_never_issue_a_generation_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = twice(&file(&folder)).await;
    two_issuers_of_one_term(one, other).await;
}

#[tokio::test]
async fn two_issuers_of_one_term_never_issue_a_generation_twice_on_postgres() {
    let Some(url) = test_database::postgres_url().await else { return };
    let (one, other) = twice(&url).await;
    two_issuers_of_one_term(one, other).await;
}

#[tokio::test]
async fn states_picks_floors_and_packings_work_on_postgres() {
    let Some(store) = test_database::postgres().await else { return };
    let desired_states = Arc::new(DesiredStateCache::default());
    let issuer = Issuer::new(store.clone(), Arc::clone(&desired_states), Arc::new(key()), Arc::new(store.clone()));
    for content in ["1", "2", "3"] {
        issuer.issue(TERM, &packed(&[("drone", &[("a", ours(content)), ("b", ours("1"))])])).await.unwrap();
    }
    issuer.issue(TERM, &packed(&[("drone", &[("a", ours("3"))])])).await.unwrap();
    assert_eq!(shown(&desired_states, &drone()).removed.len(), 1);
    assert_eq!(store.picked_blobs().await.unwrap().len(), 4);
    let other = DesiredStateCache::default();
    other.load(&store).await.unwrap();
    assert_eq!(shown(&other, &drone()).generation, Generation(4));
    let mut proof = shown(&desired_states, &drone());
    proof.generation = Generation(40);
    let proof = key().sign_state(&proof).unwrap();
    crate::state::proof::take(&store, &[key().public()], &drone(), &proof).await.unwrap();
    assert_eq!(issuer.pass_floors(TERM).await.unwrap(), [(drone(), Generation(41))]);
    // Nobody is a member, so nobody has to confirm.
    issuer.issue(TERM, &packed(&[("drone", &[("a", ours("3"))])])).await.unwrap();
    assert!(shown(&desired_states, &drone()).removed.is_empty());
    let rows: Vec<(String, String)> = (0..900).map(|number| (format!("key-{number}"), "{}".to_owned())).collect();
    store.remember_packings(&rows, now()).await.unwrap();
    store.remember_packings(&rows[..10], now()).await.unwrap();
    let keys: Vec<String> = rows.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(store.packings(&keys).await.unwrap().len(), 900);
    store.keep_packings(&keys[..5], kedge_model::wire::Timestamp(i64::MAX), now().0 + 1000).await.unwrap();
    assert_eq!(store.packings(&keys).await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_floor_for_everything_lifts_every_stream_also_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, desired_states) = issuer(&store);
    issuer.issue(TERM, &packed(&[("drone", &[("a", ours("1"))])])).await.unwrap();
    sqlx::query("INSERT INTO meta (name, value) VALUES ('generation_floor', '1000')")
        .execute(store.pool())
        .await
        .unwrap();
    issuer.issue(TERM, &packed(&[("drone", &[("a", ours("1"))]), ("large", &[("a", ours("1"))])])).await.unwrap();
    assert_eq!(shown(&desired_states, &drone()).generation, Generation(1001));
    assert_eq!(shown(&desired_states, &Stream::new("dev", "large", "all")).generation, Generation(1001));
}

#[tokio::test]
async fn picks_say_what_the_signed_state_says() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, desired_states) = issuer(&store);
    for (number, entry) in
        [ours("1"), ours("2"), observed("3"), ours("4"), PackedEntryQuarantined].into_iter().enumerate()
    {
        issuer.issue(TERM, &packed(&[("drone", &[("a", entry), ("b", ours(&number.to_string()))])])).await.unwrap();
        let state = shown(&desired_states, &drone());
        let mut said: Vec<String> = Vec::new();
        for entry in &state.entries {
            if let Mode::Apply(packages) = &entry.mode {
                said.extend([packages.platform.digest.to_string(), packages.workload.digest.to_string()]);
            }
        }
        let picked: Vec<String> = store.picks("dev").await.unwrap().into_iter().map(|pick| pick.digest).collect();
        assert_eq!(picked, said);
    }
}

/// Of `./tests/bench figures`.
#[cfg(feature = "figures")]
#[tokio::test]
async fn figure_one_state_among_two_hundred_is_issued_in_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (issuer, _) = issuer(&store);
    let entries: Vec<(String, kedge_hub_types::pack::PackedEntry)> =
        (0..50).map(|number| (format!("app-{number}"), ours(&number.to_string()))).collect();
    let entries: kedge_hub_types::pack::PackedType = entries.into_iter().collect();
    let mut all = packed(&[]);
    for number in 0..200 {
        all.types.insert(format!("type-{number}"), Arc::new(entries.clone()));
    }
    let begun = std::time::Instant::now();
    issuer.issue(TERM, &all).await.unwrap();
    let first = begun.elapsed();
    let mut changed = entries;
    changed.insert("app-1".to_owned(), ours("changed"));
    all.types.insert("type-7".to_owned(), Arc::new(changed));
    let begun = std::time::Instant::now();
    assert_eq!(issuer.issue(TERM, &all).await.unwrap().len(), 1);
    let second = begun.elapsed();
    let begun = std::time::Instant::now();
    DesiredStateCache::default().load(&store).await.unwrap();
    println!("200 streams of 50: all {first:?}, one changed {second:?}, board loaded {:?}", begun.elapsed());
    println!("FIGURE one_state_of_200 {}", second.as_millis());
}
