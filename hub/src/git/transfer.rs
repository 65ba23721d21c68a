//! One conversation with a repository's server: where are these refs, and whatever of them moved. gix speaks http,
//! the `git` program ssh, and a path is looked at directly. Called by a repository's task, one at a time.

mod redirect;
mod tags;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gix::ObjectId;
use kedge_hub_types::causes::chain;
use kedge_platform::{Limits, Link, Mirror, RepoError, RepoKey, Want};
use tokio::sync::OwnedMutexGuard;

use super::access::Access;
use super::address::{Address, Refused, Scheme, Server};
use super::credential::{Credentials, Reader, SecretError};
use super::program::{Program, ProgramError, Said};
pub(super) use tags::tags;

/// All of a monorepo's history fits, and a server that sends for ever doesn't.
const LIMITS: Limits = Limits { time: Duration::from_secs(600), bytes: 2 << 30, every: Duration::from_millis(250) };

/// Until a transfer that should have ended is given up; its thread goes on and holds the mirror.
const GRACE: Duration = Duration::from_secs(60);

/// How long the system may take to find a host.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// What every conversation needs.
#[derive(Debug)]
pub(super) struct Rules {
    pub access: Access,
    pub credentials: Credentials,
    /// Where the mirrors are.
    pub folder: PathBuf,
}

/// Which repository, for whom, and where its mirror is.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub address: Address,
    pub reader: Reader,
    /// Mirrors of one reader are in one folder.
    pub folder: PathBuf,
}

/// Below the folder of mirrors: those of workspaces.
const WORKSPACES: &str = "workspaces";
const PUBLIC: &str = "public";

impl Rules {
    pub fn route(&self, address: Address, reader: Reader) -> Route {
        let folder = match &reader {
            Reader::Platform => self.folder.clone(),
            Reader::Public => self.folder.join(WORKSPACES).join(PUBLIC),
            Reader::Workspaces(id) => self.folder.join(WORKSPACES).join(id),
        };
        Route { address, reader, folder }
    }
}

impl Route {
    /// The name of its row in the database.
    pub fn row(&self) -> RepoKey {
        let url = self.address.url();
        match &self.reader {
            Reader::Platform => RepoKey::new(&url),
            Reader::Public => RepoKey::new(&format!("{WORKSPACES}:{PUBLIC}:{url}")),
            Reader::Workspaces(id) => RepoKey::new(&format!("{WORKSPACES}:{id}:{url}")),
        }
    }
}

/// What to ask for, and what was good before.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub want: Want,
    pub before: Option<ObjectId>,
}

/// Where a ref is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub commit: ObjectId,
    /// The commit holds no file at all.
    pub empty: bool,
    /// What was good before isn't behind it.
    pub forced: bool,
}

/// Why a conversation failed, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub error: String,
    pub hint: String,
    /// Trying again changes nothing until somebody does something.
    pub firm: bool,
}

impl Fault {
    pub fn firm(error: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { error: error.into(), hint: hint.into(), firm: true }
    }

