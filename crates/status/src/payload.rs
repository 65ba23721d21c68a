//! The bytes inside a status envelope: a header, then, deflated, the event log and automerge's own bytes. The header
//! carries the public key, and the cluster's id is that key's hash: anybody can check whose a document is.

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
/// `MAX_EVENTS` with their longest names.
const MAX_EVENT_BYTES: usize = 160 * 1024;
/// Events and document, inflated. A document of 2,000 assignments with 200 changes has half of it.
const MAX_BODY: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    pub cluster: ClusterId,
    pub key: VerifyingKey,
    pub epoch: u64,
    pub nonce: Nonce,
    /// How many changes of the epoch the document has: who carries documents knows the newer one without loading either.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub changes: u64,
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

/// A payload whose header is read.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    pub header: Header,
    deflated: &'a [u8],
}

/// The rest, inflated.
#[derive(Debug)]
pub(crate) struct Body {
    pub events: EventLog,
    bytes: Vec<u8>,
    document: usize,
}

impl<'a> Opened<'a> {
    pub fn open(payload: &'a [u8]) -> Result<Opened<'a>, PayloadError> {
        let mut input = Bytes(payload);
        let header = json(section(&mut input, "header", MAX_HEADER)?, "header")?;
        Ok(Opened { header, deflated: input.0 })
    }

    /// What comes after the header, as it came.
    pub fn deflated(&self) -> &'a [u8] {
        self.deflated
    }

    pub fn body(&self) -> Result<Body, PayloadError> {
        let mut bytes = Vec::with_capacity(self.deflated.len().saturating_mul(4).min(MAX_BODY));
        let bound = MAX_BODY as u64 + 1;
        let read = flate2::bufread::DeflateDecoder::new(self.deflated).take(bound).read_to_end(&mut bytes);
        read.map_err(|_| PayloadError::Cut)?;
        if bytes.len() > MAX_BODY {
            return Err(PayloadError::TooLarge { part: "body", length: bytes.len(), most: MAX_BODY });
        }
        let mut input = Bytes(&bytes);
        let events = json(section(&mut input, "event log", MAX_EVENT_BYTES)?, "event log")?;
        let document = bytes.len() - input.0.len();
        Ok(Body { events, bytes, document })
    }
}

impl Body {
    /// Automerge's bytes.
    pub fn document(&self) -> &[u8] {
        self.bytes.get(self.document..).unwrap_or_default()
    }
}

pub(crate) fn join(header: &Header, events: &EventLog, document: &[u8]) -> Result<Vec<u8>, PayloadError> {
    let mut out = Vec::with_capacity(document.len() + 1024);
    let header = serde_json::to_vec(header).map_err(|source| PayloadError::Json { part: "header", source })?;
    push(&mut out, "header", &header, MAX_HEADER)?;
    let events = serde_json::to_vec(events).map_err(|source| PayloadError::Json { part: "event log", source })?;
    let mut body = Vec::with_capacity(events.len() + document.len() + 4);
    push(&mut body, "event log", &events, MAX_EVENT_BYTES)?;
    body.extend_from_slice(document);
    if body.len() > MAX_BODY {
        return Err(PayloadError::TooLarge { part: "body", length: body.len(), most: MAX_BODY });
    }
    // Names and keys repeat throughout: a third of the bytes is left.
    let mut encoder = flate2::write::DeflateEncoder::new(out, flate2::Compression::default());
    encoder.write_all(&body).and_then(|()| encoder.finish()).map_err(|_| PayloadError::Cut)
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn push(out: &mut Vec<u8>, part: &'static str, bytes: &[u8], most: usize) -> Result<(), PayloadError> {
    let fits = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= most);
    let length = fits.ok_or(PayloadError::TooLarge { part, length: bytes.len(), most })?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
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
