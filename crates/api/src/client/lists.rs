//! The lists of `kedge get`, and the objects in them.

use serde_json::Value;

use super::{Answer, Client, ClientError, Pages, Parameters};
use crate::assignments::{AssignmentDetail, AssignmentSummary};
use crate::cluster_types::ClusterTypeSummary;
use crate::deployment_targets::DeploymentTargetSummary;
use crate::desired_states::DesiredStateSummary;
use crate::environments::EnvironmentSummary;
use crate::evidence::{EvidenceDetail, EvidenceSummary};
use crate::page::{Page, Stored};
use crate::workloads::WorkloadSummary;

/// What can be listed and followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    Clusters,
    Conditions,
    ClusterTypes,
    Workloads,
    Assignments,
    Environments,
    DeploymentTargets,
    Problems,
    Findings,
    Repositories,
    DesiredStates,
    JoinTokens,
}

impl ListKind {
    /// As addresses have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ListKind::Clusters => "clusters",
            ListKind::Conditions => "conditions",
            ListKind::ClusterTypes => "cluster-types",
            ListKind::Workloads => "workloads",
            ListKind::Assignments => "assignments",
            ListKind::Environments => "environments",
            ListKind::DeploymentTargets => "deployment-targets",
            ListKind::Problems => "problems",
            ListKind::Findings => "findings",
            ListKind::Repositories => "repositories",
            ListKind::DesiredStates => "desired-states",
            ListKind::JoinTokens => "join-tokens",
        }
    }
}

impl Client {
    /// A list whose kind is chosen at run time: its items are whatever that kind has.
    pub fn list(&self, kind: ListKind, parameters: &Parameters<'_>) -> Pages<'_, Value> {
        self.pages(&[kind.as_str()], parameters)
    }

    /// What changed in a list, once something has or the time is over.
    pub fn follow(&self, kind: ListKind, parameters: &Parameters<'_>) -> Result<Answer<Page<Value>>, ClientError> {
        self.get(&[kind.as_str()], parameters)
    }

    pub fn assignments(&self) -> Pages<'_, Stored<AssignmentSummary>> {
        self.pages(&["assignments"], &[])
    }

    pub fn environments(&self) -> Pages<'_, Stored<EnvironmentSummary>> {
        self.pages(&["environments"], &[])
    }

    pub fn environment(&self, name: &str) -> Result<Answer<Stored<EnvironmentSummary>>, ClientError> {
        self.get(&["environments", name], &[])
    }

    pub fn cluster_type(
        &self,
        environment: &str,
        name: &str,
    ) -> Result<Answer<Stored<ClusterTypeSummary>>, ClientError> {
        self.get(&["cluster-types", environment, name], &[])
    }

    pub fn workload(&self, environment: &str, name: &str) -> Result<Answer<Stored<WorkloadSummary>>, ClientError> {
        self.get(&["workloads", environment, name], &[])
    }

    pub fn deployment_target(
        &self,
        environment: &str,
        name: &str,
    ) -> Result<Answer<Stored<DeploymentTargetSummary>>, ClientError> {
        self.get(&["deployment-targets", environment, name], &[])
    }

    pub fn assignment(
        &self,
        environment: &str,
        cluster_type: &str,
        target: &str,
    ) -> Result<Answer<AssignmentDetail>, ClientError> {
        self.get(&["assignments", environment, cluster_type, target], &[])
    }

    pub fn desired_state(
        &self,
        environment: &str,
        cluster_type: &str,
        ring: &str,
    ) -> Result<Answer<DesiredStateSummary>, ClientError> {
        self.get(&["desired-states", environment, cluster_type, ring], &[])
    }

    pub fn evidence(&self, parameters: &Parameters<'_>) -> Pages<'_, EvidenceSummary> {
        self.pages(&["evidence"], parameters)
    }

    pub fn one_evidence(&self, id: u64) -> Result<Answer<EvidenceDetail>, ClientError> {
        self.get(&["evidence", &id.to_string()], &[])
    }
}
