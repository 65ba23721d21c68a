//! What peers say to each other: one shape for requests and answers, bounded before anything of it is believed.

use kedge_model::wire::{ClusterId, Digest, Envelope};
use serde::{Deserialize, Deserializer, Serialize};

use crate::name::{Name, Version};
use crate::pace::MAX_NAMES;

/// `POST /peer/v1/sync`, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    pub version: u32,
    /// The newest key set that the writer knows.
    #[serde(default)]
    pub keys: u64,
    /// Seconds since the writer itself heard the hub; absent if that is long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<u64>,
    /// Others of whom the writer heard that they reach the hub, and the seconds since they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reachable: Vec<(ClusterId, u64)>,
    /// Of what the writer has and the reader may have.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The same as a list, when the digests differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known_names")]
    pub have: Vec<(Name, Version)>,
    /// What the writer asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known")]
    pub want: Vec<Name>,
    /// Documents that the reader lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub give: Vec<Envelope>,
    /// Signs of life, for the one who carries them to the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presences: Vec<Envelope>,
    /// Content that the writer looks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wants: Vec<Digest>,
    /// Content that the writer has of what the reader looks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub has: Vec<Digest>,
}

#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("the message has {0} bytes, more than {MAX_MESSAGE}")]
    TooLarge(usize),
    #[error("the message lists {count} under `{part}`, more than {most}")]
    TooMany { part: &'static str, count: usize, most: usize },
    #[error("the message has version {0}; {VERSION} is understood")]
    Version(u32),
    #[error("the message can't be read")]
    Json(#[from] serde_json::Error),
}

/// Of this protocol.
pub const VERSION: u32 = 1;
/// The whole message as JSON.
pub const MAX_MESSAGE: usize = 1024 * 1024;
/// Envelopes that are given in one message, as JSON; a single larger one goes alone. A full store takes many messages, and no agent
/// much memory for any.
pub const MAX_GIVE: usize = 64 * 1024;
pub const MAX_REACHABLE: usize = 8;
/// More than the names of one message can bring back.
pub const MAX_WANT: usize = 1_024;
pub const MAX_GIVEN: usize = 1_024;
pub const MAX_PRESENCES: usize = 64;
pub const MAX_BLOBS: usize = 32;

impl Default for Message {
    fn default() -> Message {
        Message {
            version: VERSION,
            keys: 0,
            reach: None,
            reachable: Vec::new(),
            digest: String::new(),
            have: Vec::new(),
            want: Vec::new(),
            give: Vec::new(),
            presences: Vec::new(),
            wants: Vec::new(),
            has: Vec::new(),
        }
    }
}

impl Message {
    pub fn from_json(bytes: &[u8]) -> Result<Message, MessageError> {
        if bytes.len() > MAX_MESSAGE {
            return Err(MessageError::TooLarge(bytes.len()));
        }
        let message: Message = serde_json::from_slice(bytes)?;
        message.check()?;
        Ok(message)
    }

    pub fn to_json(&self) -> Result<Vec<u8>, MessageError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// The bounds of each part.
    pub fn check(&self) -> Result<(), MessageError> {
        if self.version != VERSION {
            return Err(MessageError::Version(self.version));
        }
        let parts = [
            ("reachable", self.reachable.len(), MAX_REACHABLE),
            ("have", self.have.len(), MAX_NAMES),
            ("want", self.want.len(), MAX_WANT),
            ("give", self.give.len(), MAX_GIVEN),
            ("presences", self.presences.len(), MAX_PRESENCES),
            ("wants", self.wants.len(), MAX_BLOBS),
            ("has", self.has.len(), MAX_BLOBS),
        ];
        match parts.into_iter().find(|(_, count, most)| count > most) {
            Some((part, count, most)) => Err(MessageError::TooMany { part, count, most }),
            None => Ok(()),
        }
    }
}

/// About how many bytes an envelope has as JSON: base64 and the words around it.
pub(crate) fn weight(envelope: &Envelope) -> usize {
    envelope.payload.len() / 3 * 4 + envelope.payload_type.len() + 100 + envelope.signatures.len() * 160
}

/// Names of kinds that only a newer version knows are passed over.
fn known_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(Name, Version)>, D::Error> {
    let all = Vec::<(String, Version)>::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|(name, version)| Some((name.parse().ok()?, version))).collect())
}

fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Name>, D::Error> {
    let all = Vec::<String>::deserialize(deserializer)?;
    Ok(all.into_iter().filter_map(|name| name.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_message_is_small() {
        let cluster = ClusterId::of_public_key(&[1; 32]);
        let idle = Message {
            reach: Some(12),
            reachable: vec![(cluster, 7), (cluster, 8)],
            digest: crate::name::digits(&cluster, u128::MAX),
            ..Message::default()
        };
        let bytes = idle.to_json().unwrap();
        assert!(bytes.len() < 200, "{}", bytes.len());
        assert_eq!(Message::from_json(&bytes).unwrap(), idle);
    }

    #[test]
    fn names_of_unknown_kinds_are_passed_over() {
        let text = br#"{"version":1,"have":[["keys:1",[1,0]],["songs:1",[1,0]]],"want":["songs:2","keys:2"],"new":{}}"#;
        let message = Message::from_json(text).unwrap();
        assert_eq!(message.have, [(Name::Keys(1), Version(1, 0))]);
        assert_eq!(message.want, [Name::Keys(2)]);
    }

    #[test]
    fn what_is_too_long_or_of_another_version_is_no_message() {
        let many = Message { wants: vec![Digest::of(b"a"); MAX_BLOBS + 1], ..Message::default() };
        assert!(matches!(
            Message::from_json(&many.to_json().unwrap()),
            Err(MessageError::TooMany { part: "wants", .. })
        ));
        assert!(matches!(Message::from_json(br#"{"version":2}"#), Err(MessageError::Version(2))));
        assert!(matches!(Message::from_json(&vec![b' '; MAX_MESSAGE + 1]), Err(MessageError::TooLarge(_))));
    }
}
