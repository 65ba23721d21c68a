//! From picks and packages to signed, numbered desired states, and from a cluster's place to its signed membership.
//! The leader issues (`issuer`), every hub shows what was issued (`board`, `follow`) and takes proofs (`proof`).

pub mod board;
pub mod follow;
pub mod issuer;
pub mod membership;
pub mod plan;
pub mod proof;
#[cfg(test)]
mod testing;

use kedge_model::wire::{DesiredState, Envelope, EnvelopeError, Membership, SigningKey};

pub use board::{Board, Issued};
pub use follow::follow;
pub use issuer::{IssueError, Issuer};
pub use membership::{Change, MembershipError};
pub use proof::{ProofError, Proven};

/// Signs for the hub, with its active key.
pub trait Signer: Send + Sync {
    fn sign_state(&self, state: &DesiredState) -> Result<Envelope, EnvelopeError>;
    fn sign_membership(&self, membership: &Membership) -> Result<Envelope, EnvelopeError>;
}

impl Signer for SigningKey {
    fn sign_state(&self, state: &DesiredState) -> Result<Envelope, EnvelopeError> {
        Envelope::sign(state, self)
    }

    fn sign_membership(&self, membership: &Membership) -> Result<Envelope, EnvelopeError> {
        Envelope::sign(membership, self)
    }
}
