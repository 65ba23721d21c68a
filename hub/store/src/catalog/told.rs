//! Problems that appear and end, repositories that fail and recover, as entries of history: told with the rows that change.

use kedge_hub_types::history::{Entry, Place, What};
use serde::Deserialize;
use sqlx::Row as _;

use super::{Kind, Row};
use crate::{StoreError, Tx, now};

/// What history tells of a problem's row.
#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    quarantines: bool,
    code: String,
    severity: String,
    message: String,
}

#[derive(Deserialize)]
struct Repository {
    url: String,
    #[serde(default)]
    failing: Option<Failing>,
}

#[derive(Deserialize)]
struct Failing {
    error: String,
}

/// Before a row is written. A problem that is there already isn't news; a repository is when its state changes.
pub(super) async fn written(tx: &mut Tx, environment: &str, row: &Row) -> Result<Option<Entry>, StoreError> {
    if !matches!(row.kind, Kind::Problem | Kind::Repository) {
        return Ok(None);
    }
    let before =
        sqlx::query_scalar::<_, String>("SELECT state FROM catalog WHERE kind = $1 AND environment = $2 AND name = $3");
    let before = before.bind(row.kind.as_str()).bind(environment).bind(&row.name);
    let before = before.fetch_optional(tx.connection()).await?;
    Ok(match (row.kind, before) {
        (Kind::Problem, None) => problem(environment, &row.parent, &row.workspace, &row.body, false),
        (Kind::Repository, before) if before.as_deref().unwrap_or("good") != row.state => {
            repository(environment, &row.body)
        }
        _ => None,
    })
}

/// Before a row goes.
pub(super) async fn removed(
    tx: &mut Tx,
    environment: &str,
    kind: Kind,
    name: &str,
) -> Result<Option<Entry>, StoreError> {
    if kind != Kind::Problem {
        return Ok(None);
    }
    let row =
        sqlx::query("SELECT parent, workspace, body FROM catalog WHERE kind = $1 AND environment = $2 AND name = $3");
    let row = row.bind(kind.as_str()).bind(environment).bind(name).fetch_optional(tx.connection()).await?;
    let Some(row) = row else { return Ok(None) };
    let (parent, workspace, body): (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Ok(problem(environment, &parent, &workspace, &body, true))
}

/// A problem that only moved to another line or commit ended and appeared at once: that is nothing.
pub(super) fn settled(mut news: Vec<Entry>) -> Vec<Entry> {
    let key = |entry: &Entry| match &entry.what {
        What::Problem { ended, code, message, .. } => {
            Some((*ended, entry.place.assignment.clone(), code.clone(), message.clone()))
        }
        _ => None,
    };
    let keys: Vec<_> = news.iter().filter_map(key).collect();
    let is_echo = |(ended, assignment, code, message): &(bool, String, String, String)| {
        keys.contains(&(!ended, assignment.clone(), code.clone(), message.clone()))
    };
    news.retain(|entry| !key(entry).is_some_and(|key| is_echo(&key)));
    news
}

fn problem(environment: &str, assignment: &str, workspace: &str, body: &str, ended: bool) -> Option<Entry> {
    let Problem { quarantines, code, severity, message } = serde_json::from_str(body).ok()?;
    let place = Place {
        assignment: assignment.to_owned(),
        cluster_type: assignment.split_once('/').map(|(cluster_type, _)| cluster_type.to_owned()).unwrap_or_default(),
        workspace: workspace.to_owned(),
        ..Place::environment(environment)
    };
    Some(Entry::new(now(), place, What::Problem { ended, code, severity, message, quarantines }))
}

fn repository(environment: &str, body: &str) -> Option<Entry> {
    let Repository { url, failing } = serde_json::from_str(body).ok()?;
    let error = failing.map(|failing| failing.error);
    Some(Entry::new(now(), Place::environment(environment), What::Repository { failing: error.is_some(), url, error }))
}
