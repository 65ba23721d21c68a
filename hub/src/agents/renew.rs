//! The renewal: the same key, a new certificate. Also over one that has expired, as long as the cluster isn't shut out and hasn't been
//! silent for too long.

use http::StatusCode;
use hyper::body::Incoming;
use kedge_model::wire::{RenewAnswer, RenewRequest};

use super::answer::{Answer, Refusal, json};
use super::entry::note;
use super::join::certify;
use super::request::RENEW;
use super::route::{Caller, Known};
use crate::metrics::JoinOutcome;
use crate::store::now;

pub async fn renew(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let service = &caller.service;
    let request: RenewRequest = service.reading.json(caller.owner(), body, RENEW).await?;
    let standing = known.member.standing();
    let silence = service.fleet.silence();
    silence.check(&service.store, &standing.stream.environment, &known.peer.cluster).await?;
    let certificate = certify(caller, &request.csr, &known.peer.cluster)?;
    let mut tx = service.store.write().await?;
    tx.note_certificate(&known.peer.cluster, &note(&certificate)).await?;
    tx.commit().await?;
    service.metrics.joins.get_or_create(&JoinOutcome::Renewed.into()).inc();
    Ok(json(StatusCode::OK, &RenewAnswer { certificate: certificate.pem, time: now() }))
}
