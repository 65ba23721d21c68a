//! Packages and artifacts by digest, whole or from where a download broke off; only those that the state of the cluster's own
//! stream, or the one before it, names; for a relay also those of its site's other streams.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use kedge_hub_types::state::Issued;
use kedge_model::wire::{DesiredState, Digest, Envelope, Generation, Mode, Stream};
use tokio::fs::File;

use super::answer::{Answer, Content, Refusal, bare};
use super::file::FileContent;
use super::request::busy;
use super::roster::Standing;
use super::route::{Caller, Known};
use crate::connections::shares::Bounds;
use crate::store::agents::ClusterState;

/// What the states of each stream name, as last looked at.
#[derive(Debug, Default)]
pub struct Named {
    streams: Mutex<HashMap<Arc<Stream>, Arc<Names>>>,
}

#[derive(Debug)]
struct Names {
    generation: Generation,
    digests: HashSet<Digest>,
}

/// What is asked for, of a content of some length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// First and last byte.
    Range(u64, u64),
    Unsatisfiable,
}

/// More cluster types and rings than stand at one site.
const SITE_STREAMS: i64 = 256;
/// Each holds pieces of a file and of TLS in memory; more are asked to come back. A relay fetches for its whole site, and a
/// router may have many sites behind it.
pub const DOWNLOADS: Bounds = Bounds { all: 1000, cluster: 32, address: 500 };

pub async fn send(caller: &Caller, known: &Known, digest: &str, request: &Parts) -> Result<Answer, Refusal> {
    let service = &caller.service;
    let not_found = || Refusal::new(StatusCode::NOT_FOUND, "NotFound", "no state of this cluster's stream names it");
    let digest: Digest = digest.parse().map_err(|_| not_found())?;
    let standing = known.member.standing();
    if standing.state != ClusterState::Active || !may_have(caller, &standing, &digest).await? {
        return Err(not_found());
    }
    let tag = format!("\"{digest}\"");
    if is_same(&request.headers, IF_NONE_MATCH, &tag) {
        let mut answer = bare(StatusCode::NOT_MODIFIED);
        answer.headers_mut().insert(ETAG, header(&tag)?);
        return Ok(answer);
    }
    let path = service.packages.path(&digest);
    let (file, length) = open(&path).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Refusal::new(StatusCode::NOT_FOUND, "Gone", "the hub has it no more"),
        _ => {
            tracing::error!(%digest, %error, "a package can't be read");
            Refusal::internal()
        }
    })?;
    let ranged = request.headers.get(IF_RANGE).is_none_or(|value| value.as_bytes() == tag.as_bytes());
    let part = match request.headers.get(RANGE).and_then(|value| value.to_str().ok()) {
        Some(text) if ranged => Part::of(text, length),
        _ => Part::Whole,
    };
    let (status, start, size) = match part {
        Part::Whole => (StatusCode::OK, 0, length),
        Part::Range(first, last) => (StatusCode::PARTIAL_CONTENT, first, last - first + 1),
        Part::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0),
    };
    let content = if request.method == Method::HEAD || part == Part::Unsatisfiable || size == 0 {
        Content::Empty
    } else {
        let slot = service.downloads.take_one(caller.owner()).map_err(busy)?;
        let content = FileContent::part(file, start, size, slot).await.map_err(|error| {
            tracing::error!(%digest, %error, "a package can't be read");
            Refusal::internal()
        })?;
        Content::File(Box::new(content))
    };
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    headers.insert(ETAG, header(&tag)?);
    match part {
        Part::Whole => {}
        Part::Range(first, last) => {
            headers.insert(CONTENT_RANGE, header(&format!("bytes {first}-{last}/{length}"))?);
        }
        Part::Unsatisfiable => {
            headers.insert(CONTENT_RANGE, header(&format!("bytes */{length}"))?);
        }
    }
    Ok(answer)
}

