//! Content from peers: who has it as the driver last heard, each over connections of its own. The sync loop's downloads ask here first.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::header::{HeaderMap, HeaderValue, RANGE};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use kedge_model::wire::{BlobRef, ClusterId, Digest};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::dial::{self, Line};
use crate::link::mutual::Mutual;
use crate::link::{HubLink, LinkError};
use crate::objects::Objects;
use crate::swarm::{Holder, HolderError, Misbehavior, Pieces, Sources, Swarm, SwarmError};

/// What a download needs. Cheap to clone.
#[derive(Clone)]
pub struct Content {
    swarm: Swarm,
    sources: Arc<ContentSources>,
}

/// What the driver writes and downloads read.
pub struct ContentSources {
    link: Arc<HubLink>,
    view: Mutex<View>,
    lies: mpsc::Sender<(ClusterId, Misbehavior)>,
}

#[derive(Default)]
struct View {
    holders: BTreeMap<Digest, Vec<ClusterId>>,
    /// Somebody else of the site reaches the hub and may have our content: it fetches, and we wait for it.
    carried: bool,
    seats: BTreeMap<ClusterId, Arc<Seat>>,
    /// Since when a blob is waited for.
    waits: BTreeMap<Digest, Wait>,
}

struct Wait {
    since: Instant,
    most: Duration,
}

/// A peer that has content.
pub(super) struct Seat {
    cluster: ClusterId,
    way: Way,
    addresses: Vec<SocketAddr>,
    /// Between two requests.
    line: Kept,
}

/// How this cluster shows who it is.
pub(super) enum Way {
    /// By the certificate of the moment.
    Link(Arc<HubLink>),
    Own(Mutual),
}

type Kept = Arc<Mutex<Option<Line>>>;

/// The head of an answer; a list may have to be made.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// Another's download may begin so much later than ours would.
const PATIENCE: Duration = Duration::from_secs(60);
/// The thinnest uplink that is waited for: 128 kbit/s.
const THIN: u64 = 16 * 1024;
const MAX_WAITS: usize = 256;

impl Content {
    pub fn new(swarm: Swarm, sources: Arc<ContentSources>) -> Content {
        Content { swarm, sources }
    }

