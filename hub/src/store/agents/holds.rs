//! The statements about holds: the newest document of each writer, per cluster.

use kedge_model::wire::{ClusterId, Envelope, HoldDocument};
use sqlx::AnyConnection;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::signed;
use crate::store::{Store, StoreError, Tx, now};

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

const NEWEST: &str = "SELECT envelope FROM holds WHERE cluster = $1 AND writer = $2";
const ALL: &str = "SELECT writer, envelope FROM holds WHERE cluster = $1 ORDER BY CASE writer WHEN 'hub' THEN 0 WHEN 'cluster' THEN 1 ELSE 2 END, writer";

impl Store {
    /// The newest document of a writer: its envelope and what it says.
    pub async fn hold_document(
        &self,
        cluster: &ClusterId,
        writer: HoldWriter,
    ) -> Result<Option<(Envelope, HoldDocument)>, StoreError> {
        newest(&mut *self.pool().acquire().await?, cluster, writer).await
    }

    /// The newest documents of all writers: the hub's, the technician's, the peers'.
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
    let one = |row: &AnyRow| Ok((HoldWriter::read(row.try_get("writer")?)?, document(row)?.1));
    found.iter().map(one).collect()
}

fn document(row: &AnyRow) -> Result<(Envelope, HoldDocument), StoreError> {
    let json: Vec<u8> = row.try_get("envelope")?;
    let corrupt = |why: String| StoreError::Corrupt(format!("a hold document: {why}"));
    let envelope = Envelope::from_json(&json).map_err(|why| corrupt(why.to_string()))?;
    let document: HoldDocument = serde_json::from_slice(&envelope.payload).map_err(|why| corrupt(why.to_string()))?;
    Ok((envelope, document))
}
