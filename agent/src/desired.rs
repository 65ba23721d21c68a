//! What the hub wants of this host, as far as it could prove it: pinned keys, membership, the state of the membership's stream, the
//! hub's holds, and the last generation of every stream. One ledger, `memory`, owned here. `run` hands in the answers of polls and
//! reads the state; at boot everything is there without a network and without a clock.

mod judge;
#[cfg(test)]
mod tests;
pub mod view;

use std::path::PathBuf;
use std::sync::Arc;

use kedge_durable::{Disk, Ledger, LedgerError, Opened};
use kedge_model::wire::{
    DesiredState, Envelope, Generation, Heads, HoldDocument, KeySet, Membership, PollAnswer, PollRequest, Profile,
    Stream, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::causes::chain;
use crate::identity::floors::{StreamGeneration, raise};
use crate::identity::{Identity, keep_floors};
use crate::paths::Paths;
use judge::Giver;

/// The writer of the ledger, and what is in it, read.
#[derive(Debug)]
pub struct Memory {
    ledger: Ledger<Remembered>,
    /// Where the identity is: the floors are kept there too.
    disk: Arc<dyn Disk>,
    paths: Paths,
    remembered: Remembered,
    membership: Membership,
    state: Option<DesiredState>,
    /// A newer one that a peer brought, and that waits for this cluster's turn. It comes again after a restart.
    offered: Option<DesiredState>,
    holds: Option<HoldDocument>,
}

/// What the ledger holds. Envelopes stay as they were signed: a hub that lost them is shown them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    pub keys: KeySet,
    pub membership: Envelope,
    /// Of the membership's stream, when one came.
    #[serde(default)]
    pub state: Option<Envelope>,
    #[serde(default)]
    pub generations: Vec<StreamGeneration>,
    #[serde(default)]
    pub holds: Option<Envelope>,
    /// The hub's time at a contact; not of every contact, since each write wears the disk.
    pub hub_time: Timestamp,
}

/// What an answer changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    pub keys_changed: bool,
    pub membership_changed: bool,
    pub state_changed: bool,
    pub holds_changed: bool,
    /// Each left everything as it was.
    pub refused: Vec<Refusal>,
}

/// Why a message of the hub wasn't taken: a stable word and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// `KeySetRefused`, `MembershipRefused`, `StateRefused`, `HoldsRefused`, `Unsupported`.
    pub code: &'static str,
    pub message: String,
}

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The join's own words can't be read: only a new join helps.
    #[error("what the hub said at the join can't be read: {0}")]
    Origin(String),
}

/// What opening found.
#[derive(Debug)]
pub struct OpenedMemory {
    pub memory: Memory,
    /// Sentences for a warning: a copy was healed, a part couldn't be read.
    pub healed: Vec<String>,
}

/// The hub's time is written at most so often when nothing else is.
const TIME_EVERY: i64 = 24 * 60 * 60 * 1000;
/// The words of `requires` that this agent understands. Version 1 defines none.
const UNDERSTOOD: [&str; 0] = [];

impl Memory {
    /// What was remembered of this identity; what the join said if there is nothing, or nothing that can be read.
    pub fn open(disk: Arc<dyn Disk>, paths: &Paths, identity: &Identity) -> Result<OpenedMemory, MemoryError> {
        let mut healed = Vec::new();
        let kept_on = Arc::clone(&disk);
        let opened = match Ledger::<Remembered>::open(Arc::clone(&disk), &path(paths)) {
            Err(why @ (LedgerError::Broken { .. } | LedgerError::Json { .. })) => {
                healed.push(format!("{}; it begins again with what the join said", chain(&why)));
                let ledger = Ledger::begin_again(disk, &path(paths));
                Opened { ledger, value: None, healed: None }
            }
            other => other?,
        };
        healed.extend(opened.healed);
        let mut remembered = Remembered::of(identity, opened.value);
        // Lost or older than what the identity knows: nothing below that is taken again.
        raise(&mut remembered.generations, identity.floors());
        let membership: Membership = read(&remembered.membership)
            .ok_or_else(|| MemoryError::Origin("the membership is unreadable".to_owned()))?;
        if membership.cluster != identity.cluster() {
            return Err(MemoryError::Origin("the membership is another cluster's".to_owned()));
        }
        let state = remembered.state.as_ref().and_then(read::<DesiredState>);
        if state.is_none() && remembered.state.take().is_some() {
            healed.push("the remembered state can't be read; the hub is asked again".to_owned());
        }
        let holds = remembered.holds.as_ref().and_then(read::<HoldDocument>);
        if holds.is_none() && remembered.holds.take().is_some() {
            healed.push("the remembered holds of the hub can't be read; the hub is asked again".to_owned());
        }
        let grew = remembered.generations != identity.floors();
        let opened = OpenedMemory {
            memory: Memory {
                ledger: opened.ledger,
                disk: kept_on,
                paths: paths.clone(),
                remembered,
                membership,
                state,
                offered: None,
                holds,
            },
            healed,
        };
        if grew {
            opened.memory.keep_floors();
        }
        Ok(opened)
    }

