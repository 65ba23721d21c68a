//! What this host knows about itself, gathered from its ledgers without the daemon and without a network. One part that can't be
//! read stands for itself only. `status`, `why`, the commands that take an assignment's name and `metrics` read it; it writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use kedge_durable::RealDisk;
use kedge_model::wire::{ClusterId, Generation, Membership, Mode, PackagesKey, Stream, Timestamp};
use kedge_status::{Condition, Report, Severity};
use serde::{Serialize, Serializer};

use crate::alive::Standby;
use crate::causes::chain;
use crate::clock::Time;
use crate::contact::Contact;
use crate::daemon;
use crate::desired::Memory;
use crate::holds::{Elsewhere, Held, Holds, Writer};
use crate::identity::Identity;
use crate::paths::Paths;
use crate::peers::shown::Shown;
use crate::record::{FailedAttempt, Record};
use crate::records::{Records, RecordsError};
use crate::report;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// None: not joined.
    pub cluster: Option<Cluster>,
    /// The process that holds the state folder.
    pub daemon: Option<u32>,
    /// A newer state is here, and is followed when the hub says that it is this cluster's turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Generation>,
    /// On a cluster: it waits for its turn, and another one works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standby: Option<Standby>,
    pub hub: Hub,
    pub assignments: Vec<Assignment>,
    pub holds: Vec<Hold>,
    /// What people here hold on other clusters of the site.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holds_elsewhere: Vec<HoldElsewhere>,
    pub warnings: Vec<Warning>,
    /// Ledgers that can't be read, each with why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
    /// Not below `--root`: systemd has the agent.
    #[serde(skip)]
    pub is_host: bool,
    #[serde(skip)]
    pub records: BTreeMap<String, Record>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    pub id: ClusterId,
    pub name: String,
    pub stream: Option<Stream>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub hub: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hub {
    pub last_contact: Option<Time>,
    pub next_contact: Option<Time>,
    /// Milliseconds to add to this host's clock for the hub's.
    pub clock_offset_ms: Option<i64>,
    pub failed_polls: u32,
    pub error: Option<String>,
    /// The peer that carries for this cluster while the hub doesn't answer it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    pub name: String,
    /// `Converged`, `Converging`, `Failed`, `Unknown`.
    pub condition: &'static str,
    pub since: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub running: Option<PackagesKey>,
    pub running_version: Option<String>,
    pub desired: Option<PackagesKey>,
    pub desired_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// What a transaction is at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<String>,
    pub held: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    pub assignment: String,
    pub by: String,
    #[serde(serialize_with = "spelled")]
    pub writer: Writer,
    pub reason: String,
    pub since: Time,
    /// One that was made at another agent of the site ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_in_seconds: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldElsewhere {
    pub cluster: ClusterId,
    pub assignment: String,
    pub by: String,
    pub reason: String,
    pub since: Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    pub code: String,
    pub severity: Severity,
    pub message: String,
    pub since: Time,
}

