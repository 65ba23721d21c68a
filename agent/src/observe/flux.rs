//! Flux: sources, Kustomizations and HelmReleases, as their controllers write their status. Pure; called by `judged`.

use serde_json::Value;

use super::conditions::{Conditions, Status};
use super::judged::{Judged, Reads, Standing, Subject, is_commit, revision, text};
use super::name::{HELM, KUSTOMIZE, Kind, Name, SOURCES};

/// Reasons of "not ready" that only mean: somebody else isn't.
const WAITING: [&str; 4] = ["DependencyNotReady", "HealthCheckCanceled", "SourceNotReady", "HelmChartNotReady"];
/// The source has nothing yet, or can't be fetched; the source says which.
const NO_ARTIFACT: &str = "ArtifactFailed";
/// Failed, and tried again: not the same as work on something new.
const RETRYING: &str = "ProgressingWithRetry";
/// What an OCI artifact says of the commit that it was made from.
const ORIGIN: &str = "org.opencontainers.image.revision";
/// Git's default for Flux, when nothing is said.
const DEFAULT_BRANCH: &str = "master";

pub fn judge(kind: &Kind, subject: &Subject<'_>) -> Judged {
    let suspended = subject.spec.get("suspend").and_then(Value::as_bool).unwrap_or(false);
    // The suspension is itself a new version that its controller doesn't look at.
    let generation = subject.generation.filter(|_| !suspended);
    let mut judged = stand(&Subject { generation, ..*subject });
    judged.suspended = suspended;
    match (kind.group.as_str(), kind.kind.as_str()) {
        (KUSTOMIZE, "Kustomization") => kustomization(subject, &mut judged),
        (HELM, "HelmRelease") => helm_release(subject, &mut judged),
        (SOURCES, kind) => source(kind, subject, &mut judged),
        _ => {}
    }
    judged
}

/// By the conditions that all of Flux's kinds share.
fn stand(subject: &Subject<'_>) -> Judged {
    let conditions = Conditions::of(subject);
    let mut judged = Judged::default();
    let Some(ready) = conditions.get("Ready") else {
        judged.message = "its controller hasn't reported on it yet".to_owned();
        return judged;
    };
    let stalled = conditions.get("Stalled").filter(|_| conditions.is_true("Stalled"));
    let reconciling = conditions.get("Reconciling").filter(|_| conditions.is_true("Reconciling"));
    let is_new = reconciling.is_some_and(|busy| busy.reason != RETRYING && busy.reason == ready.reason);
    match ready.status {
        _ if !ready.is_current && stalled.is_none() => {
            ready.tell(&mut judged, Standing::Progressing);
            judged.message = "its controller hasn't seen the newest version of it yet".to_owned();
            judged.waits = true;
        }
        Status::False if is_new => ready.tell(&mut judged, Standing::Progressing),
        Status::False if WAITING.contains(&ready.reason) => {
            ready.tell(&mut judged, Standing::Progressing);
            judged.waits = true;
        }
        Status::False => {
            ready.tell(&mut judged, Standing::Failed);
            judged.waits = ready.reason == NO_ARTIFACT;
        }
        Status::True => ready.tell(&mut judged, Standing::Ready),
        Status::Unknown => match stalled {
            Some(stalled) => stalled.tell(&mut judged, Standing::Failed),
            None => {
                ready.tell(&mut judged, Standing::Progressing);
                if let Some(busy) = reconciling.filter(|busy| !busy.message.is_empty()) {
                    judged.say(busy.reason, busy.message);
                }
            }
        },
    }
    judged
}

fn kustomization(subject: &Subject<'_>, judged: &mut Judged) {
    let source = reference(subject, &["sourceRef"], "GitRepository");
    let from_git = source.as_ref().is_some_and(|source| source.kind.kind == "GitRepository");
    judged.sources.extend(source);
    judged.path = Some(text(subject.spec, &["path"]).unwrap_or("./").to_owned());
    judged.revision = revision(subject.status, &["lastAppliedRevision"]);
    judged.attempted = revision(subject.status, &["lastAttemptedRevision"]);
    let origin = revision(subject.status, &["lastAppliedOriginRevision"]);
    let applied = judged.revision.clone().filter(|applied| from_git || is_commit(applied));
    judged.commits.extend(origin.or(applied));
}

