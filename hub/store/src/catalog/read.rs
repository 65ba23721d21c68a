//! Pages of the catalog: by the primary key in order, narrowed by fields, labels and by who asks.

use kedge_model::wire::Stream;
use kedge_model::{Labels, Selector};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::Kind;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// Which rows a caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visible {
    All,
    /// Those of these workspaces; cluster types that these have assignments on.
    Workspaces(Vec<String>),
}

/// What is asked for. Empty fields ask for nothing.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub environment: Option<String>,
    pub parent: Option<String>,
    pub workspace: Option<String>,
    pub state: Option<String>,
    pub name_prefix: Option<String>,
    pub labels: Selector,
    /// Only what changed after this tick.
    pub after: Option<i64>,
    /// The last row of the page before: environment and name.
    pub from: Option<(String, String)>,
    pub limit: usize,
}

/// A row as it is read.
#[derive(Clone, Debug)]
pub struct Shown {
    pub environment: String,
    pub name: String,
    pub body: String,
    pub note: String,
    pub updated_at: i64,
}

/// One row whole.
#[derive(Clone, Debug)]
pub struct Known {
    pub shown: Shown,
    pub workspace: String,
    pub detail: String,
    /// The body of its values; empty when it has none.
    pub values: String,
}

/// Something that is no longer there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    pub environment: String,
    pub name: String,
}

/// Rows that are read at once while labels are compared.
const STRIDE: usize = 500;
/// So many rows one request looks at; the page may end early then, and its cursor leads on.
const MAX_LOOKED_AT: usize = 50_000;

impl Store {
    /// A page, and whether there may be more behind its last row (which is then given, shown or not).
    pub async fn catalog_page(
        &self,
        kind: Kind,
        visible: &Visible,
        filter: &Filter,
    ) -> Result<(Vec<Shown>, Option<(String, String)>), StoreError> {
        let mut from = filter.from.clone();
        let mut found = Vec::new();
        let mut looked_at = 0;
        let stride = if filter.labels.is_everything() { filter.limit + 1 } else { STRIDE.max(filter.limit + 1) };
        loop {
            let rows = self.catalog_stride(kind, visible, filter, from.as_ref(), stride).await?;
            let ended = rows.len() < stride;
            looked_at += rows.len();
            for row in &rows {
                let labels: Labels = match filter.labels.is_everything() {
                    true => Labels::new(),
                    false => parse_labels(&row.try_get::<String, _>("labels")?)?,
                };
                if filter.labels.matches(&labels) {
                    if found.len() == filter.limit {
                        let last: Option<&Shown> = found.last();
                        return Ok((found.clone(), last.map(|last| (last.environment.clone(), last.name.clone()))));
                    }
                    found.push(shown(row)?);
                }
                from = Some((row.try_get("environment")?, row.try_get("name")?));
            }
            if ended {
                return Ok((found, None));
            }
            if looked_at >= MAX_LOOKED_AT {
                return Ok((found, from));
            }
        }
    }

    async fn catalog_stride(
        &self,
        kind: Kind,
        visible: &Visible,
        filter: &Filter,
        from: Option<&(String, String)>,
        stride: usize,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let mut query =
            Statement::new("SELECT environment, name, labels, body, note, updated_at FROM catalog AS row_of WHERE ");
        query.text("kind = ?", kind.as_str());
        narrow(&mut query, kind, visible, filter);
        for (key, value) in &filter.labels.match_labels {
            // Only a first sieve: the labels themselves are compared afterwards.
            query.text(" AND labels LIKE ? ESCAPE '\\'", &like(key, value));
        }
        if let Some((environment, name)) = from {
            query.text(" AND (environment, name) > (?", environment);
            query.text(", ?)", name);
        }
        query.push(" ORDER BY environment, name");
        query.number(" LIMIT ?", i64::try_from(stride).unwrap_or(i64::MAX));
        query.fetch(self).await
    }

