//! Generations that a cluster proves and the hub has forgotten.

use super::*;
use std::sync::Arc;

use kedge_hub_types::testing::ours;
use kedge_model::wire::{SigningKey, Timestamp};

use crate::state::issuer::Issuer;
use crate::state::testing::{Unconfirmed, key, packed, store};
use crate::state::{DesiredStateCache, Signer as _};
use crate::store::Term;

fn drone() -> Stream {
    Stream::new("dev", "drone", Stream::ALL)
}

fn state(generation: u64) -> DesiredState {
    DesiredState {
        stream: drone(),
        generation: Generation(generation),
        created_at: Timestamp(1),
        confirmed: 1,
        entries: Vec::new(),
        removed: Vec::new(),
        unmanaged: Vec::new(),
        source: None,
        turns: false,
        requires: Vec::new(),
    }
}

#[tokio::test]
async fn a_proven_generation_is_passed_at_once_and_never_reused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let desired_states = Arc::new(DesiredStateCache::default());
    let issuer = Issuer::new(store.clone(), Arc::clone(&desired_states), Arc::new(key()), Arc::new(Unconfirmed));
    let content = packed(&[("drone", &[("a", ours("1"))])]);
    issuer.issue(Term(0), &content).await.unwrap();
    let keys = [key().public()];
    let proof = key().sign_state(&state(17)).unwrap();
    let proven = take(&store, &keys, &drone(), &proof).await.unwrap();
    assert_eq!(proven, Proven::Raised { stream: drone(), generation: Generation(17) });
    assert_eq!(take(&store, &keys, &drone(), &proof).await.unwrap(), Proven::AlreadyKnown);
    assert_eq!(issuer.pass_floors(Term(0)).await.unwrap(), [(drone(), Generation(18))]);
    assert_eq!(issuer.pass_floors(Term(0)).await.unwrap(), []);
    // The present content, not the proof's.
    let shown = desired_states.watch(&drone()).borrow().clone().unwrap();
    let shown: DesiredState = Envelope::from_json(&shown.envelope).unwrap().open(&keys).unwrap();
    assert_eq!(shown.entries.len(), 1);
    assert_eq!(issuer.issue(Term(0), &content).await.unwrap(), []);
    let problems = problems(&store, "dev").await.unwrap();
    assert_eq!(problems[0].code, "GenerationsWentBack");
    assert!(
        problems[0].message.contains("generation 17 of dev/drone/all")
            && problems[0].message.contains("knew 1 at most")
    );
}

#[tokio::test]
async fn a_stream_without_a_state_begins_above_its_proof() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let desired_states = Arc::new(DesiredStateCache::default());
    let issuer = Issuer::new(store.clone(), Arc::clone(&desired_states), Arc::new(key()), Arc::new(Unconfirmed));
    take(&store, &[key().public()], &drone(), &key().sign_state(&state(4)).unwrap()).await.unwrap();
    assert_eq!(issuer.pass_floors(Term(0)).await.unwrap(), []);
    let issued = issuer.issue(Term(0), &packed(&[("drone", &[("a", ours("1"))])])).await.unwrap();
    assert_eq!(issued, [(drone(), Generation(5))]);
}

#[tokio::test]
async fn a_strangers_proof_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let stranger = SigningKey::from_seed(&[9; 32]).unwrap();
    let proof = stranger.sign_state(&state(17)).unwrap();
    let keys = [key().public()];
    assert!(matches!(take(&store, &keys, &drone(), &proof).await, Err(ProofError::Forged(_))));
    let mut changed = key().sign_state(&state(17)).unwrap();
    changed.payload = serde_json::to_vec(&state(18)).unwrap();
    assert!(matches!(take(&store, &keys, &drone(), &changed).await, Err(ProofError::Forged(_))));
    let absurd = key().sign_state(&state(u64::MAX)).unwrap();
    assert!(matches!(take(&store, &keys, &drone(), &absurd).await, Err(ProofError::Absurd(_))));
    let elsewhere = Stream::new("dev", "large", Stream::ALL);
    let other = take(&store, &keys, &elsewhere, &key().sign_state(&state(17)).unwrap()).await;
    assert!(matches!(other, Err(ProofError::OtherStream(_))));
    assert!(store.proven_floors("dev").await.unwrap().is_empty());
}
