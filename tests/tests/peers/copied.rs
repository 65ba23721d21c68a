//! A copied disk: two hosts with one identity, one key and one history.

use kedge_tests::world::SOON;

use crate::hall::{Hall, SETTLED, name};

#[test]
fn a_copied_disk_is_told_by_the_hub_once_both_have_written() {
    let Some(mut hall) = Hall::start(3) else { return };
    hall.run(&[0, 1, 2]);
    hall.await_converged(&[0, 1, 2]);
    assert!(hall.plant.seen(&name(0))["clonedSince"].is_null());

    hall.plant.agents[0].stop();
    hall.plant.agents[2].stop();
    let (originals, copies) = hall.plant.agents.split_at_mut(2);
    copies[0].take_disk_of(&originals[0]);
    hall.plant.agents[0].start_again();
    hall.plant.agents[2].start_again();
    // Each writes what becomes of it on its own host.
    for version in 2..5 {
        let text = format!("version {version}");
        hall.plant.push_app("dev", &text);
        hall.await_text(&[0, 2], &text);
    }
    hall.await_so("the hub says that there are two", SETTLED, |hall| {
        hall.plant.seen(&name(0))["clonedSince"].is_string()
    });
    let listed = hall.plant.world.kedge.run(["get", "clusters"]);
    assert!(listed.lines().any(|line| line.contains(&name(0)) && line.contains("cloned")), "{listed}");
    let history = hall.plant.world.kedge.run(["history", "--cluster", &name(0)]);
    assert!(history.contains("two hosts write as"), "{history}");
    // Nobody else is concerned.
    hall.await_so("the third is as it was", SOON, |hall| hall.is_converged(1));
    assert!(hall.plant.seen(&name(1))["clonedSince"].is_null());
}
