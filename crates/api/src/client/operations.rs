//! What people start for many clusters at once.

use serde_json::json;

use super::{Answer, Client, ClientError};
use crate::operations::{OperationRequest, OperationResult, StartRolloutRequest};

impl Client {
    pub fn start_rollout(&self, request: &StartRolloutRequest) -> Result<Answer<OperationResult>, ClientError> {
        self.post(&["rollouts"], request)
    }

    pub fn operate(&self, request: &OperationRequest) -> Result<Answer<OperationResult>, ClientError> {
        self.post(&["operations"], request)
    }

    /// So many removals are meant.
    pub fn confirm_publish(&self, environment: &str, cluster_type: &str) -> Result<(), ClientError> {
        let path = ["environments", environment, "cluster-types", cluster_type, "confirm"];
        self.post::<()>(&path, &json!({})).map(drop)
    }
}
