//! The statements of persons: who access tokens belong to. Written and asked by `api` and by the hub's own commands.

use kedge_model::wire::Timestamp;
use kedge_model::wire::digest::hex;
use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::tokens::{Grant, NewToken, Role};
use super::{Store, StoreError, Tx, now};

/// A person as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonRow {
    pub id: String,
    pub name: String,
    /// Lower case, as an administrator set them.
    pub emails: Vec<String>,
    /// Names and addresses that it had before.
    pub former: Vec<Former>,
    pub created_at: i64,
    /// The id of who added it; empty: on the hub's host.
    pub created_by: String,
    pub removed_at: Option<i64>,
}

/// A name or an address that was taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    pub known: String,
    /// When that was.
    pub until: i64,
}

/// What two persons can't share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shared {
    Name { with: String },
    Email { email: String, with: String },
}

/// Who had an address so short ago is still the author of what was written under it: longer than a change waits.
const FORMER_MS: i64 = 90 * 24 * 3600 * 1000;

const PERSON: &str = "SELECT id, name, emails, former, created_at, created_by, removed_at FROM people";

impl PersonRow {
    /// Somebody new, with an id that nobody had.
    pub fn new(name: &str, emails: &[String], created_by: &str) -> PersonRow {
        PersonRow {
            id: format!("p{}", hex(&rand::random::<[u8; 8]>())),
            name: name.to_owned(),
            emails: emails.iter().map(|email| email.trim().to_lowercase()).collect(),
            former: Vec::new(),
            created_at: now().0,
            created_by: created_by.to_owned(),
            removed_at: None,
        }
    }

    /// The same person under another name and other addresses: what it had stays known for a while.
    #[must_use]
    pub fn changed(self, name: String, emails: Vec<String>, at: i64) -> PersonRow {
        let had = self.emails.into_iter().chain([self.name]).map(|known| Former { known, until: at });
        let mut former: Vec<Former> = still_counts(self.former, at).chain(had).collect();
        // The newest time of each; what it has is no former one.
        former.sort_by(|one, other| (&one.known, other.until).cmp(&(&other.known, one.until)));
        former.dedup_by(|other, newest| other.known == newest.known);
        former.retain(|former| former.known != name && !emails.contains(&former.known));
        PersonRow { name, emails, former, ..self }
    }
}

impl Store {
    /// Makes a token of a new person with that name, and returns its id and the text that its owner gets, once.
    pub async fn add_api_token(
        &self,
        name: &str,
        role: Role,
        workspaces: &[String],
        expires: Option<Timestamp>,
    ) -> Result<(String, String), StoreError> {
        let token = NewToken::generate();
        let mut tx = self.write().await?;
        let person = PersonRow::new(name, &[], "");
        tx.insert_person(&person).await?;
        let grant = Grant { person: &person.id, name, role, workspaces, expires, created_by: "" };
        tx.insert_api_token(&token, &grant).await?;
        tx.commit().await?;
        Ok((token.id.clone(), token.text()))
    }

    /// In the order of their ids, after one of them; those that were removed too.
    pub async fn people(&self, after: &str, limit: i64) -> Result<Vec<PersonRow>, StoreError> {
        let sql = format!("{PERSON} WHERE id > $1 ORDER BY id LIMIT $2");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(after).bind(limit).fetch_all(self.pool()).await?;
        rows.iter().map(person).collect()
    }

    /// Those who weren't removed and have this id or this name.
    pub async fn people_called(&self, text: &str) -> Result<Vec<PersonRow>, StoreError> {
        let sql = format!("{PERSON} WHERE removed_at IS NULL AND (id = $1 OR LOWER(name) = $2) ORDER BY id");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(text).bind(text.to_lowercase());
        query.fetch_all(self.pool()).await?.iter().map(person).collect()
    }

    /// Whether anybody can make tokens.
    pub async fn has_administrator(&self) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar::<_, i64>(
            "SELECT 1 FROM api_tokens WHERE role = 'administrator' AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > $1) LIMIT 1",
        );
        Ok(found.bind(now().0).fetch_optional(self.pool()).await?.is_some())
    }
}

impl Tx {
    pub async fn insert_person(&mut self, person: &PersonRow) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO people (id, name, emails, created_at, created_by) VALUES ($1, $2, $3, $4, $5)")
            .bind(&person.id)
            .bind(&person.name)
            .bind(serde_json::Value::from(person.emails.clone()).to_string())
            .bind(person.created_at)
            .bind(&person.created_by)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// False: there is no such person, or it was removed.
    pub async fn set_person(&mut self, person: &PersonRow) -> Result<bool, StoreError> {
        let query =
            sqlx::query("UPDATE people SET name = $2, emails = $3, former = $4 WHERE id = $1 AND removed_at IS NULL");
        let former = serde_json::to_string(&person.former).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let query = query.bind(&person.id).bind(&person.name);
        let query = query.bind(serde_json::Value::from(person.emails.clone()).to_string()).bind(former);
        Ok(query.execute(self.connection()).await?.rows_affected() == 1)
    }

    /// Ends all its tokens. How many those were; none: there is no such person, or it was removed already.
    pub async fn remove_person(&mut self, id: &str, at: i64) -> Result<Option<u64>, StoreError> {
        let query = sqlx::query("UPDATE people SET removed_at = $2 WHERE id = $1 AND removed_at IS NULL");
        if query.bind(id).bind(at).execute(self.connection()).await?.rows_affected() == 0 {
            return Ok(None);
        }
        let query = sqlx::query("UPDATE api_tokens SET revoked_at = $2 WHERE person = $1 AND revoked_at IS NULL");
        Ok(Some(query.bind(id).bind(at).execute(self.connection()).await?.rows_affected()))
    }

