//! What is remembered, for who only looks and judges: the commands `import` and `export`. Nothing is written; what the daemon does at
//! the same time doesn't matter, for it judges once more.

use kedge_durable::{Disk, Ledger, LedgerError};
use kedge_model::wire::{DesiredState, HoldDocument, KeySet, Membership, PollAnswer, PollRequest, Timestamp};

use super::{Accepted, MemoryError, Remembered, judge, path, read, request_base};
use crate::identity::Identity;
use crate::paths::Paths;

#[derive(Debug)]
pub struct View {
    remembered: Remembered,
    membership: Membership,
    state: Option<DesiredState>,
    holds: Option<HoldDocument>,
}

impl View {
    /// What was remembered of this identity; what the join said if there is nothing, or nothing that can be read.
    pub fn read(disk: &dyn Disk, paths: &Paths, identity: &Identity) -> Result<View, MemoryError> {
        let found = match Ledger::<Remembered>::read(disk, &path(paths)) {
            Err(LedgerError::Broken { .. } | LedgerError::Json { .. }) => None,
            other => other?,
        };
        let remembered = Remembered::of(identity, found);
        let membership = read(&remembered.membership)
            .ok_or_else(|| MemoryError::Origin("the membership is unreadable".to_owned()))?;
        let state = remembered.state.as_ref().and_then(read);
        let holds = remembered.holds.as_ref().and_then(read);
        Ok(View { remembered, membership, state, holds })
    }

    pub fn keys(&self) -> &KeySet {
        &self.remembered.keys
    }

    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Of the membership's stream.
    pub fn state(&self) -> Option<&DesiredState> {
        self.state.as_ref()
    }

    /// The hub's.
    pub fn holds(&self) -> Option<&HoldDocument> {
        self.holds.as_ref()
    }

    /// The latest that the hub said, as far as it is remembered.
    pub fn hub_time(&self) -> Timestamp {
        self.remembered.hub_time
    }

    /// What the daemon would make of an answer now.
    pub fn judge(&self, answer: &PollAnswer) -> Accepted {
        let known = judge::Known {
            remembered: &self.remembered,
            membership: &self.membership,
            state: self.state.as_ref(),
            holds: self.holds.as_ref(),
        };
        judge::judge(known, answer, judge::Giver::Hub).accepted
    }

    /// A poll's request, to which the caller adds status heads, the look's age and the profile.
    pub fn request_base(&self) -> PollRequest {
        request_base(&self.remembered, &self.membership, self.state.as_ref(), self.holds.as_ref())
    }
}
