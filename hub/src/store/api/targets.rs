//! Names that belong together: targets and their workload, assignments and their workspace.

use std::collections::BTreeMap;

use sqlx::Row as _;

use crate::store::statement::Statement;
use crate::store::{Store, StoreError};

impl Store {
    /// The workload of each target of an environment that is named.
    pub async fn workloads_of(
        &self,
        targets: &[(String, String)],
    ) -> Result<BTreeMap<(String, String), String>, StoreError> {
        let mut environments: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (environment, target) in targets {
            environments.entry(environment).or_default().push(target.clone());
        }
        let mut found = BTreeMap::new();
        for (environment, names) in environments {
            for names in names.chunks(200) {
                let mut statement = Statement::new("SELECT name, parent FROM catalog WHERE kind = 'deployment-target'");
                statement.text(" AND environment = ?", environment);
                statement.list(" AND name IN (", names, ")");
                for row in statement.fetch(self).await? {
                    found.insert((environment.to_owned(), row.try_get(0)?), row.try_get(1)?);
                }
            }
        }
        Ok(found)
    }

    /// The targets of a workload, as (environment, name).
    pub async fn targets_of(
        &self,
        workload: &str,
        environment: Option<&str>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut statement =
            Statement::new("SELECT t.environment, t.name FROM catalog t WHERE t.kind = 'deployment-target'");
        statement.text(" AND t.parent = ?", workload);
        // The index begins with the environment: each is asked apart.
        match environment {
            Some(environment) => statement.text(" AND t.environment = ?", environment),
            None => statement
                .push(" AND t.environment IN (SELECT e.environment FROM catalog e WHERE e.kind = 'environment')"),
        }
        let rows = statement.fetch(self).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Assignments of workspaces, as (environment, `<cluster type>/<target>`).
    pub async fn own_assignments(&self, workspaces: &[String]) -> Result<Vec<(String, String)>, StoreError> {
        let mut statement = Statement::new("SELECT environment, name FROM catalog WHERE kind = 'assignment'");
        statement.list(" AND workspace IN (", workspaces, ")");
        let rows = statement.fetch(self).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }
}
