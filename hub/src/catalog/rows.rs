//! From the scheduler's objects to rows. Pure: what is stored and what differs is decided by the caller.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kedge_api::assignments::{AssignmentSummary, Provenance, PublishedFile, SchedulingPolicySummary};
use kedge_api::cluster_types::ClusterTypeSummary;
use kedge_api::deployment_targets::DeploymentTargetSummary;
use kedge_api::findings::{Finding, FindingSummary};
use kedge_api::repositories::RepositorySummary;
use kedge_api::source::{RepositoryFolder, SourceLocation};
use kedge_api::workloads::WorkloadSummary;
use kedge_model::wire::Digest;
use kedge_model::{AssignmentId, Kind as ObjectKind, Labels, Object, ObjectId, Problem, Spec};
use kedge_scheduler::{Assignment, ConfigOrigins, Outcome, Redaction, Scheduler};
use serde::Serialize;

use super::values;
use crate::store::catalog::{Kind, Row};

/// Makes rows of one environment.
pub struct Builder<'a> {
    environment: &'a str,
    scheduler: &'a Scheduler,
    redaction: Redaction,
    origins: ConfigOrigins<'a>,
    /// Digests of configurations by the value that assignments of a cluster type share.
    composed: HashMap<(Arc<str>, usize), String>,
}

/// Digits of a problem's name.
const PROBLEM_DIGITS: usize = 16;

