//! Databases for tests: SQLite in a folder of its own, and a new database on the PostgreSQL that `./tests/run hub` starts
//! and names in `KEDGE_TEST_POSTGRES`. Without it the test says that it is skipped.

#![allow(clippy::unwrap_used, reason = "tests")]

use sqlx::Connection as _;
use tempfile::TempDir;

use super::Store;

/// The folder goes when it is dropped.
pub async fn sqlite() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
    (folder, store)
}

/// The address of a new, empty database.
pub async fn postgres_url() -> Option<String> {
    let Ok(base) = std::env::var("KEDGE_TEST_POSTGRES") else {
        let test = std::thread::current().name().unwrap_or("test").to_owned();
        println!("KEDGE-SKIP {test}: KEDGE_TEST_POSTGRES isn't set (./tests/run hub starts a PostgreSQL and sets it)");
        return None;
    };
    sqlx::any::install_default_drivers();
    let name = format!("kedge_unit_{:016x}", rand::random::<u64>());
    let mut connection = sqlx::AnyConnection::connect(&base).await.unwrap();
    sqlx::query(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let (server, _) = base.rsplit_once('/').unwrap();
    Some(format!("{server}/{name}"))
}

pub async fn postgres() -> Option<Store> {
    Some(Store::open(&postgres_url().await?).await.unwrap())
}