    fn passing(error: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { error: error.into(), hint: hint.into(), firm: false }
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Fault {
        Fault::firm(refused.reason, refused.hint)
    }
}

impl From<SecretError> for Fault {
    fn from(error: SecretError) -> Fault {
        Fault::firm(chain(&error), "check `git.credentials` in the hub's configuration, and who may read the file")
    }
}

impl From<ProgramError> for Fault {
    fn from(error: ProgramError) -> Fault {
        let hint = match &error {
            ProgramError::Missing(_) => "install git on the hub's machine",
            _ => "the server is slow or doesn't answer; it is tried again",
        };
        Fault::passing(chain(&error), hint)
    }
}

impl From<RepoError> for Fault {
    fn from(error: RepoError) -> Fault {
        let hint = error.hint().unwrap_or_default();
        Fault::passing(chain(&error), hint)
    }
}

/// Asks for all of these at once. The answer is in their order; none: the server has no such ref. `turn` is held until
/// the mirror is left alone again.
pub(super) async fn transfer(
    rules: &Rules,
    route: &Route,
    asks: Vec<Ask>,
    turn: OwnedMutexGuard<()>,
) -> Result<Vec<Option<Found>>, Fault> {
    match &route.address {
        Address::Local(path) => from_path(route, path, asks, turn).await,
        Address::Server(server) if server.scheme == Scheme::Ssh => over_ssh(rules, route, server, asks, turn).await,
        Address::Server(server) => over_http(rules, route, server, asks, turn).await,
    }
}

async fn over_http(
    rules: &Rules,
    route: &Route,
    server: &Server,
    asks: Vec<Ask>,
    turn: OwnedMutexGuard<()>,
) -> Result<Vec<Option<Found>>, Fault> {
    let addresses = resolve(rules, server).await?;
    let authorization = rules.credentials.secret(server, &route.reader)?.map(|secret| secret.basic());
    let link = Link { authorization, addresses, redirects: false, limits: LIMITS };
    let turn = Arc::new(turn);
    let first = follow(route, route.address.url(), link.clone(), asks.clone(), Arc::clone(&turn)).await;
    let Err(fault) = first else { return first };
    if !fault.error.contains(redirect::SIGN) {
        return Err(fault);
    }
    let there = redirect::destination(server, &link, &rules.credentials, &route.reader).await?;
    follow(route, there, link, asks, turn).await
}

async fn follow(
    route: &Route,
    from: String,
    link: Link,
    asks: Vec<Ask>,
    turn: Arc<OwnedMutexGuard<()>>,
) -> Result<Vec<Option<Found>>, Fault> {
    let (folder, url) = (route.folder.clone(), route.address.url());
    let lack = Lack::of(&link, &route.reader);
    let work = move || {
        let _turn = turn;
        let mirror = Mirror::at(&folder, &url, &url)?.with_link(link).fetching_from(&from);
        let wants: Vec<Want> = asks.iter().map(|ask| ask.want.clone()).collect();
        match mirror.follow(&wants) {
            Ok(commits) => judge(&mirror, &asks, commits),
            Err(_) if mirror.is_damaged() => {
                tracing::warn!(repo = url, "the mirror is damaged and is fetched anew");
                let mirror = mirror.renew()?;
                let commits = mirror.follow(&wants).map_err(|error| http_fault(&error, &from, lack))?;
                judge(&mirror, &asks, commits)
            }
            Err(error) => Err(http_fault(&error, &from, lack)),
        }
    };
    blocking(work).await
}

/// Runs what blocks, and doesn't wait for it for ever.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Fault> + Send + 'static) -> Result<T, Fault> {
    match tokio::time::timeout(LIMITS.time + GRACE, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(Fault::passing("reading the answer failed", "the server's answer may be damaged")),
        Err(_) => Err(Fault::passing("the server takes too long", "it is tried again")),
    }
}

/// A host that nobody listed must not lead to this machine; what was looked at is what is connected to.
async fn resolve(rules: &Rules, server: &Server) -> Result<Vec<SocketAddr>, Fault> {
    if rules.access.is_known(server) {
        return Ok(Vec::new());
    }
    let looked_up = tokio::time::timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((server.host.as_str(), server.port)));
    let unknown = |why: String| {
        Fault::passing(format!("the host `{}` can't be found: {why}", server.host), "check the address and the network")
    };
    let found: Vec<SocketAddr> = match looked_up.await {
        Ok(Ok(found)) => found.collect(),
        Ok(Err(error)) => return Err(unknown(error.to_string())),
        Err(_) => return Err(unknown("the name service doesn't answer".to_owned())),
    };
    let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    rules.access.allow_addresses(server, &addresses)?;
    Ok(found)
}

