//! A bare mirror of a repository: holds just the commits that were asked for. The CLI keeps them without their history
//! in its cache; the hub follows branches with theirs, to see a branch that was rewritten.

mod guard;

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use gix::protocol::transport::client::blocking_io::http;
use gix::remote::fetch::{Shallow, Tags};
use gix::remote::{Direction, ref_map};

use super::address::refused;
use crate::repositories::{RepoError, RepoKey, Request};
use crate::tree::chain;
use crate::tree::git::{GitRepository, Revision};
pub use guard::Limits;

/// A host that doesn't answer by then won't.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a transfer may stand still, also while the server counts objects.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the mirror keeps the default branch's head.
const HEAD_REF: &str = "refs/kedge/head";

/// No history: only files are read.
const ONE_COMMIT: Shallow = Shallow::DepthAtRemote(NonZeroU32::MIN);

#[derive(Debug)]
pub struct Mirror {
    repo: gix::Repository,
    /// One process at a time fetches into a mirror. Given back when the file is closed.
    _lock: File,
    url: String,
    /// As the object spells it, for messages.
    name: String,
    link: Link,
}

/// How a server is spoken to.
#[derive(Clone)]
pub struct Link {
    /// The value of the header `Authorization`. With one, no redirect is followed.
    pub authorization: Option<String>,
    /// Where the host of the address is: what was checked is what is connected to. None: as the system resolves it.
    pub addresses: Vec<SocketAddr>,
    /// Whether the first answer may lead elsewhere.
    pub redirects: bool,
    pub limits: Limits,
}

/// What is asked of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    spec: String,
    local: String,
    name: Option<String>,
}

impl Default for Link {
    fn default() -> Link {
        Link { authorization: None, addresses: Vec::new(), redirects: true, limits: guard::LIMITS }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let authorization = self.authorization.as_ref().map(|_| "…");
        f.debug_struct("Link")
            .field("authorization", &authorization)
            .field("addresses", &self.addresses)
            .field("redirects", &self.redirects)
            .field("limits", &self.limits)
            .finish()
    }
}

impl Mirror {
    /// Where the mirror of an address is below `cache`.
    pub fn path_of(cache: &Path, url: &str) -> Result<PathBuf, RepoError> {
        Ok(cache.join(format!("{}.git", folder_name(url)?)))
    }

    /// The mirror of an address below `cache`, made if need be.
    pub fn at(cache: &Path, url: &str, name: &str) -> Result<Mirror, RepoError> {
        let unusable = |source: Box<dyn std::error::Error + Send + Sync>| RepoError::Cache {
            path: cache.display().to_string(),
            source,
        };
        let name_here = folder_name(url)?;
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
        let (url, name) = (url.to_owned(), name.to_owned());
        Ok(Mirror { repo: repo.into(), _lock: lock, url, name, link: Link::default() })
    }

    #[must_use]
    pub fn with_link(mut self, link: Link) -> Mirror {
        self.link = link;
        self
    }

    /// Another address of the same repository, where its server says that it is.
    #[must_use]
    pub fn fetching_from(mut self, url: &str) -> Mirror {
        url.clone_into(&mut self.url);
        self
    }

    pub fn path(&self) -> &Path {
        self.repo.git_dir()
    }

