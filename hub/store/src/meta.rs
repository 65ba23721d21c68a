//! Single facts about the whole database, by name.

use super::{Store, StoreError, Tx};

/// When this database came from a backup (milliseconds since 1970).
pub const RESTORED_AT: &str = "restored_at";
/// See `Store::floor`.
pub const FLOOR: &str = "generation_floor";

impl Store {
    pub async fn meta(&self, name: &str) -> Result<Option<String>, StoreError> {
        let value = sqlx::query_scalar("SELECT value FROM meta WHERE name = $1").bind(name);
        Ok(value.fetch_optional(self.pool()).await?)
    }

    /// Generations of desired states and sequences of memberships that this hub gives are above this number. It is 0
    /// until a backup is restored: the hub that was lost may have given numbers that the backup doesn't know of, and
    /// none may be given twice.
    pub async fn floor(&self) -> Result<u64, StoreError> {
        let floor = read_floor(self.meta(FLOOR).await?)?;
        u64::try_from(floor).map_err(|_| StoreError::Corrupt(format!("meta.{FLOOR} is {floor}")))
    }
}

impl Tx {
    /// The same within a transaction.
    pub async fn floor(&mut self) -> Result<i64, StoreError> {
        let value = sqlx::query_scalar("SELECT value FROM meta WHERE name = $1").bind(FLOOR);
        read_floor(value.fetch_optional(self.connection()).await?)
    }

    pub async fn set_meta(&mut self, name: &str, value: &str) -> Result<(), StoreError> {
        let insert =
            "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        sqlx::query(insert).bind(name).bind(value).execute(self.connection()).await?;
        Ok(())
    }
}

fn read_floor(text: Option<String>) -> Result<i64, StoreError> {
    let Some(text) = text else { return Ok(0) };
    text.parse().map_err(|_| StoreError::Corrupt(format!("meta.{FLOOR} is `{text}`")))
}
