//! What one agent asks the hub for a whole site: signs of life of those that it carries for go up, each one's news come back.

use serde::{Deserialize, Serialize};

use super::envelope::Envelope;
use super::id::{ClusterId, Timestamp};

/// `POST /agent/v1/site`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteRequest {
    /// `Presence` of each, as it was signed; at most `MAX_MEMBERS`.
    pub presences: Vec<Envelope>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteAnswer {
    pub time: Timestamp,
    /// Seconds after which the carrier should ask again, if nothing else is new.
    pub next: u64,
    /// From above the oldest set that a presence named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_sets: Vec<Envelope>,
    /// Each stream's newest state once, for those who lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Envelope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberAnswer>,
}

/// One that is carried for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberAnswer {
    pub cluster: ClusterId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membership: Option<Envelope>,
    /// The hub's hold document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Envelope>,
    /// The hub lacks the document that the presence's heads name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub want_status: bool,
    /// Why nothing, or not all, is said of it: `Forged`, `Malformed`, `UnknownCluster`, `Revoked`, `Retired`, `OtherSite`, `TooOld` (the hub
    /// heard later of it), `AheadOfTime` (its clock), `NotARelay` (its state is of another stream).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// More than one LAN has.
pub const MAX_MEMBERS: usize = 256;
