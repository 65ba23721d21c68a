//! What a change would do.

use super::{Answer, Client, ClientError};
use crate::plans::{PlanDetail, PlanRequest};

impl Client {
    pub fn plan(&self, request: &PlanRequest) -> Result<Answer<PlanDetail>, ClientError> {
        self.post(&["plan"], request)
    }
}
