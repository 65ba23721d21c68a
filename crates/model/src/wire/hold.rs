//! A person's "don't touch this assignment here", as a document of its own: signed by the cluster's key for a technician on the
//! spot, by the hub's for a person there, by another agent's of the site for who stands at that one. Holds of all writers are in
//! force together, but for what the hub lifts and what has lasted its time.

use std::collections::BTreeMap;
use std::time::Duration;

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
    /// How long each is obeyed, in seconds from when the cluster first has it; by assignment. One that isn't here: `LASTS`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lasts: BTreeMap<String, u64>,
}

/// The hub's holds on a cluster: the same document, with what it lifts of those that were written at other clusters of the site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HubHolds {
    #[serde(flatten)]
    pub document: HoldDocument,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<Lift>,
}

/// A person at the hub ends what another cluster of the site holds here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lift {
    /// Who wrote the hold.
    pub writer: ClusterId,
    /// None: everything of this writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<String>,
    /// The writer's documents up to this number; what it holds anew in a later one counts again.
    pub through: u64,
    /// The hold that was lifted; said again in a later document it stays lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The person at the hub.
    pub by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    pub at: Timestamp,
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

impl Payload for HubHolds {
    const TYPE: &'static str = HoldDocument::TYPE;
}

impl Lift {
    /// For `through`: whatever the writer may ever say.
    pub const EVERYTHING: u64 = 1 << 53;

    /// Whether it ends this hold of a writer's document.
    pub fn ends(&self, writer: ClusterId, sequence: u64, entry: &HoldEntry) -> bool {
        self.writer == writer
            && self.assignment.as_ref().is_none_or(|assignment| *assignment == entry.assignment)
            && (sequence <= self.through || self.since == Some(entry.since))
    }
}

impl HubHolds {
    /// What the hub lifts, from an envelope that was verified.
    pub fn lifted(envelope: &Envelope) -> Vec<Lift> {
        serde_json::from_slice(&envelope.payload).map(|holds: HubHolds| holds.lifted).unwrap_or_default()
    }
}

impl SiteHolds {
    /// How long a hold is obeyed whose maker said nothing.
    pub const LASTS: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Longer than this nobody holds from another host; who must, holds on the spot.
    pub const LASTS_AT_MOST: Duration = Duration::from_secs(90 * 24 * 3600);

    /// How long this one is obeyed.
    pub fn lasts(&self, assignment: &str) -> Duration {
        let said = self.lasts.get(assignment).map(|seconds| Duration::from_secs(*seconds));
        said.unwrap_or(SiteHolds::LASTS).min(SiteHolds::LASTS_AT_MOST)
    }

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
        let lasts = [("camera-line".to_owned(), 3600), ("for ever".to_owned(), u64::MAX)].into();
        let holds = SiteHolds { document: document.clone(), key: key.public(), lasts };
        let envelope = Envelope::sign(&holds, &key).unwrap();
        assert_eq!(SiteHolds::open(&envelope).unwrap(), holds);
        assert_eq!(holds.writer(), ClusterId::of_public_key(key.public().as_bytes()));
        assert_eq!(envelope.open::<HoldDocument>(&[key.public()]).unwrap(), document);
        assert_eq!(holds.lasts("camera-line"), Duration::from_secs(3600));
        assert_eq!((holds.lasts("unsaid"), holds.lasts("for ever")), (SiteHolds::LASTS, SiteHolds::LASTS_AT_MOST));
        let other = SigningKey::from_seed(&[2; 32]).unwrap();
        assert!(SiteHolds::open(&Envelope::sign(&holds, &other).unwrap()).is_err());
        assert!(SiteHolds::open(&Envelope::sign(&document, &key).unwrap()).is_err(), "it names no writer");
    }
    #[test]
    fn a_lift_ends_one_hold_and_not_what_is_held_anew() {
        let writer = ClusterId::of_public_key(&[7; 32]);
        let entry = |assignment: &str, since| HoldEntry {
            assignment: assignment.to_owned(),
            by: "anna@gate-1".to_owned(),
            reason: String::new(),
            since: Timestamp(since),
        };
        let lift = Lift {
            writer,
            assignment: Some("camera-line".to_owned()),
            through: 3,
            since: Some(Timestamp(5)),
            by: "ben".to_owned(),
            reason: String::new(),
            at: Timestamp(9),
        };
        assert!(lift.ends(writer, 3, &entry("camera-line", 5)));
        assert!(lift.ends(writer, 4, &entry("camera-line", 5)), "said again with something else");
        assert!(!lift.ends(writer, 4, &entry("camera-line", 6)), "held anew");
        assert!(!lift.ends(writer, 3, &entry("press-line", 5)));
        assert!(!lift.ends(ClusterId::of_public_key(&[8; 32]), 3, &entry("camera-line", 5)));
        let all = Lift { assignment: None, through: Lift::EVERYTHING, since: None, ..lift.clone() };
        assert!(all.ends(writer, 4_000_000, &entry("anything", 99)));
        // Who doesn't know lifts reads the holds alone.
        let document = HoldDocument { cluster: writer, sequence: 1, written_at: Timestamp(1), holds: Vec::new() };
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let envelope =
            Envelope::sign(&HubHolds { document: document.clone(), lifted: vec![lift.clone()] }, &key).unwrap();
        assert_eq!(envelope.open::<HoldDocument>(&[key.public()]).unwrap(), document);
        assert_eq!(HubHolds::lifted(&envelope), [lift]);
        assert!(HubHolds::lifted(&Envelope::sign(&document, &key).unwrap()).is_empty());
    }
}
