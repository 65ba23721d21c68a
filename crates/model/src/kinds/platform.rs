//! What the platform team writes about places: environments, repositories, cluster types, templates, policies.

use crate::Selector;

/// `spec {repo, branch, path}`: a folder of a branch of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoRef {
    pub repo: String,
    pub branch: String,
    /// Inside the repository; `.` is all of it.
    pub path: String,
}

/// An environment and the branch that describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    pub control_plane: RepoRef,
}

/// Another repository whose objects belong to this environment too.
#[derive(Clone, Debug, PartialEq)]
pub struct BaseRepo {
    pub repo: RepoRef,
    pub commit: Option<String>,
}

/// Where the rendered files go.
#[derive(Clone, Debug, PartialEq)]
pub struct GitOpsRepo {
    pub repo: RepoRef,
}

/// A group of clusters with the same workloads and configuration. Each field names a Template.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterType {
    pub reconciler: String,
    pub namespace_service: String,
    /// Absent, or not a Template's name: a writer from before config templates (`configmap`, `envFile`).
    pub config_type: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TemplateType {
    Reconciler,
    Namespace,
    Config,
}

/// Go templates that render to manifests.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// None when it isn't written; Kalypso asks for nothing here.
    pub template_type: Option<TemplateType>,
    /// `sh` makes `platform-config.sh`; anything else YAML.
    pub content_type: Option<String>,
    pub manifests: Vec<Manifest>,
}

/// One manifest and the line of the file that its text begins on, so that an error inside can be placed.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub text: String,
    pub line: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetSelector {
    pub workspace: Option<String>,
    pub labels: Selector,
}

/// Which targets run on which cluster types.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulingPolicy {
    pub targets: TargetSelector,
    pub cluster_types: Selector,
}
