use super::*;
use std::sync::Arc;

use kedge_model::wire::{Key, KeySet, SigningKey, Timestamp};

use crate::state::issuer::{Issuer, Unconfirmed};
use crate::state::testing::{key, ours, packed, store};
use crate::state::{Board, Signer as _};
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
        requires: Vec::new(),
    }
}

fn cluster() -> ClusterId {
    ClusterId::of_public_key(&[1; 32])
}

#[tokio::test]
async fn a_proven_generation_is_passed_at_once_and_never_reused() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let board = Arc::new(Board::default());
    let issuer = Issuer::new(store.clone(), Arc::clone(&board), Arc::new(key()), Arc::new(Unconfirmed));
    let content = packed(&[("drone", &[("a", ours("1"))])]);
    issuer.issue(Term(0), &content).await.unwrap();
    let keys = [key().public()];
    let proof = key().sign_state(&state(17)).unwrap();
    let proven = take(&store, &keys, &proof, &cluster()).await.unwrap();
    assert_eq!(proven, Proven::Raised { stream: drone(), generation: Generation(17) });
    assert_eq!(take(&store, &keys, &proof, &cluster()).await.unwrap(), Proven::AlreadyKnown);
    assert_eq!(issuer.pass_floors(Term(0)).await.unwrap(), [(drone(), Generation(18))]);
    assert_eq!(issuer.pass_floors(Term(0)).await.unwrap(), []);
    // The present content, not the proof's.
    let shown = board.watch(&drone()).borrow().clone().unwrap();
    let shown: DesiredState = Envelope::from_json(&shown.envelope).unwrap().open(&keys).unwrap();
    assert_eq!(shown.entries.len(), 1);
    assert_eq!(issuer.issue(Term(0), &content).await.unwrap(), []);
    let problems = problems(&store).await.unwrap();
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
    let board = Arc::new(Board::default());
    let issuer = Issuer::new(store.clone(), Arc::clone(&board), Arc::new(key()), Arc::new(Unconfirmed));
    take(&store, &[key().public()], &key().sign_state(&state(4)).unwrap(), &cluster()).await.unwrap();
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
    assert!(matches!(take(&store, &keys, &proof, &cluster()).await, Err(ProofError::Forged(_))));
    let mut changed = key().sign_state(&state(17)).unwrap();
    changed.payload = serde_json::to_vec(&state(18)).unwrap();
    assert!(matches!(take(&store, &keys, &changed, &cluster()).await, Err(ProofError::Forged(_))));
    let absurd = key().sign_state(&state(u64::MAX)).unwrap();
    assert!(matches!(take(&store, &keys, &absurd, &cluster()).await, Err(ProofError::Absurd(_))));
    assert!(store.proven_floors().await.unwrap().is_empty());
}

#[tokio::test]
async fn keys_of_every_version_are_known_and_announced_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let public = |seed: u8| SigningKey::from_seed(&[seed; 32]).unwrap().public();
    let entry = |seed: u8, state| Key { id: public(seed).id(), public: public(seed), state };
    let sets = [
        vec![entry(1, KeyState::Active), entry(2, KeyState::Announced)],
        vec![entry(2, KeyState::Active), entry(3, KeyState::Announced)],
    ];
    for (index, keys) in sets.into_iter().enumerate() {
        let version = index as u64 + 1;
        let set = KeySet { version, created_at: Timestamp(0), keys, authorities: Vec::new() };
        let envelope = Envelope::sign(&set, &key()).unwrap().to_json().unwrap();
        sqlx::query("INSERT INTO key_sets (version, envelope) VALUES ($1, $2)")
            .bind(version as i64)
            .bind(envelope)
            .execute(store.pool())
            .await
            .unwrap();
    }
    assert_eq!(own_keys(&store).await.unwrap(), [public(1), public(2)]);
}
