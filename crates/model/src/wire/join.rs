//! How a cluster becomes a member: the token that a person hands over, the request with a CSR, and the answer.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::envelope::Envelope;
use super::id::Timestamp;

/// What `kedge token create` prints: enough to find the hub, to know it, and to be let in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinToken {
    /// The hub's address for agents, `https://host:port`.
    pub hub: String,
    /// The digest of the certificate authority (DER) that the hub's certificate comes from.
    pub authority: Digest,
    /// The token's name in the hub's list: no secret.
    pub id: String,
    pub secret: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinTokenError {
    #[error("this is not a join token: it should begin with `{PREFIX}`")]
    Prefix,
    #[error("the join token is cut or changed: copy it again as a whole")]
    Damaged,
}

/// Says what the text is, and that it is version 1.
const PREFIX: &str = "kedge-join-1.";
/// A token is a few hundred bytes.
const MAX_TOKEN: usize = 4096;

/// `POST /agent/v1/join`. Repeated with the same key it gives the same answer and uses the token no further.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinRequest {
    pub token_id: String,
    pub secret: String,
    /// The certificate signing request, PEM. Its Ed25519 key is the cluster's identity.
    pub csr: String,
    pub name: String,
    /// A hash of the machine's id: a copy of the disk on another machine has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Digest>,
    #[serde(default)]
    pub facts: Facts,
}

/// What the host says of itself; for people, never for decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    pub agent_version: String,
    pub architecture: String,
    pub system: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinAnswer {
    /// PEM, the cluster's own first, then the authority's.
    pub certificate: String,
    /// Every key set from the first on, in order.
    pub key_sets: Vec<Envelope>,
    pub membership: Envelope,
    pub time: Timestamp,
}

/// `POST /agent/v1/renew`, over the old certificate, also an expired one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewRequest {
    /// For the same key.
    pub csr: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewAnswer {
    pub certificate: String,
    pub time: Timestamp,
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        write!(f, "{PREFIX}{}", BASE64.encode(json))
    }
}

impl FromStr for JoinToken {
    type Err = JoinTokenError;

    fn from_str(text: &str) -> Result<JoinToken, JoinTokenError> {
        let body = text.trim().strip_prefix(PREFIX).ok_or(JoinTokenError::Prefix)?;
        if body.len() > MAX_TOKEN {
            return Err(JoinTokenError::Damaged);
        }
        let json = BASE64.decode(body).map_err(|_| JoinTokenError::Damaged)?;
        serde_json::from_slice(&json).map_err(|_| JoinTokenError::Damaged)
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinToken").field("hub", &self.hub).field("id", &self.id).finish_non_exhaustive()
    }
}