    /// For who only looks: membership and state.
    pub fn read(
        disk: &dyn Disk,
        paths: &Paths,
    ) -> Result<Option<(Membership, Option<DesiredState>, Remembered)>, LedgerError> {
        let remembered = Ledger::<Remembered>::read(disk, &path(paths))?;
        Ok(remembered.and_then(|remembered| {
            let state = remembered.state.as_ref().and_then(read);
            Some((read(&remembered.membership)?, state, remembered))
        }))
    }

    /// Takes what an answer brings, as far as it can be believed. It is on disk when this returns; on an error nothing changed.
    pub fn accept(&mut self, answer: &PollAnswer) -> Result<Accepted, LedgerError> {
        self.accept_from(answer, Giver::Hub)
    }

    /// The same of what peers brought: a state whose clusters take turns is kept as offered until it is this one's.
    pub fn accept_from_peer(&mut self, answer: &PollAnswer, turn: Option<&Envelope>) -> Result<Accepted, LedgerError> {
        self.accept_from(answer, Giver::Peer(turn))
    }

    fn accept_from(&mut self, answer: &PollAnswer, from: Giver<'_>) -> Result<Accepted, LedgerError> {
        match self.take(answer, from) {
            // One state that is too large must not keep the rest out.
            Err(LedgerError::TooLarge { size, .. }) if answer.state.is_some() => {
                let mut accepted = self.take(&PollAnswer { state: None, ..answer.clone() }, from)?;
                let message = format!("a desired state is refused: with it {size} bytes would have to be remembered");
                accepted.refused.push(Refusal { code: "StateRefused", message });
                Ok(accepted)
            }
            other => other,
        }
    }

    fn take(&mut self, answer: &PollAnswer, from: Giver<'_>) -> Result<Accepted, LedgerError> {
        let known = judge::Known {
            remembered: &self.remembered,
            membership: &self.membership,
            state: self.state.as_ref(),
            holds: self.holds.as_ref(),
        };
        let judged = judge::judge(known, answer, from);
        let changed = judged.accepted.changed();
        let late = answer.time.0.saturating_sub(self.remembered.hub_time.0).saturating_abs() >= TIME_EVERY;
        if changed || late {
            let next = Remembered { hub_time: answer.time, ..judged.remembered };
            self.ledger.write(&next)?;
            let grew = next.generations != self.remembered.generations;
            self.remembered = next;
            if grew {
                self.keep_floors();
            }
        }
        if let Some(membership) = judged.membership {
            self.membership = membership;
        }
        if let Some(state) = judged.state {
            self.state = state;
        }
        if let Some(holds) = judged.holds {
            self.holds = Some(holds);
        }
        if let Some(offered) = judged.offered {
            self.offered = Some(offered);
        }
        let has = self.state.as_ref().map_or(Generation(0), |state| state.generation);
        let stream = &self.membership.stream;
        self.offered.take_if(|offered| offered.stream != *stream || offered.generation <= has);
        for Refusal { code, message } in &judged.accepted.refused {
            match from {
                Giver::Hub => tracing::warn!(code, message, "what the hub sent is refused"),
                // The hub may have brought it meanwhile.
                Giver::Peer(_) => tracing::debug!(code, message, "what a peer brought isn't taken"),
            }
        }
        Ok(judged.accepted)
    }

    /// Beside the identity too. What can't be kept now is kept with the next state: the memory has it.
    fn keep_floors(&self) {
        let kept = keep_floors(&self.disk, &self.paths, self.membership.cluster, &self.remembered.generations);
        if let Err(error) = kept {
            tracing::warn!(%error, "the last generations can't be kept beside the identity");
        }
    }

