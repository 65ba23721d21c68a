//! Desired states as people look at them: the newest of each stream, and any generation.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use kedge_model::wire::Stream;

use crate::catalog::Visible;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// One generation of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSeen {
    pub stream: Stream,
    pub generation: i64,
    pub content: String,
    pub created_at: i64,
    /// The signed envelope as JSON.
    pub envelope: Vec<u8>,
}

/// Which streams. Empty fields ask for nothing.
#[derive(Clone, Debug, Default)]
pub struct StateFilter {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    pub after: Option<i64>,
    pub from: Option<Stream>,
    pub limit: usize,
}

impl Store {
    /// The newest generation of each stream, in order.
    pub async fn newest_states(&self, visible: &Visible, filter: &StateFilter) -> Result<Vec<StateSeen>, StoreError> {
        let mut query = Statement::new(
            "SELECT s.environment, s.cluster_type, s.ring, s.generation, s.content, s.created_at, s.envelope FROM states AS s \
             JOIN (SELECT environment, cluster_type, ring, MAX(generation) AS newest FROM states WHERE 1 = 1",
        );
        let fields: [(&'static str, &Option<String>); 3] = [
            (" AND environment = ?", &filter.environment),
            (" AND cluster_type = ?", &filter.cluster_type),
            (" AND ring = ?", &filter.ring),
        ];
        for (part, value) in fields {
            if let Some(value) = value {
                query.text(part, value);
            }
        }
        if let Some(from) = &filter.from {
            query.text(" AND (environment, cluster_type, ring) > (?", &from.environment);
            query.text(", ?", &from.cluster_type);
            query.text(", ?)", &from.ring);
        }
        if let Visible::Workspaces(workspaces) = visible {
            query.list(
                " AND EXISTS (SELECT 1 FROM catalog AS own WHERE own.kind = 'assignment' \
                 AND own.environment = states.environment AND own.parent = states.cluster_type AND own.workspace IN (",
                workspaces,
                "))",
            );
        }
        query.push(" GROUP BY environment, cluster_type, ring ORDER BY environment, cluster_type, ring");
        query.number(" LIMIT ?", i64::try_from(filter.limit).unwrap_or(i64::MAX));
        query.push(
            ") AS n ON s.environment = n.environment AND s.cluster_type = n.cluster_type AND s.ring = n.ring \
             AND s.generation = n.newest",
        );
        if let Some(after) = filter.after {
            query.number(" WHERE s.tick > ?", after);
        }
        query.push(" ORDER BY s.environment, s.cluster_type, s.ring");
        query.fetch(self).await?.iter().map(state).collect()
    }

    /// One generation; without a number the newest.
    pub async fn state_of(&self, stream: &Stream, generation: Option<i64>) -> Result<Option<StateSeen>, StoreError> {
        let query = sqlx::query(
            "SELECT environment, cluster_type, ring, generation, content, created_at, envelope FROM states \
             WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND generation >= $4 AND generation <= $5 \
             ORDER BY generation DESC LIMIT 1",
        );
        let query = query.bind(&stream.environment).bind(&stream.cluster_type).bind(&stream.ring);
        let query = query.bind(generation.unwrap_or(0)).bind(generation.unwrap_or(i64::MAX));
        query.fetch_optional(self.pool()).await?.as_ref().map(state).transpose()
    }
}

pub(super) fn state(row: &AnyRow) -> Result<StateSeen, StoreError> {
    let (environment, cluster_type): (String, String) = (row.try_get("environment")?, row.try_get("cluster_type")?);
    Ok(StateSeen {
        stream: Stream { environment, cluster_type, ring: row.try_get("ring")? },
        generation: row.try_get("generation")?,
        content: row.try_get("content")?,
        created_at: row.try_get("created_at")?,
        envelope: row.try_get("envelope")?,
    })
}
