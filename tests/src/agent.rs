//! Simulated agents: they speak the real protocol over real TLS, believe only what is signed, and apply nothing. One is a few
//! kilobytes, so that a process holds ten thousand (`crowd`).

pub mod crowd;
pub mod identity;
pub mod link;
pub mod trust;

use std::sync::Arc;

use kedge_model::wire::{
    DesiredState, Digest, Envelope, EnvelopeError, Facts, Generation, Heads, JoinAnswer, JoinRequest, JoinToken,
    KeySet, KeySetError, Membership, PollAnswer, PollRequest, Profile, RenewAnswer, RenewRequest, Sequence, Timestamp,
    WireProblem,
};
use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;

use identity::Identity;
use link::{Hub, Link, LinkError, Reply};
use trust::{Trust, settings};

/// A cluster of the test.
#[derive(Debug)]
pub struct Agent {
    pub hub: Hub,
    pub identity: Arc<Identity>,
    /// Certificate chain, PEM.
    pub certificate: String,
    pub keys: KeySet,
    pub membership: Membership,
    /// Last accepted of the membership's stream.
    pub generation: Generation,
    pub state: Option<DesiredState>,
    /// The envelope that the state came in.
    pub state_envelope: Option<Envelope>,
    pub heads: Heads,
    pub look_age: u64,
    pub profile: Profile,
    /// Seconds that a poll may be held, if the agent wants less than the hub.
    pub wait: Option<u64>,
    config: Arc<ClientConfig>,
    link: Option<Link>,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The hub said no, and why.
    #[error("refused with {status}: {problem:?}")]
    Refused { status: u16, problem: WireProblem, retry_after: Option<u64> },
    #[error("the hub's answer can't be read: {0}")]
    Unreadable(String),
    #[error("the hub's answer is not to be believed: {0}")]
    Unbelievable(String),
}

impl Agent {
    /// Joins with a new key.
    pub async fn join(token: &JoinToken, name: &str) -> Result<Agent, AgentError> {
        Agent::join_as(Arc::new(Identity::generate()), token, name, None).await
    }

    /// Joins with this key; again, if it did before.
    pub async fn join_as(
        identity: Arc<Identity>,
        token: &JoinToken,
        name: &str,
        machine: Option<Digest>,
    ) -> Result<Agent, AgentError> {
        let hub = Hub::parse(&token.hub)?;
        let request = JoinRequest {
            token_id: token.id.clone(),
            secret: token.secret.clone(),
            csr: identity.request(),
            name: name.to_owned(),
            machine,
            facts: Facts {
                agent_version: "simulated".to_owned(),
                architecture: "none".to_owned(),
                system: "none".to_owned(),
            },
        };
        let mut link = Link::open(&hub, settings(Trust::Pinned(token.authority), None)).await?;
        let answer: JoinAnswer = read(link.post("/agent/v1/join", &body(&request)).await?)?;
        let keys = follow(None, &answer.key_sets)?;
        let membership: Membership = answer.membership.open(&keys.trusted()).map_err(unbelievable)?;
        let config = settings(Trust::Authorities(keys.authorities.clone()), Some((&answer.certificate, &identity)));
        Ok(Agent {
            hub,
            identity,
            certificate: answer.certificate,
            keys,
            membership,
            generation: Generation(0),
            state: None,
            state_envelope: None,
            heads: Heads::default(),
            look_age: 0,
            profile: Profile::Normal,
            wait: None,
            config,
            link: None,
        })
    }

    /// What it would say now.
    pub fn request(&self) -> PollRequest {
        PollRequest {
            key_set: self.keys.version,
            membership: self.membership.sequence,
            generation: self.generation,
            status: self.heads.clone(),
            look_age: self.look_age,
            profile: self.profile,
            wait: self.wait,
            holds: 0,
        }
    }

    /// One poll, held as long as the hub holds it. Takes in what the answer brings.
    pub async fn poll(&mut self) -> Result<PollAnswer, AgentError> {
        let request = body(&self.request());
        let answer: PollAnswer = read(self.post("/agent/v1/poll", &request).await?)?;
        self.take(&answer)?;
        Ok(answer)
    }

    /// A status document, own or another's.
    pub async fn send_status(&mut self, envelope: &Envelope) -> Result<(), AgentError> {
        let envelope = body(envelope);
        accepted(self.post("/agent/v1/status", &envelope).await?)
    }

    /// Shows a state that the hub has forgotten.
    pub async fn prove(&mut self, envelope: &Envelope) -> Result<(), AgentError> {
        let envelope = body(envelope);
        accepted(self.post("/agent/v1/proof", &envelope).await?)
    }

    /// A new certificate for the same key; the next request uses it.
    pub async fn renew(&mut self) -> Result<RenewAnswer, AgentError> {
        let request = body(&RenewRequest { csr: self.identity.request() });
        let answer: RenewAnswer = read(self.post("/agent/v1/renew", &request).await?)?;
        self.use_certificate(answer.certificate.clone());
        Ok(answer)
    }

