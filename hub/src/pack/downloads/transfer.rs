//! One try at one artifact: goes on where the last one stopped, and hands over only what has the right digest.

use std::io::Read as _;
use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use kedge_model::wire::Digest;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderMap, RANGE};
use reqwest::{StatusCode, Url};
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt as _;

use super::{Shared, is_allowed};
use crate::pack::blobs::BlobError;

#[derive(Debug, thiserror::Error)]
pub(super) enum TransferError {
    #[error("the server can't be asked")]
    Request(#[source] reqwest::Error),
    #[error("the server answers {0}")]
    Status(StatusCode),
    #[error("it has more than {} GiB", MAX_BYTES >> 30)]
    TooLarge,
    #[error("what came has the digest {found}")]
    Digest { found: Digest },
    #[error("it can't be stored")]
    Disk(#[source] std::io::Error),
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error("it was interrupted")]
    Interrupted,
}

/// Larger than any model that fits on an edge host.
const MAX_BYTES: u64 = 64 << 30;
const CONNECT: Duration = Duration::from_secs(10);
/// How long a transfer may stand still.
const STALL: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;

impl Shared {
    /// Fetches into the partial file and adopts it as a blob. The size of what came.
    pub(super) async fn transfer(&self, url: Url, digest: Digest) -> Result<u64, TransferError> {
        let partial = self.blobs.partial(&digest);
        let resumed = tokio::fs::metadata(&partial).await.map_or(0, |found| found.len());
        match self.attempt(&url, digest, &partial, resumed).await {
            // What was here from before may have been another content.
            Err(TransferError::Digest { .. }) if resumed > 0 => self.attempt(&url, digest, &partial, 0).await,
            outcome => outcome,
        }
    }

    async fn attempt(&self, url: &Url, digest: Digest, partial: &Path, from: u64) -> Result<u64, TransferError> {
        let client = self.client().map_err(TransferError::Request)?;
        let mut request = client.get(url.clone());
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        let mut answer = request.send().await.map_err(TransferError::Request)?;
        let from = match answer.status() {
            StatusCode::OK => 0,
            StatusCode::PARTIAL_CONTENT if range_start(answer.headers()) == Some(from) => from,
            // It may be whole already, or the server's content is another one now.
            StatusCode::RANGE_NOT_SATISFIABLE if from > 0 => return self.adopt(digest, partial).await,
            StatusCode::PARTIAL_CONTENT => return Err(TransferError::Status(StatusCode::PARTIAL_CONTENT)),
            status => return Err(TransferError::Status(status)),
        };
        let length = answer.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let total = length.map(|length| length.saturating_add(from));
        if total.is_some_and(|total| total > MAX_BYTES) {
            return Err(TransferError::TooLarge);
        }
        let mut file = open(partial, from).await.map_err(|error| self.blobs.failed(error))?;
        let mut done = from;
        while let Some(chunk) = answer.chunk().await.map_err(TransferError::Request)? {
            done += chunk.len() as u64;
            if done > MAX_BYTES {
                return Err(TransferError::TooLarge);
            }
            file.write_all(&chunk).await.map_err(|error| self.blobs.failed(error))?;
            self.report(&digest, done, total);
        }
        file.flush().await.map_err(|error| self.blobs.failed(error))?;
        file.sync_all().await.map_err(|error| self.blobs.failed(error))?;
        drop(file);
        self.adopt(digest, partial).await
    }

    async fn adopt(&self, digest: Digest, partial: &Path) -> Result<u64, TransferError> {
        let (blobs, path) = (self.blobs.clone(), partial.to_owned());
        let checked = tokio::task::spawn_blocking(move || {
            let (found, size) = digest_of(&path).map_err(TransferError::Disk)?;
            if found != digest {
                std::fs::remove_file(&path).map_err(TransferError::Disk)?;
                return Err(TransferError::Digest { found });
            }
            blobs.adopt(&path, &digest)?;
            Ok(size)
        });
        checked.await.map_err(|_| TransferError::Interrupted)?
    }

    fn client(&self) -> Result<reqwest::Client, reqwest::Error> {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // An error means that the program has chosen one already, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        let hosts = self.hosts.clone();
        // Where a redirect leads must be on the list too.
        let redirects = reqwest::redirect::Policy::custom(move |attempt| {
            match is_allowed(attempt.url(), &hosts) && attempt.previous().len() <= MAX_REDIRECTS {
                true => attempt.follow(),
                false => attempt.error("it redirects to a place that isn't on the list"),
            }
        });
        let builder = reqwest::Client::builder()
            .https_only(true)
            .connect_timeout(CONNECT)
            .read_timeout(STALL)
            .redirect(redirects)
            .user_agent(concat!("kedge-hub/", env!("CARGO_PKG_VERSION")));
        match self.roots.is_empty() {
            true => builder.build(),
            false => builder.tls_certs_only(self.roots.iter().cloned()).build(),
        }
    }
}

async fn open(partial: &Path, from: u64) -> std::io::Result<File> {
    let file = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(partial).await?;
    file.set_len(from).await?;
    drop(file);
    OpenOptions::new().append(true).open(partial).await
}

fn digest_of(path: &Path) -> std::io::Result<(Digest, u64)> {
    let mut file = std::fs::File::open(path)?;
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let (mut chunk, mut size) = (vec![0; 1 << 20], 0);
    loop {
        let read = file.read(&mut chunk)?;
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        context.update(bytes);
        size += read as u64;
    }
    Ok((Digest::finish(context), size))
}

/// The first byte of `bytes 100-199/200`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}
