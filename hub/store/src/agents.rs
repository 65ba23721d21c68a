//! The statements of `agents`: clusters as members (this file), join tokens (`tokens`), holds (`holds`) and
//! rings (`rings`).

pub mod holds;
pub mod rings;
pub mod tokens;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Sequence, Stream, Timestamp};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};

use super::statement::Statement;
use super::{Store, StoreError, Tx, now};

/// What a cluster is to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClusterState {
    Active,
    /// Asked to stop; counts nowhere. May join again with a new token.
    Retired,
    /// Its key is refused, for good.
    Revoked,
    /// Another cluster took its place; its key is refused.
    Replaced,
}

/// A cluster as far as membership goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRow {
    pub id: ClusterId,
    pub name: String,
    pub stream: Stream,
    pub labels: Labels,
    pub site: Option<String>,
    /// It may fetch for the site's other streams.
    pub relay: bool,
    pub machine: Option<String>,
    pub state: ClusterState,
    pub sequence: Sequence,
    /// The signed envelope as JSON.
    pub membership: Vec<u8>,
    pub token: String,
}

/// What a poll needs to know of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingRow {
    pub id: ClusterId,
    pub stream: Stream,
    pub state: ClusterState,
    pub sequence: Sequence,
    pub site: Option<String>,
    pub relay: bool,
    /// Of the hub's hold document; 0 is none.
    pub holds: u64,
    pub tick: i64,
}

/// A cluster that left its site for good.
#[derive(Clone, Debug)]
pub struct Gone {
    pub id: ClusterId,
    pub state: ClusterState,
    pub tick: i64,
    /// The signed envelope as JSON: it says so.
    pub membership: Vec<u8>,
}

/// A cluster that comes in.
#[derive(Clone, Debug)]
pub struct NewCluster<'a> {
    pub row: &'a ClusterRow,
    pub public_key: &'a [u8; 32],
    pub facts: &'a str,
    pub certificate: &'a CertificateNote,
    pub joined_at: Timestamp,
    /// Until then the first poll is expected.
    pub check_in_deadline: Timestamp,
}

/// What is remembered of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateNote {
    pub serial: String,
    pub until: Timestamp,
}

const COLUMNS: &str =
    "id, name, environment, cluster_type, ring, labels, site, relay, machine, state, sequence, membership, token";
const STANDING: &str =
    "SELECT id, environment, cluster_type, ring, site, relay, state, sequence, hold_sequence, tick FROM clusters";

impl Store {
    pub async fn cluster(&self, id: &ClusterId) -> Result<Option<ClusterRow>, StoreError> {
        find(&mut *self.pool().acquire().await?, id).await
    }

    pub async fn standing(&self, id: &ClusterId) -> Result<Option<StandingRow>, StoreError> {
        let query = sqlx::query(sqlx::AssertSqlSafe(format!("{STANDING} WHERE id = $1"))).bind(id.to_string());
        query.fetch_optional(self.pool()).await?.as_ref().map(standing).transpose()
    }

    /// Changes after a tick and, within it, an id; in order.
    pub async fn standings_after(&self, tick: i64, id: &str, limit: i64) -> Result<Vec<StandingRow>, StoreError> {
        let text = format!("{STANDING} WHERE tick >= $1 AND (tick > $1 OR id > $2) ORDER BY tick, id LIMIT $3");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(tick).bind(id).bind(limit);
        query.fetch_all(self.pool()).await?.iter().map(standing).collect()
    }

    /// All clusters, a page at a time, after an id.
    pub async fn standings_page(&self, after: &str, limit: i64) -> Result<Vec<StandingRow>, StoreError> {
        let text = format!("{STANDING} WHERE id > $1 ORDER BY id LIMIT $2");
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(after).bind(limit);
        query.fetch_all(self.pool()).await?.iter().map(standing).collect()
    }

