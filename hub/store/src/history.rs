//! The statements of `history`. Entries are added in the transaction of what they tell of (this file), whose they are is
//! remembered (`owners`), days come and go as tables (`days`), and people read them newest first (`page`).

pub mod days;
mod owners;
pub mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kedge_hub_types::history::{Day, Entry};
use kedge_model::wire::Timestamp;
use sqlx::AssertSqlSafe;

use super::{Store, StoreError, Tx, now};
pub use owners::Owner;
use owners::Owners;

/// What every transaction of a process shares. Nothing of it is needed for the database to be right.
#[derive(Debug)]
pub struct Memory {
    owners: Owners,
    /// What is older than this isn't kept, so it isn't written either.
    keep_ms: AtomicI64,
}

/// A row on its way into its day.
struct Row<'a> {
    id: i64,
    entry: &'a Entry,
    detail: String,
}

/// Entries that one tick can number.
const NUMBERS: i64 = 1 << 20;
/// Until `keep_history` says something else; the configuration's own default.
const KEEP_MS: i64 = 90 * 24 * 3600 * 1000;
/// Rows of one statement: few texts, so that each is prepared once.
const CHUNKS: [usize; 3] = [32, 8, 1];
const COLUMNS: &str = "id, at, recorded_at, corrected, kind, event, environment, workspace, workload, cluster_type, ring, \
     assignment, cluster, commit_id, who, content, detail";
const WIDTH: usize = 17;
/// A row's numbers and headers, and what an index has beside its key.
const ROW_BYTES: usize = 110;
const INDEX_BYTES: usize = 30;

impl Default for Memory {
    fn default() -> Memory {
        Memory { owners: Owners::default(), keep_ms: AtomicI64::new(KEEP_MS) }
    }
}

impl Store {
    /// How long entries are kept: older ones aren't even written.
    pub fn keep_history(&self, keep: Duration) {
        self.memory.keep_ms.store(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Whose targets are, as the reconciler has just seen: it may be told before the catalog says so.
    pub fn learn_owners(&self, environment: &str, owners: impl IntoIterator<Item = (String, Owner)>) {
        self.memory.owners.learn(environment, owners);
    }

    /// Entries by themselves, where no other write goes with them.
    pub async fn record(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut tx = self.write().await?;
        tx.record(entries).await?;
        tx.commit().await
    }
}

impl Tx {
    /// Adds to the log what this transaction does. Each entry goes into the day of its true time; one from before
    /// everything that is kept is left out.
    pub async fn record(&mut self, mut entries: Vec<Entry>) -> Result<(), StoreError> {
        let recorded_at = now();
        let oldest = recorded_at.0.saturating_sub(self.memory.keep_ms.load(Ordering::Relaxed));
        entries.retain(|entry| entry.at.0 >= oldest);
        if entries.is_empty() {
            return Ok(());
        }
        // The tick first, like everybody who holds it: two hubs never wait for each other in a circle.
        self.hold_tick().await?;
        self.find_owners(&mut entries).await?;
        let mut days: BTreeMap<Day, Vec<Row<'_>>> = BTreeMap::new();
        for entry in &entries {
            let detail = serde_json::to_string(&entry.what).map_err(|why| StoreError::Corrupt(why.to_string()))?;
            // What would be tomorrow's is now.
            let day = Day::of(Timestamp(entry.at.0.min(recorded_at.0)));
            let id = self.next_entry().await?;
            days.entry(day).or_default().push(Row { id, entry, detail });
        }
        for (day, rows) in &days {
            if self.open_day(*day, rows).await? {
                let mut rest = rows.as_slice();
                while !rest.is_empty() {
                    let size = CHUNKS.into_iter().find(|size| *size <= rest.len()).unwrap_or(1);
                    let (chunk, behind) = rest.split_at(size);
                    self.insert(*day, chunk, recorded_at).await?;
                    rest = behind;
                }
            }
        }
        Ok(())
    }

    /// Numbers grow with ticks, and within one.
    async fn next_entry(&mut self) -> Result<i64, StoreError> {
        if self.recorded >= NUMBERS - 1 {
            self.tick().await?;
            self.recorded = 0;
        }
        self.recorded += 1;
        Ok(self.tick.unwrap_or_default() * NUMBERS + self.recorded)
    }

    /// Counts what comes into a day, and makes its table with the first. False: the day was let go for good.
    async fn open_day(&mut self, day: Day, rows: &[Row<'_>]) -> Result<bool, StoreError> {
        let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        let bytes = i64::try_from(rows.iter().map(Row::bytes).sum::<usize>()).unwrap_or(i64::MAX);
        let last = rows.iter().map(|row| row.id).max().unwrap_or_default();
        if self.count_into(day, count, bytes, last).await? {
            return Ok(true);
        }
        if self.history_floor().await?.is_some_and(|floor| day <= floor) {
            return Ok(false);
        }
        self.make_day(day).await?;
        self.count_into(day, count, bytes, last).await
    }

    async fn insert(&mut self, day: Day, rows: &[Row<'_>], recorded_at: Timestamp) -> Result<(), StoreError> {
        let places: Vec<String> = (0..rows.len())
            .map(|row| {
                let row: Vec<String> = (1..=WIDTH).map(|column| format!("${}", row * WIDTH + column)).collect();
                format!("({})", row.join(", "))
            })
            .collect();
        let text = format!("INSERT INTO {day} ({COLUMNS}) VALUES {}", places.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(text));
        for Row { id, entry, detail } in rows {
            let place = &entry.place;
            query = query
                .bind(id)
                .bind(entry.at.0.min(recorded_at.0))
                .bind(recorded_at.0)
                .bind(i64::from(entry.corrected))
                .bind(entry.what.kind().as_str())
                .bind(entry.what.event())
                .bind(place.environment.as_str())
                .bind(place.workspace.as_str())
                .bind(place.workload.as_str())
                .bind(place.cluster_type.as_str())
                .bind(place.ring.as_str())
                .bind(place.assignment.as_str())
                .bind(place.cluster.map(|cluster| cluster.to_string()).unwrap_or_default())
                .bind(entry.commit.as_deref().unwrap_or_default())
                .bind(entry.who.as_deref().unwrap_or_default())
                .bind(entry.what.content())
                .bind(detail.as_str());
        }
        query.execute(self.connection()).await?;
        Ok(())
    }
}

impl Row<'_> {
    /// About so much room it takes, with its indexes.
    fn bytes(&self) -> usize {
        let place = &self.entry.place;
        let cluster = if place.cluster.is_some() { 32 } else { 0 };
        let indexed = [&place.environment, &place.workspace, &place.workload];
        let keys: usize = indexed.iter().map(|key| key.len() + INDEX_BYTES).sum::<usize>() + cluster + 2 * INDEX_BYTES;
        let texts = place.cluster_type.len() + place.ring.len() + place.assignment.len() + self.detail.len();
        let own = texts + indexed.iter().map(|key| key.len()).sum::<usize>() + cluster + 32;
        ROW_BYTES + own + keys
    }
}
