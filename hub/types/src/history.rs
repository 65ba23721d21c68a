//! What happened, when, and by whom: typed entries that the hub's modules hand to the transaction of the change they tell of.

pub mod day;
mod title;
pub mod what;

use kedge_model::wire::{ClusterId, Stream, Timestamp};

pub use day::Day;
pub use what::What;

/// What an entry is about, to filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An assignment's condition on a cluster.
    Condition,
    /// What runs was changed by somebody else, and repaired.
    Drift,
    /// A desired state.
    Generation,
    /// From Git to the environment's branch.
    Publish,
    /// A commit of main, from environment to environment.
    Promotion,
    /// A change, from ring to ring.
    Rollout,
    /// A person's word on one of the two.
    Approval,
    /// A cluster as a member of the fleet.
    Cluster,
    /// Any write of a person or a program.
    Audit,
    Problem,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its true time, as far as it is known.
    pub at: Timestamp,
    /// The clock that told it was wrong, and the time is corrected.
    pub corrected: bool,
    pub place: Place,
    /// Of main or of an application's source, where it is about one.
    pub commit: Option<String>,
    pub who: Option<String>,
    pub what: What,
}

/// Where it happened; what is empty isn't told. Of an entry with an assignment, workload and workspace are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub environment: String,
    pub workspace: String,
    pub workload: String,
    pub cluster_type: String,
    pub ring: String,
    /// `<cluster type>/<workload>-<target>`
    pub assignment: String,
    pub cluster: Option<ClusterId>,
}

/// An entry that is in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Grows in the order in which entries are recorded.
    pub id: i64,
    pub at: Timestamp,
    pub recorded_at: Timestamp,
    pub corrected: bool,
    pub kind: Kind,
    /// A stable word: `Failed`, `passed`, `joined`, …
    pub event: String,
    pub place: Place,
    pub cluster_name: Option<String>,
    pub commit: Option<String>,
    pub who: Option<String>,
    /// As `What` says it; of a newer hub's kind it may be something that this one can't read.
    pub detail: serde_json::Value,
}

/// What came so much later than it happened was told afterwards.
const LATE_MS: i64 = 5 * 60 * 1000;

impl Kind {
    pub const ALL: [Kind; 10] = [
        Kind::Condition,
        Kind::Drift,
        Kind::Generation,
        Kind::Publish,
        Kind::Promotion,
        Kind::Rollout,
        Kind::Approval,
        Kind::Cluster,
        Kind::Audit,
        Kind::Problem,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Condition => "condition",
            Kind::Drift => "drift",
            Kind::Generation => "generation",
            Kind::Publish => "publish",
            Kind::Promotion => "promotion",
            Kind::Rollout => "rollout",
            Kind::Approval => "approval",
            Kind::Cluster => "cluster",
            Kind::Audit => "audit",
            Kind::Problem => "problem",
        }
    }

    pub fn from_text(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Entry {
    pub fn new(at: Timestamp, place: Place, what: What) -> Entry {
        Entry { at, corrected: false, place, commit: None, who: None, what }
    }

    #[must_use]
    pub fn commit(mut self, commit: &str) -> Entry {
        self.commit = Some(commit.to_owned()).filter(|commit| !commit.is_empty());
        self
    }

    #[must_use]
    pub fn by(mut self, who: &str) -> Entry {
        self.who = Some(who.to_owned()).filter(|who| !who.is_empty());
        self
    }
}

impl Place {
    pub fn environment(environment: &str) -> Place {
        Place { environment: environment.to_owned(), ..Place::default() }
    }

    pub fn stream(stream: &Stream) -> Place {
        Place {
            cluster_type: stream.cluster_type.clone(),
            ring: stream.ring.clone(),
            ..Place::environment(&stream.environment)
        }
    }

    pub fn cluster(stream: &Stream, cluster: ClusterId) -> Place {
        Place { cluster: Some(cluster), ..Place::stream(stream) }
    }

    /// An assignment as a desired state or an agent names it: without its cluster type.
    #[must_use]
    pub fn target(self, target: &str) -> Place {
        Place { assignment: format!("{}/{target}", self.cluster_type), ..self }
    }
}

impl Recorded {
    /// It was told long after it happened: a cluster was away, or a clock was wrong.
    pub fn is_late(&self) -> bool {
        self.recorded_at.0.saturating_sub(self.at.0) > LATE_MS
    }

    pub fn what(&self) -> Option<What> {
        serde_json::from_value(self.detail.clone()).ok()
    }

    /// One sentence for people.
    pub fn title(&self) -> String {
        match self.what() {
            Some(what) => title::of(&what, &self.place, self.cluster_name.as_deref()),
            None => format!("{}: {}", self.kind.as_str(), self.event),
        }
    }
}