    /// The signed membership, as stored.
    pub async fn membership(&self, id: &ClusterId) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar("SELECT membership FROM clusters WHERE id = $1").bind(id.to_string());
        Ok(query.fetch_optional(self.pool()).await?)
    }

    /// When a cluster was last heard, or let in again by a person.
    pub async fn heard_or_readmitted(&self, cluster: &ClusterId) -> Result<Option<Timestamp>, StoreError> {
        let query = sqlx::query("SELECT last_contact, readmitted_at FROM clusters WHERE id = $1");
        let Some(row) = query.bind(cluster.to_string()).fetch_optional(self.pool()).await? else { return Ok(None) };
        let (heard, readmitted): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok(Some(Timestamp(heard.max(readmitted))))
    }

    /// When these clusters were last heard, as far as it is written.
    pub async fn last_contacts(&self, clusters: &[ClusterId]) -> Result<BTreeMap<ClusterId, Timestamp>, StoreError> {
        let ids: Vec<String> = clusters.iter().map(ToString::to_string).collect();
        let mut query = Statement::new("SELECT id, last_contact FROM clusters WHERE id IN (");
        query.list("", &ids, ")");
        let rows = query.fetch_once(self).await?;
        rows.iter().map(|row| Ok((parsed(row.try_get("id")?)?, Timestamp(row.try_get("last_contact")?)))).collect()
    }

    /// The streams that the members of a site follow.
    pub async fn streams_of_site(&self, site: &str, limit: i64) -> Result<Vec<Stream>, StoreError> {
        let query = sqlx::query(
            "SELECT DISTINCT environment, cluster_type, ring FROM clusters WHERE site = $1 AND state = 'active' \
             ORDER BY environment, cluster_type, ring LIMIT $2",
        );
        query.bind(site).bind(limit).fetch_all(self.pool()).await?.iter().map(stream).collect()
    }

    /// Who left a site after a tick, the first to go first.
    pub async fn gone_from_site(&self, site: &str, after: i64, limit: i64) -> Result<Vec<Gone>, StoreError> {
        let query = sqlx::query(
            "SELECT id, state, tick, membership FROM clusters WHERE site = $1 AND state <> 'active' AND tick > $2 \
             ORDER BY tick, id LIMIT $3",
        );
        let rows = query.bind(site).bind(after).bind(limit).fetch_all(self.pool()).await?;
        let gone = |row: &AnyRow| {
            Ok(Gone {
                id: parsed(row.try_get("id")?)?,
                state: parsed(row.try_get("state")?)?,
                tick: row.try_get("tick")?,
                membership: row.try_get("membership")?,
            })
        };
        rows.iter().map(gone).collect()
    }

    /// The number of the last change that is committed.
    pub async fn last_tick(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("SELECT value FROM ticks WHERE id = 1").fetch_one(self.pool()).await?)
    }

    /// The newest generation of a stream that is in the database, whoever issued it.
    pub async fn newest_generation(&self, stream: &Stream) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar::<_, Option<i64>>(
            "SELECT MAX(generation) FROM states WHERE environment = $1 AND cluster_type = $2 AND ring = $3",
        );
        let bound = query.bind(&stream.environment).bind(&stream.cluster_type).bind(&stream.ring);
        unsigned(bound.fetch_one(self.pool()).await?.unwrap_or(0))
    }

    /// The state before a generation: its packages may still be fetched.
    pub async fn state_before(&self, stream: &Stream, generation: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar(
            "SELECT envelope FROM states WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND generation < $4 \
             ORDER BY generation DESC LIMIT 1",
        );
        let bound = query.bind(&stream.environment).bind(&stream.cluster_type).bind(&stream.ring);
        Ok(bound.bind(signed(generation)?).fetch_optional(self.pool()).await?)
    }
}

impl Tx {
    pub async fn readmit(&mut self, cluster: &ClusterId) -> Result<(), StoreError> {
        let tick = self.tick().await?;
        let query = sqlx::query("UPDATE clusters SET readmitted_at = $2, tick = $3 WHERE id = $1");
        query.bind(cluster.to_string()).bind(now().0).bind(tick).execute(self.connection()).await?;
        Ok(())
    }

    pub async fn cluster(&mut self, id: &ClusterId) -> Result<Option<ClusterRow>, StoreError> {
        find(self.connection(), id).await
    }