    /// One row with everything that belongs to it.
    pub async fn catalog_row(
        &self,
        kind: Kind,
        visible: &Visible,
        environment: &str,
        name: &str,
    ) -> Result<Option<Known>, StoreError> {
        let mut query = Statement::new(
            "SELECT environment, name, body, note, updated_at, workspace, detail, COALESCE((SELECT v.body FROM \
             catalog_values AS v WHERE v.environment = row_of.environment AND v.digest = row_of.content), '') AS composed \
             FROM catalog AS row_of WHERE ",
        );
        query.text("kind = ?", kind.as_str());
        query.text(" AND environment = ?", environment);
        query.text(" AND name = ?", name);
        narrow(&mut query, kind, visible, &Filter::default());
        let rows = query.fetch(self).await?;
        rows.first()
            .map(|row| {
                Ok(Known {
                    shown: shown(row)?,
                    workspace: row.try_get("workspace")?,
                    detail: row.try_get("detail")?,
                    values: row.try_get("composed")?,
                })
            })
            .transpose()
    }

    /// Those of these names that there are, in no order.
    pub async fn catalog_named(
        &self,
        kind: Kind,
        visible: &Visible,
        environment: &str,
        names: &[String],
    ) -> Result<Vec<Shown>, StoreError> {
        const CHUNK: usize = 200;
        let mut found = Vec::new();
        for names in names.chunks(CHUNK) {
            let mut query =
                Statement::new("SELECT environment, name, body, note, updated_at FROM catalog AS row_of WHERE ");
            query.text("kind = ?", kind.as_str());
            query.text(" AND environment = ?", environment);
            query.list(" AND name IN (", names, ")");
            narrow(&mut query, kind, visible, &Filter::default());
            for row in query.fetch(self).await? {
                found.push(shown(&row)?);
            }
        }
        Ok(found)
    }

    /// The environments that have anything of a kind.
    pub async fn catalog_environments(&self, kind: Kind) -> Result<Vec<String>, StoreError> {
        // From one to the next by the primary key, however many rows each has.
        let mut found: Vec<String> = Vec::new();
        loop {
            let mut query = Statement::new("SELECT MIN(environment) AS next FROM catalog WHERE ");
            query.text("kind = ?", kind.as_str());
            if let Some(last) = found.last() {
                query.text(" AND environment > ?", last);
            }
            let rows = query.fetch(self).await?;
            let next = rows.first().and_then(|row| row.try_get::<Option<String>, _>("next").ok()).flatten();
            match next {
                Some(next) if found.last() != Some(&next) => found.push(next),
                _ => return Ok(found),
            }
        }
    }

