//! Desired against reality: counts of what runs, by ring, and the few reports that tell of drift.

use kedge_hub_types::status::tally::Word;
use kedge_model::wire::Stream;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::conditions::{MemberFilter, own, scope};
use crate::catalog::Visible;
use crate::statement::Statement;
use crate::status::{corrupt, stream_of};
use crate::{Store, StoreError};

/// So many clusters of a stream run the same of an assignment, in the same condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningSum {
    pub stream: Stream,
    pub assignment: String,
    /// Empty: nothing.
    pub running: String,
    pub condition: Word,
    pub count: u64,
}

impl Store {
    pub async fn running_sums(&self, visible: &Visible, filter: &MemberFilter) -> Result<Vec<RunningSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, k.ring, k.assignment, k.running, k.condition, \
             CAST(SUM(k.count) AS BIGINT) AS number FROM counts AS k WHERE k.count <> 0",
        );
        scope(&mut statement, filter);
        own(&mut statement, visible);
        if let Some(names) = &filter.assignments {
            statement.list(" AND k.assignment IN (", names, ")");
        }
        statement.push(" GROUP BY k.environment, k.cluster_type, k.ring, k.assignment, k.running, k.condition");
        statement.fetch(self).await?.iter().map(sum).collect()
    }

    /// Members in contact whose report tells of drift. From the few reports to their clusters: SQLite takes a cross join in
    /// the order in which it is written.
    pub async fn drift_sums(&self, visible: &Visible, filter: &MemberFilter) -> Result<Vec<RunningSum>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.environment, k.cluster_type, k.ring, c.assignment, c.running, c.condition, COUNT(*) AS number \
             FROM conditions c CROSS JOIN clusters k WHERE k.id = c.cluster AND c.drift IS NOT NULL \
             AND c.condition <> 'Unknown' AND k.state = 'active' AND k.unknown_since IS NULL",
        );
        scope(&mut statement, filter);
        own(&mut statement, visible);
        if let Some(names) = &filter.assignments {
            statement.list(" AND c.assignment IN (", names, ")");
        }
        statement.push(" GROUP BY k.environment, k.cluster_type, k.ring, c.assignment, c.running, c.condition");
        statement.fetch(self).await?.iter().map(sum).collect()
    }

    /// Names of some members in contact that run this of an assignment and whose report tells of drift.
    pub async fn drifted_on(
        &self,
        stream: &Stream,
        assignment: &str,
        running: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut statement = Statement::new(
            "SELECT k.name FROM conditions c CROSS JOIN clusters k WHERE k.id = c.cluster AND c.drift IS NOT NULL \
             AND c.condition <> 'Unknown' AND k.state = 'active' AND k.unknown_since IS NULL",
        );
        statement.text(" AND k.environment = ?", &stream.environment);
        statement.text(" AND k.cluster_type = ?", &stream.cluster_type);
        statement.text(" AND k.ring = ?", &stream.ring);
        statement.text(" AND c.assignment = ?", assignment);
        statement.text(" AND c.running = ?", running);
        statement.number(" ORDER BY k.name LIMIT ?", i64::try_from(limit).unwrap_or(i64::MAX));
        statement.fetch(self).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}

fn sum(row: &AnyRow) -> Result<RunningSum, StoreError> {
    let word: String = row.try_get("condition")?;
    Ok(RunningSum {
        stream: stream_of(row)?,
        assignment: row.try_get("assignment")?,
        running: row.try_get("running")?,
        condition: Word::from_text(&word).ok_or_else(|| corrupt(word))?,
        count: u64::try_from(row.try_get::<i64, _>("number")?).unwrap_or_default(),
    })
}
