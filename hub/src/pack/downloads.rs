//! Artifacts with a `url`, fetched by the hub into blobs: https, from hosts on its list, resumable, checked against
//! their digest. Each runs as a task of its own, so that a model of gigabytes delays nobody; the packer asks again.

mod transfer;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kedge_hub_types::causes::chain;
use kedge_model::Problem;
use kedge_model::wire::{BlobRef, Digest};
use reqwest::Url;
use tokio::sync::{Semaphore, watch};

use super::blobs::Blobs;
use super::workload::Download;

/// What is being fetched. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Downloads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    blobs: Blobs,
    hosts: Vec<String>,
    roots: Vec<reqwest::Certificate>,
    states: Mutex<BTreeMap<Digest, State>>,
    slots: Semaphore,
    changed: watch::Sender<u64>,
}

/// How far a download has come; for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub url: String,
    pub digest: Digest,
    pub done: u64,
    pub total: Option<u64>,
    /// Why the last try failed.
    pub failed: Option<String>,
}

#[derive(Debug)]
enum State {
    Running { url: String, done: u64, total: Option<u64> },
    Failed { url: String, message: String, tries: u32, again: Instant },
}

/// Two fill most lines; more would only take from each other.
const AT_ONCE: usize = 2;
/// After a failure, doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

impl Downloads {
    pub fn new(blobs: Blobs, hosts: Vec<String>) -> Downloads {
        Downloads::with_roots(blobs, hosts, Vec::new())
    }

    /// With certificates to believe instead of the system's.
    pub fn with_roots(blobs: Blobs, hosts: Vec<String>, roots: Vec<reqwest::Certificate>) -> Downloads {
        let (states, slots) = (Mutex::default(), Semaphore::new(AT_ONCE));
        let shared = Shared { blobs, hosts, roots, states, slots, changed: watch::Sender::new(0) };
        Downloads { shared: Arc::new(shared) }
    }

    /// Changes whenever a download ends, well or not: what waited for it can be packed.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.shared.changed.subscribe()
    }

    pub fn progress(&self) -> Vec<Progress> {
        let shown = |(digest, state): (&Digest, &State)| match state {
            State::Running { url, done, total } => {
                Progress { url: url.clone(), digest: *digest, done: *done, total: *total, failed: None }
            }
            State::Failed { url, message, .. } => {
                Progress { url: url.clone(), digest: *digest, done: 0, total: None, failed: Some(message.clone()) }
            }
        };
        self.shared.states().iter().map(shown).collect()
    }

    /// The blob, if it is here; else it is on its way, or the problem says why not.
    pub(super) fn want(&self, download: &Download) -> Result<BlobRef, Box<Problem>> {
        if let Some(size) = self.shared.blobs.size(&download.digest) {
            let blob = BlobRef { digest: download.digest, size };
            if self.shared.blobs.claim(&blob) {
                return Ok(blob);
            }
        }
        let url = self.allowed(download)?;
        let mut states = self.shared.states();
        let tries = match states.get(&download.digest) {
            Some(State::Running { done, total, .. }) => return Err(pending(download, *done, *total)),
            Some(State::Failed { message, again, .. }) if Instant::now() < *again => {
                return Err(failed(download, message));
            }
            Some(State::Failed { tries, .. }) => *tries,
            None => 0,
        };
        let running = State::Running { url: download.url.clone(), done: 0, total: None };
        states.insert(download.digest, running);
        let (shared, digest) = (Arc::clone(&self.shared), download.digest);
        tokio::spawn(async move { shared.fetch(url, digest, tries).await });
        Err(pending(download, 0, None))
    }

    /// Waits until none of these runs any more, at most so long: small ones come in one go.
    pub(super) async fn settle(&self, digests: &[Digest], patience: Duration) {
        let mut changed = self.changed();
        let is_running = || {
            let states = self.shared.states();
            digests.iter().any(|digest| matches!(states.get(digest), Some(State::Running { .. })))
        };
        let settled = async {
            while is_running() {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(patience, settled).await;
    }

    fn allowed(&self, download: &Download) -> Result<Url, Box<Problem>> {
        let refuse = |message: String, hint: &str| {
            Box::new(Problem::error("UrlNotAllowed", message).at(download.origin.clone()).hint(hint))
        };
        let shown: String = download.url.chars().take(300).flat_map(char::escape_debug).collect();
        let url = Url::parse(&download.url)
            .map_err(|error| refuse(format!("`{shown}` is not a URL: {error}"), "write `https://host/path`"))?;
        match is_allowed(&url, &self.shared.hosts) {
            true => Ok(url),
            false => Err(refuse(
                format!("artifacts may not be fetched from `{shown}`"),
                "the platform team lists the hosts as `packages.hosts` in hub.toml; https only, no user in the URL",
            )),
        }
    }
}

impl Shared {
    fn states(&self) -> MutexGuard<'_, BTreeMap<Digest, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self, url: Url, digest: Digest, tries: u32) {
        let Ok(_slot) = self.slots.acquire().await else { return };
        let name = url.to_string();
        let outcome = self.transfer(url, digest).await;
        match outcome {
            Ok(size) => {
                tracing::info!(url = name, %digest, size, "artifact fetched");
                self.states().remove(&digest);
            }
            Err(error) => {
                let message = chain(&error);
                let pause = FIRST_PAUSE.saturating_mul(1 << tries.min(10)).min(LONGEST_PAUSE);
                tracing::warn!(url = name, %digest, error = message, ?pause, "artifact not fetched");
                let failed = State::Failed { url: name, message, tries: tries + 1, again: Instant::now() + pause };
                self.states().insert(digest, failed);
            }
        }
        self.changed.send_modify(|count| *count += 1);
    }

    fn report(&self, digest: &Digest, now_done: u64, now_total: Option<u64>) {
        if let Some(State::Running { done, total, .. }) = self.states().get_mut(digest) {
            (*done, *total) = (now_done, now_total);
        }
    }
}

/// https, a host of the list (`host`, or `host:port` for another port), nobody's name in it.
fn is_allowed(url: &Url, hosts: &[String]) -> bool {
    let Some(host) = url.host_str() else { return false };
    let place = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    url.scheme() == "https"
        && url.username().is_empty()
        && url.password().is_none()
        && hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(&place))
}

fn pending(download: &Download, done: u64, total: Option<u64>) -> Box<Problem> {
    let so_far = match total {
        Some(total) => format!("{} of {} MiB", done >> 20, total >> 20),
        None => format!("{} MiB so far", done >> 20),
    };
    Box::new(
        Problem::error("ArtifactPending", format!("`{}` is being fetched: {so_far}", download.url))
            .at(download.origin.clone())
            .hint("nothing to do: what runs stays, and the new version follows when it is here"),
    )
}

fn failed(download: &Download, message: &str) -> Box<Problem> {
    Box::new(
        Problem::error("ArtifactFailed", format!("`{}` can't be fetched: {message}", download.url))
            .at(download.origin.clone())
            .hint("it is tried again; check the address and the digest"),
    )
}

#[cfg(test)]
mod tests;
