//! The statements about holds: the newest document of each writer, per cluster.

use kedge_model::shown::cell;
use kedge_model::wire::{ClusterId, Envelope, HoldDocument, HubHolds, SiteHolds};
use sqlx::AnyConnection;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::signed;
use crate::{Store, StoreError, Tx, now};

/// Who wrote a hold document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldWriter {
    /// A person at the hub.
    Hub,
    /// A technician on the spot.
    Cluster,
    /// Somebody at another cluster of the site.
    Peer(ClusterId),
}

impl HoldWriter {
    pub fn as_str(self) -> &'static str {
        match self {
            HoldWriter::Hub => "hub",
            HoldWriter::Cluster => "cluster",
            HoldWriter::Peer(_) => "peer",
        }
    }

    /// In the table: a peer is its id.
    fn column(self) -> String {
        match self {
            HoldWriter::Peer(cluster) => cluster.to_string(),
            writer => writer.as_str().to_owned(),
        }
    }

    fn read(column: &str) -> Result<HoldWriter, StoreError> {
        match column {
            "hub" => Ok(HoldWriter::Hub),
            "cluster" => Ok(HoldWriter::Cluster),
            peer => {
                peer.parse().map(HoldWriter::Peer).map_err(|why| StoreError::Corrupt(format!("a hold's writer: {why}")))
            }
        }
    }
}

/// Longer than a user of a host is called.
const MAX_USER: usize = 64;
/// As an agent bounds it.
const MAX_REASON: usize = 1024;

const NEWEST: &str = "SELECT envelope FROM holds WHERE cluster = $1 AND writer = $2";
const ALL: &str = "SELECT writer, envelope, received_at, (SELECT name FROM clusters WHERE clusters.id = CASE holds.writer WHEN 'cluster' THEN holds.cluster ELSE holds.writer END) AS author FROM holds WHERE cluster = $1 ORDER BY CASE writer WHEN 'hub' THEN 0 WHEN 'cluster' THEN 1 ELSE 2 END, writer";

impl Store {
    /// The newest document of a writer: its envelope and what it says.
    pub async fn hold_document(
        &self,
        cluster: &ClusterId,
        writer: HoldWriter,
    ) -> Result<Option<(Envelope, HoldDocument)>, StoreError> {
        newest(&mut *self.pool().acquire().await?, cluster, writer).await
    }

    /// The newest documents of all writers, with what of them is in force: the hub's, the technician's, the peers'.
    pub async fn hold_documents(&self, cluster: &ClusterId) -> Result<Vec<(HoldWriter, HoldDocument)>, StoreError> {
        all(&mut *self.pool().acquire().await?, cluster).await
    }

    /// The site that both are active members of.
    pub async fn shared_site(&self, one: &ClusterId, other: &ClusterId) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_scalar(
            "SELECT a.site FROM clusters a JOIN clusters b ON a.site = b.site \
             WHERE a.id = $1 AND b.id = $2 AND a.state = 'active' AND b.state = 'active' AND a.site <> ''",
        );
        Ok(query.bind(one.to_string()).bind(other.to_string()).fetch_optional(self.pool()).await?)
    }

    /// The key that a cluster signs with.
    pub async fn public_key(&self, cluster: &ClusterId) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query_scalar("SELECT public_key FROM clusters WHERE id = $1").bind(cluster.to_string());
        Ok(query.fetch_optional(self.pool()).await?)
    }
}

impl Tx {
    pub async fn hold_document(
        &mut self,
        cluster: &ClusterId,
        writer: HoldWriter,
    ) -> Result<Option<(Envelope, HoldDocument)>, StoreError> {
        newest(self.connection(), cluster, writer).await
    }

    pub async fn hold_documents(&mut self, cluster: &ClusterId) -> Result<Vec<(HoldWriter, HoldDocument)>, StoreError> {
        all(self.connection(), cluster).await
    }

    /// On which clusters this one holds something.
    pub async fn held_by_peer(&mut self, writer: &ClusterId) -> Result<Vec<ClusterId>, StoreError> {
        let query = sqlx::query_scalar::<_, String>("SELECT cluster FROM holds WHERE writer = $1 ORDER BY cluster");
        let found = query.bind(writer.to_string()).fetch_all(self.connection()).await?;
        let read = |id: String| id.parse().map_err(|why| StoreError::Corrupt(format!("a hold's cluster: {why}")));
        found.into_iter().map(read).collect()
    }

