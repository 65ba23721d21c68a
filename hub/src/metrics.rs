//! The hub's numbers, for `/metrics`. Every module holds the same `Arc<Metrics>` and counts; labels are enums, so that the number
//! of series is known before the hub starts. What the database and the machine say is looked up at a scrape (`gathered`), and
//! bounded there. `docs/metrics.md` is made from all of it.

mod events;
mod fleet;
mod gathered;
pub mod own;
mod series;
#[cfg(test)]
mod tests;

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
pub use gathered::Gathered;
use gathered::{FleetFigures, OwnFigures};

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
    pub reconciles: Family<Reconcile, Counter>,
    pub repositories: Gauge,
    pub repositories_failing: Gauge,
    /// Seconds.
    pub repository_failing_oldest: Gauge,
    /// Looked up at a scrape.
    pub gathered: Gathered,
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

        impl $value {
            const ALL: &[$value] = &[$($value::$variant),+];
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
    Listener, listener, At { Api = "api", Agents = "agents", Metrics = "metrics" }
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
    /// How a reconciliation through all steps ended.
    Reconcile, outcome, ReconcileOutcome { Done = "done", Retry = "retry", Waiting = "waiting", Failed = "failed" }
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

/// The class of an HTTP status: `2xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(u16);

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

impl Route {
    const ALL: [Route; 10] = [
        Route::Read,
        Route::Write,
        Route::Watch,
        Route::Hook,
        Route::Health,
        Route::Join,
        Route::Poll,
        Route::Blob,
        Route::Status,
        Route::Other,
    ];
}

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
            reconciles: Family::default(),
            repositories: Gauge::default(),
            repositories_failing: Gauge::default(),
            repository_failing_oldest: Gauge::default(),
            gathered: Gathered::default(),
            registry: Registry::default(),
        };
        metrics.begin();
        let mut registry = Registry::default();
        metrics.register(registry.sub_registry_with_prefix("kedge_hub"));
        let fleet = FleetFigures(metrics.gathered.clone());
        registry.sub_registry_with_prefix("kedge_fleet").register_collector(Box::new(fleet));
        Metrics { registry, ..metrics }
    }

    /// Every series that there can be is there from the start: a rate over one that appears with its first event is wrong.
    fn begin(&self) {
        for at in At::ALL {
            drop(self.connections.get_or_create(&(*at).into()));
            drop(self.connections_refused.get_or_create(&(*at).into()));
        }
        for route in Route::ALL {
            for status in 2..=5 {
                drop(self.requests.get_or_create(&Request { route, status: Status(status) }));
            }
        }
        PollOutcome::ALL.iter().for_each(|outcome| drop(self.polls.get_or_create(&(*outcome).into())));
        JoinOutcome::ALL.iter().for_each(|outcome| drop(self.joins.get_or_create(&(*outcome).into())));
        DocumentResult::ALL.iter().for_each(|result| drop(self.documents.get_or_create(&(*result).into())));
        StepName::ALL.iter().for_each(|step| drop(self.steps.get_or_create(&(*step).into())));
        ReconcileOutcome::ALL.iter().for_each(|outcome| drop(self.reconciles.get_or_create(&(*outcome).into())));
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("build", "Which hub this is", Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]));
        registry.register("leader", "1 while this hub schedules and publishes", self.leader.clone());
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_refused",
            "Connections refused because there are too many",
            self.connections_refused.clone(),
        );
        registry.register("http_requests", "Requests by route", self.requests.clone());
        registry.register("polls_held", "Polls of agents that wait for news", self.polls_held.clone());
        registry.register("polls", "Polls answered", self.polls.clone());
        registry.register("joins", "Attempts to join or to renew a certificate", self.joins.clone());
        registry.register("status_documents", "Status documents accepted or refused", self.documents.clone());
        registry.register("states_issued", "Desired states signed by this hub", self.states_issued.clone());
        registry.register_with_unit(
            "walk_step",
            "Duration of a step of a reconciliation",
            Unit::Seconds,
            self.steps.clone(),
        );
        registry.register("walks", "Reconciliations of environments, by outcome", self.reconciles.clone());
        registry.register("repositories", "Repositories that this hub follows", self.repositories.clone());
        registry.register(
            "repositories_failing",
            "Repositories whose last fetch failed",
            self.repositories_failing.clone(),
        );
        registry.register_with_unit(
            "repository_failing_oldest",
            "For how long the repository that has failed longest has failed; 0: none fails",
            Unit::Seconds,
            self.repository_failing_oldest.clone(),
        );
        registry.register_collector(Box::new(DatabaseErrors));
        registry.register_collector(Box::new(OwnFigures(self.gathered.clone())));
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
        for kind in DatabaseFailure::ALL {
            let count = match kind {
                DatabaseFailure::Unavailable => away,
                DatabaseFailure::Refused => refused,
            };
            ConstCounter::new(count).encode(metric.encode_family(&DatabaseError { kind: *kind })?)?;
        }
        Ok(())
    }
}
