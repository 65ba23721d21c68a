//! What a comparison of two sides asks for: assignments without their texts, composed values, and states of a time.

use std::collections::BTreeMap;

use kedge_model::wire::Timestamp;
use sqlx::Row as _;

use super::states::{StateSeen, state};
use crate::catalog::Visible;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// An assignment, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignmentLine {
    pub cluster_type: String,
    pub target: String,
    pub quarantined: bool,
    /// Names its values.
    pub content: String,
}

/// A deployment target and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetLine {
    pub name: String,
    pub workload: String,
}

/// Values of one statement.
const CHUNK: usize = 200;

impl Store {
    /// The assignments of an environment, or of a cluster type of it.
    pub async fn assignment_lines(
        &self,
        visible: &Visible,
        environment: &str,
        cluster_type: Option<&str>,
    ) -> Result<Vec<AssignmentLine>, StoreError> {
        let mut query =
            Statement::new("SELECT name, parent, state, note, content FROM catalog WHERE kind = 'assignment'");
        query.text(" AND environment = ?", environment);
        if let Some(cluster_type) = cluster_type {
            query.text(" AND parent = ?", cluster_type);
        }
        own(&mut query, visible);
        query.push(" ORDER BY name");
        let rows = query.fetch(self).await?;
        let line = |row: &sqlx::any::AnyRow| {
            let (name, cluster_type): (String, String) = (row.try_get("name")?, row.try_get("parent")?);
            let target = name.strip_prefix(&cluster_type).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&name);
            let (state, note): (String, String) = (row.try_get("state")?, row.try_get("note")?);
            Ok(AssignmentLine {
                target: target.to_owned(),
                cluster_type,
                quarantined: state == "quarantined" || !note.is_empty(),
                content: row.try_get("content")?,
            })
        };
        rows.iter().map(line).collect()
    }

    /// The deployment targets of an environment, or of all.
    pub async fn target_lines(
        &self,
        visible: &Visible,
        environment: Option<&str>,
    ) -> Result<Vec<TargetLine>, StoreError> {
        let mut query = Statement::new("SELECT DISTINCT name, parent FROM catalog WHERE kind = 'deployment-target'");
        if let Some(environment) = environment {
            query.text(" AND environment = ?", environment);
        }
        own(&mut query, visible);
        let rows = query.fetch(self).await?;
        rows.iter().map(|row| Ok(TargetLine { name: row.try_get(0)?, workload: row.try_get(1)? })).collect()
    }

    /// Composed values by their digests, as they are stored.
    pub async fn composed_values(
        &self,
        environment: &str,
        digests: &[String],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let mut found = BTreeMap::new();
        for chunk in digests.chunks(CHUNK) {
            let mut query = Statement::new("SELECT digest, body FROM catalog_values WHERE ");
            query.text("environment = ?", environment);
            query.list(" AND digest IN (", chunk, ")");
            for row in query.fetch(self).await? {
                found.insert(row.try_get(0)?, row.try_get(1)?);
            }
        }
        Ok(found)
    }

    /// The names of an environment's cluster types.
    pub async fn cluster_type_names(&self, environment: &str) -> Result<Vec<String>, StoreError> {
        let mut query = Statement::new("SELECT name FROM catalog WHERE kind = 'cluster-type'");
        query.text(" AND environment = ?", environment);
        query.fetch(self).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// The newest state of each stream at a time; without one, now.
    pub async fn states_at(
        &self,
        environment: &str,
        cluster_type: Option<&str>,
        at: Option<Timestamp>,
    ) -> Result<Vec<StateSeen>, StoreError> {
        let mut query = Statement::new(
            "SELECT s.environment, s.cluster_type, s.ring, s.generation, s.content, s.created_at, s.envelope \
             FROM states AS s JOIN (SELECT cluster_type, ring, MAX(generation) AS newest FROM states WHERE ",
        );
        query.text("environment = ?", environment);
        if let Some(cluster_type) = cluster_type {
            query.text(" AND cluster_type = ?", cluster_type);
        }
        if let Some(at) = at {
            query.number(" AND created_at <= ?", at.0);
        }
        query.push(
            " GROUP BY cluster_type, ring) AS n \
             ON s.cluster_type = n.cluster_type AND s.ring = n.ring AND s.generation = n.newest",
        );
        query.text(" WHERE s.environment = ?", environment);
        query.push(" ORDER BY s.cluster_type, s.ring");
        query.fetch(self).await?.iter().map(state).collect()
    }

    /// When an environment, or a cluster type of it, got its first state.
    pub async fn first_state(
        &self,
        environment: &str,
        cluster_type: Option<&str>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let mut query = Statement::new("SELECT MIN(created_at) FROM states WHERE ");
        query.text("environment = ?", environment);
        if let Some(cluster_type) = cluster_type {
            query.text(" AND cluster_type = ?", cluster_type);
        }
        let rows = query.fetch(self).await?;
        let first: Option<i64> = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
        Ok(first.map(Timestamp))
    }
}

fn own(query: &mut Statement, visible: &Visible) {
    if let Visible::Workspaces(workspaces) = visible {
        query.list(" AND workspace IN (", workspaces, ")");
    }
}
