//! What the database remembers of platforms: environments, last good objects, published names.

use std::collections::BTreeMap;

use kedge_hub_types::platform::Environment;
use kedge_hub_types::platform::{Edits, SavedObject};
use kedge_model::kinds::RepoRef;
use kedge_model::{Kind, ObjectId, Source, Tenant};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{Store, StoreError, Term};

impl Store {
    pub async fn good_environments(&self) -> Result<BTreeMap<String, Environment>, StoreError> {
        let rows = sqlx::query("SELECT name, repo, branch, path, stale_since FROM good_environments");
        let mut environments = BTreeMap::new();
        for row in rows.fetch_all(self.pool()).await? {
            let name: String = row.try_get("name")?;
            let control_plane =
                RepoRef { repo: row.try_get("repo")?, branch: row.try_get("branch")?, path: row.try_get("path")? };
            let stale_since = row.try_get("stale_since")?;
            environments.insert(name.clone(), Environment { name, control_plane, stale_since });
        }
        Ok(environments)
    }

    pub async fn save_good_environments(
        &self,
        term: Term,
        environments: &BTreeMap<String, Environment>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        sqlx::query("DELETE FROM good_environments").execute(tx.connection()).await?;
        for environment in environments.values() {
            let at = &environment.control_plane;
            sqlx::query(
                "INSERT INTO good_environments (name, repo, branch, path, stale_since) VALUES ($1, $2, $3, $4, $5)",
            )
            .bind(&environment.name)
            .bind(&at.repo)
            .bind(&at.branch)
            .bind(&at.path)
            .bind(&environment.stale_since)
            .execute(tx.connection())
            .await?;
        }
        tx.commit().await
    }

    /// The last good objects of an environment, each with the text of its file.
    pub async fn good_objects(&self, environment: &str) -> Result<Vec<(SavedObject, Vec<u8>)>, StoreError> {
        let rows = sqlx::query(
            "SELECT o.kind, o.owner, o.name, o.repo, o.revision, o.file, o.text_id, o.stale_since, t.text
             FROM good_objects o JOIN good_texts t ON t.id = o.text_id WHERE o.environment = $1",
        );
        let rows = rows.bind(environment).fetch_all(self.pool()).await?;
        rows.iter().map(saved_object).collect()
    }

    pub async fn save_good_objects(&self, term: Term, environment: &str, edits: &Edits) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        for (id, text) in &edits.texts {
            sqlx::query("INSERT INTO good_texts (id, text) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING")
                .bind(id)
                .bind(text.as_slice())
                .execute(tx.connection())
                .await?;
        }
        for row in &edits.saved {
            sqlx::query(
                "INSERT INTO good_objects (environment, kind, owner, name, repo, revision, file, text_id, stale_since)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                 ON CONFLICT (environment, kind, owner, name) DO UPDATE SET repo = excluded.repo,
                 revision = excluded.revision, file = excluded.file, text_id = excluded.text_id,
                 stale_since = excluded.stale_since",
            )
            .bind(environment)
            .bind(row.id.kind.as_str())
            .bind(row.id.owner.as_deref().unwrap_or_default())
            .bind(&row.id.name)
            .bind(&row.source.repo)
            .bind(row.source.revision.as_deref().unwrap_or_default())
            .bind(&row.file)
            .bind(&row.text_id)
            .bind(&row.stale_since)
            .execute(tx.connection())
            .await?;
        }
        for id in &edits.removed {
            sqlx::query("DELETE FROM good_objects WHERE environment = $1 AND kind = $2 AND owner = $3 AND name = $4")
                .bind(environment)
                .bind(id.kind.as_str())
                .bind(id.owner.as_deref().unwrap_or_default())
                .bind(&id.name)
                .execute(tx.connection())
                .await?;
        }
        // Texts that nobody names any more.
        sqlx::query(
            "DELETE FROM good_texts WHERE NOT EXISTS (SELECT 1 FROM good_objects o WHERE o.text_id = good_texts.id)",
        )
        .execute(tx.connection())
        .await?;
        tx.commit().await
    }

    pub async fn published_names(&self, environment: &str) -> Result<BTreeMap<String, Tenant>, StoreError> {
        let rows =
            sqlx::query("SELECT name, registration, workload, target FROM published_names WHERE environment = $1");
        let mut names = BTreeMap::new();
        for row in rows.bind(environment).fetch_all(self.pool()).await? {
            let tenant = Tenant {
                registration: row.try_get("registration")?,
                workload: row.try_get("workload")?,
                target: row.try_get("target")?,
            };
            names.insert(row.try_get("name")?, tenant);
        }
        Ok(names)
    }

    pub async fn save_published_names(
        &self,
        term: Term,
        environment: &str,
        before: &BTreeMap<String, Tenant>,
        after: &BTreeMap<String, Tenant>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            sqlx::query("DELETE FROM published_names WHERE environment = $1 AND name = $2")
                .bind(environment)
                .bind(name)
                .execute(tx.connection())
                .await?;
        }
        for (name, tenant) in after.iter().filter(|(name, tenant)| before.get(*name) != Some(tenant)) {
            sqlx::query(
                "INSERT INTO published_names (environment, name, registration, workload, target)
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (environment, name) DO UPDATE SET
                 registration = excluded.registration, workload = excluded.workload, target = excluded.target",
            )
            .bind(environment)
            .bind(name)
            .bind(&tenant.registration)
            .bind(&tenant.workload)
            .bind(&tenant.target)
            .execute(tx.connection())
            .await?;
        }
        tx.commit().await
    }
}

fn saved_object(row: &AnyRow) -> Result<(SavedObject, Vec<u8>), StoreError> {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let kind: String = row.try_get("kind")?;
    let kind = Kind::parse(&kind).ok_or_else(|| StoreError::Corrupt(format!("the kind `{kind}`")))?;
    let id = ObjectId { kind, owner: some(row.try_get("owner")?), name: row.try_get("name")? };
    let source = Source { repo: row.try_get("repo")?, revision: some(row.try_get("revision")?) };
    let (file, text_id) = (row.try_get("file")?, row.try_get("text_id")?);
    let saved = SavedObject { id, source, file, text_id, stale_since: row.try_get("stale_since")? };
    Ok((saved, row.try_get("text")?))
}
