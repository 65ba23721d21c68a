//! How a host becomes a member: a token buys a certificate for a key that is made here. The command `join` and the daemon (for
//! images, from `/etc/kedge/join-token`) call it. It owns the first writing of the ledger `identity`; nothing else is touched, and
//! on an error everything is as it was.

pub mod error;
pub(crate) mod facts;
#[cfg(test)]
mod tests;
pub mod token;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kedge_durable::{Disk, Ledger, LedgerError};
use kedge_model::wire::{ClusterId, JoinAnswer, JoinRequest, JoinToken, KeySet, Membership, Stream, Timestamp};

use nix::fcntl::{Flock, FlockArg};

use crate::clock::Clock;
use crate::identity::key::HostKey;
use crate::identity::{self, Identity, Joined, Pending, Stored, machine, same_machine};
use crate::link::address::Address;
use crate::link::connection::{Connection, Limits};
use crate::link::era::Era;
use crate::link::trust::{self, Trust};
use crate::link::{Backoff, LinkError, Next};
use crate::paths::Paths;
pub use error::JoinError;
pub use token::TokenSource;

/// What a person may say.
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    pub token: TokenSource,
    /// The host's own name otherwise.
    pub name: Option<String>,
    /// Leaves the cluster that this host is, and joins as a new one.
    pub again: bool,
}

/// Whom this host is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    pub cluster: ClusterId,
    pub name: String,
    pub hub: String,
    pub stream: Stream,
}

/// A certificate, key sets of years, a membership.
const ANSWER: Limits = Limits { head: Duration::from_secs(60), body: Duration::from_secs(60), answer: 4 * 1024 * 1024 };
/// How often a host without an identity looks for one that the command `join` made.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The hub takes no longer name.
pub(crate) const MAX_NAME: usize = 253;

/// Joins. The key is on disk before the request goes out: after a lost answer the same token and key ask again.
pub async fn join(
    disk: &Arc<dyn Disk>,
    paths: &Paths,
    clock: Arc<dyn Clock>,
    options: &JoinOptions,
) -> Result<Welcome, JoinError> {
    let state = paths.state();
    disk.make_folder(&state).map_err(|source| JoinError::Folder { path: state.clone(), source })?;
    let _alone = alone(&state)?;
    let (mut ledger, mut stored) = open(disk, paths)?;
    let machine = machine::digest(paths);
    if let Some(joined) = stored.joined.as_ref().filter(|joined| same_machine(joined.machine, machine))
        && !options.again
    {
        let cluster = HostKey::from_pem(&joined.key)?.cluster();
        return Err(JoinError::AlreadyJoined { hub: joined.hub.clone(), cluster, name: joined.name.clone() });
    }
    let token = options.token.read(paths)?;
    let address = Address::parse(&token.hub)?;
    let name = facts::name(options.name.as_deref(), MAX_NAME)?;

    let fits = |pending: &&Pending| {
        pending.hub == token.hub && pending.token == token.id && same_machine(pending.machine, machine)
    };
    let key = match stored.pending.as_ref().filter(fits) {
        Some(pending) => HostKey::from_pem(&pending.key)?,
        None => {
            let key = HostKey::generate()?;
            let (hub, token) = (token.hub.clone(), token.id.clone());
            stored.pending = Some(Pending { key: key.to_pem(), hub, token, machine });
            ledger.write(&stored).map_err(JoinError::Ledger)?;
            key
        }
    };
    let request = JoinRequest {
        token_id: token.id.clone(),
        secret: token.secret.clone(),
        csr: key.request()?,
        name: name.clone(),
        machine,
        facts: facts::gather(paths),
    };
    let answer = ask(&address, &token, clock, &request).await?;
    let (keys, membership) = believe(&answer, &key)?;
    let joined = Joined {
        key: key.to_pem(),
        hub: token.hub.clone(),
        name: membership.name.clone(),
        machine,
        certificate: answer.certificate,
        keys,
        membership: answer.membership,
        time: answer.time,
        issued: answer.time,
    };
    Identity::of(joined.clone())?;
    // One write makes it a member: key, certificate and what the hub said come together.
    ledger.write(&Stored { joined: Some(joined), pending: None, ..Stored::default() }).map_err(JoinError::Ledger)?;
    options.token.use_up(paths);
    let welcome = Welcome { cluster: key.cluster(), name: membership.name, hub: token.hub, stream: membership.stream };
    tracing::info!(cluster = %welcome.cluster, name = welcome.name, hub = welcome.hub, stream = %welcome.stream, "joined");
    Ok(welcome)
}

