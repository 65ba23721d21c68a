//! The whole database as rows, for backups: read in one transaction that sees one moment while the hub writes on, and
//! loaded into an empty database of either kind. Called by `backup`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::TryStreamExt as _;
use kedge_hub_types::history::Day;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::migrate::Migrator;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row as _, Transaction};

use super::{Backend, MIGRATIONS, Store, StoreError, Tx};

/// One moment of the database.
#[derive(Debug)]
pub struct Snapshot {
    tx: Transaction<'static, Any>,
    backend: Backend,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
}

/// The only types that the hub's tables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Text,
    Number,
    Bytes,
}

/// Rows that a migration itself puts into an empty database; a dump brings its own.
const SEEDED: [&str; 2] = ["ticks", "leader"];

impl Store {
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let tx = match self.backend() {
            Backend::Sqlite => {
                let mut tx = self.pool().begin().await?;
                // The moment is that of the first look.
                sqlx::query("SELECT value FROM ticks").execute(&mut *tx).await?;
                tx
            }
            Backend::Postgres => {
                let mut tx = self.pool().begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
                let patient = "SELECT set_config('statement_timeout', '0', true), \
                     set_config('idle_in_transaction_session_timeout', '0', true)";
                sqlx::query(patient).execute(&mut *tx).await?;
                tx
            }
        };
        Ok(Snapshot { tx, backend: self.backend() })
    }

    /// An empty database with the tables that a dump of these migrations fits in. What the dump lacks is migrated by
    /// the next `open`.
    pub async fn open_for_dump(url: &str, migrations: &[i64]) -> Result<Store, StoreError> {
        let chosen: Vec<_> = MIGRATIONS.iter().filter(|known| migrations.contains(&known.version)).cloned().collect();
        if chosen.len() != migrations.len() {
            return Err(StoreError::Foreign("the backup is of a newer kedge-hub: restore it with that one"));
        }
        let store = Store::open_with(url, &Migrator::with_migrations(chosen)).await?;
        if store.is_used().await? {
            return Err(StoreError::Foreign(
                "the database is in use already; a backup is restored into an empty one only",
            ));
        }
        Ok(store)
    }

    async fn is_used(&self) -> Result<bool, StoreError> {
        let mut snapshot = self.snapshot().await?;
        for table in snapshot.tables().await? {
            let seeded = SEEDED.contains(&table.name.as_str());
            let count = format!("SELECT COUNT(*) FROM \"{}\"", table.name);
            let count: i64 = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&mut *snapshot.tx).await?;
            if count > i64::from(seeded) {
                return Ok(true);
            }
        }
        let ticks: i64 = sqlx::query_scalar("SELECT value FROM ticks").fetch_one(&mut *snapshot.tx).await?;
        let term: i64 = sqlx::query_scalar("SELECT term FROM leader").fetch_one(&mut *snapshot.tx).await?;
        Ok(ticks > 0 || term > 0)
    }
}

impl Snapshot {
    /// The versions that made its tables.
    pub async fn migrations(&mut self) -> Result<Vec<i64>, StoreError> {
        let applied = sqlx::query_scalar("SELECT version FROM _sqlx_migrations ORDER BY version");
        Ok(applied.fetch_all(&mut *self.tx).await?)
    }

    /// Days of history are held until the end: none goes while it is read.
    pub async fn tables(&mut self) -> Result<Vec<Table>, StoreError> {
        let tables = tables(&mut self.tx, self.backend).await?;
        if self.backend == Backend::Postgres {
            for day in tables.iter().filter_map(|table| Day::of_table(&table.name)) {
                let hold = format!("LOCK TABLE {day} IN ACCESS SHARE MODE");
                sqlx::query(AssertSqlSafe(hold)).execute(&mut *self.tx).await?;
            }
        }
        Ok(tables)
    }

    /// Hands on each row as one line of JSON.
    pub async fn rows<E: From<StoreError>>(
        &mut self,
        table: &Table,
        mut take: impl FnMut(String) -> Result<(), E>,
    ) -> Result<(), E> {
        let select = format!("SELECT {} FROM \"{}\"", columns(table), table.name);
        let mut rows = sqlx::query(AssertSqlSafe(select)).fetch(&mut *self.tx);
        while let Some(row) = rows.try_next().await.map_err(StoreError::from)? {
            take(line(&row, table)?)?;
        }
        Ok(())
    }
}

impl Tx {
    /// Takes out what migrations put in.
    pub async fn clear_seeds(&mut self) -> Result<(), StoreError> {
        for table in SEEDED {
            sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(self.connection()).await?;
        }
        Ok(())
    }

