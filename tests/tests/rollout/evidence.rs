//! Evidence of promotions: an in-toto statement, signed by the hub, that says what was true when a commit passed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kedge_model::wire::SigningKey;
use kedge_tests::world::plant::{MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::Value;

use crate::plants::{CHAIN, small};

/// The newest statement about a commit in an environment, once it is there; its signature is checked.
#[track_caller]
pub(crate) fn await_statement(plant: &Plant, environment: &str, commit: &str) -> Value {
    await_said(plant, environment, commit, commit)
}

/// The same for one that has these words: there is one for each time that a person overrode something, and one when it passed.
#[track_caller]
pub(crate) fn await_said(plant: &Plant, environment: &str, commit: &str, words: &str) -> Value {
    let mut found = None;
    plant.await_so(&format!("evidence of {commit} in {environment} with {words:?}"), MOVED_WITHIN, |plant| {
        let listed = plant.world.api.list(&format!("/api/v1/evidence?environment={environment}&commit={commit}"));
        let mut statements =
            listed.iter().map(|item| open(plant, &plant.world.api.get(&format!("/api/v1/evidence/{}", item["id"]))));
        found = statements.find(|statement| statement.to_string().contains(words));
        found.is_some()
    });
    found.expect("it was awaited")
}

/// Checks a DSSE envelope with the hub's own public keys; its statement.
pub(crate) fn open(plant: &Plant, envelope: &Value) -> Value {
    let envelope = if envelope["payload"].is_string() { envelope } else { &envelope["envelope"] };
    let kind = envelope["payloadType"].as_str().unwrap_or_else(|| panic!("{envelope}"));
    assert_eq!(kind, "application/vnd.in-toto+json");
    let payload = BASE64_STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
    let signature = BASE64_STANDARD.decode(envelope["signatures"][0]["sig"].as_str().unwrap()).unwrap();
    // DSSEv1 SP LEN(type) SP type SP LEN(body) SP body
    let mut signed = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    signed.extend(&payload);
    let keys = public_keys(plant);
    let fits = |key: &Vec<u8>| UnparsedPublicKey::new(&ED25519, key).verify(&signed, &signature).is_ok();
    assert!(keys.iter().any(fits), "no key of the hub fits the signature");
    serde_json::from_slice(&payload).unwrap()
}

/// Of the pairs in the hub's folder of keys; agents get the public ones when they join.
fn public_keys(plant: &Plant) -> Vec<Vec<u8>> {
    let folder = plant.world.hub.places().data.join("keys/signing");
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.map(|pair| SigningKey::from_pkcs8(&pair).unwrap().public().as_bytes().to_vec()).collect()
}

#[test]
fn evidence_is_an_in_toto_statement_that_the_hub_signed_with_counts_and_people() {
    let Some(plant) = small(&Policy::chain(&CHAIN)) else { return };
    let commit = plant.push_main("Kept for ever");
    plant.await_named("prod", &commit);
    plant.await_rollout("prod", &commit, "Complete");
    for environment in CHAIN {
        let statement = await_statement(&plant, environment, &commit);
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1", "{statement}");
        assert_eq!(statement["subject"][0]["digest"]["gitCommit"], commit.as_str(), "{statement}");
        let predicate = statement["predicate"].to_string();
        assert!(predicate.contains(environment) && predicate.contains("converged"), "{predicate}");
    }
    let shown = plant.world.kedge.run(["evidence", "list", "--environment", "prod"]);
    assert!(shown.contains(&commit[..7]), "{shown}");
}