    /// A package, from this byte on.
    pub async fn fetch(&mut self, digest: &Digest, from: u64) -> Result<Reply, AgentError> {
        let range = format!("bytes={from}-");
        let headers: &[(&str, &str)] = if from == 0 { &[] } else { &[("range", &range)] };
        self.get(&format!("/agent/v1/blobs/{digest}"), headers).await
    }

    pub async fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Reply, AgentError> {
        Ok(self.connect().await?.send("GET", path, headers, &[]).await?)
    }

    /// Any request; over the connection that is open, or a new one when the hub closed it.
    pub async fn post(&mut self, path: &str, json: &[u8]) -> Result<Reply, AgentError> {
        let fresh = self.link.is_none();
        match self.connect().await?.post(path, json).await {
            Err(LinkError::Closed) if !fresh => {
                self.disconnect();
                Ok(self.connect().await?.post(path, json).await?)
            }
            other => Ok(other?),
        }
    }

    pub fn disconnect(&mut self) {
        self.link = None;
    }

    pub fn is_disconnected(&self) -> bool {
        self.link.as_ref().is_none_or(Link::is_over)
    }

    /// Opens a connection, if none is open.
    pub async fn connect(&mut self) -> Result<&mut Link, AgentError> {
        if self.is_disconnected() {
            self.link = Some(Link::open(&self.hub, Arc::clone(&self.config)).await?);
        }
        self.link.as_mut().ok_or(AgentError::Link(LinkError::Closed))
    }

    /// The settings of its connections, for tests that open their own.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// Shows another certificate from the next request on.
    pub fn use_certificate(&mut self, certificate: String) {
        self.certificate = certificate;
        self.trust_again();
    }

    fn trust_again(&mut self) {
        let trust = Trust::Authorities(self.keys.authorities.clone());
        self.config = settings(trust, Some((&self.certificate, &self.identity)));
        self.disconnect();
    }

    /// The rules of an agent: chain of key sets, sequence, stream, generation.
    fn take(&mut self, answer: &PollAnswer) -> Result<(), AgentError> {
        if !answer.key_sets.is_empty() {
            self.keys = follow(Some(self.keys.clone()), &answer.key_sets)?;
            self.trust_again();
        }
        if let Some(envelope) = &answer.membership {
            let next: Membership = envelope.open(&self.keys.trusted()).map_err(unbelievable)?;
            if next.cluster != self.identity.cluster || next.sequence <= self.membership.sequence {
                return Err(AgentError::Unbelievable(format!("membership {} of {}", next.sequence, next.cluster)));
            }
            if next.stream != self.membership.stream {
                (self.generation, self.state) = (Generation(0), None);
            }
            self.membership = next;
        }
        if let Some(envelope) = &answer.state {
            let state: DesiredState = envelope.open(&self.keys.trusted()).map_err(unbelievable)?;
            if state.stream != self.membership.stream || state.generation <= self.generation {
                return Err(AgentError::Unbelievable(format!("generation {} of {}", state.generation, state.stream)));
            }
            self.generation = state.generation;
            self.state = Some(state);
            self.state_envelope = Some(envelope.clone());
        }
        Ok(())
    }

    /// The sequence that it has.
    pub fn sequence(&self) -> Sequence {
        self.membership.sequence
    }

    /// When the certificate ends.
    pub fn certificate_until(&self) -> Timestamp {
        identity::not_after(&self.certificate)
    }
}

/// From what is pinned to the newest set, step by step.
fn follow(known: Option<KeySet>, envelopes: &[Envelope]) -> Result<KeySet, AgentError> {
    let mut known = known;
    for envelope in envelopes {
        let next = match &known {
            None => KeySet::first(envelope),
            Some(set) => set.follow(envelope),
        };
        known = Some(next.map_err(|why: KeySetError| AgentError::Unbelievable(why.to_string()))?);
    }
    known.ok_or_else(|| AgentError::Unbelievable("no key set".to_owned()))
}

fn unbelievable(why: EnvelopeError) -> AgentError {
    AgentError::Unbelievable(why.to_string())
}

/// A message as it goes over the wire.
pub fn body<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).expect("wire messages can be written")
}

/// The message of an answer that says yes.
pub fn read<T: DeserializeOwned>(reply: Reply) -> Result<T, AgentError> {
    if reply.status != 200 {
        return Err(refused(reply));
    }
    serde_json::from_slice(&reply.body).map_err(|why| AgentError::Unreadable(why.to_string()))
}

pub fn accepted(reply: Reply) -> Result<(), AgentError> {
    if reply.status == 200 { Ok(()) } else { Err(refused(reply)) }
}

fn refused(reply: Reply) -> AgentError {
    let retry_after = reply.header("retry-after").and_then(|text| text.parse().ok());
    match serde_json::from_slice(&reply.body) {
        Ok(problem) => AgentError::Refused { status: reply.status, problem, retry_after },
        Err(why) => AgentError::Unreadable(format!("status {}: {why}", reply.status)),
    }
}

impl AgentError {
    /// The word that a refusal carries.
    pub fn reason(&self) -> Option<&str> {
        match self {
            AgentError::Refused { problem, .. } => Some(&problem.reason),
            _ => None,
        }
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            AgentError::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}
