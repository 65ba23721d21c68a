//! Status documents and proofs of generations: signed by who wrote them, whoever brings them.

use http::StatusCode;
use hyper::body::Incoming;

use super::answer::{Answer, Refusal, bare};
use super::request::{PROOF, STATUS};
use super::rooms::{ProofRefusal, TakeRefusal};
use super::route::{Caller, Known};

/// 200 means stored for good.
pub async fn take(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let envelope = caller.service.reading.envelope(body, STATUS).await?;
    match caller.service.intake.take(&known.peer.cluster, envelope).await {
        Ok(()) => Ok(bare(StatusCode::OK)),
        Err(TakeRefusal::Unavailable) => Err(Refusal::unavailable()),
        Err(TakeRefusal::TooLarge) => {
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", "the document is too large"))
        }
        Err(TakeRefusal::Refused { reason, message }) => {
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, reason, message))
        }
    }
}

/// A state that this hub signed once and has lost since: believed for the cluster's own stream.
pub async fn prove(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let envelope = caller.service.reading.envelope(body, PROOF).await?;
    let stream = known.member.standing().stream;
    match caller.service.proofs.prove(&stream, envelope).await {
        Ok(()) => Ok(bare(StatusCode::OK)),
        Err(ProofRefusal::Unavailable) => Err(Refusal::unavailable()),
        Err(ProofRefusal::Refused(message)) => {
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "NotProved", message))
        }
    }
}
