//! Access tokens and join tokens.

use super::{Answer, Client, ClientError, Pages};
use crate::access_tokens::{AccessTokenCreated, AccessTokenRequest, AccessTokenSummary};
use crate::join_tokens::{JoinTokenCreated, JoinTokenRequest};

impl Client {
    pub fn access_tokens(&self) -> Pages<'_, AccessTokenSummary> {
        self.pages(&["access-tokens"], &[])
    }

    pub fn create_access_token(&self, request: &AccessTokenRequest) -> Result<Answer<AccessTokenCreated>, ClientError> {
        self.post(&["access-tokens"], request)
    }

    pub fn revoke_access_token(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&["access-tokens", id])
    }

    pub fn create_join_token(&self, request: &JoinTokenRequest) -> Result<Answer<JoinTokenCreated>, ClientError> {
        self.post(&["join-tokens"], request)
    }

    pub fn revoke_join_token(&self, id: &str) -> Result<(), ClientError> {
        self.delete(&["join-tokens", id])
    }
}
