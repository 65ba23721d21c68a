use super::*;

use crate::state::Board;
use crate::state::issuer::{Issuer, Unconfirmed};
use crate::state::testing::{key, observed, ours, packed, store};
use crate::store::{Store, Term};

fn id(number: u8) -> ClusterId {
    ClusterId::of_public_key(&[number; 32])
}

fn stream(cluster_type: &str) -> Stream {
    Stream::new("dev", cluster_type, Stream::ALL)
}

async fn join(store: &Store, number: u8, cluster_type: &str) -> Issued {
    let labels = Labels::from([("line".to_owned(), number.to_string())]);
    let issued =
        first(&key(), id(number), &format!("host-{number}"), stream(cluster_type), labels, None, Timestamp(1)).unwrap();
    let mut tx = store.write().await.unwrap();
    sqlx::query(
        "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, generation, tick) \
         VALUES ($1, $2, 'dev', $3, 'all', '{}', $4, '{}', 'active', 1, $4, 0, '', '', 0, 0, 0, 0, 0)",
    )
    .bind(id(number).to_string())
    .bind(issued.membership.name.as_str())
    .bind(cluster_type)
    .bind(issued.envelope.to_json().unwrap())
    .execute(tx.connection())
    .await
    .unwrap();
    tx.commit().await.unwrap();
    issued
}

async fn apply(store: &Store, number: u8, what: &Change) -> Result<Membership, MembershipError> {
    let mut tx = store.write().await?;
    let issued = change(&key(), &mut tx, &id(number), what, Timestamp(2)).await?;
    tx.commit().await?;
    Ok(issued.envelope.open(&[key().public()]).unwrap())
}

async fn with_states() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let issuer = Issuer::new(
        store.clone(),
        Board::default().into(),
        std::sync::Arc::new(key()),
        std::sync::Arc::new(Unconfirmed),
    );
    let drone = [("both", ours("1")), ("drone-only", ours("1")), ("to-flux", ours("1")), ("seen", observed("1"))];
    let large = [("both", ours("2")), ("large-only", ours("1")), ("to-flux", observed("1"))];
    issuer.issue(Term(0), &packed(&[("drone", &drone), ("large", &large), ("empty", &[])])).await.unwrap();
    (folder, store)
}

#[tokio::test]
async fn a_move_lists_what_goes_and_what_is_left_unmanaged() {
    let (_folder, store) = with_states().await;
    join(&store, 1, "drone").await;
    let moved = apply(&store, 1, &Change::Move(stream("large"))).await.unwrap();
    assert_eq!((moved.sequence, &moved.stream), (Sequence(2), &stream("large")));
    assert_eq!(moved.remove, ["drone-only"]);
    assert_eq!(moved.unmanage, ["to-flux"]);
    let row: (String, i64) =
        sqlx::query_as("SELECT cluster_type, sequence FROM clusters").fetch_one(store.pool()).await.unwrap();
    assert_eq!(row, ("large".to_owned(), 2));
}

#[tokio::test]
async fn a_cluster_that_was_away_for_two_moves_still_learns_what_goes() {
    let (_folder, store) = with_states().await;
    join(&store, 1, "drone").await;
    apply(&store, 1, &Change::Move(stream("large"))).await.unwrap();
    let moved = apply(&store, 1, &Change::Move(stream("empty"))).await.unwrap();
    assert_eq!(moved.remove, ["both", "drone-only", "large-only"]);
    assert_eq!(moved.unmanage, ["to-flux"]);
    let back = apply(&store, 1, &Change::Move(stream("drone"))).await.unwrap();
    assert_eq!((back.sequence, back.remove, back.unmanage), (Sequence(4), vec!["large-only".to_owned()], Vec::new()));
}

#[tokio::test]
async fn labels_change_without_a_move() {
    let (_folder, store) = with_states().await;
    let joined = join(&store, 1, "drone").await.membership;
    let labels = Labels::from([("colour".to_owned(), "red".to_owned())]);
    let changed =
        apply(&store, 1, &Change::Relabel { labels: labels.clone(), site: Some("north".to_owned()) }).await.unwrap();
    assert_eq!((changed.labels, changed.site.as_deref(), changed.stream), (labels, Some("north"), joined.stream));
    assert!(changed.remove.is_empty());
}

#[tokio::test]
async fn a_retired_cluster_stops_and_can_not_be_changed_any_more() {
    let (_folder, store) = with_states().await;
    join(&store, 1, "drone").await;
    let retired = apply(&store, 1, &Change::Retire).await.unwrap();
    assert!(retired.retired && retired.remove.is_empty());
    let again = apply(&store, 1, &Change::Move(stream("large"))).await;
    assert!(matches!(again, Err(MembershipError::NotActive(..))));
    assert!(matches!(apply(&store, 9, &Change::Retire).await, Err(MembershipError::Unknown(_))));
}

#[tokio::test]
async fn a_replacement_takes_name_labels_and_stream() {
    let (_folder, store) = with_states().await;
    join(&store, 1, "drone").await;
    join(&store, 2, "large").await;
    let mut tx = store.write().await.unwrap();
    let (new, old) = replace(&key(), &mut tx, &id(1), &id(2), Timestamp(3)).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((new.membership.name.as_str(), &new.membership.stream), ("host-1", &stream("drone")));
    assert_eq!(new.membership.labels["line"], "1");
    assert_eq!(new.membership.remove, ["large-only"]);
    assert!(old.membership.retired);
    let states: Vec<(String, String)> =
        sqlx::query_as("SELECT name, state FROM clusters ORDER BY state").fetch_all(store.pool()).await.unwrap();
    let pair = |name: &str, state: &str| (name.to_owned(), state.to_owned());
    assert_eq!(states, [pair("host-1", "active"), pair("host-1", "replaced")]);
    let mut tx = store.write().await.unwrap();
    assert!(matches!(replace(&key(), &mut tx, &id(2), &id(2), Timestamp(3)).await, Err(MembershipError::Same)));
}

#[tokio::test]
async fn a_change_that_is_not_committed_never_happened() {
    let (_folder, store) = with_states().await;
    join(&store, 1, "drone").await;
    let mut tx = store.write().await.unwrap();
    change(&key(), &mut tx, &id(1), &Change::Retire, Timestamp(2)).await.unwrap();
    drop(tx);
    let moved = apply(&store, 1, &Change::Move(stream("large"))).await.unwrap();
    assert_eq!(moved.sequence, Sequence(2));
}
