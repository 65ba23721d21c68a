//! Parts end with their test, and only their own.

use std::process::Command;
use std::time::Duration;

use kedge_tests::lab::await_true;
use kedge_tests::lab::part::Part;
use nix::sys::signal::Signal;

const SOON: Duration = Duration::from_secs(10);

fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended: its parent just hasn't looked yet.
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_dropped_part_takes_its_children_along() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut part = Part::start("family", Command::new("sh").args(["-c", "sleep 600 & echo child $!; wait"]), &log);
    let line = part.await_line("child", SOON);
    let child = line.rsplit(' ').next().unwrap().to_owned();
    assert!(runs(&child));
    drop(part);
    await_true("the child ends", SOON, || !runs(&child));
}

#[test]
fn a_polite_signal_ends_a_part_with_its_own_status() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    let mut part = Part::start("polite", Command::new("sh").args(["-c", script]), &folder.path().join("log"));
    part.await_line("ready", SOON);
    assert_eq!(part.stop(Signal::SIGTERM, SOON).code(), Some(7));
}

/// The helper process starts a part and is killed; the part must not stay behind.
#[test]
fn a_killed_test_leaves_no_part_behind() {
    if let Some(log) = std::env::var_os("KEDGE_LAB_PART_LOG") {
        let part = Part::start("orphan", Command::new("sleep").arg("600"), log.as_ref());
        println!("part {}", part.pid());
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "lab_part::a_killed_test_leaves_no_part_behind", "--nocapture"]);
    test.env("KEDGE_LAB_PART_LOG", folder.path().join("orphan.log"));
    let mut test = Part::start("test", &mut test, &folder.path().join("log"));
    let line = test.await_line("part ", SOON);
    let orphan = line.rsplit(' ').next().unwrap().to_owned();
    assert!(runs(&orphan));
    test.kill();
    await_true("the part ends with its test", SOON, || !runs(&orphan));
}
