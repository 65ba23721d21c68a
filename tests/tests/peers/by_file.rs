//! The whole round by file with no link at all: from the enrolment to the status on the hub.

use kedge_tests::world::plant::{MOVED_WITHIN, Plant, assignment};
use serde_json::Value;

use crate::island::{BOX, Island};

#[test]
fn a_host_without_any_link_joins_runs_what_it_should_and_is_true_on_the_hub() {
    let Some(mut island) = Island::start() else { return };
    let authority = island.enrol();
    let again = island.host_ok(&["import", &island.on_stick("answer.kedge")]);
    assert!(again.contains("already") && again.contains(&authority), "{again}");
    let signed = island.plant.seen(BOX);
    assert!(signed["conditions"].as_array().is_none_or(Vec::is_empty), "nothing was told yet: {signed}");

    // The stick has everything: what is for others is passed over, and the order doesn't matter.
    let bundle = island.bundle("box.kedge", &[]);
    let shown = island.kedge(&["bundle", "show", &bundle]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let before = island.host_ok(&["import", &island.stick.path().display().to_string()]);
    assert!(before.contains("desired state") && before.contains("doesn't run"), "{before}");
    assert!(before.contains("passed over, it is a host's request"), "{before}");
    island.host.start_again();
    island.await_text("version 1");

    // The delivery comes later than what it tells.
    island.host_ok(&["export", "-o", &island.on_stick("status.kedge")]);
    let told = island.kedge(&["bundle", "show", &island.on_stick("status.kedge"), "-o", "json"]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|e| panic!("{e}: {told:?}"));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let brought = island.kedge(&["status", "import", &island.on_stick("status.kedge")]);
    assert_eq!(brought.code, 0, "{brought:?}");
    assert!(brought.stdout.contains("presence") && brought.stdout.contains("taken"), "{brought:?}");
    island.plant.await_condition(BOX, "Converged");
    island
        .plant
        .await_so("the hub says who brought it", MOVED_WITHIN, |plant| plant.seen(BOX)["via"]["name"] == "file");
    let seen = island.plant.seen(BOX);
    let shown = island.kedge(&["describe", "cluster", BOX]);
    assert!(shown.stdout.contains("file, observed at"), "{shown:?}");

    // The observation's time counts, not the delivery's: the same file again changes nothing.
    let observed = seen["lastContact"].as_str().unwrap().to_owned();
    assert_eq!(told["createdAt"].as_str(), Some(observed.as_str()), "when it was said: {told}");
    let again = island.kedge(&["status", "import", &island.on_stick("status.kedge")]);
    assert!(again.code == 0 && again.stderr.contains("0 taken"), "{again:?}");
    assert_eq!(island.plant.seen(BOX)["lastContact"].as_str(), Some(observed.as_str()));

    // The next version, without what the box is known to run, in parts.
    let generation = island.plant.entry("dev", kedge_tests::world::plant::LINE, "all").unwrap().0;
    island.plant.push_app("dev", "version 2");
    island.plant.await_so("the hub wants version 2", MOVED_WITHIN, |plant| {
        plant.entry("dev", kedge_tests::world::plant::LINE, "all").is_some_and(|(now, _)| now > generation)
    });
    let whole = blobs(&island, &island.bundle("whole.kedge", &[]));
    let small = island.bundle("small.kedge", &["--since", "reported", "--split", "2KiB"]);
    assert!(blobs(&island, &small) < whole);
    assert!(!std::path::Path::new(&small).exists() && std::path::Path::new(&format!("{small}.002")).exists());
    island.host_ok(&["import", &format!("{small}.001")]);
    island.await_text("version 2");
    island.tell();
    island.plant.await_so("the hub knows of version 2", MOVED_WITHIN, |plant| {
        let seen = plant.seen(BOX);
        let conditions = seen["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| {
            one["assignment"] == assignment("dev")
                && one["condition"] == "Converged"
                && one["running"] == one["desired"]
        })
    });
    assert!(!island.host.log().contains("the hub answers"), "it was never reached");
}

#[test]
fn a_hold_of_a_technician_and_one_of_the_hub_cross_the_gap() {
    let Some(island) = Island::settled() else { return };
    let name = assignment("dev");
    island.host_ok(&["hold", name, "--reason", "new lens"]);
    island.tell();
    island
        .plant
        .await_so("the hub shows the hold", MOVED_WITHIN, |plant| plant.seen(BOX).to_string().contains("new lens"));
    island.host_ok(&["unhold", name]);
    let held = island.kedge(&["hold", BOX, name, "--reason", "audit"]);
    assert_eq!(held.code, 0, "{held:?}");
    let said = island.host_ok(&["import", &island.bundle("holds.kedge", &["--since", "reported"])]);
    assert!(said.contains("holds of people at the hub"), "{said}");
    island.plant.await_so("the box obeys", MOVED_WITHIN, |_| {
        island.host.status().unwrap_or_default().to_string().contains("audit")
    });
}

#[test]
fn new_keys_of_the_hub_and_a_stick_that_was_away_for_long_are_followed() {
    let Some(island) = Island::settled() else { return };
    let old = island.bundle("old.kedge", &[]);
    rotate(&island.plant);
    island.plant.await_so("the hub follows", MOVED_WITHIN, |_| {
        let shown = island.kedge(&["bundle", "show", &island.bundle("new.kedge", &[]), "-o", "json"]);
        shown.stdout.contains("\"keySet\": 3")
    });
    let said = island.host_ok(&["import", &island.bundle("new.kedge", &[])]);
    assert!(said.contains("key set 3"), "{said}");
    let said = island.host_ok(&["import", &old]);
    assert!(said.contains("nothing new"), "an older bundle of the same hub is still the hub's: {said}");
}

fn blobs(island: &Island, bundle: &str) -> usize {
    let shown = island.kedge(&["bundle", "show", bundle, "-o", "json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap_or_else(|e| panic!("{e}: {shown:?}"));
    shown["blobs"].as_array().unwrap().len()
}

/// The hub signs with a new key from now on.
pub fn rotate(plant: &Plant) {
    let listed = keys(plant, &["announce"]);
    let announced = |line: &&str| line.starts_with("signing") && line.contains("announced");
    let id = listed.lines().find(announced).and_then(|line| line.split_whitespace().nth(1)).expect("one was announced");
    keys(plant, &["activate", id]);
}

/// The hub's own command beside it.
#[track_caller]
fn keys(plant: &Plant, step: &[&str]) -> String {
    let hub = &plant.world.hub;
    let mut command = std::process::Command::new(hub.command("keys").get_program());
    let ran = command.arg("keys").args(step).arg("--config").arg(hub.config()).output().unwrap();
    assert!(ran.status.success(), "{step:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}
