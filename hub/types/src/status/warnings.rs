//! What agents warn of, as the hub takes it from their documents: bounded, in the hub's time, and counted by kind. An agent's text is
//! never trusted: a code that the hub doesn't know is counted with all others of that sort, so that no agent can make lists longer.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use kedge_model::wire::Timestamp;
use kedge_status::{Severity, Status, Warning};
use serde::{Deserialize, Serialize};

use super::truly;

/// One warning of a cluster, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WarningRow {
    pub kind: &'static str,
    pub severity: WarningSeverity,
    /// One line.
    pub message: String,
    pub since: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WarningSeverity {
    /// A person is needed.
    Error,
    Warning,
}

/// A cluster's part of the counts of warnings, by code. Stored beside its document, so that the next one is a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Warned(pub BTreeMap<String, WarnedOf>);

/// One warning's part: its kind, its severity, and the fingerprint of its row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarnedOf(pub String, pub WarningSeverity, pub u64);

/// A warning that the hub can explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownWarning {
    pub code: &'static str,
    /// What it says, after "3 clusters warn: ".
    pub told: &'static str,
    pub way_out: &'static str,
}

/// Whatever the hub doesn't know.
pub const OTHER: &str = "AgentWarning";
/// Warnings of one cluster that are kept, errors first; agents have a few at a time.
const MOST: usize = 32;
/// A warning is one sentence.
const MAX_MESSAGE: usize = 256;
const JOIN_AGAIN: &str =
    "make a token with `kedge token create`, and let the host join anew with `kedge-agent join --again`";

/// What agents warn of, by code. Those that aren't here are counted as `AgentWarning`.
pub const KNOWN: [KnownWarning; 33] = [
    known(
        "ApplierBroke",
        "the part of the agent that changes the host broke down and was started again",
        "look at the agent's log on the host: journalctl -u kedge-agent",
    ),
    known(
        "CacheBroken",
        "the package cache couldn't be read and was recreated",
        "nothing is lost, packages are fetched again; when it comes back, look at the host's disk",
    ),
    known("CertificateRejected", "the hub's end of the connection refuses the agent's certificate", JOIN_AGAIN),
    known(
        "ClockOff",
        "the host's clock is wrong by more than a minute",
        "set the clock on the host: timedatectl set-ntp true; the hub corrects the times meanwhile",
    ),
    known(
        "DiskLimit",
        "the folders of an assignment hold more than its namespace allows",
        "make room in them, or raise the limit in the HostNamespace",
    ),
    known(
        "DiskLow",
        "the disk is nearly full, and nothing more is fetched",
        "make room on the host, or lower `disk_reserve` in agent.toml",
    ),
    known(
        "ForeignReports",
        "the host reports assignments that its cluster doesn't have",
        "if nobody recognizes them, somebody else may have the host's key: kedge cluster revoke CLUSTER, then join the host again",
    ),
    known(
        "HoldEnds",
        "a hold that was made at another host of the site ends within a day",
        "kedge hold CLUSTER ASSIGNMENT keeps it; otherwise the assignment is changed again",
    ),
    known(
        "HoldsRefused",
        "the agent refuses the hub's holds",
        "look at the clusters' pages for the reason, then at the hub's keys",
    ),
    known(
        "HubUnreachable",
        "the agent didn't reach the hub",
        "run `kedge-agent doctor` on the host to see why it can't reach the hub",
    ),
    known(
        "HubUnreadable",
        "the agent can't read the hub's answers",
        "upgrade the agent, or look for a proxy between it and the hub",
    ),
    known(
        "IdentityBroken",
        "the agent can't use its identity",
        "look at /var/lib/kedge on the host; `kedge-agent join --again` with a new token makes another one",
    ),
    known(
        "IdentityReplaced",
        "another process replaced the agent's identity",
        "see that one agent runs for each identity; on Kubernetes one applier leads",
    ),
    known(
        "KeySetRefused",
        "the agent refuses the hub's new keys",
        "the keys it knows didn't sign them: compare `kedge-agent status` with the hub; a hub that was set up anew needs `kedge-agent join --again`",
    ),
    known(
        "LedgerHealed",
        "a file of the agent was damaged and restored from its copy",
        "look at the host's disk: smartctl, dmesg",
    ),
    known(
        "LinkBroken",
        "the agent's settings for the hub can't be used",
        "correct the hub's address in agent.toml on the host; `kedge-agent doctor` names the mistake",
    ),
    known(
        "LookFailed",
        "the agent couldn't look at everything that it runs",
        "look at the agent's log on the host: journalctl -u kedge-agent",
    ),
    known("MachineChanged", "the disk was copied to another machine", JOIN_AGAIN),
    known(
        "MassRemoval",
        "most of what runs would be removed, and the agent waits",
        "if the removal is intended, confirm it: kedge publish confirm ENVIRONMENT CLUSTER-TYPE; otherwise restore the files in Git",
    ),
    known(
        "MembershipRefused",
        "the agent refuses the environment, cluster type or ring that the hub gives it",
        "look at the clusters' pages for the reason; `kedge cluster move` gives a new membership",
    ),
    known(
        "MemoryUnsaved",
        "the agent can't store the hub's answer, so it doesn't apply it",
        "make room on the host's disk, or make it writable again",
    ),
    known(
        "NotAHub",
        "something else than the hub answers at its address",
        "a proxy or another program: give the agent a direct way to the hub",
    ),
    known(
        "NotObserved",
        "the agent may not see everything that it should observe",
        "give its service account the rights: docs/kubernetes.md",
    ),
    known(
        "PeerLied",
        "a peer of the site sent content that wasn't what it said",
        "nothing of it was used: `kedge-agent peers` on the host names the peer; look at that host",
    ),
    known(
        "PlatformSource",
        "the cluster's own source of the platform's branch fails, is behind or isn't there",
        "look at the GitRepository or Application on the cluster",
    ),
    known(
        "RecordHealed",
        "a record of the agent was damaged and restored from its copy",
        "look at the host's disk: smartctl, dmesg",
    ),
    known(
        "RecordSetAside",
        "a record of the agent was lost, and what it described isn't managed any more",
        "look at the host's disk; `kedge reapply` lets the agent apply it again",
    ),
    known(
        "RecordUnsaved",
        "the agent can't write down what it did",
        "make room on the host's disk, or make it writable again",
    ),
    known(
        "RepairFailed",
        "a change of debs that was interrupted can't be finished",
        "on the host: dpkg --configure -a, apt-get -f install; the agent then continues by itself",
    ),
    known(
        "StateRefused",
        "the agent refuses a desired state",
        "look at the clusters' pages for the reason: an older number than it has, or a key that it doesn't know",
    ),
    known("StatusLost", "the agent's status was lost and recreated", "what runs continues; check the host's disk"),
    known("Unsupported", "the hub asks for something that the agent is too old for", "upgrade the agent"),
    known("WrongHub", "something at the hub's address can't prove that it is the hub", JOIN_AGAIN),
];

