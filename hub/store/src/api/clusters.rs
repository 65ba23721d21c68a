//! Clusters as people look at them: pages in the order of an index, and one with everything.

use std::collections::BTreeMap;

use kedge_model::{Labels, Selector};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::catalog::{Visible, like, parse_labels};
use crate::statement::Statement;
use crate::{Store, StoreError};

/// Which clusters. Empty fields ask for nothing.
#[derive(Clone, Debug, Default)]
pub struct ClusterFilter {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    pub state: Option<String>,
    pub site: Option<String>,
    pub name_prefix: Option<String>,
    /// Some: whether it missed its check-in.
    pub silent: Option<bool>,
    /// A kind of warning, as it is counted.
    pub warning: Option<String>,
    pub labels: Selector,
    pub after: Option<i64>,
    pub from: Option<ClusterKey>,
    pub limit: usize,
}

/// The place of a cluster in a list: by stream within an environment, one environment after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ClusterKey {
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
    pub name: String,
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSeen {
    pub id: String,
    pub name: String,
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
    pub labels: Labels,
    pub site: Option<String>,
    pub facts: String,
    pub state: String,
    pub sequence: i64,
    pub joined_at: i64,
    pub token: String,
    pub certificate_until: i64,
    pub last_contact: i64,
    pub check_in_deadline: i64,
    pub unknown_since: Option<i64>,
    pub look_at: Option<i64>,
    pub generation: i64,
    pub cloned_since: Option<i64>,
    /// Who carried its last sign of life: a cluster's id, or `file`.
    pub via: Option<String>,
    pub relay: bool,
    pub readmitted_at: i64,
}

/// What a cluster last said that isn't as it should be, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssueCounts {
    pub converging: u64,
    pub failed: u64,
    pub drifted: u64,
}

/// Rows that are read at once while labels are compared.
const STRIDE: usize = 1000;
/// So many rows one request looks at; the page may end early then, and its cursor leads on.
const MAX_LOOKED_AT: usize = 50_000;
/// So many that are offline, or warn of something, are sorted for a page.
const FEW: i64 = 3000;

const SELECT: &str = "SELECT id, name, environment, cluster_type, ring, labels, site, facts, state, sequence, joined_at, \
     token, certificate_until, last_contact, promise_until, unknown_since, look_at, generation, cloned_since, \
     via, relay, readmitted_at FROM ";

impl ClusterSeen {
    pub fn key(&self) -> ClusterKey {
        ClusterKey {
            environment: self.environment.clone(),
            cluster_type: self.cluster_type.clone(),
            ring: self.ring.clone(),
            name: self.name.clone(),
            id: self.id.clone(),
        }
    }
}

impl Store {
    /// A page, and where the next one begins: one environment after the other, as a commit reaches them (`chain`); those that
    /// the chain doesn't name come last, by name. Changes (`after`) come in the same order, and all at once.
    pub async fn clusters_page(
        &self,
        visible: &Visible,
        filter: &ClusterFilter,
        chain: &[String],
    ) -> Result<(Vec<ClusterSeen>, Option<ClusterKey>), StoreError> {
        let place = |name: &str| (chain.iter().position(|known| known == name).unwrap_or(chain.len()), name.to_owned());
        let (mut found, mut looked_at) = (Vec::new(), 0);
        if filter.after.is_some() {
            // Changes are few, wherever they are: the index of changes finds them, and it knows no environments.
            let next = self.add_clusters(visible, filter, &mut found, &mut looked_at).await?;
            found.sort_by_cached_key(|one: &ClusterSeen| (place(&one.environment), one.key()));
            return Ok((found, next));
        }
        let mut environments = match &filter.environment {
            Some(environment) => vec![environment.clone()],
            None => self.environments_of_clusters().await?,
        };
        environments.sort_by_cached_key(|name| place(name));
        let begun = filter.from.as_ref().map(|from| place(&from.environment));
        environments.retain(|name| begun.as_ref().is_none_or(|begun| place(name) >= *begun));
        for environment in environments {
            let from = filter.from.clone().filter(|from| from.environment == environment);
            let filter = ClusterFilter { environment: Some(environment), from, ..filter.clone() };
            let next = self.add_clusters(visible, &filter, &mut found, &mut looked_at).await?;
            if next.is_some() {
                return Ok((found, next));
            }
        }
        Ok((found, None))
    }

