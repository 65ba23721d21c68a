//! A cluster's proof that a higher generation was issued than this hub knows: after a restored backup, a lost disk. It
//! is believed for its signature alone; the next generation of the stream is above it. Called for `/agent/v1/proof`.

use kedge_model::Problem;
use kedge_model::wire::{DesiredState, Envelope, EnvelopeError, Generation, Stream, VerifyingKey};

use crate::keys::Keys;
use crate::store::{Store, StoreError, now};

/// What proofs are checked with and written to.
#[derive(Clone, Debug)]
pub struct Prover {
    pub store: Store,
    pub keys: Keys,
}

/// What a proof came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proven {
    /// The leader goes on above it within a second.
    Raised { stream: Stream, generation: Generation },
    /// This hub knows a generation at least as high.
    AlreadyKnown,
}

#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    #[error("the proof isn't signed by a key of this hub")]
    Forged(#[source] EnvelopeError),
    #[error("it proves something of {0}, not of the cluster's own stream")]
    OtherStream(Stream),
    #[error("generation {0} is beyond what a hub could have issued")]
    Absurd(Generation),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A generation a second for 280 million years; numbers in JSON are exact up to it.
const MAX_GENERATION: u64 = 1 << 53;

/// Believes a desired state that any key of ours signed, in whatever version of the key set.
pub async fn take(
    store: &Store,
    keys: &[VerifyingKey],
    stream: &Stream,
    envelope: &Envelope,
) -> Result<Proven, ProofError> {
    let state: DesiredState = envelope.open(keys).map_err(ProofError::Forged)?;
    if state.stream != *stream {
        return Err(ProofError::OtherStream(state.stream));
    }
    if state.generation.0 > MAX_GENERATION {
        return Err(ProofError::Absurd(state.generation));
    }
    let mut tx = store.write().await?;
    let known = tx.newest_generation(&state.stream).await?;
    if known >= state.generation {
        return Ok(Proven::AlreadyKnown);
    }
    let raised = tx.raise_floor(stream, state.generation, known, now()).await?;
    tx.commit().await?;
    if !raised {
        return Ok(Proven::AlreadyKnown);
    }
    tracing::error!(%stream, proven = %state.generation, %known,
        "a cluster runs a generation that this hub doesn't know: was the database restored from an older copy?");
    Ok(Proven::Raised { stream: state.stream, generation: state.generation })
}

/// What people should know about an environment's proofs, and how to move on.
pub async fn problems(store: &Store, environment: &str) -> Result<Vec<Problem>, StoreError> {
    let floors = store.proven_floors(environment).await?;
    let problem = |proven: crate::store::state::ProvenFloor| {
        Problem::warning(
            "GenerationsWentBack",
            format!(
                "a cluster showed generation {} of {}, and this hub knew {} at most: its database is an older copy",
                proven.floor, proven.stream, proven.known
            ),
        )
        .hint("the hub has gone on above it with what Git says now; look at `kedge get assignments` whether that is what should run, and push again what was lost. Clusters, tokens and confirmations made since the copy have to be made again")
    };
    Ok(floors.into_iter().map(problem).collect())
}

#[cfg(test)]
mod tests;
