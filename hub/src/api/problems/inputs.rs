//! What comes from Git: repositories that can't be read, findings about what they hold, and publishes that don't go through.

use kedge_api::environments::{EnvironmentSummary, PublishSummary};
use kedge_api::findings::FindingSummary;
use kedge_api::problems::{ProblemExample, ProblemKind, ProblemSeverity, ProblemSummary};
use kedge_api::repositories::RepositorySummary;
use kedge_model::command::Command;
use std::collections::BTreeMap;

use super::fold::Found;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::objects::owns;
use crate::api::page::{MAX_CHANGES, moment};
use crate::links;
use crate::links::bare;
use crate::store::StoreError;
use crate::store::api::fleet::FleetFilter;
use crate::store::catalog::{Filter, Kind, Visible};

pub const REPOSITORY_FAILING: &str = "RepositoryFailing";

/// Each repository that fails, once, whichever environments read it.
pub async fn repositories(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    let failing = Filter { state: Some("failing".to_owned()), limit: MAX_CHANGES, ..Filter::default() };
    let (rows, _) = state.store.catalog_page(Kind::Repository, visible, &failing).await?;
    let mut known: BTreeMap<String, ProblemSummary> = BTreeMap::new();
    for row in rows {
        let view: RepositorySummary = parse(&row.body)?;
        if !owns(visible, &view) {
            continue;
        }
        let why = view.failing.unwrap_or_default();
        let shown = bare(&view.url);
        let id = format!("git/{shown}");
        found.failing.entry(row.environment.clone()).or_default().insert(id.clone());
        let problem = known.entry(view.url.clone()).or_insert_with(|| ProblemSummary {
            id,
            kind: ProblemKind::Git,
            severity: ProblemSeverity::Error,
            code: REPOSITORY_FAILING.to_owned(),
            count: 1,
            message: format!("{shown} can't be read: {}", why.error),
            brings: vec!["its last good commit stays in force, and nothing is removed because of it".to_owned()],
            hint: why.hint.clone(),
            command: "kedge get repositories --state failing".to_owned(),
            link: "/problems#repositories".to_owned(),
            since: Some(why.since.clone()).filter(|since| !since.is_empty()),
            ..ProblemSummary::default()
        });
        problem.environments.push(row.environment);
    }
    known.into_values().for_each(|problem| found.add(problem));
    Ok(())
}

/// Findings by environment and code.
pub async fn findings(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    for sum in state.store.finding_sums(visible).await? {
        let views: Vec<FindingSummary> = sum.bodies.iter().map(|body| parse(body)).collect::<Result<_, _>>()?;
        let Some(first) = views.first() else { continue };
        let (code, environment) = (first.finding.code.clone(), sum.environment.clone());
        let severity = if sum.severity == "error" { ProblemSeverity::Error } else { ProblemSeverity::Warning };
        let pairs = [("environment", environment.as_str()), ("code", code.as_str())];
        let message = match sum.count {
            1 => first.finding.message.clone(),
            count => format!("{count} findings of {code}"),
        };
        let kind = kind_of(&first.finding.stage, &code);
        let command = Command::new("kedge get findings");
        let command = if environment.is_empty() { command } else { command.option("-e", &environment) };
        found.add(ProblemSummary {
            id: format!("{}/{environment}/{}/{code}", kind.as_str(), severity.as_str()),
            kind,
            severity,
            environments: Some(environment.clone()).filter(|name| !name.is_empty()).into_iter().collect(),
            count: sum.count,
            message,
            hint: first.finding.hint.clone().or_else(|| way_out(kind)),
            command: command.option("-l", &format!("code={code}")).then("-o wide").into(),
            link: links::query("/problems", &pairs),
            since: Some(moment(sum.since)),
            examples: views.into_iter().map(example).collect(),
            code,
            ..ProblemSummary::default()
        });
    }
    let everywhere = FleetFilter::default();
    for sum in state.store.quarantine_sums(visible, &everywhere).await? {
        *found.quarantined.entry(sum.environment).or_default() += sum.count;
    }
    found.stale.extend(state.store.stale_sums(visible).await?);
    Ok(())
}

