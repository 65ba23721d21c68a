//! A desired state that isn't to be believed: refused, reported, and nothing changes.

use kedge_model::wire::{DesiredState, Envelope, Generation, SigningKey};
use kedge_tests::lab::await_true;
use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::world::SOON;
use kedge_tests::world::line::{CHANGED_WITHIN, CLUSTER_TYPE, FIRST, HOST, Line};
use kedge_tests::world::misbehaving_hub::MisbehavingHub;

#[test]
fn forged_old_and_foreign_states_are_refused_and_reported_and_change_nothing() {
    let Some(mut line) = Line::start() else { return };
    line.await_converged(FIRST);
    line.change_greeting("Line two");
    line.await_converged(FIRST);
    let generation = line.world.api.generation("dev", CLUSTER_TYPE).unwrap();
    let envelope = |cluster_type: &str, generation: u64| {
        Envelope::from_json(line.world.api.envelope("dev", cluster_type, generation).as_bytes()).unwrap()
    };
    let genuine = envelope(CLUSTER_TYPE, generation);
    let mut wanted: DesiredState = serde_json::from_slice(&genuine.payload).unwrap();
    wanted.generation = Generation(generation + 100);
    wanted.entries.clear();
    let stranger = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
    let forged = Envelope::sign(&wanted, &stranger).unwrap();
    let tampered = Envelope { payload: forged.payload.clone(), ..genuine };
    let lies = [
        ("a stranger's signature", forged, "signature"),
        ("a signature over something else", tampered, "signature"),
        ("an older generation", envelope(CLUSTER_TYPE, generation - 1), "generation"),
        ("another stream's", envelope("drone", line.world.api.generation("dev", "drone").unwrap()), "stream"),
    ];
    let before = Fingerprint::of(&line.host);
    line.world.hub.stop();
    let places = line.world.hub.places();
    let hub = MisbehavingHub::start(places.agents, &places.data.join("keys"));
    for (what, lie, word) in lies {
        hub.say(lie);
        // A hub that says such things is asked less and less often; a start begins anew.
        line.host.sh("systemctl restart kedge-agent");
        await_true(&format!("{what} is refused and reported"), CHANGED_WITHIN, || {
            let warned = hub.status().is_some_and(|status| {
                let warning = status.warnings.get("StateRefused");
                warning.is_some_and(|warning| warning.message.contains(word))
            });
            warned && hub.polls() >= 2
        });
        let status = line.agent(&["status"]).stdout;
        assert!(status.contains("StateRefused"), "{status}");
        before.assert_same(&Fingerprint::of(&line.host), what);
    }
    drop(hub);

    // The true hub finds it as it was, and the warning ends with the first true answer.
    line.world.hub.start_again();
    line.change_greeting("Line three");
    line.await_converged(FIRST);
    await_true("the warning is over", SOON, || line.seen()["warnings"].as_array().is_none_or(Vec::is_empty));
    assert_eq!(line.seen()["name"], HOST);
}
