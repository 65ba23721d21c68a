//! What `/metrics` says of the whole fleet: a few sums over tables that are kept as counts, and what is unfinished. Asked by
//! any hub at a scrape; costs follow streams and open work, never clusters.

use std::collections::BTreeMap;

use kedge_hub_types::status::tally::{Presence, Word};
use kedge_model::wire::Timestamp;
use kedge_rollout::{Phase, Promotion, PromotionPhase, RingState, Rollout, Standing};
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::rollout::Waiting;
use super::{Backend, Store, StoreError};

/// A ring of an environment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub environment: String,
    pub ring: String,
}

/// So many, and since when the oldest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aged {
    pub count: i64,
    pub oldest: Option<Timestamp>,
}

/// How commits of main get through an environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Since when the one that should come in waits.
    pub waiting: Option<Timestamp>,
    /// Since when the one in force hasn't passed its gate.
    pub open: Option<Timestamp>,
    /// It failed, was opened again, was refused, or its branch can't be written: a person is needed.
    pub stuck: bool,
    pub passed: Option<Timestamp>,
}

/// How much of the past is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub days: i64,
    pub entries: i64,
    pub bytes: i64,
}

/// What is unfinished in an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutWord {
    Active,
    Paused,
    Stopped,
    /// Content that waits for the rollout before it.
    Waiting,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub clusters: BTreeMap<(Place, Presence), i64>,
    pub assignments: BTreeMap<(Place, Word), i64>,
    /// Clusters that are Unknown, by environment.
    pub unknown: BTreeMap<String, Aged>,
    /// Assignments on clusters that differ from what was applied.
    pub drifted: BTreeMap<String, i64>,
    pub rollouts: BTreeMap<(String, RolloutWord), Aged>,
    /// Rollouts that stopped in this ring.
    pub rings_stopped: BTreeMap<Place, Aged>,
    pub promotions: BTreeMap<String, Passage>,
    pub quarantined: BTreeMap<String, Aged>,
    pub removals_waiting: BTreeMap<String, Aged>,
    /// By environment: errors, warnings.
    pub problems: BTreeMap<String, (i64, i64)>,
    pub history: Kept,
    pub database_bytes: i64,
    pub term: i64,
}

/// More unfinished rollouts than lanes of a large fleet means that something else is wrong: the rest isn't read.
const MOST_ROLLOUTS: i64 = 5_000;

impl RolloutWord {
    pub const ALL: [RolloutWord; 4] =
        [RolloutWord::Active, RolloutWord::Paused, RolloutWord::Stopped, RolloutWord::Waiting];

    pub fn as_str(self) -> &'static str {
        match self {
            RolloutWord::Active => "active",
            RolloutWord::Paused => "paused",
            RolloutWord::Stopped => "stopped",
            RolloutWord::Waiting => "waiting",
        }
    }
}

impl Aged {
    fn add(&mut self, since: Timestamp) {
        self.count += 1;
        self.oldest = Some(self.oldest.map_or(since, |oldest| oldest.min(since)));
    }

    /// Both together.
    pub fn join(&mut self, other: Aged) {
        self.count += other.count;
        self.oldest = self.oldest.into_iter().chain(other.oldest).min();
    }
}

impl Store {
    pub async fn figures(&self) -> Result<Figures, StoreError> {
        let mut figures = Figures::default();
        self.count_members(&mut figures).await?;
        self.count_conditions(&mut figures).await?;
        self.count_rollouts(&mut figures).await?;
        for row in self.read_figures("SELECT environment, body, trouble FROM promotions").await? {
            let standing: Standing = body(&row, "body")?;
            let trouble: Option<String> = row.try_get("trouble")?;
            figures.promotions.insert(row.try_get("environment")?, passage(&standing, trouble.is_some()));
        }
        figures.quarantined = self
            .aged("SELECT environment, COUNT(*) AS count, MIN(since) AS oldest FROM rollout_quarantines GROUP BY environment")
            .await?;
        figures.removals_waiting = self
            .aged("SELECT environment, COUNT(*) AS count, MIN(since) AS oldest FROM removals_waiting GROUP BY environment")
            .await?;
        for row in self
            .read_figures("SELECT environment, state, COUNT(*) AS count FROM catalog WHERE kind = 'problem' GROUP BY environment, state")
            .await?
        {
            let (errors, warnings) = figures.problems.entry(row.try_get("environment")?).or_default();
            match row.try_get::<String, _>("state")?.as_str() {
                "error" => *errors += row.try_get::<i64, _>("count")?,
                _ => *warnings += row.try_get::<i64, _>("count")?,
            }
        }
        let size = match self.backend() {
            Backend::Sqlite => "SELECT page_count * page_size AS size FROM pragma_page_count(), pragma_page_size()",
            Backend::Postgres => "SELECT pg_database_size(current_database()) AS size",
        };
        figures.database_bytes = sqlx::query_scalar(size).fetch_one(self.pool()).await?;
        for day in self.history_days().await? {
            let Kept { days, entries, bytes } = figures.history;
            figures.history = Kept { days: days + 1, entries: entries + day.entries, bytes: bytes + day.bytes };
        }
        figures.term = self.leader().await?.1.0;
        Ok(figures)
    }

