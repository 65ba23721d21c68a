//! Which stream a cluster follows, said by the hub and numbered per cluster. The certificate says only who it is.

use serde::{Deserialize, Serialize};

use super::envelope::Payload;
use super::id::{ClusterId, Sequence, Stream, Timestamp};
use crate::Labels;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    pub cluster: ClusterId,
    pub name: String,
    pub stream: Stream,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    pub sequence: Sequence,
    pub issued_at: Timestamp,
    /// Assignments of the stream before that go with a move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    /// Assignments of the stream before that stay and are no longer ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmanage: Vec<String>,
    /// It may have what the site's other streams name, to carry it to them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub relay: bool,
    /// The cluster is retired: it should stop, and what runs stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
    /// Features without which this can't be followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

impl Payload for Membership {
    const TYPE: &'static str = "application/vnd.kedge.membership.v1+json";
}
