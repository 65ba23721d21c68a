//! A person's "don't touch this assignment here", as a document of its own: signed by the cluster's key for a technician on the
//! spot, by the hub's for a person there, by another agent's of the site for who stands at that one. Holds of all writers are in
//! force together.

use serde::{Deserialize, Serialize};

use super::envelope::{Envelope, EnvelopeError, Payload, VerifyingKey};
use super::id::{ClusterId, Timestamp};

/// All holds of one writer on one cluster; a higher sequence replaces the whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldDocument {
    pub cluster: ClusterId,
    /// Counts the writer's documents for this cluster: 1 is the first.
    pub sequence: u64,
    pub written_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HoldEntry>,
}

/// The holds of an agent on another cluster of its site: the same document, with the key that signed it. Whoever meets it needs no
/// more than the writer's membership to judge it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SiteHolds {
    #[serde(flatten)]
    pub document: HoldDocument,
    pub key: VerifyingKey,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HoldEntry {
    pub assignment: String,
    /// The Unix user on the spot (`USER@HOST` from another agent), or the person at the hub.
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub since: Timestamp,
}

impl Payload for HoldDocument {
    const TYPE: &'static str = "application/vnd.kedge.hold.v1+json";
}

impl Payload for SiteHolds {
    const TYPE: &'static str = HoldDocument::TYPE;
}

impl SiteHolds {
    /// What the envelope says, if the agent that it names signed it.
    pub fn open(envelope: &Envelope) -> Result<SiteHolds, EnvelopeError> {
        let said: SiteHolds = serde_json::from_slice(&envelope.payload).map_err(EnvelopeError::Payload)?;
        envelope.verify(SiteHolds::TYPE, &[said.key])?;
        Ok(said)
    }

    pub fn writer(&self) -> ClusterId {
        ClusterId::of_public_key(self.key.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SigningKey;

    #[test]
    fn holds_on_another_cluster_are_a_hold_document_with_its_writer() {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let entry = HoldEntry {
            assignment: "camera-line".to_owned(),
            by: "anna@gate-1".to_owned(),
            reason: String::new(),
            since: Timestamp(5),
        };
        let of = ClusterId::of_public_key(&[7; 32]);
        let document = HoldDocument { cluster: of, sequence: 3, written_at: Timestamp(6), holds: vec![entry] };
        let holds = SiteHolds { document: document.clone(), key: key.public() };
        let envelope = Envelope::sign(&holds, &key).unwrap();
        assert_eq!(SiteHolds::open(&envelope).unwrap(), holds);
        assert_eq!(holds.writer(), ClusterId::of_public_key(key.public().as_bytes()));
        assert_eq!(envelope.open::<HoldDocument>(&[key.public()]).unwrap(), document);
        let other = SigningKey::from_seed(&[2; 32]).unwrap();
        assert!(SiteHolds::open(&Envelope::sign(&holds, &other).unwrap()).is_err());
        assert!(SiteHolds::open(&Envelope::sign(&document, &key).unwrap()).is_err(), "it names no writer");
    }
}
