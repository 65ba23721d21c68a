//! The hub's leave for one cluster to run a state that it got from somebody else: clusters of a ring change a few at a time, also
//! where they hand the state to each other. A state that the hub itself gives to a cluster needs none.

use serde::{Deserialize, Serialize};

use super::desired::DesiredState;
use super::envelope::Payload;
use super::id::{ClusterId, Generation, Stream, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub cluster: ClusterId,
    pub stream: Stream,
    /// This one, and those before it.
    pub generation: Generation,
    /// By the hub's clock: of two turns the later one counts.
    pub issued_at: Timestamp,
    /// The `at` of the sign of life that it answers: who has said nothing for long has no turn any more. None: for whenever it comes,
    /// in a bundle that a person made for this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Timestamp>,
}

impl Payload for Turn {
    const TYPE: &'static str = "application/vnd.kedge.turn.v1+json";
}

/// Milliseconds for which a turn that answers a sign of life counts, from that one on. The hub keeps the cluster's place for a minute
/// longer.
pub const TURN_LASTS: i64 = 5 * 60 * 1000;

impl Turn {
    /// Whether it lets this cluster run this state.
    pub fn admits(&self, cluster: &ClusterId, state: &DesiredState) -> bool {
        self.cluster == *cluster && self.stream == state.stream && self.generation >= state.generation
    }
}