/// Its own stream's content; of a relay also what the others of its site follow.
async fn may_have(caller: &Caller, standing: &Standing, digest: &Digest) -> Result<bool, Refusal> {
    if is_named(caller, &standing.stream, digest).await? {
        return Ok(true);
    }
    let Some(site) = standing.site.as_deref().filter(|_| standing.relay) else { return Ok(false) };
    for stream in caller.service.store.streams_of_site(site, SITE_STREAMS).await? {
        if stream != *standing.stream && is_named(caller, &Arc::new(stream), digest).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn is_named(caller: &Caller, stream: &Arc<Stream>, digest: &Digest) -> Result<bool, Refusal> {
    let current = caller.service.desired_states.watch(stream).borrow().clone();
    match current {
        Some(current) => Ok(names(caller, stream, &current).await?.digests.contains(digest)),
        None => Ok(false),
    }
}

async fn open(path: &std::path::Path) -> io::Result<(File, u64)> {
    let file = File::open(path).await?;
    let length = file.metadata().await?.len();
    Ok((file, length))
}

fn header(text: &str) -> Result<HeaderValue, Refusal> {
    HeaderValue::from_str(text).map_err(|_| Refusal::internal())
}

fn is_same(headers: &HeaderMap, name: HeaderName, tag: &str) -> bool {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.is_some_and(|text| text.split(',').any(|one| one.trim() == tag || one.trim() == "*"))
}

/// Read once per stream and generation, whoever asks first.
async fn names(caller: &Caller, stream: &Arc<Stream>, current: &Issued) -> Result<Arc<Names>, Refusal> {
    let named = &caller.service.named;
    if let Some(known) = named.find(stream, current.generation) {
        return Ok(known);
    }
    let mut digests = HashSet::new();
    collect(&current.envelope, &mut digests)?;
    if let Some(before) = caller.service.store.state_before(stream, current.generation.0).await? {
        collect(&before, &mut digests)?;
    }
    let names = Arc::new(Names { generation: current.generation, digests });
    named.keep(stream, Arc::clone(&names));
    Ok(names)
}

/// Our own signed words, from our own database: read without checking the signature again.
fn collect(envelope: &[u8], digests: &mut HashSet<Digest>) -> Result<(), Refusal> {
    let unreadable = |error: String| {
        tracing::error!(%error, "a stored state can't be read");
        Refusal::internal()
    };
    let envelope = Envelope::from_json(envelope).map_err(|error| unreadable(error.to_string()))?;
    let state: DesiredState =
        serde_json::from_slice(&envelope.payload).map_err(|error| unreadable(error.to_string()))?;
    for entry in &state.entries {
        let Mode::Apply(packages) = &entry.mode else { continue };
        for package in [&packages.platform, &packages.workload] {
            digests.insert(package.digest);
            digests.extend(package.artifacts.iter().map(|artifact| artifact.digest));
        }
    }
    Ok(())
}

impl Named {
    fn find(&self, stream: &Arc<Stream>, generation: Generation) -> Option<Arc<Names>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.get(stream).filter(|names| names.generation == generation).cloned()
    }

    fn keep(&self, stream: &Arc<Stream>, names: Arc<Names>) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).insert(Arc::clone(stream), names);
    }
}

impl Part {
    /// One range; what isn't one, or is several, is answered with the whole.
    fn of(header: &str, length: u64) -> Part {
        let Some(range) = header.strip_prefix("bytes=") else { return Part::Whole };
        let Some((first, last)) = range.trim().split_once('-') else { return Part::Whole };
        match (number(first), number(last)) {
            (Some(first), None) if last.is_empty() => Part::between(first, u64::MAX, length),
            (Some(first), Some(last)) if first <= last => Part::between(first, last, length),
            (None, Some(tail)) if first.is_empty() => match (tail, length) {
                (0, _) | (_, 0) => Part::Unsatisfiable,
                _ => Part::between(length.saturating_sub(tail), u64::MAX, length),
            },
            _ => Part::Whole,
        }
    }

    fn between(first: u64, last: u64, length: u64) -> Part {
        match length.checked_sub(1) {
            Some(end) if first <= end => Part::Range(first, last.min(end)),
            _ => Part::Unsatisfiable,
        }
    }
}

fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // More digits than fit mean "to the end".
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_is_cut_to_what_is_there() {
        assert_eq!(Part::of("bytes=0-3", 10), Part::Range(0, 3));
        assert_eq!(Part::of("bytes=4-", 10), Part::Range(4, 9));
        assert_eq!(Part::of("bytes=-3", 10), Part::Range(7, 9));
        assert_eq!(Part::of("bytes=-30", 10), Part::Range(0, 9));
        assert_eq!(Part::of("bytes=5-99999999999999999999999", 10), Part::Range(5, 9));
    }

    #[test]
    fn a_range_past_the_end_is_unsatisfiable() {
        for (text, length) in [("bytes=10-", 10), ("bytes=10-20", 10), ("bytes=-0", 10), ("bytes=0-", 0)] {
            assert_eq!(Part::of(text, length), Part::Unsatisfiable, "{text}");
        }
    }

    #[test]
    fn what_is_no_single_range_is_answered_with_the_whole() {
        for text in ["bytes=5-4", "bytes=1-2,4-5", "lines=1-2", "bytes=", "bytes=-", "bytes=+1-2", "bytes=a-b"] {
            assert_eq!(Part::of(text, 10), Part::Whole, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_range_never_leaves_the_content(text in "(bytes=)?[0-9,+ -]{0,30}", length in 0_u64..1000) {
            if let Part::Range(first, last) = Part::of(&text, length) {
                prop_assert!(first <= last && last < length);
            }
        }
    }
}