    async fn count_members(&self, figures: &mut Figures) -> Result<(), StoreError> {
        let sums = "SELECT environment, ring, presence, CAST(SUM(count) AS BIGINT) AS count FROM population \
             GROUP BY environment, ring, presence";
        for row in self.read_figures(sums).await? {
            let word: String = row.try_get("presence")?;
            let presence = Presence::from_text(&word).ok_or(StoreError::Corrupt(word))?;
            figures.clusters.insert((place(&row)?, presence), row.try_get("count")?);
        }
        figures.unknown = self
            .aged(
                "SELECT environment, COUNT(*) AS count, MIN(unknown_since) AS oldest FROM clusters \
                 WHERE unknown_since IS NOT NULL AND state = 'active' GROUP BY environment",
            )
            .await?;
        Ok(())
    }

    async fn count_conditions(&self, figures: &mut Figures) -> Result<(), StoreError> {
        let sums = "SELECT environment, ring, condition, CAST(SUM(count) AS BIGINT) AS count FROM counts \
             GROUP BY ring, condition, environment";
        for row in self.read_figures(sums).await? {
            let word: String = row.try_get("condition")?;
            let condition = Word::from_text(&word).ok_or(StoreError::Corrupt(word))?;
            figures.assignments.insert((place(&row)?, condition), row.try_get("count")?);
        }
        // A cluster that is Unknown says nothing of what differs there now. Asked so, only what drifted is looked at.
        let drifted = "SELECT (SELECT c.environment FROM clusters c WHERE c.id = d.cluster AND c.unknown_since IS NULL \
             AND c.state = 'active') AS environment, COUNT(*) AS count FROM conditions d WHERE d.drift IS NOT NULL GROUP BY 1";
        for row in self.read_figures(drifted).await? {
            if let Some(environment) = row.try_get::<Option<String>, _>("environment")? {
                figures.drifted.insert(environment, row.try_get("count")?);
            }
        }
        Ok(())
    }

    async fn count_rollouts(&self, figures: &mut Figures) -> Result<(), StoreError> {
        let open = "SELECT body FROM rollouts WHERE watched = 1 AND state IN ('Active', 'Paused', 'Stopped') \
             ORDER BY environment, id LIMIT $1";
        for row in sqlx::query(open).bind(MOST_ROLLOUTS).fetch_all(self.pool()).await? {
            figures.add_rollout(&body(&row, "body")?);
        }
        for row in self.read_figures("SELECT environment, body FROM rollout_waiting").await? {
            let waiting: Waiting = body(&row, "body")?;
            let key = (row.try_get("environment")?, RolloutWord::Waiting);
            figures.rollouts.entry(key).or_default().add(waiting.since);
        }
        Ok(())
    }

    async fn read_figures(&self, sql: &'static str) -> Result<Vec<AnyRow>, StoreError> {
        Ok(sqlx::query(sql).fetch_all(self.pool()).await?)
    }

    async fn aged(&self, sql: &'static str) -> Result<BTreeMap<String, Aged>, StoreError> {
        let aged = |row: &AnyRow| {
            let oldest = row.try_get::<Option<i64>, _>("oldest")?.map(Timestamp);
            Ok((row.try_get("environment")?, Aged { count: row.try_get("count")?, oldest }))
        };
        self.read_figures(sql).await?.iter().map(aged).collect()
    }
}

impl Figures {
    fn add_rollout(&mut self, rollout: &Rollout) {
        let (word, since) = match &rollout.phase {
            Phase::Active => (RolloutWord::Active, rollout.created_at),
            Phase::Paused { at, .. } => (RolloutWord::Paused, *at),
            Phase::Stopped { at, .. } => (RolloutWord::Stopped, *at),
            _ => return,
        };
        self.rollouts.entry((rollout.environment.clone(), word)).or_default().add(since);
        for ring in rollout.rings.iter().filter(|ring| ring.state == RingState::Stopped) {
            let place = Place { environment: rollout.environment.clone(), ring: ring.ring.clone() };
            self.rings_stopped.entry(place).or_default().add(since);
        }
    }
}

fn passage(standing: &Standing, trouble: bool) -> Passage {
    let newest = |phase: fn(&Promotion) -> bool| standing.promotions.iter().find(|promotion| phase(promotion));
    let current = standing.current.as_deref().and_then(|commit| standing.promotion(commit));
    let open = current.filter(|promotion| {
        let phase = &promotion.phase;
        matches!(phase, PromotionPhase::Entered | PromotionPhase::Failed { .. } | PromotionPhase::Reopened { .. })
    });
    let failed = open.is_some_and(|promotion| promotion.phase != PromotionPhase::Entered);
    Passage {
        waiting: newest(|promotion| promotion.phase == PromotionPhase::Waiting).map(|promotion| promotion.created_at),
        open: open.map(|promotion| promotion.entered_at.unwrap_or(promotion.created_at)),
        stuck: failed || trouble || standing.refused.is_some(),
        passed: standing.promotions.iter().filter_map(|promotion| promotion.passed_at).max(),
    }
}

fn place(row: &AnyRow) -> Result<Place, StoreError> {
    Ok(Place { environment: row.try_get("environment")?, ring: row.try_get("ring")? })
}

fn body<T: DeserializeOwned>(row: &AnyRow, column: &str) -> Result<T, StoreError> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|error| StoreError::Corrupt(error.to_string()))
}