/// The daemon of a host that hasn't joined: waits until the command `join` did it, or does it with the image's token. `tell` gets
/// what goes wrong, each time.
pub async fn until_joined(
    disk: &Arc<dyn Disk>,
    paths: &Paths,
    clock: Arc<dyn Clock>,
    name: Option<String>,
    mut tell: impl FnMut(&JoinError),
) -> Result<Identity, JoinError> {
    let (mut backoff, mut wait) = (Backoff::default(), Duration::ZERO);
    loop {
        // A copied disk is as good as one that hasn't joined.
        if let Some(identity) = Identity::read(&**disk, paths)?.filter(|identity| identity.is_of_this_machine(paths)) {
            return Ok(identity);
        }
        if wait.is_zero() && TokenSource::Image.is_there(paths) {
            let options = JoinOptions { token: TokenSource::Image, name: name.clone(), ..JoinOptions::default() };
            match join(disk, paths, Arc::clone(&clock), &options).await {
                Ok(_) | Err(JoinError::AlreadyJoined { .. }) => continue,
                Err(error) => {
                    tell(&error);
                    wait = error.wait(&mut backoff, rand::random_range(0.0..1.0));
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
        wait = wait.saturating_sub(LOOK_EVERY);
    }
}

/// An identity of which both copies are lost is as good as none: they are kept beside it, for people.
pub(crate) fn open(disk: &Arc<dyn Disk>, paths: &Paths) -> Result<(Ledger<Stored>, Stored), JoinError> {
    match Ledger::<Stored>::open(Arc::clone(disk), &identity::path(paths)) {
        Ok(opened) => Ok((opened.ledger, opened.value.unwrap_or_default())),
        Err(error @ (LedgerError::Broken { .. } | LedgerError::Json { .. })) => {
            tracing::warn!(%error, "the identity is lost and is made anew");
            Ok((Ledger::begin_again(Arc::clone(disk), &identity::path(paths)), Stored::default()))
        }
        Err(error) => Err(JoinError::Ledger(error)),
    }
}

/// The daemon with an image's token and a person at the keyboard would use up two.
pub(crate) fn alone(state: &Path) -> Result<Flock<File>, JoinError> {
    let path = state.join("joining");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|source| JoinError::Folder { path, source })?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| JoinError::Busy)
}

async fn ask(
    address: &Address,
    token: &JoinToken,
    clock: Arc<dyn Clock>,
    request: &JoinRequest,
) -> Result<JoinAnswer, JoinError> {
    let era = Arc::new(Era::new(clock, Timestamp(0)));
    let config = trust::settings(Trust::Pinned(token.authority), era, None).map_err(LinkError::Settings)?;
    let body = serde_json::to_vec(request).map_err(LinkError::Unwritable)?;
    let mut connection = Connection::open(address, config).await?;
    let answer = connection.post("/agent/v1/join", Bytes::from(body), ANSWER).await.map_err(|failed| failed.error)?;
    serde_json::from_slice(&answer).map_err(|why| match answer.first() {
        Some(b'{') => LinkError::Unreadable(why).into(),
        _ => {
            let said = crate::link::connection::said(http::StatusCode::OK, &answer);
            LinkError::NotAHub { hub: address.to_string(), said }.into()
        }
    })
}

/// Every key set from the first on, and a membership that is this host's.
pub(crate) fn believe(answer: &JoinAnswer, key: &HostKey) -> Result<(KeySet, Membership), JoinError> {
    let wrong = |why: String| JoinError::Unbelievable(why);
    let (first, rest) = answer.key_sets.split_first().ok_or_else(|| wrong("it has no key set".to_owned()))?;
    let mut keys = KeySet::first(first).map_err(|why| wrong(why.to_string()))?;
    for next in rest {
        keys = keys.follow(next).map_err(|why| wrong(why.to_string()))?;
    }
    let membership: Membership = answer.membership.open(&keys.trusted()).map_err(|why| wrong(why.to_string()))?;
    if membership.cluster != key.cluster() {
        return Err(wrong(format!("its membership is cluster {}'s", membership.cluster)));
    }
    if let Some(why) = crate::desired::unsupported(&membership.requires) {
        return Err(wrong(why));
    }
    Ok((keys, membership))
}

impl JoinError {
    /// How long the daemon waits before it tries the image's token again.
    fn wait(&self, backoff: &mut Backoff, roll: f64) -> Duration {
        let rarely = Duration::from_secs(15 * 60).mul_f64(0.9 + 0.2 * roll);
        match self {
            JoinError::Link(error) => match error.next() {
                Next::After(told) => told.max(Duration::from_secs(1)),
                Next::Backoff => backoff.next(roll),
                _ => rarely,
            },
            JoinError::Busy => Duration::ZERO,
            _ => rarely,
        }
    }
}