/// Why nothing can be known.
#[derive(Debug, thiserror::Error)]
pub enum OverviewError {
    #[error("{0} can't be read: only root may")]
    Forbidden(PathBuf),
    #[error("{path} can't be read")]
    Folder { path: PathBuf, source: io::Error },
    #[error("what was done on this host can't be read")]
    Records(#[source] RecordsError),
}

#[derive(Debug, thiserror::Error)]
#[error("there is no assignment `{name}` on this host")]
pub struct UnknownAssignment {
    pub name: String,
    pub known: Vec<String>,
}

impl Overview {
    /// An error only when nothing at all can be read: the folder is another user's.
    pub fn read(paths: &Paths) -> Result<Overview, OverviewError> {
        let state = paths.state();
        match std::fs::read_dir(&state) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(OverviewError::Forbidden(state));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OverviewError::Folder { path: state, source: error });
            }
            _ => {}
        }
        let mut overview =
            Overview { hub: Contact::read(paths).into(), is_host: paths.is_host(), ..Overview::default() };
        (overview.records, overview.unreadable) =
            Records::read_all(&RealDisk, paths).map_err(OverviewError::Records)?;
        overview.daemon = daemon::holder(paths);
        if let Some(shown) = overview.daemon.and_then(|_| Shown::read(paths)) {
            overview.hub.via = overview.hub.error.as_ref().and_then(|_| Some(shown.via()?.title()));
            overview.waits = shown.waits;
        }
        overview.standby = Standby::read(paths).filter(|_| overview.daemon.is_some());
        overview.read_holds(paths);
        let desired = overview.read_desired(paths);
        let reports = overview.read_status(paths);
        overview.assemble(&reports, &desired);
        Ok(overview)
    }

    /// The name as this host calls it: also `<cluster type>/<name>`, as the hub writes it.
    pub fn find(&self, name: &str) -> Result<&Assignment, UnknownAssignment> {
        let own_type = self.cluster.as_ref().and_then(|cluster| cluster.stream.as_ref());
        let short = match name.split_once('/') {
            Some((kind, short)) if own_type.is_some_and(|stream| stream.cluster_type == kind) => short,
            _ => name,
        };
        let unknown = || UnknownAssignment {
            name: name.to_owned(),
            known: self.assignments.iter().map(|assignment| assignment.name.clone()).collect(),
        };
        self.assignments.iter().find(|assignment| assignment.name == short).ok_or_else(unknown)
    }

    /// Who this is, and what the last accepted state asks for.
    fn read_desired(&mut self, paths: &Paths) -> BTreeMap<String, Wanted> {
        let identity = self.taken(Identity::read(&RealDisk, paths)).flatten();
        let memory = self.taken(Memory::read(&RealDisk, paths)).flatten();
        let mut wanted = BTreeMap::new();
        let Some(identity) = identity else { return wanted };
        // What the join said, until something newer is remembered.
        let origin: Option<Membership> = serde_json::from_slice(&identity.origin().1.payload).ok();
        let mut name = identity.name().to_owned();
        let (mut stream, mut site) = origin.map(|membership| (membership.stream, membership.site)).unzip();
        if let Some((membership, state, _)) = memory.filter(|(membership, ..)| membership.cluster == identity.cluster())
        {
            (name, stream, site) = (membership.name, Some(membership.stream.clone()), Some(membership.site));
            let state = state.filter(|state| state.stream == membership.stream);
            for entry in state.map(|state| state.entries).unwrap_or_default() {
                let version = match &entry.mode {
                    Mode::Apply(packages) => packages.version.clone(),
                    Mode::Observe(_) => None,
                };
                wanted.insert(entry.assignment.clone(), Wanted { key: entry.packages_key(), version });
            }
        }
        let (id, hub) = (identity.cluster(), identity.hub().to_owned());
        self.cluster = Some(Cluster { id, name, stream, site: site.flatten(), hub });
        wanted
    }

    fn read_holds(&mut self, paths: &Paths) {
        let held = self.taken(Holds::of(paths).read()).unwrap_or_default();
        self.holds = held
            .into_iter()
            .map(|Held { assignment, by, reason, since, writer, ends_in }| Hold {
                ends_in_seconds: ends_in.map(|left| left.as_secs()),
                assignment,
                by,
                writer,
                reason,
                since: Time(since),
            })
            .collect();
        let elsewhere = self.taken(Holds::of(paths).elsewhere()).unwrap_or_default();
        let shown = |Elsewhere { cluster, entry }| HoldElsewhere {
            cluster,
            assignment: entry.assignment,
            by: entry.by,
            reason: entry.reason,
            since: Time(entry.since),
        };
        self.holds_elsewhere = elsewhere.into_iter().map(shown).collect();
    }

    /// Times as this host's clock said them.
    fn read_status(&mut self, paths: &Paths) -> BTreeMap<String, Report> {
        let Some(shown) = self.taken(report::read(&RealDisk, paths)).flatten() else { return BTreeMap::new() };
        let warning = |(code, warning): (&String, &kedge_status::Warning)| Warning {
            code: code.clone(),
            severity: warning.severity,
            message: warning.message.clone(),
            since: Time(shown.here(warning.clock, warning.since)),
        };
        self.warnings = shown.warnings.iter().map(warning).collect();
        self.hub.clock_offset_ms = self.hub.clock_offset_ms.or(shown.clock_offset());
        let here = |report: &Report| Report { since: shown.here(report.clock, report.since), ..report.clone() };
        shown.reports.iter().map(|(name, report)| (name.clone(), here(report))).collect()
    }

    /// What can't be read is told, and the rest goes on.
    fn taken<T, E: std::error::Error>(&mut self, read: Result<T, E>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.unreadable.push(chain(&error));
                None
            }
        }
    }

    /// Everything that has a name: reported, remembered, desired or held.
    fn assemble(&mut self, reports: &BTreeMap<String, Report>, desired: &BTreeMap<String, Wanted>) {
        let held: BTreeSet<String> = self.holds.iter().map(|hold| hold.assignment.clone()).collect();
        let names: BTreeSet<&String> =
            reports.keys().chain(self.records.keys()).chain(desired.keys()).chain(&held).collect();
        self.assignments = names
            .into_iter()
            .map(|name| {
                let record = self.records.get(name);
                let (report, wanted) = (reports.get(name), desired.get(name));
                Assignment { held: held.contains(name), ..assignment(name, report, record, wanted) }
            })
            .collect();
    }
}

