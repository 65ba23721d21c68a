//! The door between the command `import` and the daemon: what was brought lies in the folder `inbox` until the daemon has taken it. One
//! file for this host's news, `news.json`, and one for the site's other documents, `site.json`, which stay for the peers. Each is
//! replaced as a whole, under one lock.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use kedge_durable::{Disk, FileLock, RealDisk};
use kedge_model::wire::{Envelope, PollAnswer};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::paths::{NEWS, Paths};

#[derive(Clone, Debug)]
pub struct Inbox {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
}

/// In the order in which they came.
#[derive(Debug, Default, Serialize, Deserialize)]
struct News {
    answers: Vec<PollAnswer>,
}

/// The newest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Others {
    documents: Vec<Envelope>,
}

const SITE: &str = "site.json";
/// Imports that a daemon may leave lying: it doesn't run, or its disk is full.
const MAX_ANSWERS: usize = 16;
/// A site has hundreds of clusters, each with a few documents.
pub const MAX_DOCUMENTS: usize = 4_096;
/// As much as is remembered of a site in memory; a state is smaller than a quarter of it.
const MAX_BYTES: u64 = 16 << 20;

impl Inbox {
    /// That of this host, for commands.
    pub fn of(paths: &Paths) -> Inbox {
        Inbox::on(Arc::new(RealDisk), paths)
    }

    pub fn on(disk: Arc<dyn Disk>, paths: &Paths) -> Inbox {
        Inbox { disk, folder: paths.inbox() }
    }

    /// Leaves news for the daemon; durable when it returns.
    pub fn put(&self, answer: &PollAnswer) -> io::Result<()> {
        let _lock = self.lock()?;
        let mut news: News = self.read(NEWS)?.unwrap_or_default();
        if news.answers.len() >= MAX_ANSWERS {
            let why = format!("the agent hasn't taken {MAX_ANSWERS} earlier imports; does it run?");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, why));
        }
        news.answers.push(answer.clone());
        self.write(NEWS, &news)
    }

    /// Whether nothing waits for the daemon.
    pub fn is_empty(&self) -> bool {
        !self.folder.join(NEWS).exists()
    }

    /// Hands over what waits, one after the other; what was taken is gone. False: `take` refused one, and it and the rest stay.
    pub fn take(&self, mut take: impl FnMut(&PollAnswer) -> bool) -> io::Result<bool> {
        if self.is_empty() {
            return Ok(true);
        }
        let _lock = self.lock()?;
        let news: News = self.read(NEWS)?.unwrap_or_default();
        let taken = news.answers.iter().take_while(|answer| take(answer)).count();
        if taken < news.answers.len() {
            let answers = news.answers.into_iter().skip(taken).collect();
            self.write(NEWS, &News { answers })?;
            return Ok(false);
        }
        match self.disk.remove(&self.folder.join(NEWS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.disk.sync_folder(&self.folder).map(|()| true),
        }
    }

    /// Keeps documents of other clusters of the site, for the peers. The oldest go when there are too many.
    pub fn put_site(&self, documents: &[Envelope]) -> io::Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let _lock = self.lock()?;
        let known: Others = self.read(SITE)?.unwrap_or_default();
        let mut others = Others { documents: documents.to_vec() };
        others.documents.extend(known.documents.into_iter().filter(|known| !documents.contains(known)));
        others.documents.truncate(MAX_DOCUMENTS);
        while others.documents.len() > 1 && size(&others)? > MAX_BYTES {
            others.documents.truncate(others.documents.len() / 2);
        }
        self.write(SITE, &others)
    }

    /// What files brought for the site's other clusters: signed by whoever they are of, and judged by nobody yet. The newest first.
    pub fn site(&self) -> io::Result<Vec<Envelope>> {
        Ok(self.read::<Others>(SITE)?.unwrap_or_default().documents)
    }

    /// When they were last written; none: there are none.
    pub fn site_written(&self) -> Option<SystemTime> {
        std::fs::metadata(self.folder.join(SITE)).and_then(|file| file.modified()).ok()
    }

    fn lock(&self) -> io::Result<FileLock> {
        self.disk.make_folder(&self.folder)?;
        self.disk.lock(&self.folder.join("lock"))
    }

    /// None: there is none, or somebody else wrote it.
    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let path = self.folder.join(name);
        let bytes = match self.disk.read(&path, MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Vec::new(),
            read => read?,
        };
        let read = serde_json::from_slice(&bytes);
        if let Err(error) = &read {
            tracing::warn!(path = %path.display(), %error, "what lies in the inbox can't be read and is dropped");
        }
        Ok(read.ok())
    }

    fn write<T: Serialize>(&self, name: &str, value: &T) -> io::Result<()> {
        let bytes = serde_json::to_vec(value)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the inbox would be too large"));
        }
        let (path, temporary) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        self.disk.write(&temporary, &bytes)?;
        self.disk.sync_file(&temporary)?;
        self.disk.rename(&temporary, &path)?;
        self.disk.sync_folder(&self.folder)
    }
}

fn size<T: Serialize>(value: &T) -> io::Result<u64> {
    Ok(serde_json::to_vec(value)?.len() as u64)
}
