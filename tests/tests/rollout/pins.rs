//! One version on the named ring until its date, written to Git by the real command and shown wherever it matters.

use kedge_tests::world::plant::{LINE, MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::{CANARIES, OTHERS, moment, with_rings};

/// Long enough to look at everything while it lasts, also on a busy machine.
const LASTS: u32 = 40;

/// The application team gives its newest commit for dev a version.
fn tag(plant: &Plant, version: &str) {
    let gitops = &plant.world.sample.hello_gitops;
    gitops.git(["tag", version]);
    gitops.git(["push", "--quiet", "origin", version]);
}

#[test]
fn a_version_is_put_on_a_ring_until_its_date_and_then_the_ring_follows_again() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    plant.world.sample.hello_gitops.switch("dev");
    tag(&plant, "v1.0.0");
    let second = plant.push_app("dev", "version 2");
    tag(&plant, "v2.0.0");
    plant.await_rollout("dev", &second, "Complete");
    plant.await_text(&OTHERS, "version 2");

    let until = moment(LASTS);
    let pinned = plant.world.kedge.json([
        "rollout",
        "start",
        "-e",
        "dev",
        "--workload",
        "hello",
        "--ring",
        "canary",
        "--version",
        "1.0.0",
        "--until",
        &until,
        "--reason",
        "old cameras",
    ]);
    let file = pinned["written"]["file"].as_str().unwrap_or_else(|| panic!("{pinned}")).to_owned();
    let text = plant.world.sample.control_plane.read_remote("dev", &file).unwrap_or_else(|| panic!("{file} is in Git"));
    assert!(text.contains("kind: Pin") && text.contains("old cameras") && text.contains("1.0.0"), "{text}");
    plant.await_text(&CANARIES, "version 1");
    plant.await_so("the hub knows which version runs there", MOVED_WITHIN, |plant| {
        CANARIES.iter().all(|name| plant.seen(name)["conditions"][0]["version"] == "1.0.0")
    });
    plant.await_converged("dev");
    assert!(OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 2")), "another ring isn't asked");

    let cluster = plant.world.kedge.run(["describe", "cluster", CANARIES[0]]);
    for word in ["version 1.0.0", "old cameras", &until.replace('T', " ")] {
        assert!(cluster.contains(word), "{word}: {cluster}");
    }
    let other = plant.world.kedge.run(["describe", "cluster", OTHERS[0]]);
    assert!(!other.contains("old cameras"), "{other}");
    let assignment = format!("{LINE}/hello-line-test");
    let assignment = plant.world.kedge.run(["describe", "assignment", &assignment, "-e", "dev"]);
    assert!(assignment.contains("old cameras") && assignment.contains("canary"), "{assignment}");
    let status = plant.status("dev", &["--workload", "hello"]);
    assert!(status.stdout.contains("is pinned in canary"), "{}", status.stdout);

    // A commit that comes meanwhile goes around it, and is what the ring returns to.
    let third = plant.push_app("dev", "version 3");
    plant.await_text(&OTHERS, "version 3");
    assert_eq!(plant.text_on(CANARIES[0]).as_deref(), Some("version 1"));
    plant.await_so("its date comes, and the ring follows again", MOVED_WITHIN * 2, |plant| {
        CANARIES.iter().all(|name| plant.text_on(name).as_deref() == Some("version 3"))
    });
    plant.await_rollout("dev", &third, "Complete");
    plant.await_so("nothing is shown as pinned any more", MOVED_WITHIN, |plant| {
        !plant.world.kedge.run(["describe", "cluster", CANARIES[0]]).contains("old cameras")
    });
    // The next look at the branch says that its file can go.
    plant.push_environment("dev", "Line of dev");
    plant.await_so("its file is over, and people see that", MOVED_WITHIN, |plant| {
        plant.world.api.has_problem(&["PinExpired", &file])
    });
}

#[test]
fn a_pin_that_names_what_is_not_there_is_refused_by_the_command_and_a_problem_in_git() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let start = |more: &[&str]| {
        let begin = ["rollout", "start", "-e", "dev", "--workload", "hello", "--reason", "x"];
        plant.world.kedge.try_run([&begin, more].concat())
    };
    let ring = start(&["--ring", "nowhere", "--version", "1.0.0"]);
    assert!(ring.code != 0 && ring.stderr.contains("nowhere"), "{}", ring.stderr);

    let pin = "apiVersion: kedge.dev/v1alpha1\nkind: Pin\nmetadata: {name: astray}\nspec: {workload: hello, version: 9.9.9, rings: [nowhere]}\n";
    plant.push_file("dev", "pins/astray.yaml", pin);
    plant.await_so("the hub says that there is no such ring", MOVED_WITHIN, |plant| {
        plant.world.api.has_problem(&["UnknownName", "the ring `nowhere`", "canary, rest"])
    });
    plant.await_so("and that there is no such version", MOVED_WITHIN, |plant| {
        plant.world.api.has_problem(&["PinUnresolved", "9.9.9"])
    });
    plant.await_converged("dev");
    assert!(CANARIES.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1")));
}
