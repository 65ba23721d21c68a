//! What the database knows of confirmations: the guard's sets, and which tombstones nobody needs any more.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use kedge_model::wire::{Generation, Stream};

use super::issuer::{Confirmations, Tomb};
use crate::store::{Store, StoreError};

#[async_trait]
impl Confirmations for Store {
    async fn confirmed_sizes(&self, environment: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        self.confirmed_set_sizes(environment).await
    }

    /// A tombstone is settled when no member reports the assignment any more and every one has accepted a state that
    /// lists it: a cluster that is away and hasn't seen it may still bring the assignment back.
    async fn settled(&self, stream: &Stream, tombstones: &[Tomb]) -> Result<BTreeSet<String>, StoreError> {
        let Some(newest) = tombstones.iter().map(|tomb| tomb.since).max() else { return Ok(BTreeSet::new()) };
        let reported = self.reported_assignments(stream).await?;
        // The members are looked at only if that could settle something.
        let candidates: Vec<&Tomb> =
            tombstones.iter().filter(|tomb| !tomb.removes || !reported.contains(&tomb.assignment)).collect();
        if candidates.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lowest = self.lowest_generation(stream).await?.unwrap_or(newest);
        let settled = |tomb: &&&Tomb| -> bool { lowest >= tomb.since && lowest > Generation(0) };
        Ok(candidates.iter().filter(settled).map(|tomb| tomb.assignment.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::testing::store;

    fn tomb(assignment: &str, since: u64, removes: bool) -> Tomb {
        Tomb { assignment: assignment.to_owned(), since: Generation(since), removes }
    }

    async fn member(store: &Store, id: &str, generation: i64, state: &str) {
        sqlx::query(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, \
             membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, generation, tick) \
             VALUES ($1, $1, 'dev', 'drone', 'all', '{}', $4, '{}', $3, 1, $4, 0, '', '', 0, 0, 0, $2, 0)",
        )
        .bind(id)
        .bind(generation)
        .bind(state)
        .bind(Vec::<u8>::new())
        .execute(store.pool())
        .await
        .unwrap();
    }

    async fn settled(store: &Store, tombs: &[Tomb]) -> Vec<String> {
        let stream = Stream::new("dev", "drone", Stream::ALL);
        store.settled(&stream, tombs).await.unwrap().into_iter().collect()
    }

    #[tokio::test]
    async fn a_tombstone_stays_until_every_member_saw_it_and_none_reports_the_assignment() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let tombs = [tomb("gone", 3, true), tomb("left", 3, false)];
        assert_eq!(settled(&store, &tombs).await, ["gone", "left"], "no members, nobody to wait for");
        member(&store, "a", 4, "active").await;
        member(&store, "b", 2, "active").await;
        member(&store, "c", 1, "retired").await;
        assert!(settled(&store, &tombs).await.is_empty());
        sqlx::query("UPDATE clusters SET generation = 3 WHERE id = 'b'").execute(store.pool()).await.unwrap();
        assert_eq!(settled(&store, &tombs).await, ["gone", "left"]);
        sqlx::query(
            "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) \
             VALUES ('dev', 'drone', 'all', 'gone', 'p', 'p', 'Failed', 1)",
        )
        .execute(store.pool())
        .await
        .unwrap();
        assert_eq!(settled(&store, &tombs).await, ["left"]);
    }
}
