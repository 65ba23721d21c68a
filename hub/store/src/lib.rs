//! The only SQL of the hub: one database, SQLite or PostgreSQL, through the same statements (TEXT, BIGINT, BYTEA and `$n`
//! only). This file owns the connection and transactions; each module's statements are in a file of its own below.

pub mod agents;
pub mod airgap;
pub mod api;
pub mod catalog;
pub mod dump;
pub mod events;
pub mod failure;
pub mod figures;
pub mod git;
pub mod history;
pub mod keys;
pub mod leader;
pub mod meta;
pub mod pack;
pub mod people;
pub mod permits;
pub mod platform;
pub mod promotion;
pub mod publish;
pub mod rollout;
pub mod sessions;
pub mod state;
mod statement;
pub mod status;
#[cfg(any(test, feature = "testing"))]
pub mod test_database;
pub mod tokens;
pub mod versions;

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::Timestamp;
use sqlx::any::AnyPoolOptions;
use sqlx::migrate::Migrator;
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, Transaction};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// A database that is open and migrated. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    backend: Backend,
    /// SQLite has one writer; waiting here is fair and never ends in "database is locked".
    writer: Arc<Mutex<()>>,
    /// What the log of history remembers between transactions.
    memory: Arc<history::Memory>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
}

/// A leader's term: it is in every write of a leader, so that one that lost its lock can't write any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(pub i64);

