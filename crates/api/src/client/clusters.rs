//! Clusters and what people do to them.

use serde_json::json;

use super::{Answer, Client, ClientError};
use crate::clusters::{ChangeClusterRequest, ClusterDetail};
use crate::holds::{HoldRequest, ReleaseRequest};
use crate::join_tokens::{JoinTokenCreated, ReplaceRequest};

impl Client {
    pub fn cluster(&self, name: &str) -> Result<Answer<ClusterDetail>, ClientError> {
        self.get(&["clusters", name], &[])
    }

    pub fn change_cluster(
        &self,
        name: &str,
        request: &ChangeClusterRequest,
    ) -> Result<Answer<ClusterDetail>, ClientError> {
        self.patch(&["clusters", name], request)
    }

    pub fn replace_cluster(
        &self,
        name: &str,
        request: &ReplaceRequest,
    ) -> Result<Answer<JoinTokenCreated>, ClientError> {
        self.post(&["clusters", name, "replace"], request)
    }

    pub fn retire_cluster(&self, name: &str) -> Result<Answer<ClusterDetail>, ClientError> {
        self.post(&["clusters", name, "retire"], &json!({}))
    }

    pub fn readmit_cluster(&self, name: &str) -> Result<Answer<ClusterDetail>, ClientError> {
        self.post(&["clusters", name, "readmit"], &json!({}))
    }

    pub fn revoke_cluster(&self, name: &str) -> Result<Answer<ClusterDetail>, ClientError> {
        self.post(&["clusters", name, "revoke"], &json!({}))
    }

    pub fn hold(&self, cluster: &str, request: &HoldRequest) -> Result<Answer<ClusterDetail>, ClientError> {
        self.post(&["clusters", cluster, "hold"], request)
    }

    pub fn release(&self, cluster: &str, request: &ReleaseRequest) -> Result<Answer<ClusterDetail>, ClientError> {
        self.post(&["clusters", cluster, "release"], request)
    }
}
