//! The statements of join tokens: made and revoked by people, used up by joins.

use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Timestamp};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};

use super::{labels, labels_text, parsed, signed, unsigned};
use crate::{Store, StoreError, Tx};

/// A token as it is stored: everything but the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    pub id: String,
    pub secret_hash: String,
    pub environment: String,
    pub cluster_type: String,
    pub labels: Labels,
    pub site: Option<String>,
    pub replaces: Option<ClusterId>,
    pub uses: u64,
    pub uses_left: u64,
    pub expires_at: Timestamp,
    pub created_by: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, secret_hash, environment, cluster_type, labels, site, replaces, uses, uses_left, expires_at, \
                       created_by, created_at, revoked_at";

impl Store {
    pub async fn join_token(&self, id: &str) -> Result<Option<TokenRow>, StoreError> {
        find(&mut *self.pool().acquire().await?, id).await
    }

    /// Newest first, a page at a time: those before (`created_at`, `id`).
    pub async fn join_tokens(
        &self,
        before: Option<(Timestamp, &str)>,
        limit: i64,
    ) -> Result<Vec<TokenRow>, StoreError> {
        let (at, id) = before.map_or((i64::MAX, ""), |(at, id)| (at.0, id));
        let text = format!(
            "SELECT {COLUMNS} FROM join_tokens WHERE created_at < $1 OR (created_at = $1 AND id < $2) \
             ORDER BY created_at DESC, id DESC LIMIT $3"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(at).bind(id).bind(limit);
        query.fetch_all(self.pool()).await?.iter().map(token).collect()
    }
}

impl Tx {
    pub async fn join_token(&mut self, id: &str) -> Result<Option<TokenRow>, StoreError> {
        find(self.connection(), id).await
    }

    pub async fn add_join_token(&mut self, row: &TokenRow) -> Result<(), StoreError> {
        let query = sqlx::query(
            "INSERT INTO join_tokens (id, secret_hash, environment, cluster_type, labels, site, replaces, uses, uses_left, \
             expires_at, created_by, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        );
        let bound = query
            .bind(&row.id)
            .bind(&row.secret_hash)
            .bind(&row.environment)
            .bind(&row.cluster_type)
            .bind(labels_text(&row.labels)?)
            .bind(row.site.as_deref())
            .bind(row.replaces.map(|id| id.to_string()))
            .bind(signed(row.uses)?)
            .bind(signed(row.uses_left)?)
            .bind(row.expires_at.0)
            .bind(&row.created_by)
            .bind(row.created_at.0)
            .bind(row.revoked_at.map(|at| at.0));
        bound.execute(self.connection()).await?;
        Ok(())
    }

    /// False: there is no such token, or it is revoked already.
    pub async fn revoke_join_token(&mut self, id: &str, at: Timestamp) -> Result<bool, StoreError> {
        let query = sqlx::query("UPDATE join_tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL");
        Ok(query.bind(id).bind(at.0).execute(self.connection()).await?.rows_affected() == 1)
    }

    /// Takes one use, for this cluster. False: none is left, or the token ended meanwhile.
    pub async fn use_join_token(&mut self, id: &str, cluster: &ClusterId, at: Timestamp) -> Result<bool, StoreError> {
        // First who came: of two requests with one key the second waits here, and finds that it uses nothing up. A
        // refusal takes it back with the rest of the transaction.
        let note = sqlx::query(
            "INSERT INTO token_uses (token, cluster, used_at) VALUES ($1, $2, $3) ON CONFLICT (token, cluster) DO NOTHING",
        );
        let note = note.bind(id).bind(cluster.to_string()).bind(at.0);
        if note.execute(self.connection()).await?.rows_affected() == 0 {
            return Ok(true);
        }
        let query = sqlx::query(
            "UPDATE join_tokens SET uses_left = uses_left - 1 \
             WHERE id = $1 AND uses_left > 0 AND revoked_at IS NULL AND expires_at > $2",
        );
        Ok(query.bind(id).bind(at.0).execute(self.connection()).await?.rows_affected() == 1)
    }

    /// Whether this cluster came in with this token.
    pub async fn used_join_token(&mut self, id: &str, cluster: &ClusterId) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar::<_, i64>("SELECT used_at FROM token_uses WHERE token = $1 AND cluster = $2");
        Ok(query.bind(id).bind(cluster.to_string()).fetch_optional(self.connection()).await?.is_some())
    }
}

async fn find(connection: &mut AnyConnection, id: &str) -> Result<Option<TokenRow>, StoreError> {
    let text = format!("SELECT {COLUMNS} FROM join_tokens WHERE id = $1");
    let query = sqlx::query(sqlx::AssertSqlSafe(text)).bind(id);
    query.fetch_optional(connection).await?.as_ref().map(token).transpose()
}

fn token(row: &AnyRow) -> Result<TokenRow, StoreError> {
    let replaces: Option<String> = row.try_get("replaces")?;
    let revoked_at: Option<i64> = row.try_get("revoked_at")?;
    Ok(TokenRow {
        id: row.try_get("id")?,
        secret_hash: row.try_get("secret_hash")?,
        environment: row.try_get("environment")?,
        cluster_type: row.try_get("cluster_type")?,
        labels: labels(row.try_get("labels")?)?,
        site: row.try_get("site")?,
        replaces: replaces.as_deref().map(parsed).transpose()?,
        uses: unsigned(row.try_get("uses")?)?,
        uses_left: unsigned(row.try_get("uses_left")?)?,
        expires_at: Timestamp(row.try_get("expires_at")?),
        created_by: row.try_get("created_by")?,
        created_at: Timestamp(row.try_get("created_at")?),
        revoked_at: revoked_at.map(Timestamp),
    })
}