/// A transaction that writes.
#[derive(Debug)]
pub struct Tx {
    inner: Transaction<'static, Any>,
    _writer: Option<OwnedMutexGuard<()>>,
    /// The number of this change, once it has one, and how many entries of history it has.
    tick: Option<i64>,
    recorded: i64,
    memory: Arc<history::Memory>,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Worth another try: the database is away or busy.
    #[error("{}", failure::say(.0))]
    Unavailable(#[source] sqlx::Error),
    #[error("another hub leads since: this one's term {0:?} is over")]
    Fenced(Term),
    #[error("the database holds something unexpected: {0}")]
    Corrupt(String),
    #[error("the database refused")]
    Refused(#[source] sqlx::Error),
    /// Commands work beside a hub, never instead of one.
    #[error("{0}")]
    Foreign(&'static str),
    #[error("the database's tables can't be brought up to date")]
    Migration(#[source] sqlx::migrate::MigrateError),
}

/// Readers beside the one writer; a hub has few tasks that ask at once.
const CONNECTIONS: u32 = 8;
/// A database that doesn't answer for so long is away: the caller says 503 and tries again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Durable on SQLite means WAL with a sync at each commit. A log that grew under a long reader shrinks again.
const SQLITE: [&str; 4] = [
    "PRAGMA busy_timeout = 5000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA journal_size_limit = 67108864",
];
/// On PostgreSQL nobody waits long for a row that a dead hub holds, and the server notices soon that a hub is dead.
const POSTGRES: &str = "SELECT set_config('lock_timeout', '5s', false), \
     set_config('statement_timeout', '30s', false), \
     set_config('idle_in_transaction_session_timeout', '15s', false), \
     set_config('tcp_keepalives_idle', '10', false), \
     set_config('tcp_keepalives_interval', '5', false), \
     set_config('tcp_keepalives_count', '3', false)";

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

impl Store {
    /// `sqlite:PATH` or `postgres://…`; its tables are made or brought up to date.
    pub async fn open(url: &str) -> Result<Store, StoreError> {
        Store::open_with(url, &MIGRATIONS).await
    }

    async fn open_with(url: &str, migrations: &Migrator) -> Result<Store, StoreError> {
        let store = Store::connect(url, "?mode=rwc").await?;
        migrations.run(&store.pool).await?;
        Ok(store)
    }

    /// For commands beside a running hub: the database must be there, and of this version.
    pub async fn join(url: &str) -> Result<Store, StoreError> {
        let store = Store::connect(url, "?mode=rw").await?;
        let applied = sqlx::query_scalar::<_, i64>("SELECT version FROM _sqlx_migrations ORDER BY version");
        let applied = applied.fetch_all(&store.pool).await.map_err(|error| match StoreError::from(error) {
            StoreError::Refused(_) => StoreError::Foreign("no hub has ever used this database"),
            other => other,
        })?;
        if applied != MIGRATIONS.iter().map(|migration| migration.version).collect::<Vec<_>>() {
            return Err(StoreError::Foreign("another version of kedge-hub uses this database"));
        }
        Ok(store)
    }

    async fn connect(url: &str, sqlite_options: &str) -> Result<Store, StoreError> {
        sqlx::any::install_default_drivers();
        let backend = Backend::of(url);
        let pool = AnyPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .after_connect(move |connection, _| Box::pin(prepare(connection, backend)))
            // SQLite ends a transaction by itself when the disk is full. The connection still counts it and could
            // never begin another: it is closed, and a new one opened.
            .before_acquire(|connection, _| {
                let sound = !connection.is_in_transaction();
                Box::pin(async move { Ok(sound) })
            })
            .connect(&match backend {
                Backend::Sqlite => format!("{url}{sqlite_options}"),
                Backend::Postgres => url.to_owned(),
            })
            .await?;
        Ok(Store { pool, backend, writer: Arc::default(), memory: Arc::default() })
    }

    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// For statements that only read.
    pub fn pool(&self) -> &AnyPool {
        &self.pool
    }

    pub async fn write(&self) -> Result<Tx, StoreError> {
        match self.backend {
            Backend::Sqlite => {
                let writer = tokio::time::timeout(PATIENCE, Arc::clone(&self.writer).lock_owned()).await;
                let writer = Some(writer.map_err(|_| StoreError::Unavailable(sqlx::Error::PoolTimedOut))?);
                Ok(self.begun(self.pool.begin_with("BEGIN IMMEDIATE").await?, writer))
            }
            Backend::Postgres => Ok(self.begun(self.pool.begin().await?, None)),
        }
    }

    fn begun(&self, inner: Transaction<'static, Any>, writer: Option<OwnedMutexGuard<()>>) -> Tx {
        Tx { inner, _writer: writer, tick: None, recorded: 0, memory: Arc::clone(&self.memory) }
    }

    /// A write of a leader: refused when its term is over.
    pub async fn write_as(&self, term: Term) -> Result<Tx, StoreError> {
        let mut tx = self.write().await?;
        let fenced = sqlx::query("UPDATE leader SET term = term WHERE id = 1 AND term = $1").bind(term.0);
        match fenced.execute(tx.connection()).await?.rows_affected() {
            1 => Ok(tx),
            _ => Err(StoreError::Fenced(term)),
        }
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Backend {
    pub fn of(url: &str) -> Backend {
        if url.starts_with("sqlite:") { Backend::Sqlite } else { Backend::Postgres }
    }
}

impl Tx {
    pub fn connection(&mut self) -> &mut AnyConnection {
        &mut self.inner
    }

    /// The number of this change: what other hubs ask for ("what came after 17?"). It grows in the order of commits.
    pub async fn tick(&mut self) -> Result<i64, StoreError> {
        let next = sqlx::query_scalar("UPDATE ticks SET value = value + 1 WHERE id = 1 RETURNING value");
        let tick = next.fetch_one(self.connection()).await?;
        self.tick = Some(tick);
        Ok(tick)
    }

    /// The number that this change has already, or a new one.
    pub async fn hold_tick(&mut self) -> Result<i64, StoreError> {
        match self.tick {
            Some(tick) => Ok(tick),
            None => self.tick().await,
        }
    }

    pub async fn commit(self) -> Result<(), StoreError> {
        self.inner.commit().await?;
        failure::written();
        Ok(())
    }
}

/// The hub's clock, in the form that is stored.
pub fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

async fn prepare(connection: &mut AnyConnection, backend: Backend) -> Result<(), sqlx::Error> {
    match backend {
        Backend::Sqlite => {
            for pragma in SQLITE {
                sqlx::query(pragma).execute(&mut *connection).await?;
            }
        }
        Backend::Postgres => {
            sqlx::query(POSTGRES).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_leader_whose_term_is_over_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        assert!(store.write_as(Term(0)).await.is_ok());
        assert!(matches!(store.write_as(Term(7)).await, Err(StoreError::Fenced(Term(7)))));
    }
}
