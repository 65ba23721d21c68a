//! What is wrong with clusters: assignments that Failed, clusters that are offline or cloned, certificates that aren't renewed,
//! drift and holds. All of it from counts and from indexes of the few.

use kedge_api::problems::{ProblemExample, ProblemKind, ProblemSeverity, ProblemSummary};
use kedge_hub_types::status::tally::Presence;
use kedge_model::command::{Command, quote};
use std::collections::{BTreeMap, BTreeSet};

use super::fold::Found;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::page::moment;
use crate::links;
use crate::store::agents::holds::HoldWriter;
use crate::store::api::conditions::MemberFilter;
use crate::store::api::fleet::{FleetFilter, TypeSum};
use crate::store::api::problems::{ClusterSum, Held};
use crate::store::catalog::Visible;
use crate::store::now;

pub const FAILED: &str = "AssignmentFailed";
/// Holds that are told with their words.
const TOLD: usize = 3;

/// Assignments that Failed, by environment and assignment.
pub async fn failed(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    for sum in state.store.failed_sums(visible).await? {
        let (environment, count) = (sum.environment.as_str(), sum.count);
        let assignment = format!("{}/{}", sum.cluster_type, sum.assignment);
        let pairs = [("environment", environment), ("assignment", assignment.as_str()), ("condition", "Failed")];
        found.add(ProblemSummary {
            id: format!("clusters/{environment}/{FAILED}/{assignment}"),
            code: FAILED.to_owned(),
            count,
            message: format!("{assignment} is Failed on {}", counted(count, "cluster")),
            hint: Some("the agent tries again by itself; fix the cause there, or push a version that works".to_owned()),
            command: Command::new("kedge get conditions").option("-e", environment).then("--condition Failed").into(),
            link: links::query("/conditions", &pairs),
            examples: vec![ProblemExample { assignment: Some(assignment), ..ProblemExample::default() }],
            ..of_clusters(environment, ProblemSeverity::Error)
        });
    }
    Ok(())
}

/// Clusters that missed their check-in, by environment.
pub async fn offline(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    let everywhere = FleetFilter::default();
    let mut offline: BTreeMap<String, (u64, BTreeSet<String>)> = BTreeMap::new();
    for TypeSum { environment, cluster_type, what, count, .. } in
        state.store.presence_sums(visible, &everywhere).await?
    {
        if what == Presence::Unknown && count > 0 {
            let (sum, types) = offline.entry(environment).or_default();
            *sum += count;
            types.insert(cluster_type);
        }
    }
    if offline.is_empty() {
        return Ok(());
    }
    let mut first: BTreeMap<String, i64> = BTreeMap::new();
    for (environment, cluster_type, since) in state.store.silent_since(&everywhere).await? {
        if offline.get(&environment).is_some_and(|(_, types)| types.contains(&cluster_type)) {
            first.entry(environment).and_modify(|known| *known = since.min(*known)).or_insert(since);
        }
    }
    for (environment, (count, _)) in offline {
        let pairs = [("environment", environment.as_str()), ("condition", "Unknown"), ("state", "active")];
        found.add(ProblemSummary {
            id: format!("clusters/{environment}/ClusterOffline"),
            code: "ClusterOffline".to_owned(),
            count,
            message: offline_told(count, &environment),
            hint: Some(
                "check the hosts and their network; `kedge-agent doctor` on a host shows why it can't reach the hub"
                    .to_owned(),
            ),
            command: Command::new("kedge get clusters").option("-e", &environment).then("--condition Unknown").into(),
            link: links::query("/clusters", &pairs),
            since: first.get(&environment).copied().map(moment),
            ..of_clusters(&environment, ProblemSeverity::Error)
        });
    }
    Ok(())
}

/// Identities that two hosts use, and certificates that end soon.
pub async fn identities(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    for sum in state.store.cloned_sums(visible).await? {
        let ClusterSum { environment, cluster_type, count, first } = sum;
        let pairs = [("environment", environment.as_str()), ("clusterType", cluster_type.as_str())];
        found.add(ProblemSummary {
            id: format!("clusters/{environment}/ClusterCloned/{cluster_type}"),
            code: "ClusterCloned".to_owned(),
            count,
            message: format!(
                "two hosts use the identity of {} of {cluster_type}, or a disk was put back to an earlier state",
                counted(count, "cluster")
            ),
            hint: Some(
                "stop the copy and wipe its /var/lib/kedge, then let the real host join anew: kedge cluster replace NAME"
                    .to_owned(),
            ),
            command: of_type(&environment, &cluster_type).into(),
            link: links::query("/clusters", &pairs),
            since: Some(moment(first)),
            ..of_clusters(&environment, ProblemSeverity::Error)
        });
    }
    let before = now().0.saturating_add(i64::try_from(state.certificate_margin.as_millis()).unwrap_or(i64::MAX));
    for sum in state.store.certificate_sums(visible, before).await? {
        let ClusterSum { environment, cluster_type, count, first } = sum;
        let pairs = [("environment", environment.as_str()), ("clusterType", cluster_type.as_str())];
        let ended = first <= now().0;
        found.add(ProblemSummary {
            id: format!("clusters/{environment}/CertificateExpiring/{cluster_type}"),
            code: "CertificateExpiring".to_owned(),
            count,
            message: format!(
                "the {} of {} of {cluster_type} {} and {} renewed; the first {} {}",
                if count == 1 { "certificate" } else { "certificates" },
                counted(count, "cluster"),
                if count == 1 { "ends soon" } else { "end soon" },
                if count == 1 { "isn't" } else { "aren't" },
                if ended { "ended" } else { "ends" },
                moment(first)
            ),
            hint: Some(
                "an agent renews it at its check-in: look at its log; one that was silent for too long is let in again with \
                 `kedge cluster readmit NAME`; `kedge cluster replace NAME` lets a host join anew"
                    .to_owned(),
            ),
            command: of_type(&environment, &cluster_type).then("-o wide").into(),
            link: links::query("/clusters", &pairs),
            ..of_clusters(&environment, if ended { ProblemSeverity::Error } else { ProblemSeverity::Warning })
        });
    }
    Ok(())
}

