//! Warnings of agents in numbers, and a few of them with their words. Counts and one index: nothing looks at the fleet.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::conditions::own;
use crate::catalog::Visible;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// Clusters of a cluster type that warn of something, since the first of them does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarningSum {
    pub environment: String,
    /// A code that the hub knows, or `AgentWarning`.
    pub kind: String,
    /// `error` or `warning`
    pub severity: String,
    pub count: u64,
    pub first: Option<i64>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarningSeen {
    pub cluster: String,
    pub code: String,
    pub message: String,
}

impl Store {
    pub async fn warning_sums(&self, visible: &Visible) -> Result<Vec<WarningSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.kind, k.severity, CAST(SUM(k.count) AS BIGINT) AS number, \
             (SELECT MIN(w.since) FROM warnings AS w WHERE w.environment = k.environment AND w.kind = k.kind \
             AND w.cluster_type = k.cluster_type) AS first FROM warning_counts AS k WHERE k.count <> 0",
        );
        own(&mut statement, visible);
        statement.push(" GROUP BY k.environment, k.kind, k.severity, k.cluster_type");
        let sum = |row: &AnyRow| {
            Ok(WarningSum {
                environment: row.try_get("environment")?,
                kind: row.try_get("kind")?,
                severity: row.try_get("severity")?,
                count: u64::try_from(row.try_get::<i64, _>("number")?).unwrap_or_default(),
                first: row.try_get("first")?,
            })
        };
        let sums: Vec<WarningSum> = statement.fetch(self).await?.iter().map(sum).collect::<Result<_, StoreError>>()?;
        Ok(sums.into_iter().filter(|sum| sum.count > 0).collect())
    }

    /// The first few that warn of something in an environment.
    pub async fn warnings_of(
        &self,
        visible: &Visible,
        environment: &str,
        kind: &str,
        most: usize,
    ) -> Result<Vec<WarningSeen>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.name, w.code, w.message FROM warnings AS w JOIN clusters AS k ON k.id = w.cluster \
             WHERE k.state = 'active'",
        );
        statement.text(" AND w.environment = ?", environment);
        statement.text(" AND w.kind = ?", kind);
        own(&mut statement, visible);
        // In the order of the index: the first few rows are all that is read.
        statement
            .number(" ORDER BY w.cluster_type, w.since, w.cluster LIMIT ?", i64::try_from(most).unwrap_or(i64::MAX));
        let seen = |row: &AnyRow| {
            Ok(WarningSeen {
                cluster: row.try_get("name")?,
                code: row.try_get("code")?,
                message: row.try_get("message")?,
            })
        };
        statement.fetch(self).await?.iter().map(seen).collect()
    }

    /// How many clusters warn of it, everywhere or in an environment.
    pub async fn warned_count(&self, kind: &str, environment: Option<&str>) -> Result<i64, StoreError> {
        let mut statement =
            Statement::new("SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM warning_counts WHERE 1 = 1");
        statement.text(" AND kind = ?", kind);
        if let Some(environment) = environment {
            statement.text(" AND environment = ?", environment);
        }
        let rows = statement.fetch(self).await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
    }
}
