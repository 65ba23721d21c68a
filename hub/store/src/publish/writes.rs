//! Writes of the `publish` module. Those of a leader carry its term.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::history::{Entry, Place, What};
use sqlx::Row as _;

use super::{
    Ask, Blobs, HandEdit, Publication, PublicationState, PullRequestRow, Settlement, WaitingRemoval, json, text,
    waiting,
};
use crate::api::audit::AuditEntry;
use crate::{Store, StoreError, Term, Tx, now};

/// Rows in one statement: SQLite takes 32,766 parameters, and parsing a longer one saves nothing.
const ROWS: usize = 200;

/// Publications that are kept of an environment.
const KEPT: i64 = 200;

impl Store {
    /// A new branch knows nothing of the old one's files. What is confirmed stays: clusters run it.
    pub async fn set_publish_target(
        &self,
        term: Term,
        environment: &str,
        repo: &str,
        branch: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        for statement in [
            "DELETE FROM published_files WHERE environment = $1",
            "DELETE FROM pull_requests WHERE environment = $1",
            "DELETE FROM hand_edits WHERE environment = $1",
            "UPDATE publications SET state = 'superseded', changes = '{}' WHERE environment = $1 AND state = 'intended'",
        ] {
            sqlx::query(statement).bind(environment).execute(tx.connection()).await?;
        }
        sqlx::query(
            "INSERT INTO publish_targets (environment, repo, branch) VALUES ($1, $2, $3)
             ON CONFLICT (environment) DO UPDATE SET repo = excluded.repo, branch = excluded.branch",
        )
        .bind(environment)
        .bind(repo)
        .bind(branch)
        .execute(tx.connection())
        .await?;
        tx.commit().await
    }

    /// A person agrees to exactly what waits now. None: nothing does.
    pub async fn approve_removal(
        &self,
        environment: &str,
        cluster_type: &str,
        who: &str,
        audit: Option<&AuditEntry>,
    ) -> Result<Option<WaitingRemoval>, StoreError> {
        let mut tx = self.write().await?;
        let row = sqlx::query(
            "UPDATE removals_waiting SET approved = gone, approved_by = $3, approved_at = $4
             WHERE environment = $1 AND cluster_type = $2
             RETURNING environment, cluster_type, gone, of_size, since, approved, approved_by, approved_at",
        )
        .bind(environment)
        .bind(cluster_type)
        .bind(who)
        .bind(now().0)
        .fetch_optional(tx.connection())
        .await?;
        let approved = row.as_ref().map(waiting).transpose()?;
        if let Some(entry) = audit.filter(|_| approved.is_some()) {
            tx.audit(entry).await?;
        }
        tx.commit().await?;
        Ok(approved)
    }

    /// Written before the push, so that a crash after it is recognised.
    pub async fn intend(&self, term: Term, environment: &str, intent: &Publication) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        end_intents(&mut tx, environment, PublicationState::Superseded).await?;
        let last = sqlx::query_scalar("SELECT COALESCE(MAX(number), 0) FROM publications WHERE environment = $1");
        let number: i64 = last.bind(environment).fetch_one(tx.connection()).await?;
        sqlx::query(
            "INSERT INTO publications (environment, number, repo, branch, base, commit_id, content, subject, changes,
             state, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        )
        .bind(environment)
        .bind(number + 1)
        .bind(&intent.repo)
        .bind(&intent.branch)
        .bind(intent.base.as_deref())
        .bind(&intent.commit)
        .bind(&intent.content)
        .bind(&intent.subject)
        .bind(text(&intent.changes)?)
        .bind(intent.state.word())
        .bind(intent.created_at.0)
        .execute(tx.connection())
        .await?;
        sqlx::query("DELETE FROM publications WHERE environment = $1 AND number <= $2")
            .bind(environment)
            .bind(number + 1 - KEPT)
            .execute(tx.connection())
            .await?;
        tx.commit().await
    }

    pub async fn save_pull_request(
        &self,
        term: Term,
        environment: &str,
        row: &PullRequestRow,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        put_pull_request(&mut tx, environment, row).await?;
        tx.commit().await
    }

    pub async fn settle(&self, term: Term, environment: &str, settlement: &Settlement) -> Result<(), StoreError> {
        if *settlement == Settlement::default() {
            return Ok(());
        }
        let mut tx = self.write_as(term).await?;
        put_files(&mut tx, environment, &settlement.files).await?;
        for (cluster_type, set) in &settlement.confirmed {
            put_confirmed(&mut tx, environment, cluster_type, set).await?;
        }
        if let Some(removals) = &settlement.waiting {
            put_waiting(&mut tx, environment, removals).await?;
        }
        if let Some(edits) = &settlement.hand_edits {
            put_hand_edits(&mut tx, environment, edits).await?;
        }
        if settlement.intent == Some(PublicationState::Published) {
            tell_published(&mut tx, environment).await?;
        }
        if let Some(end) = settlement.intent {
            end_intents(&mut tx, environment, end).await?;
        }
        if let Some(row) = &settlement.pull_request {
            put_pull_request(&mut tx, environment, row).await?;
        }
        tx.commit().await
    }
}