    /// Everywhere where clusters are, or were: an environment that nobody is in any more shows those that were retired.
    async fn environments_of_clusters(&self) -> Result<Vec<String>, StoreError> {
        self.environments_along(Statement::new(
            "WITH RECURSIVE found (environment) AS (SELECT MIN(environment) FROM clusters UNION ALL \
             SELECT (SELECT MIN(k.environment) FROM clusters AS k WHERE k.environment > found.environment) FROM found \
             WHERE found.environment IS NOT NULL) SELECT environment FROM found WHERE environment IS NOT NULL",
        ))
        .await
    }

    /// Everywhere where something is desired.
    pub async fn environments_of_states(&self) -> Result<Vec<String>, StoreError> {
        self.environments_along(Statement::new(
            "WITH RECURSIVE found (environment) AS (SELECT MIN(environment) FROM states UNION ALL \
             SELECT (SELECT MIN(s.environment) FROM states AS s WHERE s.environment > found.environment) FROM found \
             WHERE found.environment IS NOT NULL) SELECT environment FROM found WHERE environment IS NOT NULL",
        ))
        .await
    }

    /// From one to the next along an index: as many steps as there are environments, however many rows each has.
    async fn environments_along(&self, steps: Statement) -> Result<Vec<String>, StoreError> {
        steps.fetch(self).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Adds those of the filter's environment to a page. Where the next page begins, when this one is full.
    async fn add_clusters(
        &self,
        visible: &Visible,
        filter: &ClusterFilter,
        found: &mut Vec<ClusterSeen>,
        looked_at: &mut usize,
    ) -> Result<Option<ClusterKey>, StoreError> {
        let mut from = filter.from.clone();
        let everything = filter.labels.is_everything();
        let few = self.are_few(filter).await?;
        let stride = if everything { filter.limit + 1 } else { STRIDE.max(filter.limit + 1) };
        loop {
            let rows = self.clusters_stride(visible, filter, few, from.as_ref(), stride).await?;
            *looked_at += rows.len();
            let ended = rows.len() < stride;
            for row in &rows {
                let cluster = cluster(row)?;
                let key = cluster.key();
                if everything || filter.labels.matches(&cluster.labels) {
                    if found.len() == filter.limit {
                        return Ok(found.last().map(ClusterSeen::key));
                    }
                    found.push(cluster);
                }
                from = Some(key);
            }
            if ended {
                return Ok(None);
            }
            if *looked_at >= MAX_LOOKED_AT {
                return Ok(from);
            }
        }
    }

    /// Whether so few members are wanted that a page of them is sorted rather than looked for along all clusters.
    async fn are_few(&self, filter: &ClusterFilter) -> Result<bool, StoreError> {
        if let (Some(kind), None) = (&filter.warning, filter.after) {
            return Ok(self.warned_count(kind, filter.environment.as_deref()).await? <= FEW);
        }
        if filter.silent != Some(true) || filter.state.as_deref() != Some("active") || filter.after.is_some() {
            return Ok(false);
        }
        let mut query =
            Statement::new("SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM population WHERE presence = 'Unknown'");
        if let Some(environment) = &filter.environment {
            query.text(" AND environment = ?", environment);
        }
        let rows = query.fetch(self).await?;
        let silent: i64 = rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default();
        Ok(silent <= FEW)
    }

    async fn clusters_stride(
        &self,
        visible: &Visible,
        filter: &ClusterFilter,
        few: bool,
        from: Option<&ClusterKey>,
        stride: usize,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let mut query = Statement::new(SELECT);
        if let Some(after) = filter.after {
            // From the few changes to their clusters, in the order of their index, so that it is taken.
            query.number("(SELECT c.id AS hit FROM clusters AS c WHERE c.tick > ? ORDER BY c.tick", after);
            query.number(" LIMIT ?) AS changed CROSS JOIN clusters WHERE id = hit", i64::MAX);
        } else if let (Some(kind), true) = (&filter.warning, few) {
            query.text("(SELECT DISTINCT w.cluster AS hit FROM warnings AS w WHERE w.kind = ?", kind);
            if let Some(environment) = &filter.environment {
                query.text(" AND w.environment = ?", environment);
            }
            query.push(") AS warned CROSS JOIN clusters WHERE id = hit");
        } else if few {
            query.push(
                "(SELECT k.id AS hit FROM clusters AS k WHERE k.unknown_since IS NOT NULL AND k.state = 'active'",
            );
            if let Some(environment) = &filter.environment {
                query.text(" AND k.environment = ?", environment);
            }
            // In the order of the index of the silent, so that it is taken; and SQLite takes a cross join as it is written.
            query.number(
                " ORDER BY k.environment, k.cluster_type, k.ring, k.unknown_since LIMIT ?) AS silent \
                 CROSS JOIN clusters WHERE id = hit",
                i64::MAX,
            );
        } else {
            query.push("clusters WHERE 1 = 1");
        }
        narrow(&mut query, visible, filter);
        for (key, value) in &filter.labels.match_labels {
            // Only a first sieve: the labels themselves are compared afterwards.
            query.text(" AND labels LIKE ? ESCAPE '\\'", &like(key, value));
        }
        if filter.environment.is_some() {
            if let Some(from) = from {
                query.text(" AND (cluster_type, ring, name, id) > (?", &from.cluster_type);
                query.text(", ?", &from.ring);
                query.text(", ?", &from.name);
                query.text(", ?)", &from.id);
            }
            query.push(" ORDER BY cluster_type, ring, name, id");
        } else {
            if let Some(from) = from {
                query.text(" AND (name, id) > (?", &from.name);
                query.text(", ?)", &from.id);
            }
            query.push(" ORDER BY name, id");
        }
        query.number(" LIMIT ?", i64::try_from(stride).unwrap_or(i64::MAX));
        query.fetch(self).await
    }

    /// What isn't as it should be on these clusters; one that has never reported is missing.
    pub async fn issue_counts(
        &self,
        visible: &Visible,
        clusters: &[String],
    ) -> Result<BTreeMap<String, IssueCounts>, StoreError> {
        let mut query = Statement::new("SELECT cluster FROM documents WHERE cluster IN (");
        query.list("", clusters, ")");
        let mut issues = BTreeMap::new();
        for row in query.fetch(self).await? {
            issues.insert(row.try_get("cluster")?, IssueCounts::default());
        }
        let mut query = Statement::new(
            "SELECT c.cluster, c.condition, CAST(COUNT(*) AS BIGINT) AS number, \
             CAST(SUM(CASE WHEN c.drift IS NULL THEN 0 ELSE 1 END) AS BIGINT) AS drifted \
             FROM conditions AS c JOIN clusters AS k ON k.id = c.cluster WHERE c.cluster IN (",
        );
        query.list("", clusters, ")");
        if let Visible::Workspaces(workspaces) = visible {
            query.list(
                " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
                 AND own.environment = k.environment AND own.name = k.cluster_type || '/' || c.assignment \
                 AND own.workspace IN (",
                workspaces,
                "))",
            );
        }
        query.push(" GROUP BY c.cluster, c.condition");
        for row in query.fetch(self).await? {
            let (cluster, condition): (String, String) = (row.try_get("cluster")?, row.try_get("condition")?);
            let found = issues.entry(cluster).or_default();
            let count =
                |name: &str| Ok::<_, StoreError>(u64::try_from(row.try_get::<i64, _>(name)?).unwrap_or_default());
            match condition.as_str() {
                "Failed" => found.failed += count("number")?,
                "Converging" => found.converging += count("number")?,
                _ => {}
            }
            found.drifted += count("drifted")?;
        }
        Ok(issues)
    }

    /// What these clusters are called; those that the caller doesn't see are missing.
    pub async fn cluster_names(
        &self,
        visible: &Visible,
        ids: &[String],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut query = Statement::new("SELECT id, name FROM clusters WHERE id IN (");
        query.list("", ids, ")");
        narrow(&mut query, visible, &ClusterFilter::default());
        let rows = query.fetch_once(self).await?;
        rows.iter().map(|row| Ok((row.try_get("id")?, row.try_get("name")?))).collect()
    }

    /// Clusters with this id, or with this name: names aren't unique.
    pub async fn clusters_named(&self, visible: &Visible, name: &str) -> Result<Vec<ClusterSeen>, StoreError> {
        for part in ["id = ?", "name = ?"] {
            let mut query = Statement::new(SELECT);
            query.push("clusters WHERE ");
            query.text(part, name);
            narrow(&mut query, visible, &ClusterFilter::default());
            query.push(" ORDER BY state, id LIMIT 20");
            let rows = query.fetch(self).await?;
            if !rows.is_empty() {
                return rows.iter().map(cluster).collect();
            }
        }
        Ok(Vec::new())
    }
}

fn narrow(query: &mut Statement, visible: &Visible, filter: &ClusterFilter) {
    let fields: [(&'static str, &Option<String>); 5] = [
        (" AND environment = ?", &filter.environment),
        (" AND cluster_type = ?", &filter.cluster_type),
        (" AND ring = ?", &filter.ring),
        (" AND state = ?", &filter.state),
        (" AND site = ?", &filter.site),
    ];
    for (part, value) in fields {
        if let Some(value) = value {
            query.text(part, value);
        }
    }
    if let Some(prefix) = &filter.name_prefix {
        query.text(" AND substr(name, 1, length(?)) = ?", prefix);
    }
    match filter.silent {
        Some(true) => query.push(" AND unknown_since IS NOT NULL"),
        Some(false) => query.push(" AND unknown_since IS NULL"),
        None => {}
    }
    if let Some(kind) = &filter.warning {
        query.text(" AND EXISTS (SELECT 1 FROM warnings AS w WHERE w.cluster = clusters.id AND w.kind = ?)", kind);
    }
    if let Some(after) = filter.after {
        query.number(" AND tick > ?", after);
    }
    if let Visible::Workspaces(workspaces) = visible {
        query.list(
            " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
             AND own.environment = clusters.environment AND own.parent = clusters.cluster_type AND own.workspace IN (",
            workspaces,
            "))",
        );
    }
}

fn cluster(row: &AnyRow) -> Result<ClusterSeen, StoreError> {
    Ok(ClusterSeen {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        environment: row.try_get("environment")?,
        cluster_type: row.try_get("cluster_type")?,
        ring: row.try_get("ring")?,
        labels: parse_labels(&row.try_get::<String, _>("labels")?)?,
        site: row.try_get("site")?,
        facts: row.try_get("facts")?,
        state: row.try_get("state")?,
        sequence: row.try_get("sequence")?,
        joined_at: row.try_get("joined_at")?,
        token: row.try_get("token")?,
        certificate_until: row.try_get("certificate_until")?,
        last_contact: row.try_get("last_contact")?,
        check_in_deadline: row.try_get("promise_until")?,
        unknown_since: row.try_get("unknown_since")?,
        look_at: row.try_get("look_at")?,
        generation: row.try_get("generation")?,
        cloned_since: row.try_get("cloned_since")?,
        via: row.try_get("via")?,
        relay: row.try_get::<i64, _>("relay")? != 0,
        readmitted_at: row.try_get("readmitted_at")?,
    })
}
