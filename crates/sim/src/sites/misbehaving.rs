//! What misbehaving members say: members of the fleet with good certificates and every wrong word there is.

use kedge_model::wire::{
    ClusterId, DesiredState, Digest, Envelope, Generation, Key, KeySet, KeyState, Stream, Timestamp,
};
use kedge_peer::{Message, Name, Version};
use kedge_status::Nonce;

use super::agent::{Agent, Misbehaving, status};
use super::hub::{Hub, broken, hold};
use crate::Broken;
use crate::chance::Chance;

/// A message of a misbehaving peer to one of its site, and the digest that this one asked with.
pub(super) fn misbehaving_answer(
    misbehaving: &Agent,
    (victim, asked): (&ClusterId, Option<&str>),
    hub: &Hub,
    chance: &mut Chance,
    now: Timestamp,
) -> Result<Message, Broken> {
    let claims = Message { reach: Some(0), digest: format!("{:016x}", chance.draw()), ..Message::default() };
    if misbehaving.misbehaving == Some(Misbehaving::Quiet) {
        // It says who it is, so that it is chosen; and that it has everything, as well as it can.
        let digest = asked.map_or_else(|| claims.digest.clone(), str::to_owned);
        let claims = Message { digest, ..claims };
        return Ok(Message { give: vec![misbehaving.disk.membership.clone()], ..claims });
    }
    let newest = hub.chain.last().map_or(1, |(set, _)| set.version);
    let membership = hub.memberships.get(victim).map(|(membership, _)| membership.clone());
    let made_up = match chance.below(11) {
        0 => hub.memberships.get(victim).map(|(_, envelope)| {
            let mut forged = envelope.clone();
            let place = chance.below(forged.payload.len());
            if let Some(byte) = forged.payload.get_mut(place) {
                *byte ^= 1;
            }
            forged
        }),
        1 => Some(status(&misbehaving.key, *victim, (99, 1), Nonce([9; 16]), now)),
        2 => {
            let promoted = membership.map(|mut membership| {
                membership.cluster = misbehaving.id;
                (membership.relay, membership.sequence.0) = (true, 1_000);
                membership
            });
            promoted.map(|promoted| Envelope::sign(&promoted, &misbehaving.key)).transpose().map_err(broken)?
        }
        3 => {
            let stream = membership.map_or_else(|| Stream::new("a", "b", "c"), |membership| membership.stream);
            let state = DesiredState {
                stream,
                generation: Generation(999),
                created_at: now,
                confirmed: 0,
                entries: Vec::new(),
                removed: Vec::new(),
                unmanaged: Vec::new(),
                source: None,
                turns: false,
                requires: Vec::new(),
            };
            Some(Envelope::sign(&state, &misbehaving.key).map_err(broken)?)
        }
        4 => {
            let keys =
                vec![Key { id: misbehaving.key.id(), public: misbehaving.key.public(), state: KeyState::Active }];
            let set = KeySet { version: newest + 1, created_at: now, keys, authorities: Vec::new() };
            Some(Envelope::sign(&set, &misbehaving.key).map_err(broken)?)
        }
        5 => Some(Envelope::sign_bytes("application/vnd.example", vec![1, 2, 3], &misbehaving.key)),
        6 => {
            // Holds in the victim's name, with the victim's key id above the misbehaving peer's signature.
            let mut stolen = Envelope::sign(&hold(*victim, 77, now), &misbehaving.key).map_err(broken)?;
            for signature in &mut stolen.signatures {
                signature.keyid = victim.key_id();
            }
            Some(stolen)
        }
        7 => return Ok(Message { wants: vec![Digest::of(b"x"); 1_000], ..claims }),
        8 => {
            let have = hub.memberships.keys().map(|cluster| (Name::Status(*cluster), Version(u64::MAX, u64::MAX)));
            return Ok(Message { have: have.take(1_000).collect(), keys: u64::MAX, ..claims });
        }
        9 => {
            let mut presence = misbehaving.presence(now)?;
            presence.payload =
                String::from_utf8_lossy(&presence.payload).replacen("\"at\":1", "\"at\":2", 1).into_bytes();
            return Ok(Message { presences: vec![presence], ..claims });
        }
        _ => return Ok(Message { reachable: vec![(*victim, 0), (misbehaving.id, 0)], ..claims }),
    };
    let keys = if chance.permille(200) { u64::MAX } else { newest };
    Ok(Message { give: made_up.into_iter().collect(), keys, ..claims })
}
