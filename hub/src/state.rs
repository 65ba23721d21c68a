//! From picks and packages to signed, numbered desired states, and what a move to another stream takes away.
//! The leader issues (`issuer`), every hub shows what was issued (`cache`, `follow`) and takes proofs (`proof`).

pub mod cache;
mod confirmed;
pub mod follow;
pub mod issuer;
pub mod membership;
pub mod plan;
pub mod proof;
#[cfg(test)]
pub(crate) mod testing;

use kedge_model::wire::{DesiredState, Envelope, EnvelopeError, SigningKey};

pub use cache::DesiredStateCache;
pub use follow::follow;
pub use issuer::{IssueError, Issuer, Wanted};
pub use membership::{Parting, parting};
pub use proof::{ProofError, Proven, Prover};

use crate::keys::Keys;

/// Signs for the hub, with its active key.
pub trait Signer: Send + Sync {
    fn sign_state(&self, state: &DesiredState) -> Result<Envelope, EnvelopeError>;
}

impl Signer for SigningKey {
    fn sign_state(&self, state: &DesiredState) -> Result<Envelope, EnvelopeError> {
        Envelope::sign(state, self)
    }
}

impl Signer for Keys {
    fn sign_state(&self, state: &DesiredState) -> Result<Envelope, EnvelopeError> {
        self.sign(state)
    }
}
