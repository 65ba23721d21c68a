//! What the controller writes before it issues: all of a pass in one transaction under the leader's term.

use std::collections::BTreeSet;
use std::sync::Arc;

use kedge_hub_types::rollout::Known;
use kedge_hub_types::rollout::NewKey;
use kedge_hub_types::rollout::change::Held;
use kedge_hub_types::rollout::running::{Place, Running, state_word};
use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::{Phase, Rollout, RolloutId};

use super::super::pack::corrupt;
use super::controller::{ComparedHead, Quarantine};
use super::{Waiting, number};
use crate::{StoreError, Tx};

impl Tx {
    /// Writes a rollout's value; its items, keys and ways back are rows of their own.
    pub async fn put_rollout(&mut self, running: &Running, at: Timestamp, tick: i64) -> Result<(), StoreError> {
        let rollout = &running.rollout;
        let body = Rollout { items: Arc::from([]), ..rollout.clone() };
        sqlx::query(
            "INSERT INTO rollouts (id, environment, lane, state, commit_id, main, body, skipped, issued, watched, \
             created_at, updated_at, ended_at, tick) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body, skipped = excluded.skipped, \
             issued = excluded.issued, watched = excluded.watched, updated_at = excluded.updated_at, \
             ended_at = excluded.ended_at, tick = excluded.tick",
        )
        .bind(number(rollout.id))
        .bind(rollout.environment.as_str())
        .bind(rollout.lane.to_string())
        .bind(state_word(&rollout.phase))
        .bind(rollout.cause.commit.as_str())
        .bind(rollout.cause.main.as_deref())
        .bind(serde_json::to_string(&body).map_err(corrupt)?)
        .bind(serde_json::to_string(&running.skipped).map_err(corrupt)?)
        .bind(i64::from(running.issued))
        .bind(i64::from(running.watched))
        .bind(rollout.created_at.0)
        .bind(at.0)
        .bind(ended_at(&rollout.phase).map(|at| at.0))
        .bind(tick)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn put_rollout_items(&mut self, running: &Running) -> Result<(), StoreError> {
        for (item, change) in running.items() {
            let commit = change.workload.as_ref().map(|part| part.package.commit.as_str()).unwrap_or_default();
            sqlx::query(
                "INSERT INTO rollout_items (rollout, cluster_type, assignment, workload, commit_id, body) \
                 VALUES ($1, $2, $3, $4, $5, $6)",
            )
            .bind(number(running.id()))
            .bind(item.cluster_type.as_str())
            .bind(item.assignment.as_str())
            .bind(item.workload.as_str())
            .bind(commit)
            .bind(serde_json::to_string(change).map_err(corrupt)?)
            .execute(self.connection())
            .await?;
        }
        Ok(())
    }

    /// A newer rollout moves these.
    pub async fn drop_rollout_items(&mut self, rollout: RolloutId, places: &BTreeSet<Place>) -> Result<(), StoreError> {
        for (cluster_type, assignment) in places {
            for sql in [
                "DELETE FROM rollout_items WHERE rollout = $1 AND cluster_type = $2 AND assignment = $3",
                "DELETE FROM rollout_keys WHERE rollout = $1 AND cluster_type = $2 AND assignment = $3",
                "DELETE FROM rollout_before WHERE rollout = $1 AND cluster_type = $2 AND assignment = $3",
            ] {
                sqlx::query(sql)
                    .bind(number(rollout))
                    .bind(cluster_type.as_str())
                    .bind(assignment.as_str())
                    .execute(self.connection())
                    .await?;
            }
        }
        Ok(())
    }

    pub async fn put_before(
        &mut self,
        rollout: RolloutId,
        ring: &str,
        place: &Place,
        held: &Held,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO rollout_before (rollout, ring, cluster_type, assignment, body) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (rollout, ring, cluster_type, assignment) DO NOTHING",
        )
        .bind(number(rollout))
        .bind(ring)
        .bind(place.0.as_str())
        .bind(place.1.as_str())
        .bind(serde_json::to_string(held).map_err(corrupt)?)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn put_key(&mut self, new: &NewKey) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO rollout_keys (rollout, ring, cluster_type, assignment, packages) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (rollout, ring, cluster_type, assignment, packages) DO NOTHING",
        )
        .bind(number(new.rollout))
        .bind(new.ring.as_str())
        .bind(new.place.0.as_str())
        .bind(new.place.1.as_str())
        .bind(new.key.to_string())
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// The desired states say what these rollouts say.
    pub async fn mark_issued(&mut self, rollouts: &[RolloutId]) -> Result<(), StoreError> {
        for rollout in rollouts {
            sqlx::query("UPDATE rollouts SET issued = 1 WHERE id = $1")
                .bind(number(*rollout))
                .execute(self.connection())
                .await?;
        }
        Ok(())
    }