/// What people changed or hold on clusters.
pub async fn touched(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    let own: Option<BTreeSet<(String, String)>> = match visible {
        Visible::All => None,
        Visible::Workspaces(workspaces) => Some(state.store.own_assignments(workspaces).await?.into_iter().collect()),
    };
    let is_own = |environment: &str, cluster_type: &str, assignment: &str| {
        own.as_ref().is_none_or(|own| own.contains(&(environment.to_owned(), format!("{cluster_type}/{assignment}"))))
    };
    let mut drifted: BTreeMap<String, u64> = BTreeMap::new();
    for sum in state.store.drift_sums(visible, &MemberFilter::default()).await? {
        if is_own(&sum.stream.environment, &sum.stream.cluster_type, &sum.assignment) {
            *drifted.entry(sum.stream.environment).or_default() += sum.count;
        }
    }
    for (environment, count) in drifted {
        found.add(ProblemSummary {
            id: format!("clusters/{environment}/Drift"),
            code: "Drift".to_owned(),
            count,
            message: format!(
                "{} on clusters of {environment} differ from what was applied",
                counted(count, "assignment")
            ),
            hint: Some("take the change back there, or put it into Git".to_owned()),
            command: Command::new("kedge drift").names(&[&environment]).into(),
            link: links::query("/drift", &[("environment", &environment)]),
            ..of_clusters(&environment, ProblemSeverity::Warning)
        });
    }
    let mut held: BTreeMap<String, Vec<Held>> = BTreeMap::new();
    for hold in state.store.held(visible, None).await? {
        if is_own(&hold.environment, &hold.cluster_type, &hold.assignment) {
            held.entry(hold.environment.clone()).or_default().push(hold);
        }
    }
    for (environment, mut holds) in held {
        holds.sort_by(|one, other| (&one.cluster, &one.assignment).cmp(&(&other.cluster, &other.assignment)));
        let count = holds.len() as u64;
        let first = holds.iter().min_by_key(|hold| hold.since);
        let (command, hint) = first.map(end_of).unwrap_or_default();
        let since = first.map(|hold| moment(hold.since.0));
        found.add(ProblemSummary {
            id: format!("clusters/{environment}/Held"),
            code: "Held".to_owned(),
            count,
            message: format!(
                "{} in {environment} {} held: Kedge changes nothing there",
                counted(count, "assignment"),
                if count == 1 { "is" } else { "are" }
            ),
            hint: Some(hint),
            command,
            link: links::query("/clusters", &[("environment", &environment), ("state", "active")]),
            since,
            examples: holds.into_iter().take(TOLD).map(hold_told).collect(),
            ..of_clusters(&environment, ProblemSeverity::Warning)
        });
    }
    Ok(())
}

fn of_type(environment: &str, cluster_type: &str) -> Command {
    Command::new("kedge get clusters").option("-e", environment).option("--cluster-type", cluster_type)
}

/// What ends a hold: only who made it can, or whoever may speak for them.
fn end_of(hold: &Held) -> (String, String) {
    let (cluster, assignment) = (hold.cluster.as_str(), hold.assignment.as_str());
    let unneeded = "end a hold that isn't needed any more";
    match hold.writer {
        HoldWriter::Hub => (Command::new("kedge unhold").names(&[cluster, assignment]).into(), unneeded.to_owned()),
        HoldWriter::Peer(_) => (
            Command::new("kedge unhold").then("--peers --reason TEXT").names(&[cluster, assignment]).into(),
            format!("{unneeded}; this one was made at another cluster of the site"),
        ),
        HoldWriter::Cluster => (
            format!("{} # on {}", Command::new("kedge-agent unhold").names(&[assignment]), quote(cluster)),
            format!("{unneeded}; this one was made on the host itself, and is ended there"),
        ),
    }
}

fn hold_told(hold: Held) -> ProblemExample {
    let why = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
    ProblemExample {
        cluster: Some(hold.cluster),
        assignment: Some(format!("{}/{}", hold.cluster_type, hold.assignment)),
        message: format!("held by {}{why}", hold.by),
        ..ProblemExample::default()
    }
}

pub(super) fn of_clusters(environment: &str, severity: ProblemSeverity) -> ProblemSummary {
    ProblemSummary {
        kind: ProblemKind::Clusters,
        severity,
        environments: vec![environment.to_owned()],
        ..ProblemSummary::default()
    }
}

/// `1 cluster`, `3 clusters`
pub(super) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn offline_told(count: u64, environment: &str) -> String {
    match count {
        1 => format!("1 cluster of {environment} is offline: it missed its check-in, and what runs there is Unknown"),
        count => {
            format!(
                "{count} clusters of {environment} are offline: they missed their check-in, and what runs there is Unknown"
            )
        }
    }
}
