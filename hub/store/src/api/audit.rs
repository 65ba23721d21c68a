//! The log of writes: one row each, in the transaction of the write itself, never changed.

use kedge_hub_types::history::{Entry, Place, What};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::statement::Statement;
use crate::{Store, StoreError, Tx, now};

/// How a write ended that was done.
const DONE: &str = "done";
/// The leader hasn't looked at it yet.
const NOT_YET: &str = "waits for the leader";

/// Who did what, from where, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Id of the access token.
    pub token: String,
    /// The id of the person whose it is; empty for the hub's own commands.
    pub person: String,
    /// That person's name.
    pub who: String,
    pub role: String,
    /// `cluster.move`, `join-token.create`, …
    pub action: String,
    pub object: String,
    pub environment: String,
    /// Never a secret.
    pub detail: serde_json::Value,
    pub address: String,
    /// `done`, or the reason of the refusal.
    pub result: String,
}

/// An entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    pub number: i64,
    pub at: i64,
    pub entry: AuditEntry,
}

/// Which entries. Newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub token: Option<String>,
    pub environment: Option<String>,
    pub action_prefix: Option<String>,
    /// Entries before this number.
    pub before: Option<i64>,
    /// Entries after this number: for those who watch.
    pub after: Option<i64>,
    /// Only what was done.
    pub done: bool,
    pub limit: usize,
}

impl Tx {
    pub async fn audit(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        let tick = self.tick().await?;
        let query = sqlx::query(
            "INSERT INTO audit (tick, at, token, who, role, action, object, environment, detail, address, result, person) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        );
        let query = query
            .bind(tick)
            .bind(now().0)
            .bind(&entry.token)
            .bind(&entry.who)
            .bind(&entry.role)
            .bind(&entry.action)
            .bind(&entry.object)
            .bind(&entry.environment)
            .bind(entry.detail.to_string())
            .bind(&entry.address)
            .bind(&entry.result)
            .bind(&entry.person);
        query.execute(self.connection()).await?;
        self.record(vec![told(entry)]).await
    }
}

impl Store {
    /// An entry by itself: of a write that was refused, or that happened elsewhere.
    pub async fn audit(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        tx.audit(entry).await?;
        tx.commit().await
    }

    pub async fn audit_page(&self, filter: &AuditFilter) -> Result<Vec<Audited>, StoreError> {
        let mut query = Statement::new(
            "SELECT tick, at, token, person, who, role, action, object, environment, detail, address, result FROM audit \
             WHERE ",
        );
        query.number("tick < ?", filter.before.unwrap_or(i64::MAX));
        if let Some(after) = filter.after {
            query.number(" AND tick > ?", after);
        }
        if let Some(token) = &filter.token {
            query.text(" AND token = ?", token);
        }
        if let Some(environment) = &filter.environment {
            query.text(" AND environment = ?", environment);
        }
        if let Some(prefix) = &filter.action_prefix {
            query.text(" AND substr(action, 1, length(?)) = ?", prefix);
        }
        if filter.done {
            query.text(" AND result = ?", DONE);
        }
        query.push(" ORDER BY tick DESC");
        query.number(" LIMIT ?", i64::try_from(filter.limit).unwrap_or(i64::MAX));
        let mut found: Vec<Audited> =
            query.fetch(self).await?.iter().map(audited).collect::<Result<_, StoreError>>()?;
        for one in &mut found {
            if let Some(ended) = self.ended(one).await? {
                one.entry.result = ended;
            }
        }
        Ok(found)
    }

    /// A word on a rollout or a promotion is written down before the leader takes or refuses it: what became of it since.
    async fn ended(&self, audited: &Audited) -> Result<Option<String>, StoreError> {
        let entry = &audited.entry;
        if entry.result != DONE {
            return Ok(None);
        }
        // Entries of before don't say which word it was: a rollout's came just before its entry.
        let number = entry.detail["word"].as_i64().unwrap_or(audited.number - 1);
        let table = match entry.action.split_once('.').map(|(of, _)| of) {
            Some("rollout") => "SELECT taken_at, refused FROM rollout_words WHERE id = $1",
            Some("promotion" | "policy") => "SELECT taken_at, refused FROM promotion_words WHERE id = $1",
            _ => return Ok(None),
        };
        let Some(row) = sqlx::query(table).bind(number).fetch_optional(self.pool()).await? else { return Ok(None) };
        let (taken, refused): (Option<i64>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
        Ok(match (taken, refused) {
            (_, Some(why)) => Some(format!("refused: {why}")),
            (None, None) => Some(NOT_YET.to_owned()),
            (Some(_), None) => None,
        })
    }
}

/// The write as history has it.
fn told(entry: &AuditEntry) -> Entry {
    let what = What::Audit {
        action: entry.action.clone(),
        object: entry.object.clone(),
        role: entry.role.clone(),
        address: entry.address.clone(),
        result: entry.result.clone(),
        token: entry.token.clone(),
        detail: entry.detail.clone(),
    };
    Entry::new(now(), Place::environment(&entry.environment), what).by(&entry.who)
}

fn audited(row: &AnyRow) -> Result<Audited, StoreError> {
    let detail: String = row.try_get("detail")?;
    Ok(Audited {
        number: row.try_get("tick")?,
        at: row.try_get("at")?,
        entry: AuditEntry {
            token: row.try_get("token")?,
            person: row.try_get("person")?,
            who: row.try_get("who")?,
            role: row.try_get("role")?,
            action: row.try_get("action")?,
            object: row.try_get("object")?,
            environment: row.try_get("environment")?,
            detail: serde_json::from_str(&detail).unwrap_or_default(),
            address: row.try_get("address")?,
            result: row.try_get("result")?,
        },
    })
}