fn helm_release(subject: &Subject<'_>, judged: &mut Judged) {
    let conditions = Conditions::of(subject);
    // After a rollback "ready" repeats that the rollback went well; what went wrong stands in its own condition.
    let cause = ["Released", "TestSuccess"].iter().find_map(|name| {
        let cause = conditions.get(name)?;
        (cause.status == Status::False && !cause.message.is_empty()).then_some(cause)
    });
    let remediated = conditions.get("Remediated").is_some_and(|done| done.reason == judged.reason);
    if let (Standing::Failed, true, Some(cause)) = (judged.standing, remediated, cause) {
        cause.tell(judged, Standing::Failed);
    }
    let history = subject.status.get("history").and_then(Value::as_array);
    let deployed = history.and_then(|history| {
        history.iter().find(|release| text(release, &["status"]) == Some("deployed")).or(history.first())
    });
    judged.attempted = revision(subject.status, &["lastAttemptedRevision"]);
    judged.revision = deployed
        .and_then(|release| revision(release, &["chartVersion"]))
        .or_else(|| revision(subject.status, &["lastAppliedRevision"]));
    // `namespace/name` of the HelmChart that stands between the release and its repository.
    if let Some((namespace, name)) = text(subject.status, &["helmChart"]).and_then(|chart| chart.split_once('/')) {
        judged.sources.push(Name::new(Kind::new(SOURCES, "HelmChart"), Some(namespace), name));
    }
    judged.sources.extend(reference(subject, &["chartRef"], ""));
    judged.sources.extend(reference(subject, &["chart", "spec", "sourceRef"], ""));
}

fn source(kind: &str, subject: &Subject<'_>, judged: &mut Judged) {
    judged.revision = revision(subject.status, &["artifact", "revision"]);
    let origin = revision(subject.status, &["artifact", "metadata", ORIGIN]);
    match kind {
        "GitRepository" => {
            judged.commits.extend(judged.revision.clone());
            let repo = text(subject.spec, &["url"]).map(str::to_owned);
            let branch = git_branch(subject.spec);
            judged.reads = repo.zip(branch).map(|(repo, branch)| Reads { repo, branch: Some(branch) });
        }
        "HelmChart" => judged.sources.extend(reference(subject, &["sourceRef"], "")),
        _ => judged.commits.extend(origin),
    }
    // A HelmRepository of the kind `oci` has no status: there is nothing to fetch before a chart is.
    let is_static = kind == "HelmRepository" && text(subject.spec, &["type"]) == Some("oci");
    if is_static && Conditions::of(subject).is_empty() {
        judged.standing = Standing::Ready;
        judged.message.clear();
    }
}

/// In the order in which Flux prefers them.
fn git_branch(spec: &Value) -> Option<String> {
    let named = |key| text(spec, &["ref", key]);
    // With a commit the branch only says where to look for it.
    if named("commit").is_some() {
        return None;
    }
    if let Some(name) = named("name") {
        return name.strip_prefix("refs/heads/").map(str::to_owned);
    }
    if named("semver").or(named("tag")).is_some() {
        return None;
    }
    Some(named("branch").unwrap_or(DEFAULT_BRANCH).to_owned())
}

/// An object that this one names, in its own namespace unless it says another.
fn reference(subject: &Subject<'_>, path: &[&str], default_kind: &str) -> Option<Name> {
    let found = path.iter().try_fold(subject.spec, |value, key| value.get(key))?;
    let kind = text(found, &["kind"]).unwrap_or(default_kind);
    let namespace = text(found, &["namespace"]).or(subject.namespace);
    let name = text(found, &["name"])?;
    (!kind.is_empty()).then(|| Name::new(Kind::new(SOURCES, kind), namespace, name))
}
