//! A hub's database with a few clusters whose documents the tests write.

use kedge_model::wire::{ClusterId, Digest, Envelope, Generation, PackagesKey, SigningKey, Stream, Timestamp};
use kedge_status::{Condition, Nonce, Report, StatusDocument};
use sqlx::Row as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::status::contacts::Contacts;
use crate::status::{Figures, Heard, StatusIntake, check_ins};
use crate::store::{Store, StoreError, now, test_database};

/// A database of its own, gone with the value.
pub struct Database {
    pub store: Store,
    _folder: Option<tempfile::TempDir>,
}

/// A running intake.
pub struct Fleet {
    pub database: Database,
    pub intake: StatusIntake,
    pub stop: watch::Sender<bool>,
    pub tasks: JoinSet<()>,
}

/// A cluster's key and the document that it writes.
pub struct Member {
    pub key: SigningKey,
    pub id: ClusterId,
    pub document: StatusDocument,
}

impl Database {
    /// The same one, for a second hub.
    pub fn again(other: &Database) -> Database {
        Database { store: other.store.clone(), _folder: None }
    }
}

pub async fn sqlite() -> Database {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
    Database { store, _folder: Some(folder) }
}

/// None, with a word why, where there is no server.
pub async fn postgres() -> Option<Database> {
    Some(Database { store: test_database::postgres().await?, _folder: None })
}

pub async fn databases() -> Vec<Database> {
    let mut all = vec![sqlite().await];
    all.extend(postgres().await);
    all
}

pub async fn start(database: Database) -> Fleet {
    let (stop, shutdown) = watch::channel(false);
    let (intake, tasks) = StatusIntake::start(database.store.clone(), shutdown).await.unwrap();
    Fleet { database, intake, stop, tasks }
}

/// One turn of the check-ins' task, with nobody to tell.
pub async fn step(store: &Store, contacts: &Contacts, figures: &Figures, at: Timestamp) -> Result<(), StoreError> {
    check_ins::step(store, contacts, &Heard::new(store), figures, at).await
}

pub fn stream(cluster_type: &str) -> Stream {
    Stream::new("dev", cluster_type, Stream::ALL)
}

pub fn member(number: u8) -> Member {
    let key = SigningKey::from_seed(&[number; 32]).unwrap();
    let id = ClusterId::of_public_key(key.public().as_bytes());
    let document = StatusDocument::new(key.public(), 1, Nonce([number; 16]));
    Member { key, id, document }
}

impl Fleet {
    pub fn store(&self) -> &Store {
        &self.database.store
    }

    /// A row as a join writes it.
    pub async fn join(&self, member: &Member, stream: &Stream) {
        join(self.store(), &member.key, &member.id, stream).await;
    }

    pub async fn unknown_since(&self, cluster: &ClusterId) -> Option<i64> {
        let found = sqlx::query("SELECT unknown_since FROM clusters WHERE id = $1").bind(cluster.to_string());
        found.fetch_one(self.store().pool()).await.unwrap().try_get("unknown_since").unwrap()
    }

    pub async fn cloned_since(&self, cluster: &ClusterId) -> Option<i64> {
        let found = sqlx::query("SELECT cloned_since FROM clusters WHERE id = $1").bind(cluster.to_string());
        found.fetch_one(self.store().pool()).await.unwrap().try_get("cloned_since").unwrap()
    }

    /// What Git describes for the clusters of a type.
    pub async fn describe(&self, cluster_type: &str, assignments: &[&str]) {
        let mut tx = self.store().write().await.unwrap();
        sqlx::query("INSERT INTO catalog_structures (environment, digest) VALUES ('dev', '')")
            .execute(tx.connection())
            .await
            .unwrap();
        for assignment in assignments {
            sqlx::query(
                "INSERT INTO catalog (kind, environment, name, parent, workspace, state, labels, body, detail, content, \
                 note, digest, updated_at, tick) \
                 VALUES ('assignment', 'dev', $1, $2, '', '', '', '', '', '', '', '', 0, 0)",
            )
            .bind(format!("{cluster_type}/{assignment}"))
            .bind(cluster_type)
            .execute(tx.connection())
            .await
            .unwrap();
        }
        tx.commit().await.unwrap();
    }

    pub async fn stop(mut self) {
        self.stop.send(true).unwrap();
        while self.tasks.join_next().await.is_some() {}
    }
}

pub async fn join(store: &Store, key: &SigningKey, id: &ClusterId, stream: &Stream) {
    let mut tx = store.write().await.unwrap();
    let known = sqlx::query(
        "UPDATE clusters SET state = 'active', environment = $2, cluster_type = $3, ring = $4 WHERE id = $1",
    )
    .bind(id.to_string())
    .bind(stream.environment.as_str())
    .bind(stream.cluster_type.as_str())
    .bind(stream.ring.as_str())
    .execute(tx.connection())
    .await
    .unwrap();
    if known.rows_affected() == 0 {
        sqlx::query(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, \
             membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, generation, \
             tick) VALUES ($1, $1, $2, $3, $4, '{}', $5, '{}', 'active', 1, $5, 0, 't', 's', 0, 0, $6, 0, 0)",
        )
        .bind(id.to_string())
        .bind(stream.environment.as_str())
        .bind(stream.cluster_type.as_str())
        .bind(stream.ring.as_str())
        .bind(key.public().as_bytes().as_slice())
        .bind(now().0 + 3_600_000)
        .execute(tx.connection())
        .await
        .unwrap();
    }
    tx.place_cluster(id, None, Some(stream)).await.unwrap();
    tx.commit().await.unwrap();
}

pub async fn relocate(store: &Store, id: &ClusterId, from: &Stream, to: Option<&Stream>) {
    let mut tx = store.write().await.unwrap();
    tx.place_cluster(id, Some(from), to).await.unwrap();
    let state = if to.is_some() { "active" } else { "retired" };
    let stream = to.unwrap_or(from);
    sqlx::query("UPDATE clusters SET state = $2, cluster_type = $3 WHERE id = $1")
        .bind(id.to_string())
        .bind(state)
        .bind(stream.cluster_type.as_str())
        .execute(tx.connection())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

pub fn packages(name: &str) -> PackagesKey {
    PackagesKey::of_observed(&Digest::of(name.as_bytes()))
}

pub fn failed() -> Condition {
    Condition::Failed { reason: "HealthCheck".to_owned(), message: "one of two units runs".to_owned() }
}

pub fn report(condition: Condition, desired: &str, running: &str) -> Report {
    let at = Timestamp(now().0 - 60_000);
    Report {
        desired: Some(packages(desired)),
        generation: Generation(1),
        running: Some(packages(running)),
        version: None,
        condition,
        since: at,
        observed_at: at,
        drift: None,
        clock: 0,
    }
}

impl Member {
    pub fn tell(&mut self, assignment: &str, condition: Condition, running: &str) -> Envelope {
        self.document.set_report(assignment, &report(condition, "new", running)).unwrap();
        self.seal()
    }

    pub fn seal(&mut self) -> Envelope {
        self.document.seal(&self.key, now(), None).unwrap()
    }
}