async fn put_files(tx: &mut Tx, environment: &str, files: &Blobs) -> Result<(), StoreError> {
    let written: Vec<(&String, &String)> = files.iter().filter_map(|(path, id)| Some((path, id.as_ref()?))).collect();
    for rows in written.chunks(ROWS) {
        let places: Vec<String> =
            (0..rows.len()).map(|row| format!("($1, ${}, ${})", row * 2 + 2, row * 2 + 3)).collect();
        let statement = format!(
            "INSERT INTO published_files (environment, path, blob_id) VALUES {}
             ON CONFLICT (environment, path) DO UPDATE SET blob_id = excluded.blob_id",
            places.join(", ")
        );
        let mut query = sqlx::query(sqlx::AssertSqlSafe(statement)).bind(environment);
        for (path, id) in rows {
            query = query.bind(path.as_str()).bind(id.as_str());
        }
        query.execute(tx.connection()).await?;
    }
    for path in files.iter().filter(|(_, id)| id.is_none()).map(|(path, _)| path) {
        let query = sqlx::query("DELETE FROM published_files WHERE environment = $1 AND path = $2");
        query.bind(environment).bind(path).execute(tx.connection()).await?;
    }
    Ok(())
}

async fn put_confirmed(
    tx: &mut Tx,
    environment: &str,
    cluster_type: &str,
    set: &BTreeSet<String>,
) -> Result<(), StoreError> {
    // Who agreed is taken over from the removal that this ends.
    sqlx::query(
        "INSERT INTO confirmed_sets (environment, cluster_type, assignments, size, changed_at, confirmed_by)
         VALUES ($1, $2, $3, $4, $5,
            (SELECT approved_by FROM removals_waiting WHERE environment = $1 AND cluster_type = $2))
         ON CONFLICT (environment, cluster_type) DO UPDATE SET assignments = excluded.assignments,
            size = excluded.size, changed_at = excluded.changed_at,
            confirmed_by = COALESCE(excluded.confirmed_by, confirmed_sets.confirmed_by)",
    )
    .bind(environment)
    .bind(cluster_type)
    .bind(text(set)?)
    .bind(i64::try_from(set.len()).unwrap_or(i64::MAX))
    .bind(now().0)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// What waits as before keeps its time and its approval.
async fn put_waiting(
    tx: &mut Tx,
    environment: &str,
    removals: &BTreeMap<String, (BTreeSet<String>, usize)>,
) -> Result<(), StoreError> {
    let known = sqlx::query_scalar::<_, String>("SELECT cluster_type FROM removals_waiting WHERE environment = $1");
    for cluster_type in known.bind(environment).fetch_all(tx.connection()).await? {
        if !removals.contains_key(&cluster_type) {
            let query = sqlx::query("DELETE FROM removals_waiting WHERE environment = $1 AND cluster_type = $2");
            query.bind(environment).bind(&cluster_type).execute(tx.connection()).await?;
        }
    }
    for (cluster_type, (gone, of)) in removals {
        sqlx::query(
            "INSERT INTO removals_waiting (environment, cluster_type, gone, of_size, since) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (environment, cluster_type) DO UPDATE SET gone = excluded.gone, of_size = excluded.of_size",
        )
        .bind(environment)
        .bind(cluster_type)
        .bind(text(gone)?)
        .bind(i64::try_from(*of).unwrap_or(i64::MAX))
        .bind(now().0)
        .execute(tx.connection())
        .await?;
    }
    Ok(())
}

async fn put_hand_edits(tx: &mut Tx, environment: &str, edits: &[HandEdit]) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM hand_edits WHERE environment = $1").bind(environment).execute(tx.connection()).await?;
    for edit in edits {
        let query = sqlx::query(
            "INSERT INTO hand_edits (environment, path, commit_id, author, since) VALUES ($1, $2, $3, $4, $5)",
        );
        let query = query.bind(environment).bind(&edit.path).bind(&edit.commit).bind(&edit.author).bind(edit.since.0);
        query.execute(tx.connection()).await?;
    }
    Ok(())
}

