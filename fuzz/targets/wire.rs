//! Messages between hub, agents and peers. The first byte chooses which one the rest is read as.

#![no_main]

use kedge_model::wire::{
    DesiredState, Envelope, HoldDocument, JoinAnswer, JoinRequest, JoinToken, KeySet, Membership, PollAnswer,
    PollRequest, Presence, RenewAnswer, RenewRequest, SiteAnswer, SiteHolds, SiteRequest, Turn,
};
use libfuzzer_sys::fuzz_target;
use serde_json::from_slice;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, rest)) = bytes.split_first() else { return };
    match which % 18 {
        0 => {
            let Ok(envelope) = Envelope::from_json(rest) else { return };
            _ = KeySet::first(&envelope);
            _ = Presence::open(&envelope);
            _ = SiteHolds::open(&envelope);
        }
        1 => _ = from_slice::<DesiredState>(rest),
        2 => _ = from_slice::<Membership>(rest),
        3 => _ = from_slice::<PollRequest>(rest),
        4 => _ = from_slice::<PollAnswer>(rest),
        5 => _ = from_slice::<JoinRequest>(rest),
        6 => _ = from_slice::<JoinAnswer>(rest),
        7 => _ = from_slice::<RenewRequest>(rest),
        8 => _ = from_slice::<RenewAnswer>(rest),
        9 => _ = from_slice::<SiteRequest>(rest),
        10 => _ = from_slice::<SiteAnswer>(rest),
        11 => _ = from_slice::<KeySet>(rest),
        12 => _ = from_slice::<HoldDocument>(rest),
        13 => _ = from_slice::<Presence>(rest),
        14 => _ = from_slice::<Turn>(rest),
        15 => _ = from_slice::<SiteHolds>(rest),
        _ => {
            let Ok(text) = std::str::from_utf8(rest) else { return };
            _ = text.parse::<JoinToken>();
        }
    }
});
