//! The hub's own numbers, for `/metrics`. Every room holds the same `Arc<Metrics>` and counts; labels are enums, so that
//! the number of series is known before the hub starts.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder,
};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::store::failure;

/// All families. Cloning a family is cheap and counts into the same numbers.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// 1 while this hub schedules and publishes.
    pub leader: Gauge,
    pub connections: Family<Listener, Gauge>,
    pub connections_refused: Family<Listener, Counter>,
    pub requests: Family<Request, Counter>,
    pub polls_held: Gauge,
    pub polls: Family<Poll, Counter>,
    pub joins: Family<Join, Counter>,
    pub documents: Family<Document, Counter>,
    pub states_issued: Counter,
    pub steps: Family<Step, Histogram, fn() -> Histogram>,
    pub walks: Family<Walk, Counter>,
    pub repositories: Gauge,
    pub repositories_failing: Gauge,
}

/// A label set of one label whose values are known.
macro_rules! label {
    ($(#[$doc:meta])* $set:ident, $key:ident, $value:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub struct $set {
            pub $key: $value,
        }

        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $value {
            $($variant),+
        }

        impl EncodeLabelValue for $value {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
                let text = match self { $($value::$variant => $text),+ };
                EncodeLabelValue::encode(&text, encoder)
            }
        }

        impl From<$value> for $set {
            fn from($key: $value) -> $set {
                $set { $key }
            }
        }
    };
}

label!(
    /// Where a connection came in.
    Listener, listener, At { Api = "api", Agents = "agents" }
);
label!(
    /// How a poll ended.
    Poll, outcome, PollOutcome { News = "news", Idle = "idle", Refused = "refused", Unavailable = "unavailable" }
);
label!(
    /// How an attempt to join or to renew ended.
    Join, outcome, JoinOutcome {
        Joined = "joined", Again = "again", Renewed = "renewed", Refused = "refused", Unavailable = "unavailable",
    }
);
label!(
    /// What became of a status document.
    Document, result, DocumentResult {
        Stored = "stored", AlreadyKnown = "already_known", Older = "older", Malformed = "malformed", Forged = "forged",
        WrongCluster = "wrong_cluster", TooLarge = "too_large", Cloned = "cloned", Unavailable = "unavailable",
    }
);
label!(
    /// A step of the way of a change.
    Step, step, StepName {
        Read = "read", Schedule = "schedule", Catalog = "catalog", Publish = "publish", Pack = "pack", Issue = "issue",
    }
);
label!(
    /// How a walk through all steps ended.
    Walk, outcome, WalkOutcome { Done = "done", Retry = "retry", Waiting = "waiting", Failed = "failed" }
);
label!(
    /// Failures of the database.
    DatabaseError, kind, DatabaseFailure { Unavailable = "unavailable", Refused = "refused" }
);

/// Requests by what they were for and how they ended; never by path, which others choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Request {
    pub route: Route,
    pub status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    Read,
    Write,
    Watch,
    Page,
    Hook,
    Health,
    Join,
    Poll,
    Blob,
    Status,
    Other,
}

/// The class of an HTTP status: `2xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(u16);

impl Status {
    pub fn of(status: http::StatusCode) -> Status {
        Status(status.as_u16() / 100)
    }
}

impl EncodeLabelValue for Status {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let text = match self.0 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        EncodeLabelValue::encode(&text, encoder)
    }
}

impl EncodeLabelValue for Route {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let text = match self {
            Route::Read => "read",
            Route::Write => "write",
            Route::Watch => "watch",
            Route::Page => "page",
            Route::Hook => "hook",
            Route::Health => "health",
            Route::Join => "join",
            Route::Poll => "poll",
            Route::Blob => "blob",
            Route::Status => "status",
            Route::Other => "other",
        };
        EncodeLabelValue::encode(&text, encoder)
    }
}

/// What `/metrics` is served as.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// From a lookup in memory to a slow forge.
const STEP_SECONDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

