//! What hub and agent say to each other, as types: identities, digests, signed envelopes and the messages inside them.
//! `docs/wire.md` spells out the bytes. JSON with camelCase names; unknown fields are ignored, what a reader must
//! understand is listed under `requires`.

pub mod desired;
pub mod digest;
pub mod envelope;
pub mod hold;
pub mod id;
pub mod join;
pub mod keys;
pub mod membership;
pub mod packages;
pub mod poll;
pub mod presence;
pub mod site;
pub mod turn;

pub use desired::{
    ApplyParameters, BlobRef, DesiredState, Entry, Mode, ObjectRef, Observation, PackageRef, Packages, PlatformSource,
    Tombstone,
};
pub use digest::{Digest, DigestError};
pub use envelope::{Envelope, EnvelopeError, Payload, Signature, SigningKey, VerifyingKey};
pub use hold::{HoldDocument, HoldEntry, HubHolds, Lift, SiteHolds};
pub use id::{ClusterId, Generation, IdError, KeyId, Sequence, Stream, Timestamp};
pub use join::{Facts, JoinAnswer, JoinRequest, JoinToken, JoinTokenError, RenewAnswer, RenewRequest};
pub use keys::{Key, KeySet, KeySetError, KeyState};
pub use membership::Membership;
pub use packages::{PackagesKey, PackagesKeyError};
pub use poll::{Heads, PollAnswer, PollRequest, Problem as WireProblem, Profile};
pub use presence::Presence;
pub use site::{MemberAnswer, SiteAnswer, SiteRequest};
pub use turn::Turn;

/// The version of all messages here; it is part of every payload type and every path (`/agent/v1`).
pub const VERSION: u32 = 1;
