//! Backups under writes, and hubs that come back from them, on both kinds of database.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

use kedge_hub_types::history::{Entry, Place, What};
use tempfile::TempDir;

use super::*;
use crate::keys::Keys;
use crate::store::tokens::Role;
use crate::store::{Store, meta, now, test_database};

async fn fill(store: &Store, folder: &Path) -> Keys {
    let keys = Keys::open(&folder.join("keys"), store).await.unwrap();
    keys.announce_key(store).await.unwrap();
    store.add_api_token("somebody", Role::Viewer, &["w".to_owned()], None).await.unwrap();
    let mut tx = store.write().await.unwrap();
    for generation in 1..=3_i64 {
        let tick = tx.tick().await.unwrap();
        let insert = "INSERT INTO states (environment, cluster_type, ring, generation, content, envelope, created_at, tick) \
             VALUES ('dev', 'drone', 'all', $1, $2, $3, $4, $5)";
        let query =
            sqlx::query(insert).bind(generation).bind("c\"\u{e4}\n").bind(vec![0_u8, 255, 10]).bind(7_i64).bind(tick);
        query.execute(tx.connection()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let told = |ago: i64| Entry::new(Timestamp(now().0 - ago), Place::environment("dev"), What::Lost { count: 7 });
    store.record(vec![told(0), told(40 * 86_400_000)]).await.unwrap();
    keys
}

/// Every row of every table but the restore's own marks.
async fn rows(store: &Store) -> Vec<String> {
    let mut snapshot = store.snapshot().await.unwrap();
    let mut all = Vec::new();
    for table in snapshot.tables().await.unwrap() {
        let mut found = Vec::new();
        let take = |line: String| -> Result<(), StoreError> {
            found.push(format!("{}: {line}", table.name));
            Ok(())
        };
        snapshot.rows(&table, take).await.unwrap();
        found.retain(|line| !line.starts_with("meta: "));
        found.sort();
        all.extend(found);
    }
    all
}

async fn back_and_forth(store: &Store, folder: &TempDir, to_url: &str) {
    let keys = fill(store, folder.path()).await;
    let file = folder.path().join("hub.backup");
    let config = folder.path().join("hub.toml");
    std::fs::write(&config, "# mine\n").unwrap();
    let made = backup(store, &folder.path().join("keys"), Some(&config), &file).await.unwrap();
    assert_eq!(made.keys, 4, "two signing keys, an authority's certificate and key");
    assert!(!crate::private::is_open_to_others(&file).unwrap());
    let before = rows(store).await;

    let other = tempfile::tempdir().unwrap();
    let restored_keys = other.path().join("keys");
    let restored = restore(&file, to_url, &restored_keys, &other.path().join("restored.toml")).await.unwrap();
    assert_eq!(restored, made);
    let back = Store::open(to_url).await.unwrap();
    assert_eq!(rows(&back).await, before);
    assert_eq!(back.history_after(0, 9).await.unwrap(), store.history_after(0, 9).await.unwrap());
    assert_eq!(back.history_days().await.unwrap().len(), 2);
    assert_eq!(back.floor().await.unwrap(), 3 + 1_000_000);
    assert!(back.meta(meta::RESTORED_AT).await.unwrap().is_some());
    let again = Keys::open(&restored_keys, &back).await.unwrap();
    assert_eq!(again.key_set(), keys.key_set());
    assert_eq!(again.authority().fingerprint(), keys.authority().fingerprint());
    assert_eq!(std::fs::read_to_string(other.path().join("restored.toml")).unwrap(), "# mine\n");

    let error = restore(&file, to_url, &restored_keys, &other.path().join("second.toml")).await.unwrap_err();
    assert!(error.to_string().contains("in use already"), "{error}");
    assert_eq!(rows(&back).await, before);
}

fn sqlite_at(folder: &TempDir) -> String {
    format!("sqlite:{}", folder.path().join("restored.db").display())
}

#[tokio::test]
async fn a_hub_comes_back_whole_and_gives_no_number_twice() {
    let (folder, store) = test_database::sqlite().await;
    back_and_forth(&store, &folder, &sqlite_at(&folder)).await;
}

#[tokio::test]
async fn a_hub_on_postgres_comes_back_whole() {
    let (Some(store), Some(to)) = (test_database::postgres().await, test_database::postgres_url().await) else {
        return;
    };
    back_and_forth(&store, &tempfile::tempdir().unwrap(), &to).await;
}

#[tokio::test]
async fn a_hub_moves_from_sqlite_to_postgres_by_its_backup() {
    let Some(to) = test_database::postgres_url().await else { return };
    let (folder, store) = test_database::sqlite().await;
    back_and_forth(&store, &folder, &to).await;
}

/// A writer that never rests: two tables in each transaction, so that half of one would be seen.
async fn backup_under_writes(store: Store, folder: &TempDir, to_url: &str) {
    fill(&store, folder.path()).await;
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let mut tx = store.write().await.unwrap();
                tx.set_meta("written", &format!("{number}")).await.unwrap();
                sqlx::query("UPDATE ticks SET value = $1 WHERE id = 1")
                    .bind(1000 + number)
                    .execute(tx.connection())
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            }
        })
    };
    // The first write is seen before the backup begins.
    while store.meta("written").await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let file = folder.path().join("hub.backup");
    backup(&store, &folder.path().join("keys"), None, &file).await.unwrap();
    writer.abort();
    let other = tempfile::tempdir().unwrap();
    restore(&file, to_url, &other.path().join("keys"), &other.path().join("c")).await.unwrap();
    let back = Store::open(to_url).await.unwrap();
    let number: i64 = back.meta("written").await.unwrap().unwrap().parse().unwrap();
    let ticks: i64 = sqlx::query_scalar("SELECT value FROM ticks").fetch_one(back.pool()).await.unwrap();
    assert_eq!(ticks, 1000 + number);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_writes_is_of_one_moment() {
    let (folder, store) = test_database::sqlite().await;
    let to = sqlite_at(&folder);
    backup_under_writes(store, &folder, &to).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_writes_is_of_one_moment_on_postgres() {
    let (Some(store), Some(to)) = (test_database::postgres().await, test_database::postgres_url().await) else {
        return;
    };
    backup_under_writes(store, &tempfile::tempdir().unwrap(), &to).await;
}

#[tokio::test]
async fn a_backup_never_overwrites_a_file_and_leaves_none_half_made() {
    let (folder, store) = test_database::sqlite().await;
    fill(&store, folder.path()).await;
    let file = folder.path().join("out/hub.backup");
    std::fs::create_dir(folder.path().join("out")).unwrap();
    let error = backup(&store, &folder.path().join("no keys"), None, &file).await.unwrap_err();
    assert!(matches!(error, BackupError::Read { .. }), "{error}");
    assert_eq!(std::fs::read_dir(folder.path().join("out")).unwrap().count(), 0);
    std::fs::write(&file, "precious").unwrap();
    let error = backup(&store, &folder.path().join("keys"), None, &file).await.unwrap_err();
    assert!(matches!(error, BackupError::Exists(_)), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

#[tokio::test]
async fn a_backup_that_is_cut_or_changed_restores_nothing() {
    let (folder, store) = test_database::sqlite().await;
    fill(&store, folder.path()).await;
    let file = folder.path().join("hub.backup");
    backup(&store, &folder.path().join("keys"), None, &file).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 0x55;
    for bad in [&whole[..whole.len() / 2], &whole[..whole.len() - 2], &changed, b"", b"no backup at all"] {
        let path = folder.path().join("bad");
        std::fs::write(&path, bad).unwrap();
        let to = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", to.path().join("hub.db").display());
        assert!(restore(&path, &url, &to.path().join("keys"), &to.path().join("c")).await.is_err());
        assert_eq!(std::fs::read_dir(to.path()).unwrap().count(), 0, "{} bytes", bad.len());
    }
}

#[tokio::test]
async fn other_keys_are_never_overwritten_and_an_interrupted_try_can_be_repeated() {
    let (folder, store) = test_database::sqlite().await;
    fill(&store, folder.path()).await;
    let file = folder.path().join("hub.backup");
    backup(&store, &folder.path().join("keys"), None, &file).await.unwrap();
    let (strange, stranger) = test_database::sqlite().await;
    fill(&stranger, strange.path()).await;
    let error =
        restore(&file, &sqlite_at(&folder), &strange.path().join("keys"), &strange.path().join("c")).await.unwrap_err();
    assert!(matches!(error, BackupError::OtherKeys(_)), "{error}");
    // The keys are there already, the rows aren't.
    restore(&file, &sqlite_at(&folder), &folder.path().join("keys"), &folder.path().join("c")).await.unwrap();
}
