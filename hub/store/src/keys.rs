//! The chain of key sets: every version as it was signed, never changed.

use kedge_model::wire::{Envelope, EnvelopeError};

use super::{Store, StoreError};

impl Store {
    /// The signed sets after this version, in order.
    pub async fn key_sets_after(&self, version: u64) -> Result<Vec<Envelope>, StoreError> {
        let rows =
            sqlx::query_scalar::<_, Vec<u8>>("SELECT envelope FROM key_sets WHERE version > $1 ORDER BY version");
        let rows = rows.bind(number(version)?).fetch_all(self.pool()).await?;
        let unreadable = |error: EnvelopeError| StoreError::Corrupt(format!("a key set: {error}"));
        rows.iter().map(|bytes| Envelope::from_json(bytes).map_err(unreadable)).collect()
    }

    /// Adds a version. `false`: there is one already, of another hub or command.
    pub async fn add_key_set(&self, version: u64, envelope: &Envelope) -> Result<bool, StoreError> {
        let bytes = envelope.to_json().map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let mut tx = self.write().await?;
        let insert = sqlx::query("INSERT INTO key_sets (version, envelope) VALUES ($1, $2) ON CONFLICT DO NOTHING");
        let added = insert.bind(number(version)?).bind(bytes).execute(tx.connection()).await?.rows_affected() == 1;
        tx.commit().await?;
        Ok(added)
    }
}

fn number(version: u64) -> Result<i64, StoreError> {
    i64::try_from(version).map_err(|_| StoreError::Corrupt(format!("key set {version}")))
}
