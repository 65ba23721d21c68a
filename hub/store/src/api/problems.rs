//! What needs somebody, in numbers: findings by code, failures by assignment, clusters that are cloned or whose certificate
//! isn't renewed, holds, stale objects, rollouts that came to nothing. Counts and partial indexes: nothing looks at the fleet.

use kedge_model::wire::Timestamp;
use kedge_rollout::RolloutId;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::conditions::own;
use crate::agents::holds::{HoldWriter, in_force};
use crate::catalog::Visible;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// Findings of one code in one environment, with a few of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingSum {
    pub environment: String,
    /// `error` or `warning`
    pub severity: String,
    pub count: u64,
    pub since: i64,
    /// Bodies of the first few.
    pub bodies: Vec<String>,
}

/// Clusters on which an assignment Failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedSum {
    pub environment: String,
    pub cluster_type: String,
    pub assignment: String,
    pub count: u64,
}

/// Clusters of a cluster type that have something in common, since the first of them has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSum {
    pub environment: String,
    pub cluster_type: String,
    pub count: u64,
    pub first: i64,
}

/// A hold on an active cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub environment: String,
    pub cluster_type: String,
    pub cluster: String,
    /// The cluster's id.
    pub id: String,
    pub writer: HoldWriter,
    pub assignment: String,
    pub by: String,
    pub reason: String,
    pub since: Timestamp,
}

/// Findings of a code that are told with their words.
const TOLD: i64 = 3;
/// Hold documents that are looked at, the newest first.
const MAX_HOLDS: i64 = 2000;