    /// False: one at least as new is there. The hub's own is told to who polls.
    pub async fn put_hold_document(
        &mut self,
        document: &HoldDocument,
        writer: HoldWriter,
        envelope: &[u8],
    ) -> Result<bool, StoreError> {
        let sequence = signed(document.sequence)?;
        let query = sqlx::query(
            "INSERT INTO holds (cluster, writer, sequence, envelope, received_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (cluster, writer) DO UPDATE SET sequence = excluded.sequence, envelope = excluded.envelope, \
             received_at = excluded.received_at WHERE holds.sequence < excluded.sequence",
        );
        let bound = query.bind(document.cluster.to_string()).bind(writer.column()).bind(sequence);
        let stored = bound.bind(envelope).bind(now().0).execute(self.connection()).await?.rows_affected() == 1;
        if stored {
            let tick = self.tick().await?;
            let told = if writer == HoldWriter::Hub { "hold_sequence = $2, tick = $3" } else { "tick = $3" };
            let text = format!("UPDATE clusters SET {told} WHERE id = $1 AND $2 > 0");
            let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(document.cluster.to_string());
            query.bind(sequence).bind(tick).execute(self.connection()).await?;
        }
        Ok(stored)
    }
}

async fn newest(
    connection: &mut AnyConnection,
    cluster: &ClusterId,
    writer: HoldWriter,
) -> Result<Option<(Envelope, HoldDocument)>, StoreError> {
    let query = sqlx::query(NEWEST).bind(cluster.to_string()).bind(writer.column());
    query.fetch_optional(connection).await?.as_ref().map(document).transpose()
}

async fn all(
    connection: &mut AnyConnection,
    cluster: &ClusterId,
) -> Result<Vec<(HoldWriter, HoldDocument)>, StoreError> {
    let found = sqlx::query(ALL).bind(cluster.to_string()).fetch_all(connection).await?;
    in_force(&found)
}

/// What counts of a cluster's documents, the hub's first: not what the hub lifted, nor what a peer held and has lasted its time. The
/// cluster counts that time itself, from when it had the document; here it is counted from when the hub had it.
pub(crate) fn in_force(rows: &[AnyRow]) -> Result<Vec<(HoldWriter, HoldDocument)>, StoreError> {
    let mut all = Vec::new();
    let mut lifted = Vec::new();
    for row in rows {
        let writer = HoldWriter::read(row.try_get("writer")?)?;
        let (envelope, mut document) = document(row)?;
        match writer {
            HoldWriter::Hub => lifted = HubHolds::lifted(&envelope),
            HoldWriter::Cluster => claimed(&mut document, row)?,
            HoldWriter::Peer(by) => {
                let received: i64 = row.try_get("received_at")?;
                let said: Option<SiteHolds> = serde_json::from_slice(&envelope.payload).ok();
                let sequence = document.sequence;
                claimed(&mut document, row)?;
                document.holds.retain(|entry| {
                    ends_at(said.as_ref(), &entry.assignment, received) > now().0
                        && !lifted.iter().any(|lift| lift.ends(by, sequence, entry))
                });
            }
        }
        all.push((writer, document));
    }
    Ok(all)
}

/// Who a cluster says it was, at that cluster: its key signed it, nobody's token. It can't speak as somebody at the hub.
pub fn written_by(by: &str, cluster: &str) -> String {
    let user = by.split('@').next().map(str::trim).filter(|user| !user.is_empty()).unwrap_or("somebody");
    format!("{}@{}", cell(user, MAX_USER), cell(cluster, MAX_USER))
}

/// What a cluster wrote, as it is shown: with its name (column `author`), and nothing that hides.
fn claimed(document: &mut HoldDocument, row: &AnyRow) -> Result<(), StoreError> {
    let author: Option<String> = row.try_get("author")?;
    let author = author.unwrap_or_else(|| document.cluster.to_string());
    for entry in &mut document.holds {
        entry.by = written_by(&entry.by, &author);
        entry.reason = cell(&entry.reason, MAX_REASON);
    }
    Ok(())
}

fn ends_at(said: Option<&SiteHolds>, assignment: &str, received: i64) -> i64 {
    let lasts = said.map_or(SiteHolds::LASTS, |said| said.lasts(assignment));
    received.saturating_add(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX))
}

fn document(row: &AnyRow) -> Result<(Envelope, HoldDocument), StoreError> {
    let json: Vec<u8> = row.try_get("envelope")?;
    let corrupt = |why: String| StoreError::Corrupt(format!("a hold document: {why}"));
    let envelope = Envelope::from_json(&json).map_err(|why| corrupt(why.to_string()))?;
    let document: HoldDocument = serde_json::from_slice(&envelope.payload).map_err(|why| corrupt(why.to_string()))?;
    Ok((envelope, document))
}
