//! Reading a request's body: never more than its route allows, never for longer.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Body;
use kedge_model::wire::Envelope;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::answer::Refusal;

/// What a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub bytes: usize,
    pub within: Duration,
}

/// A token, a CSR, a name and facts.
pub const JOIN: Allowance = Allowance { bytes: 16 * 1024, within: Duration::from_secs(15) };
pub const RENEW: Allowance = Allowance { bytes: 8 * 1024, within: Duration::from_secs(15) };
/// An idle one is two hundred bytes; a document with many writers has many heads.
pub const POLL: Allowance = Allowance { bytes: 16 * 1024, within: Duration::from_secs(15) };
/// A document of 256 KiB in base64, and its envelope; a thin link needs its time.
pub const STATUS: Allowance = Allowance { bytes: 384 * 1024, within: Duration::from_secs(60) };
/// Signs of life of a whole site, of about a kilobyte each; it comes over the site's one thin link.
pub const SITE: Allowance = Allowance { bytes: 512 * 1024, within: Duration::from_secs(30) };
/// The state of a type with thousands of assignments.
pub const PROOF: Allowance = Allowance { bytes: 8 * 1024 * 1024, within: Duration::from_secs(120) };

/// All bodies that are being read at one time, in KiB: many large ones wait for each other.
const READING: usize = 64 * 1024;

/// Bounds the memory of all bodies together.
#[derive(Debug)]
pub struct Reading(Semaphore);

impl Default for Reading {
    fn default() -> Reading {
        Reading(Semaphore::new(READING))
    }
}

impl Reading {
    pub async fn json<T: DeserializeOwned, B>(&self, body: B, allowance: Allowance) -> Result<T, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let bytes = self.bytes(body, allowance).await?;
        serde_json::from_slice(&bytes).map_err(|why| malformed(format!("the body can't be read: {why}")))
    }

    pub async fn envelope<B>(&self, body: B, allowance: Allowance) -> Result<Envelope, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.json(body, allowance).await
    }

    async fn bytes<B>(&self, body: B, allowance: Allowance) -> Result<Bytes, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let announced = body.size_hint();
        if announced.lower() > allowance.bytes as u64 {
            return Err(too_large(allowance));
        }
        let expected = announced.upper().unwrap_or(allowance.bytes as u64).min(allowance.bytes as u64);
        let kibibytes = u32::try_from(expected / 1024 + 1).unwrap_or(u32::MAX);
        let read = async {
            let _room = self.0.acquire_many(kibibytes).await;
            Limited::new(body, allowance.bytes).collect().await
        };
        match tokio::time::timeout(allowance.within, read).await {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(allowance)),
            Ok(Err(error)) => Err(malformed(format!("the body is cut or broken: {error}")).closing()),
            Err(_) => {
                let seconds = allowance.within.as_secs();
                let message = format!("the body did not arrive within {seconds} s");
                Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message).closing())
            }
        }
    }
}

fn too_large(allowance: Allowance) -> Refusal {
    let message = format!("the body is larger than {} bytes", allowance.bytes);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message).closing()
}

pub fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "Malformed", message)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use kedge_model::wire::{JoinRequest, PollRequest, RenewRequest, SiteRequest};
    use proptest::prelude::*;

    use super::*;

    fn read<T: DeserializeOwned>(bytes: Vec<u8>, allowance: Allowance) -> Result<T, Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(Reading::default().json(Full::new(Bytes::from(bytes)), allowance))
    }

    #[test]
    fn a_body_above_the_limit_is_refused_as_too_large() {
        let refused = read::<PollRequest>(vec![b' '; POLL.bytes + 1], POLL).unwrap_err();
        assert_eq!((refused.status, refused.reason), (StatusCode::PAYLOAD_TOO_LARGE, "TooLarge"));
    }

    #[test]
    fn a_truncated_body_is_malformed() {
        let refused = read::<RenewRequest>(br#"{"csr":"-----BEG"#.to_vec(), RENEW).unwrap_err();
        assert_eq!((refused.status, refused.reason), (StatusCode::BAD_REQUEST, "Malformed"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = read::<JoinRequest>(bytes.clone(), JOIN);
            let _ = read::<PollRequest>(bytes.clone(), POLL);
            let _ = read::<SiteRequest>(bytes.clone(), SITE);
            let _ = read::<Envelope>(bytes, STATUS);
        }
    }
}
