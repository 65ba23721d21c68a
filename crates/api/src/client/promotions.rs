//! Promotions and the policy that governs them.

use super::{Answer, Client, ClientError};
use crate::promotions::{ApproveRequest, EnvironmentPromotion, PromoteRequest, PromotionList};

impl Client {
    pub fn promotions(&self) -> Result<Answer<PromotionList>, ClientError> {
        self.get(&["promotions"], &[])
    }

    pub fn promotion(&self, environment: &str) -> Result<Answer<EnvironmentPromotion>, ClientError> {
        self.get(&["promotions", environment], &[])
    }

    /// Lets a commit begin now, outside its window.
    pub fn start_promotion(
        &self,
        environment: &str,
        request: &PromoteRequest,
    ) -> Result<Answer<EnvironmentPromotion>, ClientError> {
        self.post(&["promotions", environment, "start"], request)
    }

    /// Lets a commit in although the environments before it haven't passed.
    pub fn override_promotion(
        &self,
        environment: &str,
        request: &PromoteRequest,
    ) -> Result<Answer<EnvironmentPromotion>, ClientError> {
        self.post(&["promotions", environment, "override"], request)
    }

    pub fn approve_promotion(
        &self,
        environment: &str,
        request: &ApproveRequest,
    ) -> Result<Answer<EnvironmentPromotion>, ClientError> {
        self.post(&["promotions", environment, "approve"], request)
    }

    pub fn approve_policy(&self, request: &ApproveRequest) -> Result<Answer<PromotionList>, ClientError> {
        self.post(&["policy", "approve"], request)
    }
}