async fn over_ssh(
    rules: &Rules,
    route: &Route,
    server: &Server,
    asks: Vec<Ask>,
    turn: OwnedMutexGuard<()>,
) -> Result<Vec<Option<Found>>, Fault> {
    resolve(rules, server).await?;
    let url = route.address.url();
    let (path, _) = prepare(route, Vec::new()).await?;
    let ssh = |program: Program| program.ssh(rules.credentials.ssh_key(server, &route.reader));
    let named: Vec<&str> = asks.iter().map(|ask| ask.want.theirs()).filter(|name| name.starts_with("refs/")).collect();
    let mut there: Vec<(String, ObjectId)> = Vec::new();
    if !named.is_empty() {
        let listing = ssh(Program::new(&path).args(["ls-remote", "--", &url]).args(&named));
        let said = ended_well(listing.run(LIMITS.time).await?)?;
        there = said.out.lines().filter_map(parse_ref).collect();
    }
    let there = positions(&asks, |name| there.iter().find(|(known, _)| known == name).map(|(_, id)| *id));
    let fetch = |specs: Vec<String>| ssh(Program::new(&path).args(fetch_arguments(&url, None)).args(specs));
    bring(route, asks, there, turn, fetch).await
}

async fn from_path(
    route: &Route,
    source: &Path,
    asks: Vec<Ask>,
    turn: OwnedMutexGuard<()>,
) -> Result<Vec<Option<Found>>, Fault> {
    let url = route.address.url();
    let (source, names) = (source.to_owned(), asks.clone());
    let there = blocking(move || {
        let repo = gix::open::Options::isolated().open(&source).map_err(|error| {
            // All but the last cause say again that there is none.
            let mut why: &dyn std::error::Error = &error;
            while let Some(cause) = why.source() {
                why = cause;
            }
            Fault::passing(
                format!("there is no Git repository at `{}`: {why}", source.display()),
                "fix the address, and check that the hub's user may read the folder",
            )
        })?;
        let repo: gix::Repository = repo.into();
        Ok(positions(&names, |name| {
            let reference = repo.try_find_reference(name).ok().flatten()?;
            reference.target().try_id().map(ToOwned::to_owned)
        }))
    })
    .await?;
    let (path, _) = prepare(route, Vec::new()).await?;
    let fetch = |specs: Vec<String>| {
        let serve = "git -c safe.directory=* upload-pack";
        Program::new(&path).args(fetch_arguments(&url, Some(serve))).args(specs)
    };
    bring(route, asks, there, turn, fetch).await
}

/// Fetches with the program what isn't here yet.
async fn bring(
    route: &Route,
    asks: Vec<Ask>,
    there: Vec<Option<ObjectId>>,
    turn: OwnedMutexGuard<()>,
    fetch: impl Fn(Vec<String>) -> Program,
) -> Result<Vec<Option<Found>>, Fault> {
    let known: Vec<(Want, ObjectId)> =
        asks.iter().zip(&there).filter_map(|(ask, id)| Some((ask.want.clone(), (*id)?))).collect();
    let specs: Vec<String> = known.iter().map(|(want, _)| want.spec().to_owned()).collect();
    let (_, is_here) = prepare(route, known).await?;
    if !is_here {
        ended_well(fetch(specs).run(LIMITS.time).await?)?;
    }
    let (folder, url) = (route.folder.clone(), route.address.url());
    blocking(move || {
        let _turn = turn;
        let mirror = Mirror::at(&folder, &url, &url)?;
        let commits = asks
            .iter()
            .zip(there)
            .map(|(ask, there)| there.map(|_| mirror.commit_of(&ask.want)).transpose())
            .collect::<Result<_, _>>();
        let commits = commits.map_err(|error| Fault::passing(chain(&error), "it is fetched again"))?;
        judge(&mirror, &asks, commits)
    })
    .await
}

