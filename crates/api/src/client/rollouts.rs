//! Rollouts, and what people do about them.

use super::{Answer, Client, ClientError, Pages, Parameters};
use crate::page::Page;
use crate::rollout_status::RolloutStatus;
use crate::rollouts::{RolloutAction, RolloutActionRequest, RolloutDetail, RolloutSummary};

impl Client {
    pub fn rollouts(&self, parameters: &Parameters<'_>) -> Pages<'_, RolloutSummary> {
        self.pages(&["rollouts"], parameters)
    }

    /// One page.
    pub fn rollouts_page(&self, parameters: &Parameters<'_>) -> Result<Answer<Page<RolloutSummary>>, ClientError> {
        self.get(&["rollouts"], parameters)
    }

    pub fn rollout(&self, id: u64) -> Result<Answer<RolloutDetail>, ClientError> {
        self.get(&["rollouts", &id.to_string()], &[])
    }

    pub fn rollout_status(&self, parameters: &Parameters<'_>) -> Result<Answer<RolloutStatus>, ClientError> {
        self.get(&["rollout-status"], parameters)
    }

    pub fn act_on_rollout(
        &self,
        id: u64,
        action: RolloutAction,
        request: &RolloutActionRequest,
    ) -> Result<Answer<RolloutDetail>, ClientError> {
        self.post(&["rollouts", &id.to_string(), action.as_str()], request)
    }
}
