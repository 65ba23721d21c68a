//! A join by file: the request with a key that is made here, and the hub's answer that completes it. Like `join` it owns the first
//! writing of the ledger `identity`, and on an error everything is as it was. The commands `request` and `import` call it.

use std::sync::Arc;
use std::time::Duration;

use kedge_bundle::{JoinAnswerFile, JoinRequestFile, fingerprints};
use kedge_durable::Disk;
use kedge_model::wire::{ClusterId, Digest, Envelope, EnvelopeError, KeySet, KeySetError, Timestamp};
use rustls::RootCertStore;
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;

use crate::identity::certificate::chain;
use crate::identity::key::HostKey;
use crate::identity::{Identity, IdentityError, Joined, Pending, Stored, machine, same_machine};
use crate::join::{self, JoinError, MAX_NAME, Welcome, facts};
use crate::paths::Paths;

/// A request that is ready to be carried to the hub.
#[derive(Debug)]
pub struct Request {
    pub envelope: Envelope,
    pub cluster: ClusterId,
    pub name: String,
}

/// What an answer made of this host.
#[derive(Debug)]
pub struct Enrolled {
    pub welcome: Welcome,
    /// Of each certificate authority: what a person compares.
    pub authorities: Vec<Digest>,
    /// It was a member by this answer before.
    pub known: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("the request can't be signed")]
    Sign(#[source] EnvelopeError),
    #[error("the answer is not to be believed")]
    Answer(#[source] KeySetError),
    #[error("the answer is for cluster {answer}, and this host asked as {asked}")]
    OtherKey { answer: ClusterId, asked: ClusterId },
    #[error("the answer is for cluster {0}, and this host has made no request")]
    NotAsked(ClusterId),
    #[error("the answer comes from {}, not from the authority {expected}", list(.found))]
    OtherAuthority { expected: Digest, found: Vec<Digest> },
    #[error("the answer's certificate is not to be believed: {0}")]
    Certificate(String),
}

/// What stands where a token's id would: the key waits for an answer by file.
const BY_FILE: &str = "file";

/// The request of this host. Its key is on disk before it is returned; asked again it is the same.
pub fn request(disk: &Arc<dyn Disk>, paths: &Paths, name: Option<&str>, again: bool) -> Result<Request, EnrolError> {
    let state = paths.state();
    disk.make_folder(&state).map_err(|source| JoinError::Folder { path: state.clone(), source })?;
    let _alone = join::alone(&state)?;
    let (mut ledger, mut stored) = join::open(disk, paths)?;
    let machine = machine::digest(paths);
    if let Some(joined) = stored.joined.as_ref().filter(|joined| same_machine(joined.machine, machine))
        && !again
    {
        let cluster = HostKey::from_pem(&joined.key).map_err(JoinError::from)?.cluster();
        let (hub, name) = (joined.hub.clone(), joined.name.clone());
        return Err(JoinError::AlreadyJoined { hub, cluster, name }.into());
    }
    let name = facts::name(name, MAX_NAME)?;
    let fits = |pending: &&Pending| pending.token == BY_FILE && same_machine(pending.machine, machine);
    let key = match stored.pending.as_ref().filter(fits) {
        Some(pending) => HostKey::from_pem(&pending.key).map_err(JoinError::from)?,
        None => {
            let key = HostKey::generate().map_err(JoinError::from)?;
            let (hub, token) = (String::new(), BY_FILE.to_owned());
            stored.pending = Some(Pending { key: key.to_pem(), hub, token, machine });
            ledger.write(&stored).map_err(JoinError::Ledger)?;
            key
        }
    };
    let request = JoinRequestFile {
        csr: key.request().map_err(JoinError::from)?,
        name: name.clone(),
        machine,
        facts: facts::gather(paths),
        key: key.signing().public(),
    };
    let envelope = Envelope::sign(&request, key.signing()).map_err(EnrolError::Sign)?;
    Ok(Request { envelope, cluster: key.cluster(), name })
}

/// Whom an answer is for, as it says itself.
pub fn addressee(envelope: &Envelope) -> Option<ClusterId> {
    serde_json::from_slice::<JoinAnswerFile>(&envelope.payload).ok().map(|said| said.cluster)
}

/// Whether this host waits for an answer to this cluster, or is it already.
pub fn is_ours(disk: &dyn Disk, paths: &Paths, cluster: ClusterId) -> bool {
    let stored = kedge_durable::Ledger::<Stored>::read(disk, &crate::identity::path(paths));
    let stored = stored.ok().flatten().unwrap_or_default();
    let keys = [stored.joined.map(|joined| joined.key), stored.pending.map(|pending| pending.key)];
    keys.into_iter().flatten().any(|pem| HostKey::from_pem(&pem).is_ok_and(|key| key.cluster() == cluster))
}

/// Becomes a member by the hub's answer.
pub fn complete(
    disk: &Arc<dyn Disk>,
    paths: &Paths,
    envelope: &Envelope,
    authority: Option<Digest>,
) -> Result<Enrolled, EnrolError> {
    let (said, keys, membership) = JoinAnswerFile::open(envelope).map_err(EnrolError::Answer)?;
    let authorities = fingerprints(&keys);
    if let Some(expected) = authority.filter(|expected| !authorities.contains(expected)) {
        return Err(EnrolError::OtherAuthority { expected, found: authorities });
    }
    let state = paths.state();
    disk.make_folder(&state).map_err(|source| JoinError::Folder { path: state.clone(), source })?;
    let _alone = join::alone(&state)?;
    let (mut ledger, stored) = join::open(disk, paths)?;
    let (hub, stream, name) = (said.hub.clone(), membership.stream.clone(), membership.name.clone());
    let welcome = Welcome { cluster: said.cluster, name, hub, stream };
    if let Some(joined) = &stored.joined
        && HostKey::from_pem(&joined.key).is_ok_and(|key| key.cluster() == said.cluster)
    {
        return Ok(Enrolled { welcome, authorities, known: true });
    }
    let pending = stored.pending.ok_or(EnrolError::NotAsked(said.cluster))?;
    let key = HostKey::from_pem(&pending.key).map_err(JoinError::from)?;
    if key.cluster() != said.cluster {
        return Err(EnrolError::OtherKey { answer: said.cluster, asked: key.cluster() });
    }
    // The same as after a join over the network.
    join::believe(&said.answer, &key)?;
    issued_by(&said.answer.certificate, &keys, said.answer.time)?;
    let joined = Joined {
        key: pending.key,
        hub: said.hub,
        name: membership.name,
        machine: machine::digest(paths),
        certificate: said.answer.certificate,
        keys,
        membership: said.answer.membership,
        time: said.answer.time,
        issued: said.answer.time,
    };
    Identity::of(joined.clone()).map_err(|error: IdentityError| JoinError::from(error))?;
    ledger.write(&Stored { joined: Some(joined), pending: None, ..Stored::default() }).map_err(JoinError::Ledger)?;
    tracing::info!(cluster = %welcome.cluster, name = welcome.name, stream = %welcome.stream, "joined by file");
    Ok(Enrolled { welcome, authorities, known: false })
}

/// One of the answer's authorities gave the certificate; at the hub's time, since this host's clock may be anywhere.
fn issued_by(pem: &str, keys: &KeySet, at: Timestamp) -> Result<(), EnrolError> {
    let wrong = |why: String| EnrolError::Certificate(why);
    let certificates = chain(pem).ok_or_else(|| wrong("it can't be read".to_owned()))?;
    let (own, above) = certificates.split_first().ok_or_else(|| wrong("it is empty".to_owned()))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(keys.authorities.iter().filter_map(|pem| chain(pem)).flatten());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|why| wrong(why.to_string()))?;
    let at = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(at.0).unwrap_or(0)));
    verifier.verify_client_cert(own, above, at).map(drop).map_err(|why| wrong(why.to_string()))
}

impl EnrolError {
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            EnrolError::Join(error) => return error.hint(),
            EnrolError::NotAsked(_) | EnrolError::OtherKey { .. } => {
                "make a request here (kedge-agent request -o FILE), have it signed (kedge token sign FILE), and import that answer"
                    .to_owned()
            }
            EnrolError::OtherAuthority { .. } => {
                "ask the platform team which authority their hub has; kedge token sign prints it".to_owned()
            }
            EnrolError::Sign(_) | EnrolError::Answer(_) | EnrolError::Certificate(_) => return None,
        })
    }
}

fn list(digests: &[Digest]) -> String {
    digests.iter().map(Digest::to_string).collect::<Vec<_>>().join(", ")
}
