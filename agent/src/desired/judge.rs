//! Which parts of a poll's answer are believed: signature of a pinned key, step of the key set, cluster and sequence of the
//! membership, stream and generation of the state, cluster and sequence of the holds. Pure: `Memory` writes what comes out.

use kedge_model::wire::{DesiredState, Envelope, HoldDocument, Membership, PollAnswer, Turn};

use super::{Accepted, Refusal, Remembered, unsupported};
use crate::causes::chain;

/// What was believed before.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    pub remembered: &'k Remembered,
    pub membership: &'k Membership,
    pub state: Option<&'k DesiredState>,
    pub holds: Option<&'k HoldDocument>,
}

/// Who answered.
#[derive(Clone, Copy)]
pub enum Giver<'t> {
    /// The hub itself, or a file that a person brought: what it says is meant for this cluster, now.
    Hub,
    /// Anybody of the site, with the turn that the hub gave this cluster, if it did.
    Peer(Option<&'t Envelope>),
}

pub struct Judged {
    pub remembered: Remembered,
    /// A new one.
    pub membership: Option<Membership>,
    /// A new one, or none since the stream changed.
    pub state: Option<Option<DesiredState>>,
    /// It would be the state if it were this cluster's turn.
    pub offered: Option<DesiredState>,
    pub holds: Option<HoldDocument>,
    pub accepted: Accepted,
}

/// More key sets in one answer than any hub makes in years.
const MAX_KEY_SETS: usize = 1000;

pub fn judge(known: Known<'_>, answer: &PollAnswer, from: Giver<'_>) -> Judged {
    let mut judged = Judged {
        remembered: known.remembered.clone(),
        membership: None,
        state: None,
        offered: None,
        holds: None,
        accepted: Accepted::default(),
    };
    // In this order: new keys sign the membership, the membership says whose state is followed.
    judged.take_keys(answer);
    if let Some(envelope) = &answer.membership {
        let taken = judged.take_membership(known, envelope);
        judged.note("MembershipRefused", "a membership is refused", taken);
    }
    if let Some(envelope) = &answer.state {
        let taken = judged.take_state(known, envelope, from);
        judged.note("StateRefused", "a desired state is refused", taken);
    }
    if let Some(envelope) = &answer.holds {
        let taken = judged.take_holds(known, envelope);
        judged.note("HoldsRefused", "holds of the hub are refused", taken);
    }
    judged
}

impl Judged {
    fn take_keys(&mut self, answer: &PollAnswer) {
        for envelope in answer.key_sets.iter().take(MAX_KEY_SETS) {
            match self.remembered.keys.follow(envelope) {
                Ok(next) => {
                    self.remembered.keys = next;
                    self.accepted.keys_changed = true;
                }
                Err(why) => {
                    let message = format!("a key set is refused: {why}");
                    return self.accepted.refused.push(Refusal { code: "KeySetRefused", message });
                }
            }
        }
    }

    fn take_membership(&mut self, known: Known<'_>, envelope: &Envelope) -> Result<(), String> {
        let next: Membership = self.open(envelope)?;
        if next.cluster != known.membership.cluster {
            return Err(format!("it is cluster {}'s, this is {}", next.cluster, known.membership.cluster));
        }
        if next.sequence <= known.membership.sequence {
            return Err(format!("its sequence {} is not above {}", next.sequence, known.membership.sequence));
        }
        if let Some(why) = unsupported(&next.requires) {
            return Err(why);
        }
        if next.stream != known.membership.stream {
            // Another stream's state: what runs stays until the new stream's says otherwise.
            (self.remembered.state, self.state) = (None, Some(None));
            self.accepted.state_changed |= known.state.is_some();
        }
        self.remembered.membership = envelope.clone();
        self.membership = Some(next);
        self.accepted.membership_changed = true;
        Ok(())
    }

    fn take_state(&mut self, known: Known<'_>, envelope: &Envelope, from: Giver<'_>) -> Result<(), String> {
        let next: DesiredState = self.open(envelope)?;
        let membership = self.membership.as_ref().unwrap_or(known.membership);
        if next.stream != membership.stream {
            return Err(format!("it is of stream {}, this cluster follows {}", next.stream, membership.stream));
        }
        let last = self.remembered.generation_of(&next.stream);
        // A stream has one state of a generation: after a move back the last one is taken again.
        let lacks_it = self.remembered.state.is_none() && next.generation == last && last.0 > 0;
        if next.generation <= last && !lacks_it {
            return Err(format!("its generation {} of {} is not above {last}", next.generation, next.stream));
        }
        if !self.has_turn(known, &next, from) {
            self.offered = Some(next);
            return Ok(());
        }
        if let Some(why) = unsupported(&next.requires) {
            // It is the state from now on, and every assignment says that it can't be followed.
            self.accepted.refused.push(Refusal { code: "Unsupported", message: why });
        }
        self.remembered.set_generation(&next.stream, next.generation);
        self.remembered.state = Some(envelope.clone());
        self.state = Some(Some(next));
        self.accepted.state_changed = true;
        Ok(())
    }

    /// Clusters of a ring change a few at a time: from anybody but the hub a state comes with the hub's word that it is this one's turn.
    fn has_turn(&self, known: Known<'_>, next: &DesiredState, from: Giver<'_>) -> bool {
        let Giver::Peer(turn) = from else { return true };
        let admits =
            |turn: &Envelope| self.open::<Turn>(turn).is_ok_and(|turn| turn.admits(&known.membership.cluster, next));
        !next.turns || turn.is_some_and(admits)
    }

    fn take_holds(&mut self, known: Known<'_>, envelope: &Envelope) -> Result<(), String> {
        let next: HoldDocument = self.open(envelope)?;
        if next.cluster != known.membership.cluster {
            return Err(format!("they are cluster {}'s", next.cluster));
        }
        let last = known.holds.map_or(0, |holds| holds.sequence);
        if next.sequence <= last {
            return Err(format!("their sequence {} is not above {last}", next.sequence));
        }
        self.remembered.holds = Some(envelope.clone());
        self.holds = Some(next);
        self.accepted.holds_changed = true;
        Ok(())
    }

    fn open<T: kedge_model::wire::Payload>(&self, envelope: &Envelope) -> Result<T, String> {
        envelope.open(&self.remembered.keys.trusted()).map_err(|why| chain(&why))
    }

    fn note(&mut self, code: &'static str, what: &str, taken: Result<(), String>) {
        if let Err(why) = taken {
            self.accepted.refused.push(Refusal { code, message: format!("{what}: {why}") });
        }
    }
}
