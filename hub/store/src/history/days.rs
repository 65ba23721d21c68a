//! Days of the log: each is a table of its own, counted as it fills and dropped as a whole.

use kedge_hub_types::history::Day;
use sqlx::{AssertSqlSafe, Row as _};

use crate::{Store, StoreError, Term, Tx};

/// A day that has a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayRow {
    pub day: Day,
    pub entries: i64,
    /// About so much room it takes.
    pub bytes: i64,
    /// Its newest entry, in the order of recording.
    pub last_id: i64,
}

/// The newest day that was let go: nothing as old is written again.
const FLOOR: &str = "history_floor";

/// What is empty isn't in an index that nobody would ask; the mass of entries are conditions, so kinds are for the others.
const INDEXES: [(&str, &str); 8] = [
    ("id", "(id)"),
    ("environment", "(environment, at, id)"),
    ("workspace", "(workspace, at, id) WHERE workspace <> ''"),
    ("workload", "(workload, at, id) WHERE workload <> ''"),
    ("cluster", "(cluster, at, id) WHERE cluster <> ''"),
    ("commit", "(commit_id, at, id) WHERE commit_id <> ''"),
    ("who", "(who, at, id) WHERE who <> ''"),
    ("kind", "(kind, at, id) WHERE kind <> 'condition'"),
];

impl Store {
    /// The newest first.
    pub async fn history_days(&self) -> Result<Vec<DayRow>, StoreError> {
        let rows = sqlx::query("SELECT day, entries, bytes, last_id FROM history_days ORDER BY day DESC");
        rows.fetch_all(self.pool()).await?.iter().map(day_row).collect()
    }

    /// Lets a day go, with everything in it. Under the leader's term; what comes as late as that is lost from now on.
    pub async fn drop_history_day(&self, term: Term, day: Day) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        // The row first: who writes into the day holds it until the commit.
        let gone = sqlx::query("DELETE FROM history_days WHERE day = $1").bind(day.number());
        gone.execute(tx.connection()).await?;
        sqlx::query(AssertSqlSafe(format!("DROP TABLE IF EXISTS {day}"))).execute(tx.connection()).await?;
        if tx.history_floor().await?.is_none_or(|floor| floor < day) {
            tx.set_meta(FLOOR, &day.number().to_string()).await?;
        }
        tx.commit().await
    }
}

impl Tx {
    /// The day's table with its indexes; also for a dump that brings the day's rows.
    pub async fn make_history_table(&mut self, day: Day) -> Result<(), StoreError> {
        let table = format!(
            "CREATE TABLE IF NOT EXISTS {day} (
                id BIGINT NOT NULL,
                at BIGINT NOT NULL,
                recorded_at BIGINT NOT NULL,
                corrected BIGINT NOT NULL,
                kind TEXT NOT NULL, event TEXT NOT NULL,
                environment TEXT NOT NULL, workspace TEXT NOT NULL, workload TEXT NOT NULL,
                cluster_type TEXT NOT NULL, ring TEXT NOT NULL, assignment TEXT NOT NULL,
                cluster TEXT NOT NULL,
                commit_id TEXT NOT NULL,
                who TEXT NOT NULL,
                content TEXT NOT NULL,
                detail TEXT NOT NULL,
                PRIMARY KEY (at, id)
            )"
        );
        sqlx::query(AssertSqlSafe(table)).execute(self.connection()).await?;
        for (name, columns) in INDEXES {
            let index = format!("CREATE INDEX IF NOT EXISTS {day}_{name} ON {day} {columns}");
            sqlx::query(AssertSqlSafe(index)).execute(self.connection()).await?;
        }
        Ok(())
    }

    pub(super) async fn make_day(&mut self, day: Day) -> Result<(), StoreError> {
        // Of two hubs that begin a day at once, one waits here and finds the table made.
        let row = sqlx::query(
            "INSERT INTO history_days (day, entries, bytes, last_id) VALUES ($1, 0, 0, 0) ON CONFLICT (day) DO NOTHING",
        );
        row.bind(day.number()).execute(self.connection()).await?;
        self.make_history_table(day).await
    }

    /// False: there is no such day.
    pub(super) async fn count_into(
        &mut self,
        day: Day,
        entries: i64,
        bytes: i64,
        last: i64,
    ) -> Result<bool, StoreError> {
        let count = sqlx::query(
            "UPDATE history_days SET entries = entries + $2, bytes = bytes + $3, \
             last_id = CASE WHEN last_id < $4 THEN $4 ELSE last_id END WHERE day = $1",
        );
        let count = count.bind(day.number()).bind(entries).bind(bytes).bind(last);
        Ok(count.execute(self.connection()).await?.rows_affected() > 0)
    }

    pub(super) async fn history_floor(&mut self) -> Result<Option<Day>, StoreError> {
        let floor = sqlx::query_scalar::<_, String>("SELECT value FROM meta WHERE name = $1").bind(FLOOR);
        let floor = floor.fetch_optional(self.connection()).await?;
        Ok(floor.and_then(|text| text.parse().ok()).and_then(Day::from_number))
    }
}

fn day_row(row: &sqlx::any::AnyRow) -> Result<DayRow, StoreError> {
    let number: i64 = row.try_get(0)?;
    let day = Day::from_number(number).ok_or_else(|| StoreError::Corrupt(format!("a day of history: {number}")))?;
    Ok(DayRow { day, entries: row.try_get(1)?, bytes: row.try_get(2)?, last_id: row.try_get(3)? })
}