    pub fn keys(&self) -> &KeySet {
        &self.remembered.keys
    }

    /// Certificates (PEM) that the hub's may come from.
    pub fn authorities(&self) -> &[String] {
        &self.remembered.keys.authorities
    }

    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// As it was signed: for peers.
    pub fn membership_envelope(&self) -> &Envelope {
        &self.remembered.membership
    }

    /// Of the membership's stream; none until one came.
    pub fn state(&self) -> Option<&DesiredState> {
        self.state.as_ref()
    }

    /// A newer one that is on its way and waits for this cluster's turn.
    pub fn offered(&self) -> Option<&DesiredState> {
        self.offered.as_ref()
    }

    /// As it was signed: for `prove`.
    pub fn state_envelope(&self) -> Option<&Envelope> {
        self.remembered.state.as_ref()
    }

    /// The hub's holds, verified; and as they were signed.
    pub fn holds(&self) -> Option<(&HoldDocument, &Envelope)> {
        self.holds.as_ref().zip(self.remembered.holds.as_ref())
    }

    /// The latest that the hub said, as far as it is remembered.
    pub fn hub_time(&self) -> Timestamp {
        self.remembered.hub_time
    }

    /// A poll's request, to which the caller adds status heads, the look's age and the profile.
    pub fn request_base(&self) -> PollRequest {
        request_base(&self.remembered, &self.membership, self.state.as_ref(), self.holds.as_ref())
    }
}

fn request_base(
    remembered: &Remembered,
    membership: &Membership,
    state: Option<&DesiredState>,
    holds: Option<&HoldDocument>,
) -> PollRequest {
    PollRequest {
        key_set: remembered.keys.version,
        membership: membership.sequence,
        // After a move back to a stream whose state isn't here any more the hub must show it again.
        generation: state.map_or(Generation(0), |state| state.generation),
        status: Heads::default(),
        look_age: 0,
        profile: Profile::Normal,
        wait: None,
        holds: holds.map_or(0, |holds| holds.sequence),
    }
}

impl Accepted {
    pub fn changed(&self) -> bool {
        self.keys_changed || self.membership_changed || self.state_changed || self.holds_changed
    }
}

impl Remembered {
    /// What was remembered of this identity; else what the join said.
    fn of(identity: &Identity, found: Option<Remembered>) -> Remembered {
        let mine = |remembered: &Remembered| {
            read(&remembered.membership).is_some_and(|known: Membership| known.cluster == identity.cluster())
        };
        // Of another identity: this host joined again.
        found.filter(mine).unwrap_or_else(|| {
            let (keys, membership, time) = identity.origin();
            Remembered {
                keys: keys.clone(),
                membership: membership.clone(),
                state: None,
                generations: Vec::new(),
                holds: None,
                hub_time: time,
            }
        })
    }

    /// The last accepted generation of a stream.
    pub fn generation_of(&self, stream: &Stream) -> Generation {
        let found = self.generations.iter().find(|known| known.stream == *stream);
        found.map_or(Generation(0), |known| known.generation)
    }

    fn set_generation(&mut self, stream: &Stream, generation: Generation) {
        match self.generations.iter_mut().find(|known| known.stream == *stream) {
            Some(known) => known.generation = generation,
            None => self.generations.push(StreamGeneration { stream: stream.clone(), generation }),
        }
    }
}

/// Whether something that a message requires isn't known here: the sentence for `Failed(Unsupported)`.
pub fn unsupported(requires: &[String]) -> Option<String> {
    let unknown: Vec<&str> =
        requires.iter().map(String::as_str).filter(|word| !UNDERSTOOD.contains(word)).take(8).collect();
    let list = || unknown.iter().map(|word| word.escape_debug().take(64).collect::<String>()).collect::<Vec<_>>();
    (!unknown.is_empty()).then(|| format!("this agent doesn't know `{}`: a newer one is needed", list().join("`, `")))
}

/// Where the ledger is.
pub fn path(paths: &Paths) -> PathBuf {
    paths.state().join("memory")
}

/// What this host accepted before, from its own disk: the keys of then may be gone from the set of now.
fn read<T: kedge_model::wire::Payload>(envelope: &Envelope) -> Option<T> {
    (envelope.payload_type == T::TYPE).then(|| serde_json::from_slice(&envelope.payload).ok()).flatten()
}
