//! The join without a network: a person brings the request that a host wrote as a file, vouches for it, and takes the answer
//! back. What a token does online the person's own right does here; the rest is as for any join, and asked again with the same key
//! it gives the same membership.

use kedge_bundle::{JoinAnswerFile, JoinRequestFile};
use kedge_model::Labels;
use kedge_model::name::check_cluster_name;
use kedge_model::wire::{ClusterId, Envelope, JoinAnswer, Sequence, Stream, Timestamp};

use super::entry::{Newcomer, Return, check_words, note};
use super::fleet::{Fleet, FleetError};
use crate::keys::authority::{AuthorityError, requesting_cluster};
use crate::store::agents::{ClusterRow, ClusterState};
use crate::store::{Tx, now};

/// Where the host should belong, as a person says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignOrder {
    pub environment: String,
    pub cluster_type: String,
    pub labels: Labels,
    pub site: Option<String>,
    /// None: as the host calls itself.
    pub name: Option<String>,
}

/// What the host gets.
#[derive(Clone, Debug)]
pub struct Signed {
    pub cluster: ClusterId,
    pub name: String,
    /// It was a member already.
    pub again: bool,
    /// A `JoinAnswerFile`.
    pub answer: Envelope,
}

#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The file's fault.
    #[error("the request can't be used: {0}")]
    Request(String),
    #[error("this cluster is a member of {0} already")]
    AlreadyAMember(Stream),
    #[error("this identity belongs to another machine: a copied disk must ask as a cluster of its own")]
    MachineChanged,
    #[error("a certificate can't be made")]
    Certificate(#[source] AuthorityError),
    #[error("the same request is being signed at this moment")]
    AtOnce,
}

/// Stands where others have their join token's id.
const TOKEN: &str = "file";

impl Fleet {
    /// Makes the host that wrote a request a member.
    pub async fn sign_request(&self, tx: &mut Tx, request: &Envelope, order: SignOrder) -> Result<Signed, SignError> {
        let request = JoinRequestFile::open(request).map_err(|why| SignError::Request(why.to_string()))?;
        let name = order.name.clone().unwrap_or_else(|| request.name.clone());
        check_words(&name, &request.facts).map_err(SignError::Request)?;
        let (cluster, public_key) = requesting_cluster(&request.csr).map_err(certificate)?;
        if public_key != *request.key.as_bytes() {
            return Err(SignError::Request("its certificate request is for another key".to_owned()));
        }
        let certificate = self.certify(&request.csr, &cluster).map_err(certificate)?;
        let (at, place) = (now(), Stream::new(&order.environment, &order.cluster_type, Stream::ALL));
        let machine = request.machine.map(|digest| digest.to_string());
        let known = tx.cluster(&cluster).await.map_err(FleetError::from)?;
        let again = known.as_ref().is_some_and(|row| row.state == ClusterState::Active);
        let row = match known {
            Some(row) => {
                check(&row, &place, machine.as_deref())?;
                if again {
                    tx.note_certificate(&cluster, &note(&certificate)).await.map_err(FleetError::from)?;
                    row
                } else {
                    let to = Return { place, labels: order.labels, site: order.site, token: TOKEN.to_owned() };
                    self.come_back(tx, ClusterRow { name, ..row }, to, &certificate, at).await?
                }
            }
            None => {
                check_cluster_name(&name).map_err(|why| SignError::Request(why.to_string()))?;
                let row = ClusterRow {
                    id: cluster,
                    name,
                    stream: self.stream_of(&place, &cluster, &order.labels),
                    labels: order.labels,
                    site: order.site,
                    relay: false,
                    machine,
                    state: ClusterState::Active,
                    sequence: Sequence(1),
                    membership: Vec::new(),
                    token: TOKEN.to_owned(),
                };
                let (public_key, facts) = (&public_key, &request.facts);
                let newcomer = Newcomer { row, public_key, facts, certificate: &certificate };
                self.enter(tx, newcomer, at).await?.ok_or(SignError::AtOnce)?
            }
        };
        let answer = self.answer_file(&row, certificate.pem, at)?;
        Ok(Signed { cluster, name: row.name, again, answer })
    }

    fn answer_file(&self, row: &ClusterRow, certificate: String, time: Timestamp) -> Result<Envelope, FleetError> {
        let membership = Envelope::from_json(&row.membership)?;
        let answer = JoinAnswer { certificate, key_sets: self.keys().key_sets_after(0), membership, time };
        let file = JoinAnswerFile { hub: self.address().to_owned(), cluster: row.id, answer };
        Ok(self.sign(&file)?)
    }
}

/// Whether a cluster that is known already may have this answer.
fn check(row: &ClusterRow, place: &Stream, machine: Option<&str>) -> Result<(), SignError> {
    if row.state.is_shut_out() {
        return Err(FleetError::WrongState(row.state).into());
    }
    if let (Some(known), Some(told)) = (row.machine.as_deref(), machine)
        && known != told
    {
        return Err(SignError::MachineChanged);
    }
    let elsewhere = (&row.stream.environment, &row.stream.cluster_type) != (&place.environment, &place.cluster_type);
    if row.state == ClusterState::Active && elsewhere {
        return Err(SignError::AlreadyAMember(row.stream.clone()));
    }
    Ok(())
}

fn certificate(error: AuthorityError) -> SignError {
    match error {
        AuthorityError::Request(_) | AuthorityError::WrongKey { .. } => SignError::Request(error.to_string()),
        broken => SignError::Certificate(broken),
    }
}

#[cfg(test)]
mod tests;
