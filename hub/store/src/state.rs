//! Desired states, picks, and floors of generations.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kedge_hub_types::state::Issued;
use kedge_hub_types::state::Move;
use kedge_model::wire::{BlobRef, DesiredState, Digest, Entry, Envelope, Generation, Mode, Stream, Timestamp};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::pack::corrupt;
use super::{Store, StoreError, Tx};

/// A signed state on its way into the database.
#[derive(Clone, Debug)]
pub struct NewState {
    pub state: DesiredState,
    pub content: Digest,
    pub envelope: Bytes,
    pub moves: Vec<Move>,
}

/// Numbers that the next generations must be above.
#[derive(Clone, Debug, Default)]
pub struct Floors {
    everywhere: Generation,
    streams: BTreeMap<Stream, Generation>,
}

/// A cluster's proof, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenFloor {
    pub stream: Stream,
    pub floor: Generation,
    pub known: Generation,
    pub proven_at: Timestamp,
}

/// A pick, as people ask for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    pub stream: Stream,
    pub assignment: String,
    pub package: String,
    pub commit: String,
    pub digest: String,
    pub previous_commit: Option<String>,
    pub previous_digest: Option<String>,
}

impl Floors {
    pub fn floor(&self, stream: &Stream) -> Generation {
        self.streams.get(stream).copied().unwrap_or_default().max(self.everywhere)
    }
}

impl Store {
    pub async fn newest_tick(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("SELECT value FROM ticks WHERE id = 1").fetch_one(self.pool()).await?)
    }

    /// The newest state of every stream, as it is served.
    pub async fn newest_envelopes(&self) -> Result<Vec<(Stream, Issued)>, StoreError> {
        let rows = sqlx::query(
            "SELECT s.environment, s.cluster_type, s.ring, s.generation, s.envelope FROM states s JOIN \
             (SELECT environment, cluster_type, ring, MAX(generation) AS generation FROM states \
              GROUP BY environment, cluster_type, ring) n \
             ON s.environment = n.environment AND s.cluster_type = n.cluster_type AND s.ring = n.ring \
             AND s.generation = n.generation",
        );
        rows.fetch_all(self.pool()).await?.iter().map(|row| Ok((stream_of(row)?, issued_of(row)?))).collect()
    }

    /// States issued after a tick, in order.
    pub async fn envelopes_after(&self, tick: i64) -> Result<Vec<(Stream, Issued, i64)>, StoreError> {
        let rows = sqlx::query(
            "SELECT environment, cluster_type, ring, generation, envelope, tick FROM states WHERE tick > $1 ORDER BY tick, generation",
        );
        let rows = rows.bind(tick).fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((stream_of(row)?, issued_of(row)?, row.try_get(5)?))).collect()
    }

    /// The newest state of each stream of an environment.
    pub async fn newest_states_of(&self, environment: &str) -> Result<Vec<(Stream, DesiredState)>, StoreError> {
        let rows = sqlx::query(
            "SELECT s.environment, s.cluster_type, s.ring, s.generation, s.envelope FROM states s JOIN \
             (SELECT cluster_type, ring, MAX(generation) AS generation FROM states WHERE environment = $1 \
              GROUP BY cluster_type, ring) n \
             ON s.cluster_type = n.cluster_type AND s.ring = n.ring AND s.generation = n.generation \
             WHERE s.environment = $1",
        );
        let rows = rows.bind(environment).fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((stream_of(row)?, state_of(row.try_get(4)?)?))).collect()
    }

    pub async fn generation_floors_of(&self, environment: &str) -> Result<Floors, StoreError> {
        let everywhere = Generation(self.floor().await?);
        let rows =
            sqlx::query("SELECT environment, cluster_type, ring, floor FROM generation_floors WHERE environment = $1");
        let rows = rows.bind(environment).fetch_all(self.pool()).await?;
        let streams: Result<_, StoreError> =
            rows.iter().map(|row| Ok((stream_of(row)?, generation_of(row.try_get(3)?)?))).collect();
        Ok(Floors { everywhere, streams: streams? })
    }

    /// Streams whose newest state isn't above what was proven.
    pub async fn streams_below_floor(&self) -> Result<Vec<(Stream, Generation)>, StoreError> {
        let rows = sqlx::query(
            "SELECT f.environment, f.cluster_type, f.ring, f.floor FROM generation_floors f WHERE f.floor >= \
             (SELECT MAX(s.generation) FROM states s WHERE s.environment = f.environment \
              AND s.cluster_type = f.cluster_type AND s.ring = f.ring)",
        );
        let rows = rows.fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((stream_of(row)?, generation_of(row.try_get(3)?)?))).collect()
    }

    pub async fn proven_floors(&self, environment: &str) -> Result<Vec<ProvenFloor>, StoreError> {
        let rows = sqlx::query(
            "SELECT environment, cluster_type, ring, floor, known, proven_at FROM generation_floors \
             WHERE environment = $1 ORDER BY cluster_type, ring",
        );
        let rows = rows.bind(environment).fetch_all(self.pool()).await?;
        let proven = rows.iter().map(|row| {
            Ok(ProvenFloor {
                stream: stream_of(row)?,
                floor: generation_of(row.try_get(3)?)?,
                known: generation_of(row.try_get(4)?)?,
                proven_at: Timestamp(row.try_get(5)?),
            })
        });
        proven.collect()
    }

    /// Sizes of the guard's sets, by cluster type.
    pub async fn confirmed_set_sizes(&self, environment: &str) -> Result<BTreeMap<String, u64>, StoreError> {
        let rows = sqlx::query("SELECT cluster_type, size FROM confirmed_sets WHERE environment = $1");
        let rows = rows.bind(environment).fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, generation_of(row.try_get(1)?)?.0))).collect()
    }

    /// Assignments that some member of the stream reports, whatever it says of them.
    pub async fn reported_assignments(&self, stream: &Stream) -> Result<BTreeSet<String>, StoreError> {
        let rows = sqlx::query_scalar(
            "SELECT DISTINCT assignment FROM counts WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND count > 0",
        );
        let rows = rows
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .fetch_all(self.pool())
            .await?;
        Ok(rows.into_iter().collect())
    }

    /// The lowest generation that an active member has accepted; none without members.
    pub async fn lowest_generation(&self, stream: &Stream) -> Result<Option<Generation>, StoreError> {
        let lowest: Option<i64> = sqlx::query_scalar(
            "SELECT MIN(generation) FROM clusters WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND state = 'active'",
        )
        .bind(stream.environment.as_str())
        .bind(stream.cluster_type.as_str())
        .bind(stream.ring.as_str())
        .fetch_one(self.pool())
        .await?;
        lowest.map(generation_of).transpose()
    }

    /// The picks of an environment, for people.
    pub async fn picks(&self, environment: &str) -> Result<Vec<Pick>, StoreError> {
        let rows = sqlx::query(
            "SELECT environment, cluster_type, ring, assignment, package, commit_id, digest, previous_commit, previous_digest \
             FROM picks WHERE environment = $1 ORDER BY cluster_type, ring, assignment, package",
        );
        let rows = rows.bind(environment).fetch_all(self.pool()).await?;
        let picks = rows.iter().map(|row| {
            Ok(Pick {
                stream: stream_of(row)?,
                assignment: row.try_get(3)?,
                package: row.try_get(4)?,
                commit: row.try_get(5)?,
                digest: row.try_get(6)?,
                previous_commit: row.try_get(7)?,
                previous_digest: row.try_get(8)?,
            })
        });
        picks.collect()
    }
}

