//! Names that belong together: targets and their workload, assignments and their workspace. What Git doesn't describe any more may
//! still be desired or run, after a rollback for example: the rollouts that moved it know its workload.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::Row as _;

use crate::statement::Statement;
use crate::{Store, StoreError};

impl Store {
    /// The workload of each target of an environment that is named, also of one that is gone.
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
        let missing: BTreeSet<&(String, String)> =
            targets.iter().filter(|target| !found.contains_key(*target)).collect();
        if missing.is_empty() {
            return Ok(found);
        }
        // `<workload>-<target>`: each beginning may be the workload's name.
        let whose: BTreeSet<String> = missing
            .iter()
            .flat_map(|(_, target)| target.match_indices('-').map(|(at, _)| target[..at].to_owned()))
            .collect();
        for (target, workload) in self.moved(&whose.into_iter().collect::<Vec<_>>(), None).await? {
            if missing.contains(&target) {
                found.insert(target, workload);
            }
        }
        Ok(found)
    }

    /// What rollouts moved of these workloads, each with the workload of its newest rollout.
    async fn moved(
        &self,
        workloads: &[String],
        environment: Option<&str>,
    ) -> Result<BTreeMap<(String, String), String>, StoreError> {
        let mut found: BTreeMap<(String, String), (i64, String)> = BTreeMap::new();
        for workloads in workloads.chunks(200) {
            let mut statement = Statement::new(
                "SELECT r.environment, i.assignment, i.workload, MAX(i.rollout) FROM rollout_items i \
                 JOIN rollouts r ON r.id = i.rollout WHERE i.workload IN (",
            );
            statement.list("", workloads, ")");
            if let Some(environment) = environment {
                statement.text(" AND r.environment = ?", environment);
            }
            statement.push(" GROUP BY r.environment, i.assignment, i.workload");
            for row in statement.fetch(self).await? {
                let newest: (i64, String) = (row.try_get(3)?, row.try_get(2)?);
                let known = found.entry((row.try_get(0)?, row.try_get(1)?)).or_default();
                if *known < newest {
                    *known = newest;
                }
            }
        }
        Ok(found.into_iter().map(|(target, (_, workload))| (target, workload)).collect())
    }

    /// Targets that a workload had and that Git doesn't describe any more, as (environment, name).
    pub async fn gone_targets_of(
        &self,
        workload: &str,
        environment: Option<&str>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let moved = self.moved(&[workload.to_owned()], environment).await?;
        let targets: Vec<(String, String)> = moved.into_keys().collect();
        // The newest rollout may have moved it for another workload, and the catalog knows best.
        let whose = self.workloads_of(&targets).await?;
        let described: BTreeSet<(String, String)> =
            self.described_targets(workload, environment).await?.into_iter().collect();
        let own = |target: &(String, String)| whose.get(target).is_some_and(|name| name == workload);
        Ok(targets.into_iter().filter(|target| own(target) && !described.contains(target)).collect())
    }

    /// The targets of a workload, as (environment, name), also those that are gone.
    pub async fn targets_of(
        &self,
        workload: &str,
        environment: Option<&str>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let mut targets = self.described_targets(workload, environment).await?;
        targets.extend(self.gone_targets_of(workload, environment).await?);
        Ok(targets)
    }

    async fn described_targets(
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
