//! The renewal: the same key, a new certificate. Also over one that has expired, as long as the cluster isn't shut out.

use http::StatusCode;
use hyper::body::Incoming;
use kedge_model::wire::{RenewAnswer, RenewRequest};

use super::answer::{Answer, Refusal, json};
use super::csr::Applicant;
use super::join::bad_csr;
use super::request::RENEW;
use super::route::{Caller, Known};
use crate::store::agents::CertificateNote;
use crate::store::now;

pub async fn renew(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let service = &caller.service;
    let request: RenewRequest = service.reading.json(body, RENEW).await?;
    let applicant = Applicant::of(&request.csr).map_err(|why| bad_csr(&why))?;
    if applicant.cluster != known.peer.cluster {
        let message = "the request is for another key than the certificate's";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "WrongKey", message).hint("a new key needs a new join"));
    }
    let lifetime = service.config.certificate_lifetime;
    let certificate = service.trust.issue(&request.csr, &known.peer.cluster, lifetime).map_err(|error| {
        tracing::error!(%error, "a certificate can't be made");
        Refusal::internal()
    })?;
    let mut tx = service.store.write().await?;
    let note = CertificateNote { serial: certificate.serial, until: certificate.not_after };
    tx.note_certificate(&known.peer.cluster, &note).await?;
    tx.commit().await?;
    Ok(json(StatusCode::OK, &RenewAnswer { certificate: certificate.pem, time: now() }))
}