    /// The blob is an object when this returns true. False: the hub is to be asked.
    pub async fn fetch(&self, blob: &BlobRef, objects: &Objects) -> Result<bool, SwarmError> {
        self.sources.begin(blob);
        if self.sources.holders(&blob.digest).is_empty() && !self.sources.is_coming(&blob.digest) {
            return Ok(false);
        }
        match self.swarm.fetch(blob, &*self.sources, objects).await {
            Ok(()) => {
                self.sources.end(&blob.digest);
                Ok(true)
            }
            Err(SwarmError::Nobody(_)) => {
                match self.swarm.hand_over(blob) {
                    Ok(bytes) if bytes > 0 => tracing::debug!(blob = %blob.digest, bytes, "the hub gives the rest"),
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%error, "what came from peers can't be used"),
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

impl ContentSources {
    pub fn new(link: Arc<HubLink>, lies: mpsc::Sender<(ClusterId, Misbehavior)>) -> ContentSources {
        ContentSources { link, view: Mutex::default(), lies }
    }

    /// Who has what, and whether somebody else fetches for the site.
    pub fn show(&self, holders: BTreeMap<Digest, Vec<(ClusterId, Vec<SocketAddr>)>>, carried: bool) {
        let mut view = self.lock();
        let mut seats = BTreeMap::new();
        for (cluster, addresses) in holders.values().flatten() {
            let kept = view.seats.get(cluster).filter(|seat| seat.addresses == *addresses).cloned();
            let seat = kept
                .unwrap_or_else(|| Arc::new(Seat::new(*cluster, Way::Link(Arc::clone(&self.link)), addresses.clone())));
            seats.insert(*cluster, seat);
        }
        let names = |all: Vec<(ClusterId, Vec<SocketAddr>)>| all.into_iter().map(|(cluster, _)| cluster).collect();
        view.holders = holders.into_iter().map(|(blob, all)| (blob, names(all))).collect();
        (view.seats, view.carried) = (seats, carried);
    }

    fn begin(&self, blob: &BlobRef) {
        let mut view = self.lock();
        if view.waits.len() >= MAX_WAITS {
            view.waits.clear();
        }
        // Whoever fetches it needs its time; and not all lose patience together.
        let most = (PATIENCE + Duration::from_secs(blob.size / THIN)).mul_f64(rand::random_range(1.0..1.5));
        view.waits.entry(blob.digest).or_insert(Wait { since: Instant::now(), most });
    }

    fn end(&self, blob: &Digest) {
        self.lock().waits.remove(blob);
    }

    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sources for ContentSources {
    fn holders(&self, blob: &Digest) -> Vec<Arc<dyn Holder>> {
        let view = self.lock();
        let Some(names) = view.holders.get(blob) else { return Vec::new() };
        names.iter().filter_map(|name| view.seats.get(name)).map(|seat| Arc::clone(seat) as Arc<dyn Holder>).collect()
    }

    fn is_coming(&self, blob: &Digest) -> bool {
        let view = self.lock();
        view.carried && view.waits.get(blob).is_none_or(|wait| wait.since.elapsed() < wait.most)
    }

    fn misbehaved(&self, who: ClusterId, misbehavior: Misbehavior) {
        // When there are more lies than room, some of them do.
        _ = self.lies.try_send((who, misbehavior));
    }
}

impl Holder for Seat {
    fn cluster(&self) -> ClusterId {
        self.cluster
    }

    fn chunks(&self, blob: Digest) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        self.get(format!("/peer/v1/chunks/{blob}"), None).boxed()
    }

    fn range(&self, blob: Digest, range: Range<u64>) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        self.get(format!("/peer/v1/blobs/{blob}"), Some(range)).boxed()
    }
}

impl Seat {
    pub(super) fn new(cluster: ClusterId, way: Way, addresses: Vec<SocketAddr>) -> Seat {
        Seat { cluster, way, addresses, line: Kept::default() }
    }

    async fn get(&self, path: String, range: Option<Range<u64>>) -> Result<Pieces, HolderError> {
        let mut headers = HeaderMap::new();
        if let Some(range) = &range {
            let text = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
            headers.insert(RANGE, HeaderValue::try_from(text).map_err(broken)?);
        }
        let kept = self.line.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut line = match kept.filter(|line| line.connection.is_open()) {
            Some(line) => line,
            None => {
                let mutual = match &self.way {
                    Way::Link(link) => link.mutual().map_err(of_link)?,
                    Way::Own(mutual) => mutual.clone(),
                };
                dial::dial_to(&mutual, self.cluster, &self.addresses).await.map_err(broken)?
            }
        };
        let sent = line.connection.send(Method::GET, &path, headers, Bytes::new(), HEAD_WITHIN).await;
        let answer = sent.map_err(|failed| of_link(failed.error))?;
        match answer.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
                Ok(pieces(line, answer.into_body(), Arc::clone(&self.line)))
            }
            status => Err(HolderError::Refused(status.to_string())),
        }
    }
}

/// The line lives as long as what is read over it, and is kept after the last byte.
fn pieces(line: Line, body: Incoming, kept: Kept) -> Pieces {
    stream::unfold(Some((line, body)), move |state| {
        let kept = Arc::clone(&kept);
        async move {
            let (line, mut body) = state?;
            loop {
                match body.frame().await {
                    None => {
                        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
                        return None;
                    }
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(piece) => return Some((Ok(piece), Some((line, body)))),
                        Err(_trailers) => {}
                    },
                    Some(Err(error)) => return Some((Err(broken(error)), None)),
                }
            }
        }
    })
    .boxed()
}

fn broken(error: impl std::fmt::Display) -> HolderError {
    HolderError::Broken(error.to_string())
}

fn of_link(error: LinkError) -> HolderError {
    HolderError::Broken(error.sentence())
}

impl std::fmt::Debug for ContentSources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentSources").field("link", &self.link).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Content")
    }
}