fn step_histogram() -> Histogram {
    Histogram::new(STEP_SECONDS)
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("kedge_hub");
        let metrics = Metrics {
            leader: Gauge::default(),
            connections: Family::default(),
            connections_refused: Family::default(),
            requests: Family::default(),
            polls_held: Gauge::default(),
            polls: Family::default(),
            joins: Family::default(),
            documents: Family::default(),
            states_issued: Counter::default(),
            steps: Family::new_with_constructor(step_histogram),
            walks: Family::default(),
            repositories: Gauge::default(),
            repositories_failing: Gauge::default(),
            registry: Registry::default(),
        };
        registry.register("build", "Which hub this is", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        registry.register("leader", "1 while this hub schedules and publishes", metrics.leader.clone());
        registry.register("connections", "Open connections", metrics.connections.clone());
        registry.register(
            "connections_refused",
            "Connections refused because there are too many",
            metrics.connections_refused.clone(),
        );
        registry.register("http_requests", "Requests by what they were for", metrics.requests.clone());
        registry.register("polls_held", "Polls of agents that wait for news", metrics.polls_held.clone());
        registry.register("polls", "Polls answered", metrics.polls.clone());
        registry.register("joins", "Attempts to join or to renew a certificate", metrics.joins.clone());
        registry.register("status_documents", "Status documents taken in or refused", metrics.documents.clone());
        registry.register("states_issued", "Desired states signed by this hub", metrics.states_issued.clone());
        registry.register_with_unit(
            "walk_step",
            "How long a step of the way of a change took",
            Unit::Seconds,
            metrics.steps.clone(),
        );
        registry.register("walks", "Walks through all steps of an environment", metrics.walks.clone());
        registry.register("repositories", "Repositories that are followed", metrics.repositories.clone());
        registry.register(
            "repositories_failing",
            "Repositories whose last fetch failed",
            metrics.repositories_failing.clone(),
        );
        registry.register_collector(Box::new(DatabaseErrors));
        Metrics { registry, ..metrics }
    }

    /// The time that a step took.
    pub fn step(&self, step: StepName, took: std::time::Duration) {
        self.steps.get_or_create(&step.into()).observe(took.as_secs_f64());
    }

    /// OpenMetrics text.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

/// The store counts its failures itself: its errors are made where there is no registry.
#[derive(Debug)]
struct DatabaseErrors;

impl Collector for DatabaseErrors {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (away, refused) = failure::counts();
        let counter = ConstCounter::new(0_u64);
        let mut metric =
            encoder.encode_descriptor("database_errors", "Failures of the database", None, counter.metric_type())?;
        for (kind, count) in [(DatabaseFailure::Unavailable, away), (DatabaseFailure::Refused, refused)] {
            ConstCounter::new(count).encode(metric.encode_family(&DatabaseError { kind })?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_in_the_text_with_bounded_labels() {
        let metrics = Metrics::new();
        metrics.leader.set(1);
        metrics.polls.get_or_create(&PollOutcome::News.into()).inc();
        metrics.documents.get_or_create(&DocumentResult::WrongCluster.into()).inc();
        metrics.step(StepName::Pack, std::time::Duration::from_millis(3));
        let ok = Request { route: Route::Read, status: Status::of(http::StatusCode::NOT_FOUND) };
        metrics.requests.get_or_create(&ok).inc();
        let text = metrics.encode().unwrap();
        for line in [
            "kedge_hub_leader 1",
            "kedge_hub_polls_total{outcome=\"news\"} 1",
            "kedge_hub_status_documents_total{result=\"wrong_cluster\"} 1",
            "kedge_hub_http_requests_total{route=\"read\",status=\"4xx\"} 1",
            "kedge_hub_walk_step_seconds_bucket{le=\"0.005\",step=\"pack\"} 1",
            "kedge_hub_database_errors_total{kind=\"refused\"}",
            "kedge_hub_build_info{version=",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