/// Publishes that wait for a word or a merge, or don't go through. For the platform team: a branch is everybody's.
pub async fn environments(state: &ApiState, visible: &Visible, found: &mut Found) -> Result<(), ApiError> {
    if *visible != Visible::All {
        return Ok(());
    }
    let all = Filter { limit: MAX_CHANGES, ..Filter::default() };
    let (rows, _) = state.store.catalog_page(Kind::Environment, visible, &all).await?;
    for row in rows {
        let view: EnvironmentSummary = parse(&row.body)?;
        let name = view.name.as_str();
        for publish in &view.waiting {
            let (kind, removed) = (&publish.cluster_type, publish.removed.len() as u64);
            found.add(ProblemSummary {
                id: format!("delivery/{name}/PublishWaiting/{kind}"),
                kind: ProblemKind::Delivery,
                severity: ProblemSeverity::Waiting,
                code: "PublishWaiting".to_owned(),
                environments: vec![name.to_owned()],
                count: removed,
                message: format!(
                    "publishing {kind} would remove {removed} of {} assignments; it waits for a person",
                    publish.confirmed
                ),
                hint: Some("confirm it if it is intended; otherwise restore the files in Git".to_owned()),
                command: Command::new("kedge publish confirm").names(&[name, kind]).into(),
                link: links::confirm(name, kind),
                since: Some(moment(row.updated_at)),
                ..ProblemSummary::default()
            });
        }
        if let Some(problem) = view.publish.as_ref().and_then(|publish| published(name, publish)) {
            found.add(ProblemSummary { since: Some(moment(row.updated_at)), ..problem });
        }
    }
    Ok(())
}

/// A publish that isn't through, by how the last one ended.
fn published(name: &str, publish: &PublishSummary) -> Option<ProblemSummary> {
    let told = publish.message.clone().unwrap_or_default();
    let link = publish.link.clone().unwrap_or_default();
    let (code, severity, message, hint) = match publish.outcome.as_str() {
        "failing" => (
            "PublishFailing",
            ProblemSeverity::Error,
            format!("{name} can't be published: {told}"),
            "the hub tries again by itself; it needs a credential that may push to the GitOps branch".to_owned(),
        ),
        "pullRequest" if told.ends_with("is open") => (
            "PullRequestOpen",
            ProblemSeverity::Waiting,
            format!("{told} for {name}: nothing is delivered before it is merged"),
            format!("review and merge {link}"),
        ),
        "branchPushed" => (
            "BranchPushed",
            ProblemSeverity::Waiting,
            format!("the next state of {name} is on the branch {link}"),
            format!("merge the branch {link}"),
        ),
        "declined" => (
            "PullRequestClosed",
            ProblemSeverity::Warning,
            format!("{name}: {told}"),
            format!("reopen {link}, or change the content"),
        ),
        "waiting" if !told.is_empty() => (
            "ForeignCommits",
            ProblemSeverity::Warning,
            format!("{name}: {told}"),
            "merge that branch, or delete it".to_owned(),
        ),
        _ => return None,
    };
    Some(ProblemSummary {
        id: format!("delivery/{name}/{code}"),
        kind: ProblemKind::Delivery,
        severity,
        code: code.to_owned(),
        environments: vec![name.to_owned()],
        count: 1,
        message,
        hint: Some(hint),
        command: Command::new("kedge describe environment").names(&[name]).into(),
        link: links::environment(name),
        ..ProblemSummary::default()
    })
}

fn kind_of(stage: &str, code: &str) -> ProblemKind {
    match stage {
        "events" => ProblemKind::Hub,
        "pack" | "publish" => ProblemKind::Delivery,
        _ if code.starts_with("Repository") || code.starts_with("Source") => ProblemKind::Git,
        _ => ProblemKind::Schedule,
    }
}

/// Where a finding says nothing itself.
fn way_out(kind: ProblemKind) -> Option<String> {
    let told = match kind {
        ProblemKind::Hub => "look at the hub's configuration and its log",
        _ => "fix the file and push: the hub reads it by itself",
    };
    Some(told.to_owned())
}

fn example(view: FindingSummary) -> ProblemExample {
    ProblemExample {
        id: Some(view.id),
        cluster: None,
        assignment: view.assignment,
        message: view.finding.message,
        hint: view.finding.hint,
        origin: view.finding.origin,
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ApiError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("the catalog: {error}")).into())
}
