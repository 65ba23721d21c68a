//! Status and hold documents, and proofs of generations: signed by who wrote them, whoever brings them.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use http::StatusCode;
use hyper::body::Incoming;
use kedge_hub_types::status::TakeError;
use kedge_model::wire::{HoldDocument, Payload as _};

use super::answer::{Answer, Refusal, bare};
use super::holds;
use super::request::{PROOF, STATUS};
use super::route::{Caller, Known};
use super::services::ProofRefusal;
use crate::history::pace::Pace;
use crate::metrics::DocumentResult;
use crate::status::Taken;

/// A cluster that sends what can't be read sends it again and again: a few lines of the log say so.
static REFUSED: LazyLock<Pace> = LazyLock::new(|| Pace::new(4, Duration::from_secs(600)));

/// 200 means stored for good, or that something at least as new is.
pub async fn take(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let envelope = caller.service.reading.envelope(caller.owner(), body, STATUS).await?;
    let taken = if envelope.payload_type == HoldDocument::TYPE {
        holds::take(&caller.service.store, &envelope).await
    } else {
        caller.service.intake.take(&known.peer.cluster, envelope).await
    };
    caller.service.metrics.documents.get_or_create(&result(&taken).into()).inc();
    if let Err(error @ (TakeError::Malformed(_) | TakeError::Forged(_))) = &taken
        && REFUSED.take(known.peer.cluster, 1, Instant::now()).is_ok()
    {
        tracing::warn!(carrier = %known.peer.cluster, reason = error.reason(), %error,
            "a document is refused; `kedge-agent doctor` on that host says whether its disk or its version is to blame");
    }
    match taken {
        Ok(_) => Ok(bare(StatusCode::OK)),
        Err(TakeError::Unavailable) => Err(Refusal::unavailable()),
        Err(error @ TakeError::TooOften { seconds, .. }) => {
            let refusal = Refusal::new(status(&error), error.reason(), error.to_string());
            Err(Refusal { retry_after: Some(seconds), ..refusal })
        }
        Err(error) => Err(Refusal::new(status(&error), error.reason(), error.to_string())),
    }
}

/// Who gets a 4xx keeps the document and doesn't send it again as it is.
fn status(error: &TakeError) -> StatusCode {
    match error {
        TakeError::Malformed(_) => StatusCode::BAD_REQUEST,
        TakeError::Forged(_) | TakeError::WrongCluster(_) | TakeError::UnknownCluster(_) | TakeError::Retired(_) => {
            StatusCode::FORBIDDEN
        }
        TakeError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        TakeError::TooOften { .. } => StatusCode::TOO_MANY_REQUESTS,
        TakeError::Unsupported(_) => StatusCode::UNPROCESSABLE_ENTITY,
        TakeError::Cloned(_) => StatusCode::CONFLICT,
        TakeError::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn result(taken: &Result<Taken, TakeError>) -> DocumentResult {
    match taken {
        Ok(Taken::Stored) => DocumentResult::Stored,
        Ok(Taken::AlreadyKnown) => DocumentResult::AlreadyKnown,
        Ok(Taken::Older) => DocumentResult::Older,
        Err(TakeError::Malformed(_) | TakeError::Unsupported(_)) => DocumentResult::Malformed,
        Err(TakeError::Forged(_)) => DocumentResult::Forged,
        Err(TakeError::WrongCluster(_) | TakeError::UnknownCluster(_) | TakeError::Retired(_)) => {
            DocumentResult::WrongCluster
        }
        Err(TakeError::TooLarge(_) | TakeError::TooOften { .. }) => DocumentResult::TooLarge,
        Err(TakeError::Cloned(_)) => DocumentResult::Cloned,
        Err(TakeError::Unavailable) => DocumentResult::Unavailable,
    }
}

/// A state that this hub signed once and has lost since: believed for the cluster's own stream.
pub async fn prove(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let envelope = caller.service.reading.envelope(caller.owner(), body, PROOF).await?;
    let stream = known.member.standing().stream;
    match caller.service.proofs.prove(&stream, envelope).await {
        Ok(()) => Ok(bare(StatusCode::OK)),
        Err(ProofRefusal::Unavailable) => Err(Refusal::unavailable()),
        Err(ProofRefusal::Refused(message)) => {
            Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "NotProved", message))
        }
    }
}