/// What the last accepted desired state asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub key: PackagesKey,
    pub version: Option<String>,
}

fn assignment(name: &str, report: Option<&Report>, record: Option<&Record>, wanted: Option<&Wanted>) -> Assignment {
    let running = record.and_then(|record| record.running.as_ref());
    let told = report.cloned().unwrap_or_else(|| derive(record));
    let desired = wanted.map(|wanted| wanted.key).or(told.desired);
    let (reason, message) = match told.condition.clone() {
        Condition::Failed { reason, message } => (Some(reason), Some(message).filter(|text| !text.is_empty())),
        _ => (None, None),
    };
    Assignment {
        name: name.to_owned(),
        condition: told.condition.word(),
        since: (told.since != Timestamp(0)).then_some(Time(told.since)),
        reason,
        message,
        running: told.running.or(running.map(|running| running.key)),
        running_version: told.version.or_else(|| running.and_then(|running| running.packages.version.clone())),
        desired,
        desired_version: wanted.and_then(|wanted| wanted.version.clone()).or_else(|| tried_version(record?, desired?)),
        drift: told.drift,
        under_way: record.and_then(under_way),
        held: false,
    }
}

/// The version of packages that a transaction was about.
fn tried_version(record: &Record, key: PackagesKey) -> Option<String> {
    let transactions = [&record.transaction, &record.last];
    let mut wanted = transactions.into_iter().flatten().filter_map(|transaction| transaction.wanted.as_deref());
    wanted.find(|wanted| wanted.key == key)?.packages.version.clone()
}

/// What a record alone says, where the status document says nothing.
fn derive(record: Option<&Record>) -> Report {
    let mut report = Report {
        desired: None,
        generation: Default::default(),
        running: None,
        version: None,
        condition: Condition::Unknown,
        since: Timestamp(0),
        observed_at: Timestamp(0),
        drift: None,
        clock: 0,
    };
    let Some(record) = record else { return report };
    if let Some(transaction) = &record.transaction {
        (report.condition, report.since) = (Condition::Converging, transaction.started);
        report.desired = transaction.wanted.as_ref().map(|wanted| wanted.key);
    } else if let Some(FailedAttempt { failure, at, key, .. }) = &record.failed {
        let (reason, message) = (failure.reason.clone(), failure.message.clone());
        (report.condition, report.since) = (Condition::Failed { reason, message }, *at);
        report.desired = Some(*key);
    } else if let Some(running) = &record.running {
        (report.condition, report.since) = (Condition::Converged, running.since);
        report.desired = Some(running.key);
    }
    report
}

fn under_way(record: &Record) -> Option<String> {
    use crate::record::Phase;
    let transaction = record.transaction.as_ref()?;
    Some(match &transaction.phase {
        Phase::Forward => format!("step {} of {}", transaction.begun, transaction.forward.len()),
        Phase::Health => "all steps done, health checks".to_owned(),
        Phase::Back(why) => {
            format!("going back ({}), step {} of {}", why.reason, transaction.begun, transaction.back.len())
        }
    })
}

impl From<Contact> for Hub {
    fn from(contact: Contact) -> Hub {
        Hub {
            clock_offset_ms: contact.clock_offset(),
            last_contact: contact.last.map(Time),
            next_contact: contact.next.map(Time),
            failed_polls: contact.failures,
            error: contact.error,
            via: None,
        }
    }
}

fn spelled<S: Serializer>(writer: &Writer, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(writer)
}
