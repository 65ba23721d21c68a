//! How a host becomes a member by file: its request, signed by the key that it made, and the hub's answer, signed by the hub. Both are
//! plain envelopes in JSON; what a token and TLS do online, a person does who carries them and compares the authority's digest.

use kedge_model::wire::{
    ClusterId, Digest, Envelope, EnvelopeError, Facts, JoinAnswer, KeySet, KeySetError, Membership, Payload,
    VerifyingKey,
};
use serde::{Deserialize, Serialize};

/// What `kedge-agent request` writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinRequestFile {
    /// The certificate signing request, PEM, of `key`.
    pub csr: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Digest>,
    #[serde(default)]
    pub facts: Facts,
    /// Signs this; its hash will be the cluster.
    pub key: VerifyingKey,
}

/// What `kedge token sign` writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinAnswerFile {
    /// The hub's address for agents, should there ever be a network.
    pub hub: String,
    pub cluster: ClusterId,
    pub answer: JoinAnswer,
}

/// A certificate, key sets of years, a membership.
pub const MAX_JOIN_FILE: u64 = 4 * 1024 * 1024;

impl Payload for JoinRequestFile {
    const TYPE: &'static str = "application/vnd.kedge.join-request.v1+json";
}

impl Payload for JoinAnswerFile {
    const TYPE: &'static str = "application/vnd.kedge.join-answer.v1+json";
}

impl JoinRequestFile {
    /// What the envelope says, if the key that it names signed it. Whether the CSR is of that key is the hub's to see.
    pub fn open(envelope: &Envelope) -> Result<JoinRequestFile, EnvelopeError> {
        let said: JoinRequestFile = serde_json::from_slice(&envelope.payload).map_err(EnvelopeError::Payload)?;
        envelope.verify(JoinRequestFile::TYPE, &[said.key])?;
        Ok(said)
    }

    pub fn cluster(&self) -> ClusterId {
        ClusterId::of_public_key(self.key.as_bytes())
    }
}

impl JoinAnswerFile {
    /// What the envelope says, its newest keys and the membership, if all were signed by the hub that its own key sets name. Which
    /// hub that is only a person can know: compare the digest of an authority.
    pub fn open(envelope: &Envelope) -> Result<(JoinAnswerFile, KeySet, Membership), KeySetError> {
        let said: JoinAnswerFile = serde_json::from_slice(&envelope.payload).map_err(EnvelopeError::Payload)?;
        let (first, rest) = said.answer.key_sets.split_first().ok_or(KeySetError::NoKey(0))?;
        let first = KeySet::first(first)?;
        let keys = rest.iter().try_fold(first, |keys, next| keys.follow(next))?;
        envelope.verify(JoinAnswerFile::TYPE, &keys.trusted())?;
        let membership: Membership = said.answer.membership.open(&keys.trusted())?;
        if membership.cluster != said.cluster {
            return Err(EnvelopeError::Untrusted(vec![said.cluster.key_id()]).into());
        }
        Ok((said, keys, membership))
    }
}
