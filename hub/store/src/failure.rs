//! What a failure of the database means for the caller: another try, or a fault that stays. Counted for `metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use kedge_model::wire::Timestamp;

use sqlx::migrate::MigrateError;

use super::{StoreError, now};

/// Failures since the start, of all stores of the process: the database is away; it refused.
static AWAY: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Why writes fail since when; none once one goes through.
static TROUBLE: Mutex<Option<Trouble>> = Mutex::new(None);

/// The disk that keeps the database from being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub since: Timestamp,
    pub what: &'static str,
}

/// SQLite's primary result codes that pass: BUSY, LOCKED, NOMEM, READONLY (a file system that went read-only), IOERR,
/// FULL, CANTOPEN, PROTOCOL (a race for the log).
const SQLITE_PASSING: [u32; 8] = [5, 6, 7, 8, SQLITE_IOERR, SQLITE_FULL, 14, 15];
const SQLITE_IOERR: u32 = 10;
const SQLITE_FULL: u32 = 13;
/// PostgreSQL's classes: connection, resources (disk, memory, connections), an operator's intervention (shutdown).
const POSTGRES_CLASSES: [&str; 3] = ["08", "53", "57"];
/// And single ones: serialization, deadlock, a lock that took too long, a server that became a read-only standby, one
/// that ended the session because the transaction idled.
const POSTGRES_PASSING: [&str; 5] = ["40001", "40P01", "55P03", "25006", "25P03"];
const POSTGRES_FULL: &str = "53100";

/// How often the database was away, and how often it refused, since the start.
pub fn counts() -> (u64, u64) {
    (AWAY.load(Ordering::Relaxed), REFUSED.load(Ordering::Relaxed))
}

/// Whether writes fail because of the disk.
pub fn trouble() -> Option<Trouble> {
    *TROUBLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A transaction was written.
pub(super) fn written() {
    *TROUBLE.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn note(error: &sqlx::Error) {
    let is_disk = match code(error) {
        Some(Code::Sqlite(number)) => matches!(number, SQLITE_FULL | SQLITE_IOERR),
        Some(Code::Postgres(code)) => code == POSTGRES_FULL,
        None => false,
    };
    if is_disk {
        let mut trouble = TROUBLE.lock().unwrap_or_else(PoisonError::into_inner);
        let since = trouble.map_or_else(now, |known| known.since);
        *trouble = Some(Trouble { since, what: say(error) });
    }
}

/// What `Unavailable` says to people.
pub(super) fn say(error: &sqlx::Error) -> &'static str {
    match code(error) {
        Some(Code::Sqlite(SQLITE_FULL)) => "the disk of the database is full: free some space, nothing is lost",
        Some(Code::Sqlite(SQLITE_IOERR)) => "the disk of the database fails",
        Some(Code::Sqlite(_)) => "the database's file is busy or can't be written",
        Some(Code::Postgres(code)) if code == POSTGRES_FULL => "the disk of the database server is full",
        Some(Code::Postgres(_)) => "the database server is busy or going away",
        None => "the database can't be reached",
    }
}

enum Code {
    Sqlite(u32),
    Postgres(String),
}

/// SQLite's codes are numbers; PostgreSQL's have five characters.
fn code(error: &sqlx::Error) -> Option<Code> {
    let code = error.as_database_error()?.code()?;
    if code.len() == 5 && !code.starts_with('-') {
        return Some(Code::Postgres(code.into_owned()));
    }
    code.parse::<u32>().ok().map(|number| Code::Sqlite(number & 0xff))
}

fn passes(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        other => match code(other) {
            Some(Code::Sqlite(number)) => SQLITE_PASSING.contains(&number),
            Some(Code::Postgres(code)) => {
                POSTGRES_CLASSES.iter().any(|class| code.starts_with(class))
                    || POSTGRES_PASSING.contains(&code.as_str())
            }
            None => false,
        },
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> StoreError {
        if passes(&error) {
            AWAY.fetch_add(1, Ordering::Relaxed);
            note(&error);
            StoreError::Unavailable(error)
        } else {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            StoreError::Refused(error)
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> StoreError {
        match error {
            MigrateError::Execute(error) if passes(&error) => error.into(),
            MigrateError::ExecuteMigration(error, _) if passes(&error) => error.into(),
            other => StoreError::Migration(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Store;
    use super::*;

    #[tokio::test]
    async fn a_full_disk_is_worth_another_try_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(store.pool()).await.unwrap();
        let mut tx = store.write().await.unwrap();
        // The limit belongs to the connection.
        sqlx::query(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")))
            .execute(tx.connection())
            .await
            .unwrap();
        let insert = sqlx::query("INSERT INTO meta (name, value) VALUES ('big', $1)").bind("x".repeat(1 << 20));
        let error = StoreError::from(insert.execute(tx.connection()).await.unwrap_err());
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        assert!(error.to_string().contains("full"), "{error}");
        assert!(trouble().is_some_and(|trouble| trouble.what.contains("full")));
        drop(tx);
        let mut tx = store.write().await.unwrap();
        sqlx::query("PRAGMA max_page_count = 1073741823").execute(tx.connection()).await.unwrap();
        sqlx::query("INSERT INTO meta (name, value) VALUES ('small', 'x')").execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(trouble(), None);
    }

    #[tokio::test]
    async fn a_wrong_statement_is_refused_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        let error = sqlx::query("SELECT nothing FROM nowhere").execute(store.pool()).await.unwrap_err();
        assert!(matches!(StoreError::from(error), StoreError::Refused(_)));
    }

    #[tokio::test]
    async fn a_closed_store_is_unavailable() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        store.close().await;
        assert!(matches!(store.write().await, Err(StoreError::Unavailable(_))));
    }
}