impl<'a> Builder<'a> {
    pub fn new(environment: &'a str, scheduler: &'a Scheduler) -> Builder<'a> {
        Builder {
            environment,
            scheduler,
            redaction: Redaction::of([scheduler]),
            origins: ConfigOrigins::new(scheduler),
            composed: HashMap::new(),
        }
    }

    pub fn scheduler(&self) -> &'a Scheduler {
        self.scheduler
    }

    /// A digest of all that cluster types, workloads and targets are made from.
    pub fn structure(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        let platform = self.scheduler.platform();
        for object in
            [ObjectKind::ClusterType, ObjectKind::Workload].into_iter().flat_map(|kind| platform.of_kind(kind))
        {
            let _ = writeln!(text, "{:?} {:?} {:?}", object.meta, object.spec, object.stale_since);
            let _ = writeln!(text, "{} {:?} {:?}", object.origin, object.origin.source, object.owner);
        }
        for target in self.scheduler.targets() {
            let _ = writeln!(text, "{} {} {:?}", target.name, target.workspace, target.labels);
        }
        Digest::of(text.as_bytes()).to_string()
    }

    pub fn cluster_types(&self) -> Vec<Row> {
        let objects = self.scheduler.platform().of_kind(ObjectKind::ClusterType);
        objects
            .filter_map(|object| {
                let Spec::ClusterType(spec) = &object.spec else { return None };
                let view = ClusterTypeSummary {
                    environment: self.environment.to_owned(),
                    name: object.meta.name.clone(),
                    labels: object.meta.labels.clone(),
                    reconciler: spec.reconciler.clone(),
                    namespace_service: spec.namespace_service.clone(),
                    config_type: spec.config_type.clone(),
                    origin: SourceLocation::from(&object.origin),
                    stale_since: object.stale_since.clone(),
                };
                let state = if object.stale_since.is_some() { "stale" } else { "good" };
                Some(Row { labels: json(&view.labels), ..plain(Kind::ClusterType, &view.name, state, json(&view)) })
            })
            .collect()
    }

    pub fn workloads(&self) -> Vec<Row> {
        let mut targets: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for target in self.scheduler.targets() {
            targets.entry(&target.workload).or_default().push(target.name.to_string());
        }
        let in_force = &self.scheduler.schedule().workloads;
        let objects = self.scheduler.platform().of_kind(ObjectKind::Workload);
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for object in objects.filter(|object| in_force.contains(&object.meta.name)) {
            let view = WorkloadSummary {
                environment: self.environment.to_owned(),
                name: object.meta.name.clone(),
                workspace: self.workspace(object),
                labels: object.meta.labels.clone(),
                targets: targets.get(object.meta.name.as_str()).cloned().unwrap_or_default(),
                registration: object.owner.clone(),
                origin: SourceLocation::from(&object.origin),
                stale_since: object.stale_since.clone(),
            };
            let state = if object.stale_since.is_some() { "stale" } else { "good" };
            let row = Row {
                workspace: view.workspace.clone(),
                labels: json(&view.labels),
                ..plain(Kind::Workload, &view.name, state, json(&view))
            };
            rows.insert(view.name, row);
        }
        rows.into_values().collect()
    }

    pub fn targets(&self) -> Vec<Row> {
        let row = |target: &Arc<kedge_scheduler::Target>| {
            let view = DeploymentTargetSummary {
                environment: self.environment.to_owned(),
                name: target.name.to_string(),
                workload: target.workload.to_string(),
                workspace: target.workspace.clone(),
                labels: target.labels.clone(),
                manifests: self.manifests(&target.manifests),
                origin: SourceLocation::from(&target.origin),
            };
            Row {
                parent: view.workload.clone(),
                workspace: view.workspace.clone(),
                labels: json(&view.labels),
                ..plain(Kind::DeploymentTarget, &view.name, "good", json(&view))
            }
        };
        self.scheduler.targets().map(row).collect()
    }

    /// The row, and its values when they weren't given before.
    pub fn assignment(&mut self, assignment: &Assignment) -> (Row, Option<(String, String)>) {
        let (content, values) = self.values(assignment);
        let quarantine = match &assignment.outcome {
            Outcome::Quarantined(reasons) => self.findings(reasons, assignment),
            Outcome::Rendered(_) => Vec::new(),
        };
        let target = &assignment.target;
        let view = AssignmentSummary {
            environment: self.environment.to_owned(),
            name: assignment.id.to_string(),
            cluster_type: assignment.id.cluster_type.to_string(),
            target: assignment.id.target.to_string(),
            workload: target.workload.to_string(),
            workspace: target.workspace.clone(),
            labels: target.labels.clone(),
            policies: assignment.policies.iter().map(ToString::to_string).collect(),
            state: if quarantine.is_empty() { "rendered" } else { "quarantined" }.to_owned(),
            quarantine,
        };
        let files = assignment.files().into_iter().flat_map(|files| files.iter());
        let detail = Provenance {
            policies: assignment.policies.iter().filter_map(|name| self.policy(name)).collect(),
            target_origin: Some(SourceLocation::from(&target.origin)),
            manifests: self.manifests(&target.manifests),
            files: files
                .map(|(name, text)| PublishedFile {
                    path: format!("{}/{name}", assignment.id),
                    digest: Digest::of(text.as_bytes()).to_string(),
                })
                .collect(),
            warnings: self.findings(&assignment.warnings, assignment),
        };
        let row = Row {
            parent: view.cluster_type.clone(),
            workspace: view.workspace.clone(),
            labels: json(&view.labels),
            detail: json(&detail),
            content,
            ..plain(Kind::Assignment, &view.name, &view.state, json(&view))
        };
        (row, values)
    }

    fn values(&mut self, assignment: &Assignment) -> (String, Option<(String, String)>) {
        let shared = (Arc::clone(&assignment.id.cluster_type), Arc::as_ptr(&assignment.configuration).addr());
        if let Some(digest) = self.composed.get(&shared) {
            return (digest.clone(), None);
        }
        let explanation = self.origins.of(&assignment.id).unwrap_or_default();
        let body = json(&values::of(&explanation, &self.redaction));
        let digest = Digest::of(body.as_bytes()).to_string();
        self.composed.insert(shared, digest.clone());
        (digest.clone(), Some((digest, body)))
    }

    pub fn assignment_problems(&self, assignment: &Assignment) -> Vec<Row> {
        let (reasons, quarantines): (&[Problem], bool) = match &assignment.outcome {
            Outcome::Quarantined(reasons) => (reasons, true),
            Outcome::Rendered(_) => (&[], false),
        };
        let name = assignment.id.to_string();
        let reasons = reasons.iter().map(|problem| (problem, quarantines));
        let all = reasons.chain(assignment.warnings.iter().map(|problem| (problem, false)));
        let rows = all.map(|(problem, quarantines)| {
            let finding = self.finding(problem, [assignment], "render");
            self.problem("", Some(&name), &assignment.target.workspace, finding, quarantines)
        });
        once_each(rows)
    }

    /// What belongs to no assignment.
    pub fn general_problems(&self) -> Vec<Row> {
        let (platform, schedule) = (self.scheduler.platform(), self.scheduler.schedule());
        let failing = platform.failing.iter().map(|failing| {
            let workspace = failing.registration.as_deref().map(|name| self.registered(name)).unwrap_or_default();
            (&failing.problem, workspace, "load")
        });
        let loading = platform.problems.iter().map(|problem| (problem, self.owner_of(problem), "load"));
        let broken = platform.broken.iter().map(|broken| {
            let workspace = broken.owner.as_deref().map(|name| self.registered(name)).unwrap_or_default();
            (&broken.problem, workspace, "load")
        });
        let scheduling = schedule.problems.iter().chain(&schedule.dormant);
        let scheduling = scheduling.map(|problem| (problem, self.owner_of(problem), "render"));
        let all = loading.chain(failing).chain(broken).chain(scheduling);
        // A problem that names its assignment is that assignment's.
        let general = all.filter(|(problem, _, _)| problem.assignment.is_none());
        once_each(general.map(|(problem, workspace, stage)| {
            self.problem("", None, &workspace, self.finding(problem, None, stage), false)
        }))
    }

    /// A finding of publishing or packing.
    pub fn noted(&self, prefix: &str, assignment: Option<&str>, finding: &Finding) -> Row {
        let id = assignment.and_then(|name| name.split_once('/')).map(|(cluster_type, target)| AssignmentId {
            cluster_type: Arc::from(cluster_type),
            target: Arc::from(target),
        });
        let found = id.and_then(|id| self.scheduler.schedule().assignments.get(&id));
        let workspace = found.map(|found| found.target.workspace.clone()).unwrap_or_default();
        let mut finding = finding.clone();
        finding.message = self.redaction.sentence(&finding.message, found.map(AsRef::as_ref));
        finding.hint = finding.hint.map(|hint| self.redaction.sentence(&hint, found.map(AsRef::as_ref)));
        let quarantines = assignment.is_some();
        self.problem(prefix, assignment, &workspace, finding, quarantines)
    }

    pub fn repositories(&self, repositories: &[RepositorySummary]) -> Vec<Row> {
        let mut whose: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for object in self.scheduler.platform().of_kind(ObjectKind::WorkloadRegistration) {
            let Spec::WorkloadRegistration(registration) = &object.spec else { continue };
            let workspace = registration.workspace.clone().unwrap_or_default();
            whose.entry(&registration.workload.repo).or_default().insert(workspace);
        }
        for target in self.scheduler.targets() {
            if let Some(repo) = target.manifests.get("repo") {
                whose.entry(repo).or_default().insert(target.workspace.clone());
            }
        }
        let row = |repository: &RepositorySummary| {
            let mut view = repository.clone();
            view.workspaces = whose.get(view.url.as_str()).into_iter().flatten().cloned().collect();
            view.url = self.redaction.sentence(&view.url, None);
            if let Some(failing) = &mut view.failing {
                failing.error = self.redaction.sentence(&failing.error, None);
            }
            let state = if view.failing.is_some() { "failing" } else { "good" };
            plain(Kind::Repository, &view.url, state, json(&view))
        };
        once_each(repositories.iter().map(row))
    }

    fn problem(
        &self,
        prefix: &str,
        assignment: Option<&str>,
        workspace: &str,
        finding: Finding,
        quarantines: bool,
    ) -> Row {
        let digest = Digest::of(json(&(assignment, &finding.code, &finding.message, &finding.origin)).as_bytes());
        let digest = digest.to_string();
        let digits = digest.rsplit(':').next().unwrap_or_default();
        let view = FindingSummary {
            environment: self.environment.to_owned(),
            id: format!("{prefix}{}", digits.get(..PROBLEM_DIGITS).unwrap_or(digits)),
            assignment: assignment.map(str::to_owned),
            quarantines,
            finding,
        };
        Row {
            parent: assignment.unwrap_or_default().to_owned(),
            workspace: workspace.to_owned(),
            labels: problem_labels(&view.finding),
            ..plain(Kind::Problem, &view.id, &view.finding.severity, json(&view))
        }
    }

    fn findings(&self, problems: &[Problem], assignment: &Assignment) -> Vec<Finding> {
        problems.iter().map(|problem| self.finding(problem, [assignment], "render")).collect()
    }

    fn finding<'b>(
        &self,
        problem: &Problem,
        assignment: impl IntoIterator<Item = &'b Assignment> + Clone,
        stage: &str,
    ) -> Finding {
        let mut finding = Finding::of(problem, stage);
        finding.message = self.redaction.sentence(&finding.message, assignment.clone());
        finding.hint = finding.hint.map(|hint| self.redaction.sentence(&hint, assignment));
        finding
    }

    fn policy(&self, name: &str) -> Option<SchedulingPolicySummary> {
        let id = ObjectId { kind: ObjectKind::SchedulingPolicy, owner: None, name: name.to_owned() };
        let object = self.scheduler.platform().objects.get(&id)?;
        let Spec::SchedulingPolicy(policy) = &object.spec else { return None };
        Some(SchedulingPolicySummary {
            name: name.to_owned(),
            cluster_types: policy.cluster_types.to_string(),
            targets: policy.targets.labels.to_string(),
            origin: SourceLocation::from(&object.origin),
        })
    }

    fn manifests(&self, manifests: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let shown = |(key, text): (&String, &String)| {
            let hidden = self.redaction.hides(key, &kedge_goyaml::Value::from(text.as_str()));
            (key.clone(), if hidden { kedge_scheduler::REDACTED.to_owned() } else { text.clone() })
        };
        manifests.iter().map(shown).collect()
    }

    fn workspace(&self, workload: &Object) -> String {
        workload.owner.as_deref().map(|name| self.registered(name)).unwrap_or_default()
    }

    fn registered(&self, registration: &str) -> String {
        let id = ObjectId { kind: ObjectKind::WorkloadRegistration, owner: None, name: registration.to_owned() };
        match self.scheduler.platform().objects.get(&id).map(|object| &object.spec) {
            Some(Spec::WorkloadRegistration(registration)) => registration.workspace.clone().unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Whose a problem is, by the repository that it was found in.
    fn owner_of(&self, problem: &Problem) -> String {
        let Some(origin) = &problem.origin else { return String::new() };
        let registrations = self.scheduler.platform().of_kind(ObjectKind::WorkloadRegistration);
        let mut own = registrations.filter_map(|object| match &object.spec {
            Spec::WorkloadRegistration(registration) if registration.workload.repo == origin.source.repo => {
                registration.workspace.clone()
            }
            _ => None,
        });
        own.next().unwrap_or_default()
    }
}

/// Where the environment is described, and where its files go.
pub fn folders(scheduler: &Scheduler) -> (Option<RepositoryFolder>, Option<RepositoryFolder>) {
    let platform = scheduler.platform();
    let control_plane = platform.of_kind(ObjectKind::Environment).find_map(|object| match &object.spec {
        Spec::Environment(environment) if object.meta.name == platform.environment => {
            Some(RepositoryFolder::from(&environment.control_plane))
        }
        _ => None,
    });
    let gitops = platform.of_kind(ObjectKind::GitOpsRepo).find_map(|object| match &object.spec {
        Spec::GitOpsRepo(gitops) => Some(RepositoryFolder::from(&gitops.repo)),
        _ => None,
    });
    (control_plane, gitops)
}

pub fn plain(kind: Kind, name: &str, state: &str, body: String) -> Row {
    Row {
        kind,
        name: name.to_owned(),
        parent: String::new(),
        workspace: String::new(),
        state: state.to_owned(),
        labels: json(&Labels::new()),
        body,
        detail: String::new(),
        content: String::new(),
    }
}

/// What problems are counted by: the same code of the same stage is one kind of trouble.
pub fn problem_labels(finding: &Finding) -> String {
    json(&BTreeMap::from([("code", &finding.code), ("stage", &finding.stage)]))
}

/// Our own views have text keys only and always become JSON.
pub fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn once_each(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    rows.map(|row| (row.name.clone(), row)).collect::<BTreeMap<_, _>>().into_values().collect()
}
