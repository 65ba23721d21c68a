//! The bytes inside a status envelope: a header, the event log (deflated), and automerge's own bytes. The header carries the public
//! key, and the cluster's id is that key's hash: anybody can check whose a document is.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::str::FromStr;

use kedge_model::wire::{ClusterId, Timestamp, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bytes::{Bytes, Cut};
use crate::event::EventLog;

/// What the envelope's payload type says.
pub const PAYLOAD_TYPE: &str = "application/vnd.kedge.status.v1";

/// A header is a few hundred bytes.
const MAX_HEADER: usize = 4096;
/// `MAX_EVENTS` with their longest names, inflated.
const MAX_EVENT_BYTES: usize = 160 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub cluster: ClusterId,
    pub key: VerifyingKey,
    pub epoch: u64,
    pub nonce: Nonce,
    /// By the writer's clock.
    pub written_at: Timestamp,
    /// Milliseconds to add to the writer's clock for the hub's time, where a contact told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset: Option<i64>,
    /// Features without which the document can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

/// Made with an epoch and stored: the same epoch with another one comes from a clone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub [u8; 16]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a nonce is 32 lower-case hexadecimal digits")]
pub struct NonceError;

#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("the payload is cut")]
    Cut,
    #[error("the payload's {part} is {length} bytes long, more than {most}")]
    TooLarge { part: &'static str, length: usize, most: usize },
    #[error("the payload's {part} can't be read")]
    Json {
        part: &'static str,
        #[source]
        source: serde_json::Error,
    },
}

/// The three parts, the last as it is.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub header: Header,
    pub events: &'a [u8],
    pub document: &'a [u8],
}

impl<'a> Parts<'a> {
    pub fn split(payload: &'a [u8]) -> Result<Parts<'a>, PayloadError> {
        let mut input = Bytes(payload);
        let header = json(section(&mut input, "header", MAX_HEADER)?, "header")?;
        let events = section(&mut input, "event log", MAX_EVENT_BYTES)?;
        Ok(Parts { header, events, document: input.0 })
    }

    pub fn event_log(&self) -> Result<EventLog, PayloadError> {
        let mut inflated = Vec::new();
        let bound = MAX_EVENT_BYTES as u64 + 1;
        let read = flate2::bufread::DeflateDecoder::new(self.events).take(bound).read_to_end(&mut inflated);
        read.map_err(|_| PayloadError::Cut)?;
        if inflated.len() > MAX_EVENT_BYTES {
            return Err(PayloadError::TooLarge { part: "event log", length: inflated.len(), most: MAX_EVENT_BYTES });
        }
        json(&inflated, "event log")
    }
}

pub(crate) fn join(header: &Header, events: &EventLog, document: &[u8]) -> Result<Vec<u8>, PayloadError> {
    let header = serde_json::to_vec(header).map_err(|source| PayloadError::Json { part: "header", source })?;
    let events = serde_json::to_vec(events).map_err(|source| PayloadError::Json { part: "event log", source })?;
    if events.len() > MAX_EVENT_BYTES {
        return Err(PayloadError::TooLarge { part: "event log", length: events.len(), most: MAX_EVENT_BYTES });
    }
    let mut out = Vec::with_capacity(document.len() + events.len() / 2 + 1024);
    for (part, made, most) in [("header", header, MAX_HEADER), ("event log", deflate(&events)?, MAX_EVENT_BYTES)] {
        let fits = u32::try_from(made.len()).ok().filter(|_| made.len() <= most);
        let length = fits.ok_or(PayloadError::TooLarge { part, length: made.len(), most })?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&made);
    }
    out.extend_from_slice(document);
    Ok(out)
}

/// Names repeat in events: a third of the bytes is left.
fn deflate(bytes: &[u8]) -> Result<Vec<u8>, PayloadError> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|_| PayloadError::Cut)
}

fn section<'a>(input: &mut Bytes<'a>, part: &'static str, most: usize) -> Result<&'a [u8], PayloadError> {
    let bytes = input.section()?;
    if bytes.len() > most {
        return Err(PayloadError::TooLarge { part, length: bytes.len(), most });
    }
    Ok(bytes)
}

fn json<'a, T: Deserialize<'a>>(bytes: &'a [u8], part: &'static str) -> Result<T, PayloadError> {
    serde_json::from_slice(bytes).map_err(|source| PayloadError::Json { part, source })
}

impl From<Cut> for PayloadError {
    fn from(_: Cut) -> PayloadError {
        PayloadError::Cut
    }
}

impl FromStr for Nonce {
    type Err = NonceError;

    fn from_str(text: &str) -> Result<Nonce, NonceError> {
        kedge_model::wire::digest::unhex(text).map(Nonce).ok_or(NonceError)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&kedge_model::wire::digest::hex(&self.0))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Nonce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Nonce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nonce, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