    /// Who isn't removed, as this transaction sees it.
    pub async fn person(&mut self, id: &str) -> Result<Option<PersonRow>, StoreError> {
        let sql = format!("{PERSON} WHERE id = $1 AND removed_at IS NULL");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(self.connection()).await?;
        row.as_ref().map(person).transpose()
    }

    /// What a person would share with another one: a name or an address.
    pub async fn shared(&mut self, id: &str, name: &str, emails: &[String]) -> Result<Option<Shared>, StoreError> {
        let sql = format!("{PERSON} WHERE removed_at IS NULL AND id <> $1");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_all(self.connection()).await?;
        for row in &rows {
            let other = person(row)?;
            if other.name.to_lowercase() == name.to_lowercase() || other.id == name {
                return Ok(Some(Shared::Name { with: other.id }));
            }
            if let Some(email) = emails.iter().find(|email| other.emails.contains(email)) {
                return Ok(Some(Shared::Email { email: email.clone(), with: other.name }));
            }
        }
        Ok(None)
    }

    /// The roles of its tokens that are good.
    pub async fn roles_of(&mut self, person: &str) -> Result<Vec<Role>, StoreError> {
        let query = sqlx::query_scalar::<_, String>(
            "SELECT DISTINCT role FROM api_tokens WHERE person = $1 AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > $2)",
        );
        let roles = query.bind(person).bind(now().0).fetch_all(self.connection()).await?;
        let read = |role: String| role.parse().map_err(|error| StoreError::Corrupt(format!("api_tokens: {error}")));
        roles.into_iter().map(read).collect()
    }
}

fn person(row: &AnyRow) -> Result<PersonRow, StoreError> {
    Ok(PersonRow {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        emails: emails(row.try_get("emails")?)?,
        former: former(row.try_get("former")?)?,
        created_at: row.try_get("created_at")?,
        created_by: row.try_get("created_by")?,
        removed_at: row.try_get("removed_at")?,
    })
}

pub(crate) fn emails(text: &str) -> Result<Vec<String>, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("emails of a person: {error}")))
}

pub(crate) fn former(text: &str) -> Result<Vec<Former>, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("former names of a person: {error}")))
}

/// Those that weren't taken away too long ago.
pub(crate) fn still_counts(former: Vec<Former>, at: i64) -> impl Iterator<Item = Former> {
    former.into_iter().filter(move |former| at.saturating_sub(former.until) < FORMER_MS)
}

#[cfg(test)]
mod tests {
    use super::super::MIGRATIONS;
    use super::super::test_database;
    use super::*;
    use sqlx::migrate::Migrator;

    /// As it was before persons, with two tokens of one name.
    async fn before_people(url: &str) {
        let old = MIGRATIONS.iter().filter(|known| known.version < 200).cloned().collect();
        let store = Store::open_with(url, &Migrator::with_migrations(old)).await.unwrap();
        let mut tx = store.write().await.unwrap();
        for (id, role) in [("00000000000000aa", "platform"), ("00000000000000bb", "viewer")] {
            let sql = "INSERT INTO api_tokens (id, name, role, workspaces, secret_hash, created_at) VALUES ($1, 'anna', $2, '[]', 'h', 7)";
            sqlx::query(sql).bind(id).bind(role).execute(tx.connection()).await.unwrap();
        }
        tx.commit().await.unwrap();
        store.close().await;
    }

    async fn each_token_is_a_person(url: &str) {
        before_people(url).await;
        let store = Store::open(url).await.unwrap();
        let people = store.people("", 10).await.unwrap();
        assert_eq!(people.len(), 2);
        assert!(people.iter().all(|person| person.name == "anna" && person.emails.is_empty()));
        let tokens = store.access_tokens("", 10).await.unwrap();
        let mut owners: Vec<&str> = tokens.iter().map(|token| token.person.as_str()).collect();
        owners.sort_unstable();
        assert_eq!(owners, [people[0].id.as_str(), people[1].id.as_str()]);
        assert!(!store.has_administrator().await.unwrap());
    }

    #[test]
    fn what_a_person_was_known_by_counts_for_ninety_days() {
        let known = |person: &PersonRow| person.former.iter().map(|former| former.known.clone()).collect::<Vec<_>>();
        let emails = |email: &str| vec![email.to_owned()];
        let person = PersonRow::new("anna", &emails("a@b.c"), "");
        let away = person.changed("anna".to_owned(), emails("z@b.c"), 1000);
        assert_eq!(known(&away), ["a@b.c"]);
        let renamed = away.clone().changed("else".to_owned(), emails("z@b.c"), 2000);
        assert_eq!(known(&renamed), ["a@b.c", "anna"]);
        let back = renamed.changed("anna".to_owned(), emails("a@b.c"), 3000);
        assert_eq!(known(&back), ["else", "z@b.c"]);
        // Taken away again, it counts from then on.
        let again = back.changed("anna".to_owned(), emails("y@b.c"), FORMER_MS);
        assert_eq!(known(&again), ["a@b.c", "else", "z@b.c"]);
        assert_eq!(
            still_counts(again.former, FORMER_MS + 3000).map(|former| former.known).collect::<Vec<_>>(),
            ["a@b.c"]
        );
        assert_eq!(still_counts(away.former, 1000 + FORMER_MS).count(), 0);
    }

    #[tokio::test]
    async fn tokens_from_before_become_one_person_each() {
        let folder = tempfile::tempdir().unwrap();
        each_token_is_a_person(&format!("sqlite:{}", folder.path().join("hub.db").display())).await;
    }

    #[tokio::test]
    async fn tokens_from_before_become_one_person_each_on_postgres() {
        let Some(url) = test_database::postgres_url().await else { return };
        each_token_is_a_person(&url).await;
    }
}
