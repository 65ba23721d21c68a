//! A gauge or counter whose series are known only when somebody asks, and the bound on how many there are. Made by `fleet`,
//! `own` and `events`.

use std::collections::BTreeMap;
use std::fmt;

use kedge_model::wire::Timestamp;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use crate::store::figures::{Aged, Place};

/// One gauge or counter with all its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: &'static str,
    pub help: &'static str,
    pub unit: Measure,
    pub values: Vec<(Vec<(&'static str, String)>, i64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Count,
    Seconds,
    Bytes,
    /// A count that only grows.
    Total,
}

/// How two of the same kind become one.
pub trait Sum: Copy + Default {
    fn sum(self, other: Self) -> Self;
}

/// So many environments, and so many rings of all environments, have series of their own. Git decides how many there are:
/// the rest is added up.
pub const MOST_PLACES: usize = 200;
/// The name of the rest.
pub const OTHER: &str = "other";

impl Series {
    pub fn new(name: &'static str, unit: Measure, help: &'static str) -> Series {
        Series { name, help, unit, values: Vec::new() }
    }

    pub fn with(mut self, labels: &[(&'static str, &str)], value: i64) -> Series {
        self.values.push((labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(), value));
        self
    }

    pub fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (kind, unit) = match self.unit {
            Measure::Count => (MetricType::Gauge, None),
            Measure::Seconds => (MetricType::Gauge, Some(Unit::Seconds)),
            Measure::Bytes => (MetricType::Gauge, Some(Unit::Bytes)),
            Measure::Total => (MetricType::Counter, None),
        };
        let mut metric = encoder.encode_descriptor(self.name, self.help, unit.as_ref(), kind)?;
        for (labels, value) in &self.values {
            // Without labels there is one value, of a gauge.
            if labels.is_empty() {
                metric.encode_gauge(value)?;
                continue;
            }
            let one = metric.encode_family(labels)?;
            match self.unit {
                Measure::Total => ConstCounter::new(u64::try_from(*value).unwrap_or_default()).encode(one)?,
                _ => ConstGauge::new(*value).encode(one)?,
            }
        }
        Ok(())
    }
}

impl Sum for i64 {
    fn sum(self, other: i64) -> i64 {
        self.saturating_add(other)
    }
}

impl Sum for Aged {
    fn sum(mut self, other: Aged) -> Aged {
        self.join(other);
        self
    }
}

/// The first environments by name, and all others as one.
pub fn environments<T: Sum>(all: BTreeMap<String, T>) -> BTreeMap<String, T> {
    bounded(all, || OTHER.to_owned())
}

/// The same for rings.
pub fn places<T: Sum>(all: BTreeMap<Place, T>) -> BTreeMap<Place, T> {
    bounded(all, || Place { environment: OTHER.to_owned(), ring: OTHER.to_owned() })
}

fn bounded<K: Ord, T: Sum>(all: BTreeMap<K, T>, other: impl Fn() -> K) -> BTreeMap<K, T> {
    let mut kept = BTreeMap::new();
    for (place, (key, value)) in all.into_iter().enumerate() {
        let key = if place < MOST_PLACES { key } else { other() };
        let sum: &mut T = kept.entry(key).or_default();
        *sum = sum.sum(value);
    }
    kept
}

/// Whole seconds since then; 0 when there is nothing.
pub fn age(since: Option<Timestamp>, now: Timestamp) -> i64 {
    since.map_or(0, |since| ((now.0 - since.0) / 1000).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_bound_is_added_up() {
        let all: BTreeMap<String, i64> = (0..1000).map(|number| (format!("env-{number:04}"), 2)).collect();
        let kept = environments(all);
        assert_eq!(kept.len(), MOST_PLACES + 1);
        assert_eq!(kept[OTHER], 2 * (1000 - MOST_PLACES as i64));
        assert_eq!(kept.values().sum::<i64>(), 2000);
    }

    #[test]
    fn an_age_is_never_negative() {
        assert_eq!(age(Some(Timestamp(5_000)), Timestamp(9_999)), 4);
        assert_eq!(age(Some(Timestamp(5_000)), Timestamp(0)), 0);
        assert_eq!(age(None, Timestamp(9_999)), 0);
    }
}
