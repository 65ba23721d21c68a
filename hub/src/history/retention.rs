//! Old days go: by their age and by the room that all of them take, whole days at a time, never today. The leader's task.

use std::time::Duration;

use kedge_hub_types::history::Day;
use kedge_model::wire::Timestamp;

use crate::config;
use crate::store::history::days::DayRow;
use crate::store::{Store, StoreError, Term, now};

/// A day more or less doesn't matter.
const EVERY: Duration = Duration::from_secs(3600);
const DAY_MS: u128 = 24 * 3600 * 1000;

/// For as long as this hub leads. A failure waits for the next time; only another leader ends it.
pub async fn keep(store: &Store, term: Term, limits: config::History) {
    let mut timer = tokio::time::interval(EVERY);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        match step(store, term, &limits, now()).await {
            Ok(_) => {}
            Err(error @ StoreError::Fenced(_)) => {
                tracing::warn!(%error, "history is kept by another hub now");
                return;
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "old days of history can't be let go now");
            }
        }
    }
}

/// Lets go what is too old or too much; which days that were.
pub async fn step(store: &Store, term: Term, limits: &config::History, at: Timestamp) -> Result<Vec<Day>, StoreError> {
    let days = store.history_days().await?;
    let over = surplus(&days, limits, at);
    for row in &over {
        store.drop_history_day(term, row.day).await?;
        tracing::info!(day = row.day.number(), entries = row.entries, bytes = row.bytes, "a day of history is let go");
    }
    if let Some(today) = days.first().filter(|row| over.len() + 1 == days.len() && is_over(row.bytes, limits)) {
        tracing::warn!(
            day = today.day.number(),
            bytes = today.bytes,
            max_size = limits.max_size,
            "today alone is more history than there should be; yesterday isn't kept"
        );
    }
    Ok(over.into_iter().map(|row| row.day).collect())
}

/// Days to let go, the oldest first. `days` are the newest first.
fn surplus(days: &[DayRow], limits: &config::History, at: Timestamp) -> Vec<DayRow> {
    let kept = i64::try_from(limits.keep.as_millis().div_ceil(DAY_MS)).unwrap_or(i64::MAX);
    let oldest = Day::of(at).back(kept);
    let mut bytes = 0_i64;
    let mut over = Vec::new();
    for (index, row) in days.iter().enumerate() {
        bytes = bytes.saturating_add(row.bytes);
        if index > 0 && (row.day < oldest || is_over(bytes, limits)) {
            over.push(*row);
        }
    }
    over.reverse();
    over
}

fn is_over(bytes: i64, limits: &config::History) -> bool {
    u64::try_from(bytes).is_ok_and(|bytes| bytes > limits.max_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn days(bytes: &[i64]) -> (Vec<DayRow>, Timestamp) {
        let at = Timestamp(1_794_830_400_000);
        let row = |(index, bytes): (usize, &i64)| DayRow {
            day: Day::of(at).back(i64::try_from(index).unwrap()),
            entries: 1,
            bytes: *bytes,
            last_id: 1,
        };
        (bytes.iter().enumerate().map(row).collect(), at)
    }

    fn limits(days: u64, max_size: u64) -> config::History {
        config::History { keep: Duration::from_secs(days * 86_400), max_size }
    }

    #[test]
    fn what_is_older_than_the_time_goes_and_a_day_that_still_counts_stays() {
        let (rows, at) = days(&[1; 10]);
        let gone = surplus(&rows, &limits(7, 1000), at);
        assert_eq!(gone.iter().map(|row| row.day).collect::<Vec<_>>(), [rows[9].day, rows[8].day]);
        // A quarter of an hour of the eighth day back is still within seven days.
        assert!(surplus(&rows[..8], &limits(7, 1000), Timestamp(at.0 + 11 * HOUR_MS)).is_empty());
    }

    #[test]
    fn what_is_too_much_goes_from_the_oldest_on_and_today_stays() {
        let (rows, at) = days(&[400, 300, 200, 200]);
        let gone = surplus(&rows, &limits(90, 750), at);
        assert_eq!(gone.iter().map(|row| row.day).collect::<Vec<_>>(), [rows[3].day, rows[2].day]);
        assert_eq!(surplus(&rows, &limits(90, 10), at).len(), 3);
    }
}