impl Store {
    pub async fn finding_sums(&self, visible: &Visible) -> Result<Vec<FindingSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT f.environment, f.state, f.labels, f.number, f.since, p.body FROM (\
             SELECT environment, name, state, labels, \
             COUNT(*) OVER (PARTITION BY environment, state, labels) AS number, \
             MIN(updated_at) OVER (PARTITION BY environment, state, labels) AS since, \
             ROW_NUMBER() OVER (PARTITION BY environment, state, labels ORDER BY name) AS place \
             FROM catalog WHERE kind = 'problem'",
        );
        if let Visible::Workspaces(workspaces) = visible {
            statement.list(" AND workspace IN (", workspaces, ")");
        }
        statement.number(
            ") AS f JOIN catalog AS p ON p.kind = 'problem' AND p.environment = f.environment AND p.name = f.name \
             WHERE f.place <= ? ORDER BY f.environment, f.state, f.labels, f.place",
            TOLD,
        );
        let mut sums: Vec<FindingSum> = Vec::new();
        let mut key = (String::new(), String::new(), String::new());
        for row in statement.fetch(self).await? {
            let of: (String, String, String) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            if sums.is_empty() || key != of {
                sums.push(FindingSum {
                    environment: of.0.clone(),
                    severity: of.1.clone(),
                    count: number(&row, "number")?,
                    since: row.try_get("since")?,
                    bodies: Vec::new(),
                });
                key = of;
            }
            if let Some(sum) = sums.last_mut() {
                sum.bodies.push(row.try_get("body")?);
            }
        }
        Ok(sums)
    }

    pub async fn failed_sums(&self, visible: &Visible) -> Result<Vec<FailedSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, k.assignment, CAST(SUM(k.count) AS BIGINT) AS number FROM counts AS k \
             WHERE k.condition = 'Failed' AND k.count <> 0",
        );
        if let Visible::Workspaces(workspaces) = visible {
            statement.list(
                " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
                 AND own.environment = k.environment AND own.name = k.cluster_type || '/' || k.assignment \
                 AND own.workspace IN (",
                workspaces,
                "))",
            );
        }
        statement.push(" GROUP BY k.environment, k.cluster_type, k.assignment");
        let sum = |row: &AnyRow| {
            Ok(FailedSum {
                environment: row.try_get(0)?,
                cluster_type: row.try_get(1)?,
                assignment: row.try_get(2)?,
                count: number(row, "number")?,
            })
        };
        let sums: Vec<FailedSum> = statement.fetch(self).await?.iter().map(sum).collect::<Result<_, StoreError>>()?;
        Ok(sums.into_iter().filter(|sum| sum.count > 0).collect())
    }

    /// Clusters whose identity two hosts use.
    pub async fn cloned_sums(&self, visible: &Visible) -> Result<Vec<ClusterSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, COUNT(*) AS number, MIN(k.cloned_since) AS first FROM clusters AS k \
             WHERE k.cloned_since IS NOT NULL AND k.state = 'active'",
        );
        own(&mut statement, visible);
        statement.push(" GROUP BY k.environment, k.cluster_type");
        statement.fetch(self).await?.iter().map(cluster_sum).collect()
    }

    /// Clusters in contact whose certificate ends before this and wasn't renewed.
    pub async fn certificate_sums(&self, visible: &Visible, before: i64) -> Result<Vec<ClusterSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, COUNT(*) AS number, MIN(k.certificate_until) AS first \
             FROM clusters AS k WHERE k.state = 'active' AND k.unknown_since IS NULL",
        );
        statement.number(" AND k.certificate_until < ?", before);
        own(&mut statement, visible);
        statement.push(" GROUP BY k.environment, k.cluster_type");
        statement.fetch(self).await?.iter().map(cluster_sum).collect()
    }

    /// Cluster types and workloads of each environment whose file can't be read any more.
    pub async fn stale_sums(&self, visible: &Visible) -> Result<Vec<(String, u64)>, StoreError> {
        let mut statement = Statement::new(
            "SELECT environment, COUNT(*) AS number FROM catalog \
             WHERE state = 'stale' AND kind IN ('cluster-type', 'workload')",
        );
        if let Visible::Workspaces(workspaces) = visible {
            statement.list(" AND workspace IN (", workspaces, ")");
        }
        statement.push(" GROUP BY environment");
        statement.fetch(self).await?.iter().map(|row| Ok((row.try_get(0)?, number(row, "number")?))).collect()
    }

    /// What people hold on active clusters.
    /// Of these clusters, or of all.
    pub async fn held(&self, visible: &Visible, clusters: Option<&[String]>) -> Result<Vec<Held>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, k.name, k.id, h.writer, h.envelope, h.received_at, \
             (SELECT a.name FROM clusters AS a WHERE a.id = CASE h.writer WHEN 'cluster' THEN h.cluster ELSE h.writer END) AS author \
             FROM holds AS h JOIN clusters AS k ON k.id = h.cluster WHERE k.state = 'active'",
        );
        own(&mut statement, visible);
        if let Some(clusters) = clusters {
            statement.list(" AND k.id IN (", clusters, ")");
        }
        // The hub's document stands first: it lifts what others hold.
        statement.push(" ORDER BY k.id, CASE h.writer WHEN 'hub' THEN 0 ELSE 1 END, h.writer");
        statement.number(" LIMIT ?", MAX_HOLDS);
        let rows = statement.fetch(self).await?;
        let id = |row: &AnyRow| row.try_get::<String, _>("id").unwrap_or_default();
        let mut held = Vec::new();
        for of_cluster in rows.chunk_by(|one, other| id(one) == id(other)) {
            let Some(row) = of_cluster.first() else { continue };
            let documents = in_force(of_cluster)?.into_iter();
            let entries =
                documents.flat_map(|(writer, document)| document.holds.into_iter().map(move |one| (writer, one)));
            for (writer, entry) in entries {
                held.push(Held {
                    environment: row.try_get(0)?,
                    cluster_type: row.try_get(1)?,
                    cluster: row.try_get(2)?,
                    id: id(row),
                    writer,
                    assignment: entry.assignment,
                    by: entry.by,
                    reason: entry.reason,
                    since: entry.since,
                });
            }
        }
        held.sort_by_key(|hold| std::cmp::Reverse(hold.since));
        Ok(held)
    }

    /// Rollouts that were rolled back or aborted, and whose content Git still asks for.
    pub async fn halted_rollouts(&self) -> Result<Vec<RolloutId>, StoreError> {
        let statement = Statement::new(
            "SELECT r.id FROM rollouts AS r WHERE r.state IN ('RolledBack', 'Aborted') AND EXISTS (SELECT 1 FROM rollout_blocked AS b \
             WHERE b.rollout = r.id) ORDER BY r.id",
        );
        let id = |row: &AnyRow| Ok(RolloutId(u64::try_from(row.try_get::<i64, _>(0)?).unwrap_or_default()));
        statement.fetch(self).await?.iter().map(id).collect()
    }
}

fn cluster_sum(row: &AnyRow) -> Result<ClusterSum, StoreError> {
    Ok(ClusterSum {
        environment: row.try_get(0)?,
        cluster_type: row.try_get(1)?,
        count: number(row, "number")?,
        first: row.try_get("first")?,
    })
}

fn number(row: &AnyRow, column: &str) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or_default())
}
