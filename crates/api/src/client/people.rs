//! People, who asks, and links that log somebody in.

use serde_json::json;

use super::{Answer, Client, ClientError, Pages};
use crate::people::{LoginLink, NewPersonRequest, PersonSummary, SetPersonRequest, WhoAmI};

impl Client {
    pub fn whoami(&self) -> Result<Answer<WhoAmI>, ClientError> {
        self.get(&["whoami"], &[])
    }

    pub fn create_login_link(&self) -> Result<Answer<LoginLink>, ClientError> {
        self.post(&["login-links"], &json!({}))
    }

    pub fn people(&self) -> Pages<'_, PersonSummary> {
        self.pages(&["people"], &[])
    }

    pub fn add_person(&self, request: &NewPersonRequest) -> Result<Answer<PersonSummary>, ClientError> {
        self.post(&["people"], request)
    }

    pub fn set_person(&self, person: &str, request: &SetPersonRequest) -> Result<Answer<PersonSummary>, ClientError> {
        self.patch(&["people", person], request)
    }

    pub fn remove_person(&self, person: &str) -> Result<(), ClientError> {
        self.delete(&["people", person])
    }
}
