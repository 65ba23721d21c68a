//! Names that contain a text. Each statement looks at so many rows and no more, by an index where there are many.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::catalog::{Kind, Visible};
use crate::statement::Statement;
use crate::{Store, StoreError};

/// An object whose name fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFound {
    pub environment: String,
    pub name: String,
    pub parent: String,
    pub workspace: String,
    pub state: String,
    /// JSON, as a list shows it.
    pub body: String,
}

/// A cluster whose name or id fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFound {
    pub id: String,
    pub name: String,
    pub environment: String,
    pub cluster_type: String,
    pub state: String,
    pub silent: bool,
}

/// A rollout whose commit or subject fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutFound {
    pub id: i64,
    pub environment: String,
    pub state: String,
    pub commit: String,
    /// JSON of the rollout.
    pub body: String,
}

/// Names that are looked at for a text inside them; what begins with it is found among any number.
const LOOKED_AT: i64 = 200_000;
/// Problems and rollouts are looked at as a whole.
const BODIES: i64 = 2000;
const ROLLOUTS: i64 = 300;
/// Behind every letter that a name can go on with.
const LAST: char = '\u{10FFFF}';

impl Store {
    /// Objects of a kind; those that begin with the text aren't always the first.
    pub async fn find_names(
        &self,
        kind: Kind,
        visible: &Visible,
        text: &str,
        limit: usize,
    ) -> Result<Vec<NameFound>, StoreError> {
        let mut statement = Statement::new(
            "SELECT r.environment, r.name, r.parent, r.workspace, r.state, r.body FROM \
             (SELECT environment, name FROM (SELECT environment, name FROM catalog AS k WHERE ",
        );
        statement.text("kind = ?", kind.as_str());
        match visible {
            Visible::All => {}
            Visible::Workspaces(workspaces) => match kind {
                Kind::Environment => statement.list(
                    " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'workload' \
                     AND own.environment = k.environment AND own.workspace IN (",
                    workspaces,
                    "))",
                ),
                Kind::ClusterType => statement.list(
                    " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
                     AND own.environment = k.environment AND own.parent = k.name AND own.workspace IN (",
                    workspaces,
                    "))",
                ),
                _ => statement.list(" AND k.workspace IN (", workspaces, ")"),
            },
        }
        statement.number(" LIMIT ?) AS looked", LOOKED_AT);
        statement.text(" WHERE lower(name) LIKE ? ESCAPE '\\'", &inside(text));
        statement.number(" LIMIT ?) AS h", number(limit));
        statement.text(
            " JOIN catalog AS r ON r.kind = ? AND r.environment = h.environment AND r.name = h.name",
            kind.as_str(),
        );
        statement.fetch(self).await?.iter().map(name_found).collect()
    }

    /// Problems that say it somewhere.
    pub async fn find_problems(
        &self,
        visible: &Visible,
        text: &str,
        limit: usize,
    ) -> Result<Vec<NameFound>, StoreError> {
        let mut statement = Statement::new(
            "SELECT environment, name, parent, workspace, state, body FROM (SELECT environment, name, parent, workspace, \
             state, body FROM catalog AS k WHERE kind = 'problem'",
        );
        if let Visible::Workspaces(workspaces) = visible {
            statement.list(" AND k.workspace IN (", workspaces, ")");
        }
        statement.number(" LIMIT ?) AS looked", BODIES);
        statement.text(" WHERE lower(body) LIKE ? ESCAPE '\\'", &inside(text));
        statement.number(" LIMIT ?", number(limit));
        statement.fetch(self).await?.iter().map(name_found).collect()
    }

    /// Clusters whose name or id begins with the text, then those that have it inside their name.
    pub async fn find_clusters(
        &self,
        visible: &Visible,
        text: &str,
        limit: usize,
    ) -> Result<Vec<ClusterFound>, StoreError> {
        let mut found: Vec<ClusterFound> = Vec::new();
        for part in ["k.name", "k.id", "inside"] {
            let mut statement =
                Statement::new("SELECT k.id, k.name, k.environment, k.cluster_type, k.state, k.unknown_since FROM ");
            match part {
                "inside" => {
                    statement
                        .number("(SELECT name, id FROM (SELECT name, id FROM clusters LIMIT ?) AS looked", LOOKED_AT);
                    statement.text(" WHERE lower(name) LIKE ? ESCAPE '\\'", &inside(text));
                    // A few more than are shown: those that begin with it are known already.
                    statement.number(" LIMIT ?) AS h JOIN clusters AS k ON k.id = h.id WHERE 1 = 1", number(limit) * 2);
                }
                "k.id" => {
                    statement.text("clusters AS k WHERE k.id >= ?", &text.to_ascii_lowercase());
                    statement.text(" AND k.id < ?", &format!("{}{LAST}", text.to_ascii_lowercase()));
                }
                _ => {
                    statement.text("clusters AS k WHERE k.name >= ?", text);
                    statement.text(" AND k.name < ?", &format!("{text}{LAST}"));
                }
            }
            super::conditions::own(&mut statement, visible);
            statement.number(" LIMIT ?", number(limit));
            for row in statement.fetch(self).await? {
                let cluster = cluster_found(&row)?;
                if !found.iter().any(|known| known.id == cluster.id) {
                    found.push(cluster);
                }
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    /// Rollouts of a commit that begins with the text, the newest first; then the newest whose cause says it.
    pub async fn find_rollouts(
        &self,
        visible: &Visible,
        text: &str,
        limit: usize,
    ) -> Result<Vec<RolloutFound>, StoreError> {
        let digits = text.to_ascii_lowercase();
        let is_commit = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut found: Vec<RolloutFound> = Vec::new();
        for commits in [true, false] {
            if commits && !is_commit {
                continue;
            }
            let mut statement =
                Statement::new("SELECT k.id, k.environment, k.state, k.commit_id, k.body FROM rollouts AS k WHERE ");
            if commits {
                let behind = format!("{digits}g");
                statement.text("k.id IN (SELECT id FROM rollouts WHERE commit_id >= ?", &digits);
                statement.text(" AND commit_id < ?", &behind);
                statement.text(" UNION SELECT rollout FROM rollout_items WHERE commit_id >= ?", &digits);
                statement.text(" AND commit_id < ?)", &behind);
            } else {
                statement.number("k.id IN (SELECT id FROM rollouts ORDER BY id DESC LIMIT ?)", ROLLOUTS);
                statement.text(" AND lower(k.body) LIKE ? ESCAPE '\\'", &inside(text));
            }
            if let Visible::Workspaces(workspaces) = visible {
                statement.list(
                    " AND EXISTS (SELECT 1 FROM rollout_items AS i JOIN catalog AS own ON own.kind = 'assignment' \
                     AND own.environment = k.environment AND own.name = i.cluster_type || '/' || i.assignment \
                     WHERE i.rollout = k.id AND own.workspace IN (",
                    workspaces,
                    "))",
                );
            }
            statement.number(" ORDER BY k.id DESC LIMIT ?", number(limit));
            for row in statement.fetch(self).await? {
                let rollout = rollout_found(&row)?;
                if !found.iter().any(|known| known.id == rollout.id) {
                    found.push(rollout);
                }
            }
        }
        Ok(found)
    }
}

/// A text somewhere in another, whatever its case.
fn inside(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.to_ascii_lowercase().chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

fn name_found(row: &AnyRow) -> Result<NameFound, StoreError> {
    Ok(NameFound {
        environment: row.try_get(0)?,
        name: row.try_get(1)?,
        parent: row.try_get(2)?,
        workspace: row.try_get(3)?,
        state: row.try_get(4)?,
        body: row.try_get(5)?,
    })
}

fn cluster_found(row: &AnyRow) -> Result<ClusterFound, StoreError> {
    Ok(ClusterFound {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        environment: row.try_get(2)?,
        cluster_type: row.try_get(3)?,
        state: row.try_get(4)?,
        silent: row.try_get::<Option<i64>, _>(5)?.is_some(),
    })
}

fn rollout_found(row: &AnyRow) -> Result<RolloutFound, StoreError> {
    Ok(RolloutFound {
        id: row.try_get(0)?,
        environment: row.try_get(1)?,
        state: row.try_get(2)?,
        commit: row.try_get(3)?,
        body: row.try_get(4)?,
    })
}

fn number(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