    /// Names of a kind, of one environment or of all.
    pub async fn described(
        &self,
        kind: Kind,
        visible: &Visible,
        environment: Option<&str>,
    ) -> Result<Vec<String>, StoreError> {
        let mut query = Statement::new("SELECT DISTINCT name FROM catalog AS row_of WHERE ");
        query.text("kind = ?", kind.as_str());
        let filter = Filter { environment: environment.map(str::to_owned), ..Filter::default() };
        narrow(&mut query, kind, visible, &filter);
        query.number(" LIMIT ?", i64::try_from(MAX_LOOKED_AT).unwrap_or(i64::MAX));
        query.fetch(self).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// The environments that have an object of this name.
    pub async fn environments_with(&self, kind: Kind, name: &str) -> Result<Vec<String>, StoreError> {
        let mut query = Statement::new("SELECT e.name FROM catalog e WHERE e.kind = 'environment'");
        query.text(" AND EXISTS (SELECT 1 FROM catalog o WHERE o.environment = e.name AND o.kind = ?", kind.as_str());
        query.text(" AND o.name = ?)", name);
        query.fetch(self).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// What went after a tick; none when that is too long ago to know.
    pub async fn catalog_gone(
        &self,
        kind: Kind,
        visible: &Visible,
        filter: &Filter,
        after: i64,
    ) -> Result<Option<Vec<Gone>>, StoreError> {
        let floor = sqlx::query_scalar::<_, String>("SELECT value FROM meta WHERE name = 'catalog.floor'");
        let floor = floor.fetch_optional(self.pool()).await?;
        if floor.and_then(|text| text.parse::<i64>().ok()).is_some_and(|floor| after < floor) {
            return Ok(None);
        }
        let mut query = Statement::new("SELECT environment, name FROM catalog_gone WHERE ");
        query.text("kind = ?", kind.as_str());
        query.number(" AND tick > ?", after);
        if let Some(environment) = &filter.environment {
            query.text(" AND environment = ?", environment);
        }
        if let Visible::Workspaces(workspaces) = visible {
            query.list(" AND workspace IN (", workspaces, ")");
        }
        query.push(" ORDER BY environment, name");
        let rows = query.fetch(self).await?;
        let gone = rows.iter().map(|row| Ok(Gone { environment: row.try_get(0)?, name: row.try_get(1)? }));
        gone.collect::<Result<Vec<_>, StoreError>>().map(Some)
    }

    /// The newest change of all.
    pub async fn current_tick(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar("SELECT value FROM ticks WHERE id = 1").fetch_one(self.pool()).await?)
    }

    /// How many assignments the clusters of a stream have, as Git describes them.
    pub async fn count_assignments(&self, stream: &Stream) -> Result<usize, StoreError> {
        let mut query = Statement::new("SELECT COUNT(*) FROM catalog WHERE kind = 'assignment'");
        query.text(" AND environment = ?", &stream.environment);
        query.text(" AND parent = ?", &stream.cluster_type);
        let rows = query.fetch(self).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// Of these assignments, those that belong to the workspaces.
    pub async fn assignments_of(
        &self,
        environment: &str,
        cluster_type: &str,
        workspaces: &[String],
    ) -> Result<Vec<String>, StoreError> {
        let mut query = Statement::new("SELECT name FROM catalog WHERE kind = 'assignment'");
        query.text(" AND environment = ?", environment);
        query.text(" AND parent = ?", cluster_type);
        query.list(" AND workspace IN (", workspaces, ")");
        let rows = query.fetch(self).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}

fn narrow(query: &mut Statement, kind: Kind, visible: &Visible, filter: &Filter) {
    if let Some(environment) = &filter.environment {
        query.text(" AND environment = ?", environment);
    }
    if let Some(parent) = &filter.parent {
        query.text(" AND parent = ?", parent);
    }
    if let Some(workspace) = &filter.workspace {
        query.text(" AND workspace = ?", workspace);
    }
    if let Some(state) = &filter.state {
        match (kind, state.as_str()) {
            (Kind::Assignment, "quarantined") => query.push(" AND (state = 'quarantined' OR note <> '')"),
            (Kind::Assignment, "rendered") => query.push(" AND state = 'rendered' AND note = ''"),
            (_, state) => query.text(" AND state = ?", state),
        }
    }
    if let Some(prefix) = &filter.name_prefix {
        query.text(" AND substr(name, 1, length(?)) = ?", prefix);
    }
    if let Some(after) = filter.after {
        query.number(" AND tick > ?", after);
    }
    let Visible::Workspaces(workspaces) = visible else { return };
    match kind {
        Kind::Environment => query.list(
            " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'workload' \
             AND own.environment = row_of.environment AND own.workspace IN (",
            workspaces,
            "))",
        ),
        Kind::ClusterType => query.list(
            " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
             AND own.environment = row_of.environment AND own.parent = row_of.name AND own.workspace IN (",
            workspaces,
            "))",
        ),
        // A repository may serve several workspaces: who asks looks at its list.
        Kind::Repository => {}
        _ => query.list(" AND workspace IN (", workspaces, ")"),
    }
}

fn shown(row: &AnyRow) -> Result<Shown, StoreError> {
    Ok(Shown {
        environment: row.try_get("environment")?,
        name: row.try_get("name")?,
        body: row.try_get("body")?,
        note: row.try_get("note")?,
        updated_at: row.try_get("updated_at")?,
    })
}

pub(crate) fn parse_labels(text: &str) -> Result<Labels, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("labels: {error}")))
}

/// A pair as JSON writes it, somewhere in a text.
pub(crate) fn like(key: &str, value: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut pattern = String::from("%");
    for letter in format!("{}:{}", quoted(key), quoted(value)).chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}
