//! How it ends, and how it doesn't begin: nothing of it stays, whoever ends it, and whatever is missing is named.

use std::fs;
use std::process::Command;

use kedge_tests::world::kedge::Kedge;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fleet::{CONVERGED_WITHIN, ENDED_WITHIN, Up, has};

#[test]
fn two_fleets_at_once_have_ports_of_their_own_and_leave_nothing() {
    let Some(mut one) = Up::start(&["--agents", "3"]) else { return };
    let mut two = Up::start(&["--agents", "3"]).expect("as the first");
    let addresses = [one.await_event("ready", CONVERGED_WITHIN), two.await_event("ready", CONVERGED_WITHIN)];
    assert_ne!(addresses[0]["api"], addresses[1]["api"]);
    one.await_event("converged", CONVERGED_WITHIN);
    two.await_event("converged", CONVERGED_WITHIN);
    assert!(one.end(Signal::SIGTERM).success());
    one.assert_gone(false);
    // As when its terminal goes.
    assert!(two.end(Signal::SIGHUP).success());
    two.assert_gone(false);
}

#[test]
fn killed_without_a_word_it_takes_its_parts_with_it() {
    let Some(mut up) = Up::start(&["--agents", "3"]) else { return };
    up.await_event("converged", CONVERGED_WITHIN);
    assert!(up.process("kedge-agent") > 0);
    up.end(Signal::SIGKILL);
    up.await_no_process();
}

#[test]
fn a_hub_that_dies_is_told_with_the_last_lines_of_its_log() {
    let Some(mut up) = Up::start(&["--agents", "1"]) else { return };
    up.await_event("converged", CONVERGED_WITHIN);
    kill(Pid::from_raw(up.process("kedge-hub")), Signal::SIGKILL).unwrap();
    let status = kedge_tests::lab::await_some("it ends", ENDED_WITHIN, || up.part.exit_status());
    assert_eq!(status.code(), Some(1));
    let log = up.part.log();
    assert!(log.contains("Error: the hub has ended by itself (killed by SIGKILL)"), "{log}");
    assert!(log.contains("INFO") && log.contains("Hint: with --keep"), "{log}");
    up.assert_gone(false);
}

#[test]
fn without_a_network_it_is_the_same() {
    let up_in_a_net = ["-n", "sh", "-c", "ip link set lo up"];
    if !has("unshare", &up_in_a_net) {
        return;
    }
    let Some(kedge) = Kedge::new("") else { return };
    let outer = tempfile::tempdir().unwrap();
    let program = kedge.command(["--version"]).get_program().to_owned();
    let script = "ip link set lo up && exec \"$0\" up -o json --agents 3 fleet";
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", script]).arg(program).current_dir(outer.path()).env("HOME", outer.path());
    let mut part = kedge_tests::lab::part::Part::start("kedge up", &mut command, &outer.path().join("up.log"));
    part.await_line("\"event\":\"converged\"", CONVERGED_WITHIN);
    assert!(part.stop(Signal::SIGINT, ENDED_WITHIN).success());
    assert!(!outer.path().join("fleet").exists());
}

#[test]
fn a_missing_program_is_named_with_the_way_out() {
    let Some(kedge) = Kedge::new("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("kedge");
    fs::copy(kedge.command(["--version"]).get_program(), &alone).unwrap();
    let output =
        Command::new(&alone).arg("up").arg(folder.path().join("fleet")).env("PATH", "/usr/bin:/bin").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Error: the program `kedge-hub` isn't beside `kedge`"), "{said}");
    assert!(said.contains("Hint: in a clone of the project `./up` builds all three"), "{said}");
    assert!(!folder.path().join("fleet").exists());
}
