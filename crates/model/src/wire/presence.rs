//! A sign of life that others carry: what the cluster would have said in a poll, and when, signed by itself. Nobody can keep a
//! silent cluster green, and the hub counts the time at which it was said, not the one at which it came.

use serde::{Deserialize, Serialize};

use super::envelope::{Envelope, EnvelopeError, Payload, VerifyingKey};
use super::id::{ClusterId, Timestamp};
use super::poll::PollRequest;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Presence {
    /// Its hash is the cluster.
    pub key: VerifyingKey,
    /// By the writer's clock, with the offset to the hub's added where a contact told it.
    pub at: Timestamp,
    pub poll: PollRequest,
}

impl Payload for Presence {
    const TYPE: &'static str = "application/vnd.kedge.presence.v1+json";
}

impl Presence {
    /// What the envelope says, if the cluster whose key it names signed it.
    pub fn open(envelope: &Envelope) -> Result<Presence, EnvelopeError> {
        let said: Presence = serde_json::from_slice(&envelope.payload).map_err(EnvelopeError::Payload)?;
        envelope.verify(Presence::TYPE, &[said.key])?;
        Ok(said)
    }

    /// Whose it is.
    pub fn cluster(&self) -> ClusterId {
        ClusterId::of_public_key(self.key.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Generation, Heads, Profile, Sequence, SigningKey};

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_seed(&[seed; 32]).unwrap()
    }

    fn presence(of: &SigningKey) -> Presence {
        let poll = PollRequest {
            key_set: 1,
            membership: Sequence(2),
            generation: Generation(3),
            status: Heads::default(),
            look_age: 4,
            profile: Profile::Normal,
            wait: None,
            holds: 0,
        };
        Presence { key: of.public(), at: Timestamp(5), poll }
    }

    #[test]
    fn only_the_cluster_itself_says_that_it_lives() {
        let (own, other) = (key(1), key(2));
        let said = presence(&own);
        assert_eq!(Presence::open(&Envelope::sign(&said, &own).unwrap()).unwrap(), said);
        assert!(Presence::open(&Envelope::sign(&said, &other).unwrap()).is_err());
        assert_eq!(said.cluster().key_id(), own.id());
    }
}