const OTHERS: KnownWarning = known(
    OTHER,
    "something that this hub doesn't know by name",
    "see the clusters' pages; `kedge-agent doctor` on a host shows what to do",
);

const fn known(code: &'static str, told: &'static str, way_out: &'static str) -> KnownWarning {
    KnownWarning { code, told, way_out }
}

/// What a code is about: the part before the first dot says it, the rest names an assignment.
pub fn about(code: &str) -> KnownWarning {
    let kind = code.split('.').next().unwrap_or_default();
    KNOWN.into_iter().find(|known| known.code == kind).unwrap_or(OTHERS)
}

/// The assignment that a code names.
pub fn assignment_of(code: &str) -> Option<&str> {
    code.split_once('.').map(|(_, assignment)| assignment)
}

/// Every kind that is counted.
pub fn kinds() -> Vec<&'static str> {
    KNOWN.iter().map(|known| known.code).chain([OTHER]).collect()
}

/// By code.
pub fn rows(status: &Status, received_at: Timestamp) -> BTreeMap<String, WarningRow> {
    let mut told: Vec<(&String, &Warning)> = status.warnings.iter().collect();
    told.sort_by_key(|(code, warning)| (WarningSeverity::of(warning.severity), about(code).code == OTHER, *code));
    told.truncate(MOST);
    let row = |(code, warning): (&String, &Warning)| {
        let row = WarningRow {
            kind: about(code).code,
            severity: WarningSeverity::of(warning.severity),
            message: one_line(&warning.message),
            since: truly(status, warning.clock, warning.since, received_at).0,
        };
        (code.clone(), row)
    };
    told.into_iter().map(row).collect()
}

/// What an agent wrote, as a table takes it.
pub fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(breaks).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_MESSAGE {
            break;
        }
    }
    line.truncate(line.floor_char_boundary(MAX_MESSAGE));
    line
}

/// Also what would turn the order of the letters around it.
fn breaks(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Warned {
    pub fn of(rows: &BTreeMap<String, WarningRow>) -> Warned {
        let one = |row: &WarningRow| {
            let mut hasher = DefaultHasher::new();
            row.hash(&mut hasher);
            WarnedOf(row.kind.to_owned(), row.severity, hasher.finish())
        };
        Warned(rows.iter().map(|(code, row)| (code.clone(), one(row))).collect())
    }

    /// Each kind with the worst that is said of it.
    pub fn kinds(&self) -> BTreeMap<&str, WarningSeverity> {
        let mut kinds = BTreeMap::new();
        for WarnedOf(kind, severity, _) in self.0.values() {
            kinds.entry(kind.as_str()).and_modify(|worst| *worst = (*severity).min(*worst)).or_insert(*severity);
        }
        kinds
    }
}

impl WarningSeverity {
    fn of(severity: Severity) -> WarningSeverity {
        match severity {
            Severity::Error => WarningSeverity::Error,
            Severity::Warning => WarningSeverity::Warning,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            WarningSeverity::Error => "error",
            WarningSeverity::Warning => "warning",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_with_an_assignment_is_counted_without_it() {
        assert_eq!((about("DiskLimit.shop").code, assignment_of("DiskLimit.shop")), ("DiskLimit", Some("shop")));
        assert_eq!((about("DiskLow").code, assignment_of("DiskLow")), ("DiskLow", None));
        assert_eq!(about("NoSuchThing").code, OTHER);
    }

    #[test]
    fn codes_are_in_order_and_each_says_the_way_out() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert!(KNOWN.iter().all(|known| !known.told.is_empty() && !known.way_out.is_empty()));
    }

    #[test]
    fn a_message_is_one_bounded_line() {
        assert_eq!(one_line("less than\n 16 MiB\u{7}\tare \u{202e}free "), "less than 16 MiB are free");
        assert_eq!(one_line(&"ä".repeat(1000)).len(), MAX_MESSAGE);
    }
}
