//! What the API shows of an environment, as values: stored as JSON by the leader, answered by every hub.

use std::collections::BTreeMap;

use kedge_model::kinds::RepoRef;
use kedge_model::{Origin, Problem};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A place in a file of a repository, where something was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceView {
    pub repo: String,
    /// `branch@sha1:commit`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// A folder of a branch of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FolderView {
    pub repo: String,
    pub branch: String,
    pub path: String,
}

/// A commit that an environment was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputView {
    pub repo: String,
    pub commit: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentView {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<FolderView>,
    /// Where the rendered files go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitops: Option<FolderView>,
    /// The commit of main that was promoted to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted_commit: Option<String>,
    /// Absent for an application team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<TotalsView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<PublishView>,
    /// Cluster types whose publish waits for `kedge publish confirm`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingView>,
}

/// How much there is in an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TotalsView {
    pub cluster_types: u64,
    pub targets: u64,
    pub assignments: u64,
    pub quarantined: u64,
    /// Inputs that fail to load: while one is here, nothing is removed.
    pub failing_inputs: u64,
}

/// How the last publish ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishView {
    /// `unchanged`, `committed`, `pullRequest`, `branchPushed`, `declined`, `waiting`, `failing`
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The pull request's address, or the name of the pushed branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A cluster type that would lose more than half of its assignments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingView {
    pub cluster_type: String,
    /// Assignments that would go.
    pub removed: Vec<String>,
    /// How many the last confirmed set has.
    pub confirmed: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTypeView {
    pub environment: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub reconciler: String,
    pub namespace_service: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_type: Option<String>,
    pub origin: PlaceView,
    /// Set when its file can't be read any more and this is the last good version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadView {
    pub environment: String,
    pub name: String,
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    /// Full names of its targets in this environment.
    pub targets: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<String>,
    pub origin: PlaceView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_since: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentTargetView {
    pub environment: String,
    /// `<workload>-<target>`
    pub name: String,
    pub workload: String,
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    /// Values that look secret are redacted.
    pub manifests: BTreeMap<String, String>,
    pub origin: PlaceView,
}

/// A deployment target on a cluster type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignmentView {
    pub environment: String,
    /// `<cluster type>/<workload>-<target>`
    pub name: String,
    pub cluster_type: String,
    pub target: String,
    pub workload: String,
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    /// The policies that chose it.
    pub policies: Vec<String>,
    /// `rendered` or `quarantined`; of one that is asked for by its name also `removed`: Git doesn't describe it any more
    pub state: String,
    /// Why it is quarantined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantine: Vec<FindingView>,
}

/// What one assignment's own page says besides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignmentDetail {
    pub policies: Vec<PolicyView>,
    pub target_origin: Option<PlaceView>,
    pub manifests: BTreeMap<String, String>,
    /// The files it publishes, with the digest of their text.
    pub files: Vec<FileView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<FindingView>,
}

/// A policy that chose an assignment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyView {
    pub name: String,
    pub cluster_types: String,
    pub targets: String,
    pub origin: PlaceView,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    pub path: String,
    pub digest: String,
}

/// One configuration value of an assignment and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueView {
    pub key: String,
    pub value: serde_json::Value,
    /// It, or a part of it, is shown to the platform team only.
    pub secret: bool,
    /// In the order of merging; the last one that isn't overridden wins.
    pub candidates: Vec<CandidateView>,
}

/// A ConfigMap that sets a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateView {
    pub config_map: String,
    pub text: String,
    /// `wins`, `merged` or `overridden`
    pub effect: String,
    pub origin: PlaceView,
}

/// What is wrong, or worth a warning. Values that look secret are redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingView {
    /// `error` or `warning`
    pub severity: String,
    /// A stable word for programs.
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<PlaceView>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<PlaceView>,
    /// `load`, `render`, `publish`, `pack`
    pub stage: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemView {
    pub environment: String,
    /// Stable as long as the problem is the same.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    /// The assignment keeps what is published until this is mended.
    pub quarantines: bool,
    #[serde(flatten)]
    pub finding: FindingView,
}

/// A repository that an environment reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryView {
    pub url: String,
    pub branches: BTreeMap<String, String>,
    /// RFC 3339: when it last answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_good: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<FailingView>,
    /// Branches whose history was rewritten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
    /// Whose registrations name it; empty for the platform's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<String>,
}

/// Why a repository can't be read; its last good commit stays in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingView {
    pub error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<String>,
}

impl From<&Origin> for PlaceView {
    fn from(origin: &Origin) -> PlaceView {
        PlaceView {
            repo: origin.source.repo.clone(),
            revision: origin.source.revision.clone(),
            file: origin.file.to_string(),
            line: (origin.line > 0).then_some(origin.line),
            column: (origin.column > 0).then_some(origin.column),
        }
    }
}

impl From<&RepoRef> for FolderView {
    fn from(folder: &RepoRef) -> FolderView {
        FolderView { repo: folder.repo.clone(), branch: folder.branch.clone(), path: folder.path.clone() }
    }
}

impl FindingView {
    /// A problem as it is, for texts that quote no values.
    pub fn of(problem: &Problem, stage: &str) -> FindingView {
        FindingView {
            severity: problem.severity.as_str().to_owned(),
            code: problem.code.to_owned(),
            message: problem.message.clone(),
            hint: problem.hint.clone(),
            origin: problem.origin.as_ref().map(PlaceView::from),
            related: problem.related.iter().map(PlaceView::from).collect(),
            stage: stage.to_owned(),
        }
    }
}
