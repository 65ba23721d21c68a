//! A bare mirror in the cache: holds just the commits that were asked for, without their history.

mod guard;

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use gix::ObjectId;
use gix::bstr::BString;
use gix::protocol::transport::client::blocking_io::http;
use gix::remote::fetch::{Shallow, Tags};
use gix::remote::{Direction, ref_map};

use super::address::refused;
use crate::repositories::{RepoError, RepoKey, Request};
use crate::tree::chain;
use crate::tree::git::{GitRepository, Revision};

/// A host that doesn't answer by then won't.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a transfer may stand still, also while the server counts objects.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the mirror keeps the default branch's head.
const HEAD_REF: &str = "refs/kedge/head";

/// No history: only files are read.
const ONE_COMMIT: Shallow = Shallow::DepthAtRemote(NonZeroU32::MIN);

pub(super) struct Mirror {
    repo: gix::Repository,
    /// One process at a time fetches into a mirror. Given back when the file is closed.
    _lock: File,
    url: String,
    /// As the object spells it, for messages.
    name: String,
}

/// What is asked of a server.
struct Want {
    spec: String,
    local: String,
    name: Option<String>,
}

impl Mirror {
    /// The mirror of an address below `cache`, made if need be.
    pub fn at(cache: &Path, url: &str, name: &str) -> Result<Mirror, RepoError> {
        let key = RepoKey::new(url).to_string();
        let unusable = |source: Box<dyn std::error::Error + Send + Sync>| RepoError::Cache {
            path: cache.display().to_string(),
            source,
        };
        let name_here = format!("{}-{}", readable(&key), digest(&key)?);
        let path = cache.join(format!("{name_here}.git"));
        let lock = lock(cache, &name_here).map_err(|error| unusable(Box::new(error)))?;
        let open = || gix::open::Options::isolated().open(&path);
        let repo = match open() {
            Ok(repo) => repo,
            // Not there yet, or damaged: it is only a copy.
            Err(_) => {
                make(&path).map_err(unusable)?;
                open().map_err(|error| unusable(Box::new(error)))?
            }
        };
        Ok(Mirror { repo: repo.into(), _lock: lock, url: url.to_owned(), name: name.to_owned() })
    }

    /// Whether something that was brought before can't be read any more.
    pub fn is_damaged(&self) -> bool {
        let read = || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            for found in self.repo.references()?.prefixed("refs/kedge/")? {
                found?.peel_to_commit()?.tree()?;
            }
            Ok(())
        };
        read().is_err()
    }

    /// An empty one in its place.
    pub fn renew(self) -> Result<Mirror, RepoError> {
        let path = self.repo.git_dir().to_owned();
        let unusable = |source| RepoError::Cache { path: path.display().to_string(), source };
        make(&path).map_err(unusable)?;
        let repo = gix::open::Options::isolated().open(&path).map_err(|error| unusable(Box::new(error)))?;
        Ok(Mirror { repo: repo.into(), ..self })
    }

    pub fn repository(&self) -> GitRepository {
        GitRepository::from_repo(self.repo.clone())
    }

    /// Makes sure that what is requested is here. A commit that is here already isn't asked for again.
    pub fn bring(&self, request: &Request, say: &dyn Fn(&str)) -> Result<Revision, RepoError> {
        if let Some(commit) = &request.commit {
            let commit = commit.to_ascii_lowercase();
            let Ok(id) = ObjectId::from_hex(commit.as_bytes()) else {
                let reason = format!("`{commit}` is not a full commit id, and others can't be fetched");
                return Err(refused(reason, "write all 40 digits of the commit"));
            };
            if !self.repository().has_commit(&commit) {
                let local = format!("refs/kedge/commits/{commit}");
                say(&format!("fetching {} at {commit}", self.name));
                let want = Want { spec: format!("{commit}:{local}"), local, name: None };
                if let Err(error) = self.receive(&want, ONE_COMMIT) {
                    self.bring_history(request, &commit, error)?;
                }
            }
            return Ok(Revision { name: request.branch.clone(), commit: id });
        }
        let want = match &request.branch {
            Some(branch) => Want::branch(branch)?,
            None => Want { spec: format!("+HEAD:{HEAD_REF}"), local: HEAD_REF.to_owned(), name: None },
        };
        say(&format!("fetching {request}"));
        self.receive(&want, ONE_COMMIT).map_err(|error| self.failed(error, request.branch.as_deref()))
    }

    /// Old servers give away only the heads of branches, so the commit has to be found behind one.
    fn bring_history(&self, request: &Request, commit: &str, error: gix::Error) -> Result<(), RepoError> {
        if chain(&error).contains("handshake failed") {
            return Err(self.failed(error, request.branch.as_deref()));
        }
        if let Some(branch) = &request.branch {
            self.receive(&Want::branch(branch)?, Shallow::undo()).map_err(|error| self.failed(error, Some(branch)))?;
            if self.repository().has_commit(commit) {
                return Ok(());
            }
        }
        let hint = format!("is there a commit {commit} on that branch?");
        Err(RepoError::Fetch { repo: self.name.clone(), hint: Some(hint), source: Box::new(error) })
    }

    fn failed(&self, error: gix::Error, branch: Option<&str>) -> RepoError {
        // Without the address, which may contain any of the words.
        let text = chain(&error).replace(&self.url, "").to_lowercase();
        let hint = if text.contains("matched any of the") {
            format!("there is no branch `{}` there", branch.unwrap_or("HEAD"))
        } else if ["401", "403", "404"].iter().any(|code| text.contains(&format!("http status {code}")))
            || text.contains("credential")
        {
            "it doesn't exist or isn't public; a sources file can say where a clone of it is".to_owned()
        } else if text.contains("interrupt") {
            "it took too long or was too large; a sources file can say where a clone of it is".to_owned()
        } else {
            "check the address and the network, or say in a sources file where a clone of it is".to_owned()
        };
        RepoError::Fetch { repo: self.name.clone(), hint: Some(hint), source: Box::new(error) }
    }

    fn receive(&self, want: &Want, depth: Shallow) -> Result<Revision, gix::Error> {
        let remote = self
            .repo
            .remote_at_without_url_rewrite(self.url.as_str())?
            .with_fetch_tags(Tags::None)
            .with_refspecs([BString::from(want.spec.as_str())], Direction::Fetch)?;
        let prepared = remote
            .connect(Direction::Fetch)?
            .with_transport_options(Box::new(http_options(self.url.starts_with("https:"))))
            // Credentials come with the hub; nobody is asked on a terminal.
            .with_credentials(|_| Ok(None))
            .prepare_fetch(gix::progress::Discard, ref_map::Options::default())?
            .with_shallow(depth);
        let packs = self.repo.git_dir().join("objects").join("pack");
        guard::guarded(&packs, guard::LIMITS, |stop| prepared.receive(gix::progress::Discard, stop))?;
        let commit = self.repo.find_reference(want.local.as_str())?.peel_to_commit()?.id;
        Ok(Revision { name: want.name.clone(), commit })
    }
}

