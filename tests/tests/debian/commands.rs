//! What a technician types on the spot: it works without the daemon and without a network.

use kedge_tests::lab::host::Network;
use kedge_tests::world::line::{FIRST, Line};

#[test]
fn every_command_works_without_the_daemon_and_without_a_network() {
    let Some(mut line) = Line::start() else { return };
    line.await_converged(FIRST);
    let doctor = line.agent(&["doctor"]);
    assert_eq!(doctor.code, 0, "{}{}", doctor.stdout, doctor.stderr);

    line.host.shut_down();
    line.host.set_network(Network::Out);
    line.host.start();
    line.host.ok(&["systemctl", "stop", "kedge-agent"]);
    let said = |arguments: &[&str], code: i32, words: &[&str]| {
        let ran = line.agent(arguments);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, code, "{arguments:?}: {text}");
        for word in words {
            assert!(text.contains(word), "{arguments:?} doesn't say `{word}`:\n{text}");
        }
    };
    said(&["status"], 3, &["The agent isn't running: sudo systemctl start kedge-agent", FIRST, "Converged"]);
    said(&["why", FIRST], 0, &["tool", "Transaction"]);
    // Neither the hub nor the daemon is there, and each has its way out.
    said(&["doctor"], 3, &["hub", "systemctl start kedge-agent"]);
    said(&["logs", FIRST], 0, &[]);
    said(&["hold", FIRST, "--reason", "new sensor"], 0, &[]);
    said(&["status"], 3, &["new sensor"]);
    said(&["unhold", FIRST], 0, &[]);
    said(&["why", "hello-line-tset"], 1, &["Error:", FIRST]);
    said(&["report", "--assignment", FIRST, "--revision", "abc", "--result", "ok"], 0, &[]);
}
