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
    /// The `tick` of the answer before; 0 is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub since: u64,
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
    /// Each stream's newest state once, for those who lack it, also if it isn't their turn yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Envelope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberAnswer>,
    /// Who left the site until then was told, also if nobody asked for it: its key may be good by its dates for months.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tick: u64,
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
    /// It may run the newest state of its stream now. Absent where that state asks for no turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Envelope>,
    /// The hub lacks the document that the presence's heads name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub want_status: bool,
    /// Why nothing, or not all, is said of it: `Forged`, `Malformed`, `UnknownCluster`, `Revoked`, `Replaced`, `Retired`, `OtherSite`, `TooOld` (the hub
    /// heard later of it), `AheadOfTime` (its clock), `NotARelay` (its state is of another stream), `TooLarge` (peers can't carry its state).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The payload of a state that agents of a site hand on: what fits into one of their messages, in base64 and with its envelope.
pub const MAX_STATE: usize = 700 * 1024;

/// More than one LAN has.
pub const MAX_MEMBERS: usize = 256;

fn is_zero(number: &u64) -> bool {
    *number == 0
}
