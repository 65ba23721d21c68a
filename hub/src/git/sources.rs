//! The mirrors as packing sees them: sources that application teams wrote down.

use async_trait::async_trait;
use kedge_model::kinds::SourceRef;

use super::{Mirrors, Trust};
use crate::pack::{SourceFault, SourceHead, Sources};

#[async_trait]
impl Sources for Mirrors {
    async fn resolve(&self, repo: &str, reference: &SourceRef) -> Result<SourceHead, SourceFault> {
        match Mirrors::resolve(self, repo, reference, Trust::Application).await {
            Ok(head) => Ok(SourceHead { commit: head.commit, mirror: head.path }),
            Err(error) => Err(SourceFault { message: error.to_string(), hint: error.hint() }),
        }
    }
}
