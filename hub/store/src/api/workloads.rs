//! Workloads by name, whichever environments describe them.

use sqlx::Row as _;

use crate::catalog::Visible;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// Which workloads.
#[derive(Clone, Debug, Default)]
pub struct WorkloadFilter {
    pub environment: Option<String>,
    pub workspace: Option<String>,
    pub name_prefix: Option<String>,
    /// Behind this name.
    pub after: Option<String>,
    pub limit: usize,
}

impl Store {
    /// Names in their order, each once.
    pub async fn workload_names(&self, visible: &Visible, filter: &WorkloadFilter) -> Result<Vec<String>, StoreError> {
        let mut query = Statement::new("SELECT DISTINCT name FROM catalog WHERE kind = 'workload'");
        if let Some(environment) = &filter.environment {
            query.text(" AND environment = ?", environment);
        }
        if let Some(workspace) = &filter.workspace {
            query.text(" AND workspace = ?", workspace);
        }
        if let Some(prefix) = &filter.name_prefix {
            query.text(" AND substr(name, 1, length(?)) = ?", prefix);
        }
        if let Some(after) = &filter.after {
            query.text(" AND name > ?", after);
        }
        if let Visible::Workspaces(workspaces) = visible {
            query.list(" AND workspace IN (", workspaces, ")");
        }
        query.number(" ORDER BY name LIMIT ?", i64::try_from(filter.limit).unwrap_or(i64::MAX));
        query.fetch(self).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// The rows of these workloads in all environments, as (environment, body).
    pub async fn workloads_named(
        &self,
        visible: &Visible,
        names: &[String],
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut query = Statement::new("SELECT environment, body FROM catalog WHERE kind = 'workload'");
        query.list(" AND name IN (", names, ")");
        if let Visible::Workspaces(workspaces) = visible {
            query.list(" AND workspace IN (", workspaces, ")");
        }
        let rows = query.fetch(self).await?;
        rows.iter().map(|row| Ok((row.try_get("environment")?, row.try_get("body")?))).collect()
    }
}