/// The mirror's folder, made if need be, and whether it has these.
async fn prepare(route: &Route, known: Vec<(Want, ObjectId)>) -> Result<(PathBuf, bool), Fault> {
    let (folder, url) = (route.folder.clone(), route.address.url());
    blocking(move || {
        let mut mirror = Mirror::at(&folder, &url, &url)?;
        if mirror.is_damaged() {
            tracing::warn!(repo = url, "the mirror is damaged and is fetched anew");
            mirror = mirror.renew()?;
        }
        let known: Vec<(&Want, ObjectId)> = known.iter().map(|(want, id)| (want, *id)).collect();
        Ok((mirror.path().to_owned(), mirror.is_at(&known)))
    })
    .await
}

fn judge(mirror: &Mirror, asks: &[Ask], commits: Vec<Option<ObjectId>>) -> Result<Vec<Option<Found>>, Fault> {
    let repo = mirror.repository();
    let found = asks.iter().zip(commits).map(|(ask, commit)| {
        commit.map(|commit| Found {
            commit,
            empty: repo.is_empty_commit(commit),
            forced: ask.before.is_some_and(|before| before != commit && !repo.is_behind(before, commit)),
        })
    });
    Ok(found.collect())
}

/// A commit by its id is asked for without looking.
fn positions(asks: &[Ask], find: impl Fn(&str) -> Option<ObjectId>) -> Vec<Option<ObjectId>> {
    let of = |ask: &Ask| {
        let name = ask.want.theirs();
        ObjectId::from_hex(name.as_bytes()).ok().or_else(|| find(name))
    };
    asks.iter().map(of).collect()
}

fn fetch_arguments(url: &str, upload_pack: Option<&str>) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--force"]
            .map(str::to_owned)
            .to_vec();
    arguments.extend(upload_pack.map(|program| format!("--upload-pack={program}")));
    arguments.extend(["--".to_owned(), url.to_owned()]);
    arguments
}

/// A line of `git ls-remote`.
fn parse_ref(line: &str) -> Option<(String, ObjectId)> {
    let (id, name) = line.split_once('\t')?;
    Some((name.to_owned(), ObjectId::from_hex(id.as_bytes()).ok()?))
}

fn ended_well(said: Said) -> Result<Said, Fault> {
    if said.success {
        return Ok(said);
    }
    let text = said.error.to_lowercase();
    let hint = if text.contains("host key verification failed") {
        "add the server's key to the known hosts of the hub's user"
    } else if text.contains("permission denied") {
        "check `ssh_key_file` of its credential, and whether the key may read the repository"
    } else if text.contains("not appear to be a git repository") || text.contains("not found") {
        "it doesn't exist, or the key may not read it"
    } else {
        "check the address and the network"
    };
    Err(Fault::passing(said.reason(), hint))
}

/// What may be missing when a server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// A right of the credential that was sent.
    Right,
    /// A credential of the platform.
    Credential,
    /// A credential that serves the workspace.
    WorkspaceCredential,
}

impl Lack {
    fn of(link: &Link, reader: &Reader) -> Lack {
        match (&link.authorization, reader) {
            (Some(_), _) => Lack::Right,
            (None, Reader::Platform) => Lack::Credential,
            (None, Reader::Public | Reader::Workspaces(_)) => Lack::WorkspaceCredential,
        }
    }
}

fn http_fault(error: &gix::Error, url: &str, lack: Lack) -> Fault {
    let error = chain(error);
    // Without the address, which may contain any of the words.
    let text = error.replace(url, "").to_lowercase();
    let status = |code: &str| text.contains(&format!("http status {code}"));
    let refused = ["401", "403", "404"].iter().any(|code| status(code)) || text.contains("credential");
    let hint = if refused {
        match lack {
            Lack::Right => "check the secret in `git.credentials`, and whether it may read the repository",
            Lack::Credential => {
                "it doesn't exist, or isn't public: add a credential for the platform to the hub's configuration"
            }
            Lack::WorkspaceCredential => {
                "it doesn't exist, or isn't public: add a credential whose `workspaces` names the application's workspace to the hub's configuration"
            }
        }
    } else if text.contains("interrupt") {
        "it took too long or was too large"
    } else {
        "check the address and the network"
    };
    Fault::passing(error, hint)
}
