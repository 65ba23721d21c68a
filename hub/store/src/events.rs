//! How far each destination of events has got. Written by the leader's dispatchers; read by metrics on any hub.

use kedge_model::wire::Timestamp;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{Store, StoreError, Term, now};

/// One destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// As the configuration calls it.
    pub name: String,
    /// Every entry of the history up to this one is settled.
    pub entry: i64,
    pub sent: i64,
    /// Refused for so long that they were left out.
    pub given_up: i64,
    /// When the oldest that isn't settled was recorded.
    pub waiting_since: Option<Timestamp>,
    /// Nothing was taken since.
    pub failing_since: Option<Timestamp>,
    pub error: Option<String>,
}

impl Store {
    /// All of them, by name.
    pub async fn deliveries(&self) -> Result<Vec<Delivery>, StoreError> {
        let rows = sqlx::query(
            "SELECT name, entry, sent, given_up, waiting_since, failing_since, error FROM event_destinations ORDER BY name",
        );
        rows.fetch_all(self.pool()).await?.iter().map(delivery).collect()
    }

    /// What is known of these destinations; a new one begins with what happens from now on, and those that are no longer
    /// named are forgotten.
    pub async fn open_deliveries(&self, term: Term, names: &[&str]) -> Result<Vec<Delivery>, StoreError> {
        let newest = self.newest_history().await?;
        let mut known = self.deliveries().await?;
        let mut tx = self.write_as(term).await?;
        for gone in known.iter().filter(|known| !names.contains(&known.name.as_str())) {
            let delete = sqlx::query("DELETE FROM event_destinations WHERE name = $1").bind(&gone.name);
            delete.execute(tx.connection()).await?;
        }
        known.retain(|known| names.contains(&known.name.as_str()));
        for name in names {
            if known.iter().any(|known| known.name == *name) {
                continue;
            }
            let insert = sqlx::query(
                "INSERT INTO event_destinations (name, entry, sent, given_up, updated_at) VALUES ($1, $2, 0, 0, $3)",
            );
            insert.bind(*name).bind(newest).bind(now().0).execute(tx.connection()).await?;
            known.push(Delivery { name: (*name).to_owned(), entry: newest, ..Delivery::default() });
        }
        tx.commit().await?;
        Ok(known)
    }

    pub async fn save_delivery(&self, term: Term, delivery: &Delivery) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        let update = sqlx::query(
            "UPDATE event_destinations SET entry = $2, sent = $3, given_up = $4, waiting_since = $5, failing_since = $6, \
             error = $7, updated_at = $8 WHERE name = $1",
        );
        update
            .bind(&delivery.name)
            .bind(delivery.entry)
            .bind(delivery.sent)
            .bind(delivery.given_up)
            .bind(delivery.waiting_since.map(|at| at.0))
            .bind(delivery.failing_since.map(|at| at.0))
            .bind(delivery.error.as_deref())
            .bind(now().0)
            .execute(tx.connection())
            .await?;
        tx.commit().await
    }
}

fn delivery(row: &AnyRow) -> Result<Delivery, StoreError> {
    let time = |name: &str| -> Result<Option<Timestamp>, StoreError> {
        Ok(row.try_get::<Option<i64>, _>(name)?.map(Timestamp))
    };
    Ok(Delivery {
        name: row.try_get("name")?,
        entry: row.try_get("entry")?,
        sent: row.try_get("sent")?,
        given_up: row.try_get("given_up")?,
        waiting_since: time("waiting_since")?,
        failing_since: time("failing_since")?,
        error: row.try_get("error")?,
    })
}