async fn end_intents(tx: &mut Tx, environment: &str, end: PublicationState) -> Result<(), StoreError> {
    let query =
        sqlx::query("UPDATE publications SET state = $2, changes = '{}' WHERE environment = $1 AND state = 'intended'");
    query.bind(environment).bind(end.word()).execute(tx.connection()).await?;
    Ok(())
}

/// The commit that was about to be pushed is on the branch.
async fn tell_published(tx: &mut Tx, environment: &str) -> Result<(), StoreError> {
    let intended = sqlx::query(
        "SELECT commit_id, branch, subject FROM publications WHERE environment = $1 AND state = 'intended'",
    );
    let mut news = Vec::new();
    for row in intended.bind(environment).fetch_all(tx.connection()).await? {
        let published: String = row.try_get("commit_id")?;
        let (branch, subject) = (row.try_get("branch")?, row.try_get("subject")?);
        let what = What::Published { published: published.clone(), branch, subject };
        news.push(Entry::new(now(), Place::environment(environment), what).commit(&published));
    }
    tx.record(news).await
}

/// The pull request is elsewhere, or asks for something else.
async fn tell_pull_request(tx: &mut Tx, environment: &str, row: &PullRequestRow) -> Result<(), StoreError> {
    let before = sqlx::query("SELECT state, number, asked FROM pull_requests WHERE environment = $1");
    let before = before.bind(environment).fetch_optional(tx.connection()).await?;
    let asked = row.asked.as_ref().map(|asked| asked.commit.clone());
    if let Some(before) = before {
        let (state, number): (String, Option<i64>) = (before.try_get("state")?, before.try_get("number")?);
        let told: Option<Ask> = before.try_get::<Option<String>, _>("asked")?.map(json).transpose()?;
        if state == row.state.word() && number == row.number && told.map(|told| told.commit) == asked {
            return Ok(());
        }
    }
    let what = What::PullRequest {
        state: row.state.word().to_owned(),
        branch: row.branch.clone(),
        number: row.number,
        url: row.url.clone(),
        asked: asked.clone(),
    };
    let entry = Entry::new(now(), Place::environment(environment), what).commit(&asked.unwrap_or_default());
    tx.record(vec![entry]).await
}

async fn put_pull_request(tx: &mut Tx, environment: &str, row: &PullRequestRow) -> Result<(), StoreError> {
    if row.asked.is_some() {
        tell_pull_request(tx, environment, row).await?;
    }
    sqlx::query(
        "INSERT INTO pull_requests (environment, branch, asked, intended, number, url, state, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (environment) DO UPDATE SET branch = excluded.branch, asked = excluded.asked,
            intended = excluded.intended, number = excluded.number, url = excluded.url, state = excluded.state,
            updated_at = excluded.updated_at",
    )
    .bind(environment)
    .bind(&row.branch)
    .bind(row.asked.as_ref().map(text).transpose()?)
    .bind(row.intended.as_ref().map(text).transpose()?)
    .bind(row.number)
    .bind(row.url.as_deref())
    .bind(row.state.word())
    .bind(now().0)
    .execute(tx.connection())
    .await?;
    Ok(())
}