    /// None: nothing waits any more.
    pub async fn put_waiting(
        &mut self,
        environment: &str,
        lane: &str,
        waiting: Option<&Waiting>,
    ) -> Result<(), StoreError> {
        let Some(waiting) = waiting else {
            let gone = sqlx::query("DELETE FROM rollout_waiting WHERE environment = $1 AND lane = $2");
            gone.bind(environment).bind(lane).execute(self.connection()).await?;
            return Ok(());
        };
        sqlx::query(
            "INSERT INTO rollout_waiting (environment, lane, body) VALUES ($1, $2, $3) \
             ON CONFLICT (environment, lane) DO UPDATE SET body = excluded.body",
        )
        .bind(environment)
        .bind(lane)
        .bind(serde_json::to_string(waiting).map_err(corrupt)?)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// What a rollout brought isn't started again by itself.
    pub async fn block(&mut self, running: &Running) -> Result<(), StoreError> {
        for (item, change) in running.items() {
            sqlx::query(
                "INSERT INTO rollout_blocked (environment, lane, cluster_type, assignment, workload, fingerprint, rollout) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (environment, lane, cluster_type, assignment, fingerprint) \
                 DO UPDATE SET rollout = excluded.rollout, workload = excluded.workload",
            )
            .bind(running.rollout.environment.as_str())
            .bind(running.rollout.lane.to_string())
            .bind(item.cluster_type.as_str())
            .bind(item.assignment.as_str())
            .bind(item.workload.as_str())
            .bind(change.fingerprint())
            .bind(number(running.id()))
            .execute(self.connection())
            .await?;
        }
        Ok(())
    }

    /// The head asks for something else now, or a rollout of it begins.
    pub async fn unblock_place(
        &mut self,
        environment: &str,
        lane: &str,
        place: &Place,
        fingerprint: Option<&str>,
    ) -> Result<(), StoreError> {
        let gone = sqlx::query(
            "DELETE FROM rollout_blocked WHERE environment = $1 AND lane = $2 AND cluster_type = $3 AND assignment = $4 \
             AND ($5 = '' OR fingerprint = $5)",
        );
        let gone = gone.bind(environment).bind(lane).bind(place.0.as_str()).bind(place.1.as_str());
        gone.bind(fingerprint.unwrap_or_default()).execute(self.connection()).await?;
        Ok(())
    }

    pub async fn put_source(&mut self, environment: &str, place: &Place, known: &Known) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO rollout_sources (environment, cluster_type, assignment, workload, repo, reference, path, \
             commit_id, observed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
             ON CONFLICT (environment, cluster_type, assignment) DO UPDATE SET workload = excluded.workload, \
             repo = excluded.repo, reference = excluded.reference, path = excluded.path, \
             commit_id = excluded.commit_id, observed = excluded.observed",
        )
        .bind(environment)
        .bind(place.0.as_str())
        .bind(place.1.as_str())
        .bind(known.origin.workload.as_str())
        .bind(known.origin.repo.as_str())
        .bind(known.origin.reference.as_str())
        .bind(known.origin.path.as_str())
        .bind(known.commit.as_str())
        .bind(known.observed.as_str())
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn drop_source(&mut self, environment: &str, place: &Place) -> Result<(), StoreError> {
        let gone =
            sqlx::query("DELETE FROM rollout_sources WHERE environment = $1 AND cluster_type = $2 AND assignment = $3");
        gone.bind(environment).bind(place.0.as_str()).bind(place.1.as_str()).execute(self.connection()).await?;
        Ok(())
    }

    pub async fn put_compared(
        &mut self,
        environment: &str,
        head: &ComparedHead,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO rollout_heads (environment, commit_id, main, at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (environment) DO UPDATE SET commit_id = excluded.commit_id, main = excluded.main, at = excluded.at",
        )
        .bind(environment)
        .bind(head.commit.as_str())
        .bind(head.main.as_str())
        .bind(at.0)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// None: it is mended.
    pub async fn put_quarantine(
        &mut self,
        environment: &str,
        assignment: &str,
        quarantine: Option<&Quarantine>,
    ) -> Result<(), StoreError> {
        let Some(quarantine) = quarantine else {
            let gone = sqlx::query("DELETE FROM rollout_quarantines WHERE environment = $1 AND assignment = $2");
            gone.bind(environment).bind(assignment).execute(self.connection()).await?;
            return Ok(());
        };
        sqlx::query(
            "INSERT INTO rollout_quarantines (environment, assignment, commit_id, main, why, since) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (environment, assignment) DO UPDATE SET why = excluded.why",
        )
        .bind(environment)
        .bind(assignment)
        .bind(quarantine.commit.as_str())
        .bind(quarantine.main.as_str())
        .bind(quarantine.why.as_str())
        .bind(quarantine.since.0)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// None: there is no pin any more, and the stream holds what was below it.
    pub async fn put_pinned(
        &mut self,
        stream: &Stream,
        assignment: &str,
        held: Option<&Held>,
    ) -> Result<(), StoreError> {
        let query = match held {
            Some(held) => sqlx::query(
                "INSERT INTO pinned (environment, cluster_type, ring, assignment, body) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (environment, cluster_type, ring, assignment) DO UPDATE SET body = excluded.body",
            )
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .bind(assignment)
            .bind(serde_json::to_string(held).map_err(corrupt)?),
            None => sqlx::query(
                "DELETE FROM pinned WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND assignment = $4",
            )
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .bind(assignment),
        };
        query.execute(self.connection()).await?;
        Ok(())
    }
}

fn ended_at(phase: &Phase) -> Option<Timestamp> {
    match phase {
        Phase::Active | Phase::Paused { .. } | Phase::Stopped { .. } => None,
        Phase::Complete { at }
        | Phase::RolledBack { at, .. }
        | Phase::Aborted { at, .. }
        | Phase::Superseded { at, .. } => Some(*at),
    }
}
