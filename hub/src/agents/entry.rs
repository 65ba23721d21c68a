//! How a cluster becomes a member, by whichever way it asks: its row, its first membership, its place in the counts and in
//! history, in the caller's transaction. Joins over the network (`join`) and by file (`sign`) end here.

use kedge_model::Labels;
use kedge_model::shown::is_hidden;
use kedge_model::wire::{ClusterId, EnvelopeError, Facts, Sequence, Stream, Timestamp};

use super::fleet::{Fleet, FleetError, joined};
use crate::keys::authority::{AuthorityError, IssuedCertificate};
use crate::state::Parting;
use crate::store::Tx;
use crate::store::agents::{CertificateNote, ClusterRow, ClusterState, NewCluster};

/// One that wasn't there before.
pub(super) struct Newcomer<'a> {
    /// Without its membership.
    pub row: ClusterRow,
    pub public_key: &'a [u8; 32],
    pub facts: &'a Facts,
    pub certificate: &'a IssuedCertificate,
}

/// Where one that was retired comes back to.
pub(super) struct Return {
    /// Before the policy is asked for the ring.
    pub place: Stream,
    pub labels: Labels,
    pub site: Option<String>,
    /// The id of what let it in.
    pub token: String,
}

/// Names are for people and file systems.
const MAX_NAME: usize = 253;
/// A host says a few words about itself.
const MAX_FACT: usize = 200;
/// The first poll should follow within this.
const FIRST_POLL_MILLIS: i64 = 5 * 60 * 1000;

impl Fleet {
    /// None: the same key in two requests at once, and the other one was quicker.
    pub(super) async fn enter(
        &self,
        tx: &mut Tx,
        newcomer: Newcomer<'_>,
        at: Timestamp,
    ) -> Result<Option<ClusterRow>, FleetError> {
        let mut row = newcomer.row;
        self.seal(&mut row, at, Parting::default())?;
        let facts = serde_json::to_string(newcomer.facts).map_err(EnvelopeError::Payload)?;
        let new = NewCluster {
            row: &row,
            public_key: newcomer.public_key,
            facts: &facts,
            certificate: &note(newcomer.certificate),
            joined_at: at,
            check_in_deadline: Timestamp(at.0 + FIRST_POLL_MILLIS),
        };
        if !tx.add_cluster(new).await? {
            return Ok(None);
        }
        tx.place_cluster(&row.id, None, Some(&row.stream)).await?;
        tx.record(vec![joined(&row, at)]).await?;
        Ok(Some(row))
    }

    /// Retired before, as it was; now it becomes a member again.
    pub(super) async fn come_back(
        &self,
        tx: &mut Tx,
        before: ClusterRow,
        to: Return,
        certificate: &IssuedCertificate,
        at: Timestamp,
    ) -> Result<ClusterRow, FleetError> {
        let stream = self.stream_of(&to.place, &before.id, &to.labels);
        let parting = self.parting(&before, &stream)?;
        let Return { labels, site, token, .. } = to;
        let (state, sequence) = (ClusterState::Active, Sequence(before.sequence.0 + 1));
        let mut row = ClusterRow { stream, labels, site, state, sequence, token, ..before };
        self.seal(&mut row, at, parting)?;
        tx.place_cluster(&row.id, None, Some(&row.stream)).await?;
        tx.change_cluster(&row).await?;
        tx.note_certificate(&row.id, &note(certificate)).await?;
        tx.record(vec![joined(&row, at)]).await?;
        Ok(row)
    }

    /// The certificate for a request, with the authority's behind it.
    pub(super) fn certify(&self, csr: &str, cluster: &ClusterId) -> Result<IssuedCertificate, AuthorityError> {
        let authority = self.keys().authority();
        let issued = authority.issue(csr, cluster, self.certificate_lifetime())?;
        Ok(IssuedCertificate { pem: format!("{}{}", issued.pem, authority.certificate_pem()), ..issued })
    }
}

pub(super) fn note(certificate: &IssuedCertificate) -> CertificateNote {
    CertificateNote { serial: certificate.serial.clone(), until: certificate.not_after }
}

/// The host's own words are shown to people: no line breaks, no escapes, no novels.
pub(super) fn check_words(name: &str, facts: &Facts) -> Result<(), String> {
    let is_plain = |text: &str, most: usize| text.len() <= most && !text.chars().any(is_hidden);
    if name.trim().is_empty() || !is_plain(name, MAX_NAME) {
        return Err(format!("a name has 1 to {MAX_NAME} printable characters"));
    }
    let facts = [&facts.agent_version, &facts.architecture, &facts.system];
    if !facts.iter().all(|fact| is_plain(fact, MAX_FACT)) {
        return Err(format!("a fact has at most {MAX_FACT} printable characters"));
    }
    Ok(())
}