    /// The tables that are there, to compare a dump with: days of history that it brings are made.
    pub async fn tables_for(&mut self, dumped: &[Table], backend: Backend) -> Result<Vec<Table>, StoreError> {
        for day in dumped.iter().filter_map(|table| Day::of_table(&table.name)) {
            self.make_history_table(day).await?;
        }
        tables(self.connection(), backend).await
    }

    /// Puts one row back.
    pub async fn insert_row(&mut self, table: &Table, line: &str) -> Result<(), StoreError> {
        let unreadable = || StoreError::Corrupt(format!("a row of `{}` in the backup", table.name));
        let values: Vec<Value> = serde_json::from_str(line).map_err(|_| unreadable())?;
        if values.len() != table.columns.len() {
            return Err(unreadable());
        }
        let places: Vec<String> = (1..=values.len()).map(|number| format!("${number}")).collect();
        let insert = format!("INSERT INTO \"{}\" ({}) VALUES ({})", table.name, columns(table), places.join(", "));
        let mut query = sqlx::query(AssertSqlSafe(insert));
        for (column, value) in table.columns.iter().zip(values) {
            query = match (column.kind, value) {
                (Kind::Text, Value::Null) => query.bind(None::<String>),
                (Kind::Number, Value::Null) => query.bind(None::<i64>),
                (Kind::Bytes, Value::Null) => query.bind(None::<Vec<u8>>),
                (Kind::Text, Value::String(text)) => query.bind(text),
                (Kind::Number, Value::Number(number)) => query.bind(number.as_i64().ok_or_else(unreadable)?),
                (Kind::Bytes, Value::String(text)) => query.bind(BASE64.decode(text).map_err(|_| unreadable())?),
                _ => return Err(unreadable()),
            };
        }
        query.execute(self.connection()).await?;
        Ok(())
    }

    /// The highest number that this database ever gave to a state or a membership.
    pub async fn highest_number(&mut self) -> Result<i64, StoreError> {
        let highest = "SELECT MAX(n) FROM (SELECT COALESCE(MAX(generation), 0) AS n FROM states \
             UNION ALL SELECT COALESCE(MAX(sequence), 0) AS n FROM clusters) AS numbers";
        Ok(sqlx::query_scalar(highest).fetch_one(self.connection()).await?)
    }
}

async fn tables(connection: &mut AnyConnection, backend: Backend) -> Result<Vec<Table>, StoreError> {
    let names: Vec<String> = sqlx::query_scalar(match backend {
        Backend::Sqlite => {
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' \
             AND name <> '_sqlx_migrations' ORDER BY name"
        }
        Backend::Postgres => {
            "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema() \
             AND table_type = 'BASE TABLE' AND table_name <> '_sqlx_migrations' ORDER BY 1"
        }
    })
    .fetch_all(&mut *connection)
    .await?;
    let mut tables = Vec::new();
    for name in names {
        let described = sqlx::query_as::<_, (String, String)>(match backend {
            Backend::Sqlite => "SELECT name, type FROM pragma_table_info($1) ORDER BY cid",
            Backend::Postgres => {
                "SELECT CAST(column_name AS TEXT), CAST(data_type AS TEXT) FROM information_schema.columns \
                 WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position"
            }
        });
        let described = described.bind(&name).fetch_all(&mut *connection).await?;
        let columns: Result<Vec<Column>, StoreError> = described
            .into_iter()
            .map(|(column, kind)| Ok(Column { kind: kind_of(&name, &kind)?, name: column }))
            .collect();
        tables.push(Table { columns: columns?, name });
    }
    Ok(tables)
}

fn kind_of(table: &str, declared: &str) -> Result<Kind, StoreError> {
    match declared.to_ascii_lowercase().as_str() {
        "text" => Ok(Kind::Text),
        "bigint" => Ok(Kind::Number),
        "bytea" => Ok(Kind::Bytes),
        other => Err(StoreError::Corrupt(format!("a column of `{table}` is {other}"))),
    }
}

/// Quoted: the names are the migrations' own.
fn columns(table: &Table) -> String {
    table.columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ")
}

fn line(row: &AnyRow, table: &Table) -> Result<String, StoreError> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        values.push(match column.kind {
            Kind::Text => row.try_get::<Option<String>, _>(index)?.map_or(Value::Null, Value::from),
            Kind::Number => row.try_get::<Option<i64>, _>(index)?.map_or(Value::Null, Value::from),
            Kind::Bytes => {
                let bytes = row.try_get::<Option<Vec<u8>>, _>(index)?;
                bytes.map_or(Value::Null, |bytes| Value::from(BASE64.encode(bytes)))
            }
        });
    }
    Ok(Value::from(values).to_string())
}