    /// False: it is there already, another request was quicker.
    pub async fn add_cluster(&mut self, new: NewCluster<'_>) -> Result<bool, StoreError> {
        let tick = self.tick().await?;
        let row = new.row;
        let query = sqlx::query(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, site, public_key, machine, facts, state, \
             sequence, membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, \
             generation, tick, relay) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $14, $18, 0, $19, $20) \
             ON CONFLICT (id) DO NOTHING",
        );
        let bound = query
            .bind(row.id.to_string())
            .bind(&row.name)
            .bind(&row.stream.environment)
            .bind(&row.stream.cluster_type)
            .bind(&row.stream.ring)
            .bind(labels_text(&row.labels)?)
            .bind(row.site.as_deref())
            .bind(new.public_key.as_slice())
            .bind(row.machine.as_deref())
            .bind(new.facts)
            .bind(row.state.as_str())
            .bind(signed(row.sequence.0)?)
            .bind(row.membership.as_slice())
            .bind(new.joined_at.0)
            .bind(&row.token)
            .bind(&new.certificate.serial)
            .bind(new.certificate.until.0)
            .bind(new.check_in_deadline.0)
            .bind(tick)
            .bind(i64::from(row.relay));
        Ok(bound.execute(self.connection()).await?.rows_affected() == 1)
    }

    /// Writes where a cluster belongs and what it is. Its sequence and envelope go with it.
    pub async fn change_cluster(&mut self, row: &ClusterRow) -> Result<(), StoreError> {
        let tick = self.tick().await?;
        let query = sqlx::query(
            "UPDATE clusters SET name = $2, environment = $3, cluster_type = $4, ring = $5, labels = $6, site = $7, state = $8, \
             sequence = $9, membership = $10, token = $11, machine = $12, tick = $13, relay = $14 WHERE id = $1",
        );
        let bound = query
            .bind(row.id.to_string())
            .bind(&row.name)
            .bind(&row.stream.environment)
            .bind(&row.stream.cluster_type)
            .bind(&row.stream.ring)
            .bind(labels_text(&row.labels)?)
            .bind(row.site.as_deref())
            .bind(row.state.as_str())
            .bind(signed(row.sequence.0)?)
            .bind(row.membership.as_slice())
            .bind(&row.token)
            .bind(row.machine.as_deref())
            .bind(tick)
            .bind(i64::from(row.relay));
        bound.execute(self.connection()).await?;
        Ok(())
    }

    pub async fn note_certificate(&mut self, id: &ClusterId, note: &CertificateNote) -> Result<(), StoreError> {
        let query = sqlx::query("UPDATE clusters SET certificate_serial = $2, certificate_until = $3 WHERE id = $1");
        query.bind(id.to_string()).bind(&note.serial).bind(note.until.0).execute(self.connection()).await?;
        Ok(())
    }
}

async fn find(connection: &mut AnyConnection, id: &ClusterId) -> Result<Option<ClusterRow>, StoreError> {
    let text = format!("SELECT {COLUMNS} FROM clusters WHERE id = $1");
    let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(id.to_string());
    query.fetch_optional(connection).await?.as_ref().map(cluster).transpose()
}

fn cluster(row: &AnyRow) -> Result<ClusterRow, StoreError> {
    Ok(ClusterRow {
        id: parsed(row.try_get("id")?)?,
        name: row.try_get("name")?,
        stream: stream(row)?,
        labels: labels(row.try_get("labels")?)?,
        site: row.try_get("site")?,
        relay: row.try_get::<i64, _>("relay")? != 0,
        machine: row.try_get("machine")?,
        state: parsed(row.try_get("state")?)?,
        sequence: Sequence(unsigned(row.try_get("sequence")?)?),
        membership: row.try_get("membership")?,
        token: row.try_get("token")?,
    })
}

fn standing(row: &AnyRow) -> Result<StandingRow, StoreError> {
    Ok(StandingRow {
        id: parsed(row.try_get("id")?)?,
        stream: stream(row)?,
        state: parsed(row.try_get("state")?)?,
        sequence: Sequence(unsigned(row.try_get("sequence")?)?),
        site: row.try_get("site")?,
        relay: row.try_get::<i64, _>("relay")? != 0,
        holds: unsigned(row.try_get("hold_sequence")?)?,
        tick: row.try_get("tick")?,
    })
}

fn stream(row: &AnyRow) -> Result<Stream, StoreError> {
    Ok(Stream {
        environment: row.try_get("environment")?,
        cluster_type: row.try_get("cluster_type")?,
        ring: row.try_get("ring")?,
    })
}

fn parsed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|why: T::Err| StoreError::Corrupt(why.to_string()))
}

fn labels(text: &str) -> Result<Labels, StoreError> {
    serde_json::from_str(text).map_err(|why| StoreError::Corrupt(format!("labels `{text}`: {why}")))
}

fn labels_text(labels: &Labels) -> Result<String, StoreError> {
    serde_json::to_string(labels).map_err(|why| StoreError::Corrupt(why.to_string()))
}

fn unsigned(number: i64) -> Result<u64, StoreError> {
    u64::try_from(number).map_err(|_| StoreError::Corrupt(format!("a number below zero: {number}")))
}

fn signed(number: u64) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| StoreError::Corrupt(format!("a number that is too large: {number}")))
}

impl ClusterState {
    pub fn as_str(self) -> &'static str {
        match self {
            ClusterState::Active => "active",
            ClusterState::Retired => "retired",
            ClusterState::Revoked => "revoked",
            ClusterState::Replaced => "replaced",
        }
    }

    /// Its key is refused at once and for good.
    pub fn is_shut_out(self) -> bool {
        matches!(self, ClusterState::Revoked | ClusterState::Replaced)
    }
}

impl FromStr for ClusterState {
    type Err = String;

    fn from_str(text: &str) -> Result<ClusterState, String> {
        match text {
            "active" => Ok(ClusterState::Active),
            "retired" => Ok(ClusterState::Retired),
            "revoked" => Ok(ClusterState::Revoked),
            "replaced" => Ok(ClusterState::Replaced),
            other => Err(format!("`{other}` is no state of a cluster")),
        }
    }
}
