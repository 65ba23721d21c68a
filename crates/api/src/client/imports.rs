//! Files that cross an air gap: requests to sign, bundles, and status that comes back.

use reqwest::blocking::Response;

use super::{Answer, Client, ClientError, Parameters};
use crate::imports::{ImportSummary, SignRequest, SignedCluster};

impl Client {
    pub fn sign(&self, request: &SignRequest) -> Result<Answer<SignedCluster>, ClientError> {
        self.post(&["clusters", "sign"], request)
    }

    /// A bundle, to be read as it comes.
    pub fn bundle(&self, parameters: &Parameters<'_>) -> Result<Response, ClientError> {
        self.download(&["bundle"], parameters)
    }

    pub fn import_status(&self, file: &[u8]) -> Result<Answer<ImportSummary>, ClientError> {
        self.upload(&["status", "import"], file)
    }
}