impl Want {
    fn branch(branch: &str) -> Result<Want, RepoError> {
        let full = format!("refs/heads/{branch}");
        if gix::refs::FullName::try_from(full.as_str()).is_err() {
            let reason = format!("`{}` can't be the name of a branch", branch.escape_debug());
            return Err(refused(reason, "write the branch as Git shows it"));
        }
        // By number, because `a` and `a/b` can't both be files of a mirror when one replaced the other.
        let local = format!("refs/kedge/branches/{}", digest(&full)?);
        Ok(Want { spec: format!("+{full}:{local}"), local, name: Some(branch.to_owned()) })
    }
}

/// Waits until no other process uses the mirror of that name.
fn lock(cache: &Path, name: &str) -> io::Result<File> {
    fs::create_dir_all(cache)?;
    let file = File::create(cache.join(format!("{name}.lock")))?;
    match file.lock() {
        // Some network file systems have none; then nobody waits.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

/// An empty mirror in place of what is there. Made beside its place and moved, so that a crash leaves no half of one.
fn make(path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let scratch = path.with_extension("new");
    for old in [&scratch, path] {
        if old.symlink_metadata().is_ok() {
            fs::remove_dir_all(old)?;
        }
    }
    gix::ThreadSafeRepository::init_opts(
        &scratch,
        gix::create::Kind::Bare,
        gix::create::Options::default(),
        gix::open::Options::isolated(),
    )?;
    Ok(fs::rename(&scratch, path)?)
}

/// Our own client: ring is the only TLS provider, and nothing waits for ever.
fn http_options(https_only: bool) -> http::Options {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that the program has chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(move |builder| {
            // Also for where a redirect leads.
            Ok(builder.connect_timeout(CONNECT_TIMEOUT).timeout(STALL_TIMEOUT).https_only(https_only))
        })),
        configure_request: None,
    };
    http::Options { backend: Some(Arc::new(Mutex::new(backend))), ..http::Options::default() }
}

/// A text as a name that every file system takes.
fn digest(text: &str) -> Result<String, RepoError> {
    let hash = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, text.as_bytes());
    // Only a text made to collide has no hash.
    hash.map(|id| id.to_string()).map_err(|_| refused("the address can't be used".to_owned(), "write another one"))
}

/// The last part of an address, for people who look into the cache.
fn readable(key: &str) -> String {
    let last = key.rsplit('/').next().unwrap_or_default();
    last.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')).take(40).collect()
}