    /// Whether all these refs are here already, at these ids.
    pub fn is_at(&self, there: &[(&Want, ObjectId)]) -> bool {
        there.iter().all(|(want, id)| self.here(want) == Some(*id))
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
            let want = Want::commit(commit)?;
            let commit = commit.to_ascii_lowercase();
            if !self.repository().has_commit(&commit) {
                say(&format!("fetching {} at {commit}", self.name));
                if let Err(error) = self.receive(&want, ONE_COMMIT) {
                    self.bring_history(request, &commit, error)?;
                }
            }
            return Ok(self
                .repository()
                .commit(&commit)
                .map(|found| Revision { name: request.branch.clone(), ..found })?);
        }
        let want = match (&request.tag, &request.branch) {
            (Some(tag), _) => Want::tag(tag)?,
            (None, Some(branch)) => Want::branch(branch)?,
            (None, None) => Want { spec: format!("+HEAD:{HEAD_REF}"), local: HEAD_REF.to_owned(), name: None },
        };
        say(&format!("fetching {request}"));
        let wanted = match (&request.tag, &request.branch) {
            (Some(tag), _) => format!("tag `{tag}`"),
            (None, branch) => format!("branch `{}`", branch.as_deref().unwrap_or("HEAD")),
        };
        self.receive(&want, ONE_COMMIT).map_err(|error| self.failed(error, &wanted))
    }

    /// Old servers give away only the heads of branches, so the commit has to be found behind one.
    fn bring_history(&self, request: &Request, commit: &str, error: gix::Error) -> Result<(), RepoError> {
        if chain(&error).contains("handshake failed") {
            return Err(self.failed(error, &format!("commit {commit}")));
        }
        if let Some(branch) = &request.branch {
            let wanted = format!("branch `{branch}`");
            self.receive(&Want::branch(branch)?, Shallow::undo()).map_err(|error| self.failed(error, &wanted))?;
            if self.repository().has_commit(commit) {
                return Ok(());
            }
        }
        let hint = format!("is there a commit {commit} on that branch?");
        Err(RepoError::Fetch { repo: self.name.clone(), hint: Some(hint), source: Box::new(error) })
    }

    fn failed(&self, error: gix::Error, wanted: &str) -> RepoError {
        // Without the address, which may contain any of the words.
        let text = chain(&error).replace(&self.url, "").to_lowercase();
        let hint = if text.contains("matched any of the") {
            format!("there is no {wanted} there")
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

    /// Asks where all of these are and fetches those that moved, with their history. None: the server has no such ref.
    /// When nothing moved, nothing but the question is sent.
    pub fn follow(&self, wants: &[Want]) -> Result<Vec<Option<ObjectId>>, gix::Error> {
        let remote = self
            .repo
            .remote_at_without_url_rewrite(self.url.as_str())?
            .with_fetch_tags(Tags::None)
            .with_refspecs(wants.iter().map(|want| BString::from(want.spec.as_str())), Direction::Fetch)?;
        let prepared = remote
            .connect(Direction::Fetch)?
            .with_transport_options(Box::new(self.http_options()))
            .with_credentials(|_| Ok(None))
            .prepare_fetch(gix::progress::Discard, ref_map::Options::default())?;
        let there: Vec<Option<ObjectId>> = wants
            .iter()
            .map(|want| {
                let mut mappings = prepared.ref_map().mappings.iter();
                let found = mappings.find(|mapping| mapping.local.as_ref().is_some_and(|local| *local == want.local));
                found.and_then(|mapping| Some(mapping.remote.as_id()?.to_owned()))
            })
            .collect();
        let known: Vec<(&Want, ObjectId)> =
            wants.iter().zip(&there).filter_map(|(want, there)| Some((want, (*there)?))).collect();
        if !self.is_at(&known) {
            let packs = self.repo.git_dir().join("objects").join("pack");
            guard::guarded(&packs, self.link.limits, |stop| prepared.receive(gix::progress::Discard, stop))?;
        }
        wants.iter().zip(there).map(|(want, there)| there.map(|_| self.commit_of(want)).transpose()).collect()
    }

    /// The server's tags and what they lead to, at most so many. Nothing is fetched.
    pub fn tags(&self, most: usize) -> Result<Vec<(String, ObjectId)>, gix::Error> {
        let remote = self
            .repo
            .remote_at_without_url_rewrite(self.url.as_str())?
            .with_fetch_tags(Tags::None)
            .with_refspecs([BString::from("+refs/tags/*:refs/kedge/listed/*")], Direction::Fetch)?;
        let (map, _) = remote
            .connect(Direction::Fetch)?
            .with_transport_options(Box::new(self.http_options()))
            .with_credentials(|_| Ok(None))
            .ref_map(gix::progress::Discard, ref_map::Options::default())?;
        let tags = map.remote_refs.iter().filter_map(|found| {
            let (name, direct, peeled) = found.unpack();
            let name = name.to_str().ok()?.strip_prefix("refs/tags/")?;
            Some((name.to_owned(), peeled.or(direct)?.to_owned()))
        });
        Ok(tags.take(most).collect())
    }

    /// The commit that a ref led to when it was last fetched.
    pub fn commit_of(&self, want: &Want) -> Result<ObjectId, gix::Error> {
        Ok(self.repo.find_reference(want.local.as_str())?.peel_to_commit()?.id)
    }

    /// What a ref is here, when it and its commit can be read.
    fn here(&self, want: &Want) -> Option<ObjectId> {
        let mut reference = self.repo.try_find_reference(want.local.as_str()).ok()??;
        let id = reference.target().try_id()?.to_owned();
        reference.peel_to_commit().ok()?.tree().ok()?;
        Some(id)
    }

    fn http_options(&self) -> http::Options {
        http_options(&self.url, &self.link)
    }

    fn receive(&self, want: &Want, depth: Shallow) -> Result<Revision, gix::Error> {
        let remote = self
            .repo
            .remote_at_without_url_rewrite(self.url.as_str())?
            .with_fetch_tags(Tags::None)
            .with_refspecs([BString::from(want.spec.as_str())], Direction::Fetch)?;
        let prepared = remote
            .connect(Direction::Fetch)?
            .with_transport_options(Box::new(self.http_options()))
            // A credential is in the link; nobody is asked on a terminal.
            .with_credentials(|_| Ok(None))
            .prepare_fetch(gix::progress::Discard, ref_map::Options::default())?
            .with_shallow(depth);
        let packs = self.repo.git_dir().join("objects").join("pack");
        guard::guarded(&packs, self.link.limits, |stop| prepared.receive(gix::progress::Discard, stop))?;
        let commit = self.repo.find_reference(want.local.as_str())?.peel_to_commit()?.id;
        Ok(Revision { name: want.name.clone(), commit })
    }
}

impl Want {
    pub fn branch(branch: &str) -> Result<Want, RepoError> {
        Want::named("refs/heads", "branch", branch)
    }

    pub fn tag(tag: &str) -> Result<Want, RepoError> {
        Want::named("refs/tags", "tag", tag)
    }

    /// A commit by its full id.
    pub fn commit(commit: &str) -> Result<Want, RepoError> {
        let commit = commit.to_ascii_lowercase();
        if ObjectId::from_hex(commit.as_bytes()).is_err() {
            let reason = format!("`{}` is not a full commit id, and others can't be fetched", commit.escape_debug());
            return Err(refused(reason, "write all 40 digits of the commit"));
        }
        let local = format!("refs/kedge/commits/{commit}");
        Ok(Want { spec: format!("{commit}:{local}"), local, name: None })
    }

    fn named(folder: &str, noun: &str, name: &str) -> Result<Want, RepoError> {
        let full = format!("{folder}/{name}");
        if gix::refs::FullName::try_from(full.as_str()).is_err() {
            let reason = format!("`{}` can't be the name of a {noun}", name.escape_debug());
            return Err(refused(reason, &format!("write the {noun} as Git shows it")));
        }
        // By number, because `a` and `a/b` can't both be files of a mirror when one replaced the other.
        let local = format!("refs/kedge/{noun}/{}", digest(&full)?);
        Ok(Want { spec: format!("+{full}:{local}"), local, name: Some(name.to_owned()) })
    }

    /// As the `git` program takes it: what is there, and where it goes here.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// The ref's full name on the server, or the commit.
    pub fn theirs(&self) -> &str {
        let spec = self.spec.strip_prefix('+').unwrap_or(&self.spec);
        spec.split_once(':').map_or(spec, |(theirs, _)| theirs)
    }

    /// The ref of the mirror.
    pub fn local(&self) -> &str {
        &self.local
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
fn http_options(url: &str, link: &Link) -> http::Options {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that the program has chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let https_only = url.starts_with("https:");
    let (host, addresses) = (host_of(url).to_owned(), link.addresses.clone());
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(move |builder| {
            // Also for where a redirect leads.
            let builder = builder.connect_timeout(CONNECT_TIMEOUT).timeout(STALL_TIMEOUT).https_only(https_only);
            Ok(match addresses.is_empty() {
                true => builder,
                false => builder.no_proxy().resolve_to_addrs(&host, &addresses),
            })
        })),
        // gix follows no redirect of a request that somebody else had a hand in.
        configure_request: if link.redirects { None } else { Some(Box::new(|_| Ok(()))) },
    };
    let extra_headers = link.authorization.iter().map(|value| format!("Authorization: {value}")).collect();
    http::Options { backend: Some(Arc::new(Mutex::new(backend))), extra_headers, ..http::Options::default() }
}

/// The host of a URL, as a resolver takes it.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// The mirror's name: readable for people who look into the cache, and one for all spellings of an address.
fn folder_name(url: &str) -> Result<String, RepoError> {
    let key = RepoKey::new(url).to_string();
    Ok(format!("{}-{}", readable(&key), digest(&key)?))
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
