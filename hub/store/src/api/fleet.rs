//! The fleet at a glance: sums of counts that are kept as things happen. None of it looks at single clusters, except for the
//! silent ones, which have an index of their own.

use std::collections::BTreeMap;

use kedge_hub_types::status::tally::{Presence, Word};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::catalog::Visible;
use crate::statement::Statement;
use crate::status::corrupt;
use crate::{Store, StoreError};

/// What the glance is about. Empty fields ask for nothing.
#[derive(Clone, Debug, Default)]
pub struct FleetFilter {
    pub environment: Option<String>,
    pub workload: Option<String>,
    /// With a workload: targets that it had and that Git doesn't describe any more, by environment.
    pub gone: BTreeMap<String, Vec<String>>,
}

/// So many of something in a ring of a cluster type of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeSum<T> {
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
    pub what: T,
    pub count: u64,
}

/// So many of something in an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentSum {
    pub environment: String,
    pub what: String,
    pub count: u64,
}

impl Store {
    /// Assignments on clusters by condition.
    pub async fn condition_sums(
        &self,
        visible: &Visible,
        filter: &FleetFilter,
    ) -> Result<Vec<TypeSum<Word>>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, k.ring, k.condition, CAST(SUM(k.count) AS BIGINT) AS number FROM counts AS k \
             WHERE k.count <> 0",
        );
        environment(&mut statement, filter);
        if let Visible::Workspaces(workspaces) = visible {
            statement.list(
                " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
                 AND own.environment = k.environment AND own.name = k.cluster_type || '/' || k.assignment \
                 AND own.workspace IN (",
                workspaces,
                "))",
            );
        }
        if let Some(workload) = &filter.workload {
            statement.text(
                " AND (EXISTS (SELECT 1 FROM catalog AS t WHERE t.kind = 'deployment-target' \
                 AND t.environment = k.environment AND t.name = k.assignment AND t.parent = ?)",
                workload,
            );
            for (environment, targets) in &filter.gone {
                statement.text(" OR (k.environment = ?", environment);
                statement.list(" AND k.assignment IN (", targets, "))");
            }
            statement.push(")");
        }
        statement.push(" GROUP BY k.environment, k.cluster_type, k.ring, k.condition");
        let sum = |row: &AnyRow| {
            let word: String = row.try_get("condition")?;
            type_sum(row, Word::from_text(&word).ok_or_else(|| corrupt(word))?)
        };
        statement.fetch(self).await?.iter().map(sum).collect()
    }

    /// Members by presence.
    pub async fn presence_sums(
        &self,
        visible: &Visible,
        filter: &FleetFilter,
    ) -> Result<Vec<TypeSum<Presence>>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, k.ring, k.presence, CAST(SUM(k.count) AS BIGINT) AS number \
             FROM population AS k WHERE k.count <> 0",
        );
        environment(&mut statement, filter);
        super::conditions::own(&mut statement, visible);
        if let Some(workload) = &filter.workload {
            statement.text(
                " AND (EXISTS (SELECT 1 FROM catalog AS t JOIN catalog AS a ON a.kind = 'assignment' \
                 AND a.environment = t.environment AND a.name = k.cluster_type || '/' || t.name \
                 WHERE t.kind = 'deployment-target' AND t.environment = k.environment AND t.parent = ?)",
                workload,
            );
            for (environment, targets) in &filter.gone {
                statement.text(" OR (k.environment = ?", environment);
                statement.list(
                    " AND EXISTS (SELECT 1 FROM counts AS c WHERE c.environment = k.environment \
                     AND c.cluster_type = k.cluster_type AND c.count <> 0 AND c.assignment IN (",
                    targets,
                    ")))",
                );
            }
            statement.push(")");
        }
        statement.push(" GROUP BY k.environment, k.cluster_type, k.ring, k.presence");
        let sum = |row: &AnyRow| {
            let word: String = row.try_get("presence")?;
            type_sum(row, Presence::from_text(&word).ok_or_else(|| corrupt(word))?)
        };
        statement.fetch(self).await?.iter().map(sum).collect()
    }

    /// Since when the member of each cluster type that is silent the longest is.
    pub async fn silent_since(&self, filter: &FleetFilter) -> Result<Vec<(String, String, i64)>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, MIN(k.unknown_since) AS since FROM clusters AS k \
             WHERE k.unknown_since IS NOT NULL AND k.state = 'active'",
        );
        environment(&mut statement, filter);
        statement.push(" GROUP BY k.environment, k.cluster_type");
        let rows = statement.fetch(self).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
    }

    /// Assignments that can't be rendered or packed.
    pub async fn quarantine_sums(
        &self,
        visible: &Visible,
        filter: &FleetFilter,
    ) -> Result<Vec<EnvironmentSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, 'quarantined' AS what, COUNT(*) AS number FROM catalog AS k \
             WHERE kind = 'assignment' AND (state = 'quarantined' OR note <> '')",
        );
        environment(&mut statement, filter);
        workspaces(&mut statement, visible);
        if let Some(workload) = &filter.workload {
            statement.text(
                " AND EXISTS (SELECT 1 FROM catalog AS t WHERE t.kind = 'deployment-target' \
                 AND t.environment = k.environment AND k.name = k.parent || '/' || t.name AND t.parent = ?)",
                workload,
            );
        }
        statement.push(" GROUP BY k.environment");
        statement.fetch(self).await?.iter().map(environment_sum).collect()
    }

    /// Problems by severity.
    pub async fn problem_sums(
        &self,
        visible: &Visible,
        filter: &FleetFilter,
    ) -> Result<Vec<EnvironmentSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.state AS what, COUNT(*) AS number FROM catalog AS k WHERE k.kind = 'problem'",
        );
        environment(&mut statement, filter);
        workspaces(&mut statement, visible);
        statement.push(" GROUP BY k.environment, k.state");
        statement.fetch(self).await?.iter().map(environment_sum).collect()
    }

    /// Rollouts that haven't ended, by state.
    pub async fn rollout_sums(
        &self,
        visible: &Visible,
        filter: &FleetFilter,
    ) -> Result<Vec<EnvironmentSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.state AS what, COUNT(*) AS number FROM rollouts AS k \
             WHERE state IN ('Active', 'Paused', 'Stopped')",
        );
        environment(&mut statement, filter);
        if let Visible::Workspaces(workspaces) = visible {
            statement.list(
                " AND EXISTS (SELECT 1 FROM rollout_items AS i JOIN catalog AS own ON own.kind = 'assignment' \
                 AND own.environment = k.environment AND own.name = i.cluster_type || '/' || i.assignment \
                 WHERE i.rollout = k.id AND own.workspace IN (",
                workspaces,
                "))",
            );
        }
        if let Some(workload) = &filter.workload {
            statement.text(
                " AND EXISTS (SELECT 1 FROM rollout_items AS w WHERE w.rollout = k.id AND w.workload = ?)",
                workload,
            );
        }
        statement.push(" GROUP BY k.environment, k.state");
        statement.fetch(self).await?.iter().map(environment_sum).collect()
    }

    /// Lanes in which newer content waits.
    pub async fn waiting_sums(&self) -> Result<Vec<EnvironmentSum>, StoreError> {
        let statement = Statement::new(
            "SELECT environment, 'waiting' AS what, COUNT(*) AS number FROM rollout_waiting GROUP BY environment",
        );
        statement.fetch(self).await?.iter().map(environment_sum).collect()
    }
}

fn environment(statement: &mut Statement, filter: &FleetFilter) {
    if let Some(environment) = &filter.environment {
        statement.text(" AND k.environment = ?", environment);
    }
}

fn workspaces(statement: &mut Statement, visible: &Visible) {
    if let Visible::Workspaces(workspaces) = visible {
        statement.list(" AND k.workspace IN (", workspaces, ")");
    }
}

fn type_sum<T>(row: &AnyRow, what: T) -> Result<TypeSum<T>, StoreError> {
    Ok(TypeSum {
        environment: row.try_get("environment")?,
        cluster_type: row.try_get("cluster_type")?,
        ring: row.try_get("ring")?,
        what,
        count: count(row)?,
    })
}

fn environment_sum(row: &AnyRow) -> Result<EnvironmentSum, StoreError> {
    Ok(EnvironmentSum { environment: row.try_get("environment")?, what: row.try_get("what")?, count: count(row)? })
}

fn count(row: &AnyRow) -> Result<u64, StoreError> {
    // A count that another hub is just changing may be below nothing for a moment.
    Ok(u64::try_from(row.try_get::<i64, _>("number")?).unwrap_or_default())
}