impl Tx {
    /// Writes a state and moves its picks. A generation that is there already is refused by its key.
    pub async fn add_state(&mut self, new: &NewState, tick: i64) -> Result<(), StoreError> {
        let state = &new.state;
        sqlx::query(
            "INSERT INTO states (environment, cluster_type, ring, generation, content, envelope, created_at, tick) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(state.stream.environment.as_str())
        .bind(state.stream.cluster_type.as_str())
        .bind(state.stream.ring.as_str())
        .bind(number(state.generation))
        .bind(new.content.to_string())
        .bind(new.envelope.to_vec())
        .bind(state.created_at.0)
        .bind(tick)
        .execute(self.connection())
        .await?;
        for moved in &new.moves {
            self.move_pick(&state.stream, moved, state.created_at).await?;
        }
        let moved: BTreeSet<&str> = new.moves.iter().map(|moved| moved.assignment.as_str()).collect();
        for entry in state.entries.iter().filter(|entry| moved.contains(entry.assignment.as_str())) {
            self.name_content(entry).await?;
        }
        Ok(())
    }

    /// Remembers which version and commits a pair of packages is.
    async fn name_content(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let Mode::Apply(packages) = &entry.mode else { return Ok(()) };
        let named = sqlx::query(
            "INSERT INTO contents (packages, version, platform_commit, workload_commit, platform, workload) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (packages) DO UPDATE SET platform = excluded.platform, \
             workload = excluded.workload \
             WHERE contents.platform <> excluded.platform",
        );
        named
            .bind(entry.packages_key().to_string())
            .bind(packages.version.as_deref())
            .bind(packages.platform.commit.as_str())
            .bind(packages.workload.commit.as_str())
            .bind(packages.platform.digest.to_string())
            .bind(packages.workload.digest.to_string())
            .execute(self.connection())
            .await?;
        Ok(())
    }

    async fn move_pick(&mut self, stream: &Stream, moved: &Move, at: Timestamp) -> Result<(), StoreError> {
        let Some(to) = &moved.to else {
            sqlx::query(
                "DELETE FROM picks WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND assignment = $4 AND package = $5",
            )
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .bind(moved.assignment.as_str())
            .bind(moved.package.as_str())
            .execute(self.connection())
            .await?;
            return Ok(());
        };
        let artifacts = |blobs: &[BlobRef]| serde_json::to_string(blobs).map_err(corrupt);
        // The way back is the last different content, whatever commit brought the same one again.
        sqlx::query(
            "INSERT INTO picks (environment, cluster_type, ring, assignment, package, repo, commit_id, digest, size, artifacts, since) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
             ON CONFLICT (environment, cluster_type, ring, assignment, package) DO UPDATE SET \
             previous_commit = CASE WHEN picks.digest = excluded.digest THEN picks.previous_commit ELSE picks.commit_id END, \
             previous_digest = CASE WHEN picks.digest = excluded.digest THEN picks.previous_digest ELSE picks.digest END, \
             previous_size = CASE WHEN picks.digest = excluded.digest THEN picks.previous_size ELSE picks.size END, \
             previous_artifacts = CASE WHEN picks.digest = excluded.digest THEN picks.previous_artifacts ELSE picks.artifacts END, \
             repo = excluded.repo, commit_id = excluded.commit_id, digest = excluded.digest, size = excluded.size, \
             artifacts = excluded.artifacts, since = excluded.since",
        )
        .bind(stream.environment.as_str())
        .bind(stream.cluster_type.as_str())
        .bind(stream.ring.as_str())
        .bind(moved.assignment.as_str())
        .bind(moved.package.as_str())
        .bind(to.repo.as_str())
        .bind(to.commit.as_str())
        .bind(to.digest.to_string())
        .bind(i64::try_from(to.size).unwrap_or(i64::MAX))
        .bind(artifacts(&to.artifacts)?)
        .bind(at.0)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn newest_generation(&mut self, stream: &Stream) -> Result<Generation, StoreError> {
        let newest: Option<i64> = sqlx::query_scalar(
            "SELECT MAX(generation) FROM states WHERE environment = $1 AND cluster_type = $2 AND ring = $3",
        )
        .bind(stream.environment.as_str())
        .bind(stream.cluster_type.as_str())
        .bind(stream.ring.as_str())
        .fetch_one(self.connection())
        .await?;
        generation_of(newest.unwrap_or_default())
    }

    /// Whether the floor went up.
    pub async fn raise_floor(
        &mut self,
        stream: &Stream,
        floor: Generation,
        known: Generation,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let raised = sqlx::query(
            "INSERT INTO generation_floors (environment, cluster_type, ring, floor, known, proven_at) \
             VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (environment, cluster_type, ring) DO UPDATE SET floor = excluded.floor, known = excluded.known, \
             proven_at = excluded.proven_at WHERE excluded.floor > generation_floors.floor",
        )
        .bind(stream.environment.as_str())
        .bind(stream.cluster_type.as_str())
        .bind(stream.ring.as_str())
        .bind(number(floor))
        .bind(number(known))
        .bind(at.0)
        .execute(self.connection())
        .await?;
        Ok(raised.rows_affected() > 0)
    }
}

fn stream_of(row: &AnyRow) -> Result<Stream, StoreError> {
    let (environment, cluster_type, ring): (&str, &str, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Ok(Stream::new(environment, cluster_type, ring))
}

fn issued_of(row: &AnyRow) -> Result<Issued, StoreError> {
    let envelope: Vec<u8> = row.try_get(4)?;
    Ok(Issued::of(generation_of(row.try_get(3)?)?, Bytes::from(envelope)))
}

fn state_of(envelope: &[u8]) -> Result<DesiredState, StoreError> {
    let envelope = Envelope::from_json(envelope).map_err(corrupt)?;
    serde_json::from_slice(&envelope.payload).map_err(corrupt)
}

fn generation_of(number: i64) -> Result<Generation, StoreError> {
    u64::try_from(number).map(Generation).map_err(corrupt)
}

fn number(generation: Generation) -> i64 {
    i64::try_from(generation.0).unwrap_or(i64::MAX)
}
