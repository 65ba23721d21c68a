//! Holds that people make at one agent of a site for another, with no hub in reach.

use std::collections::BTreeSet;
use std::time::Duration;

use kedge_tests::world::SOON;
use kedge_tests::world::plant::assignment;

use crate::hall::{Hall, name};

const HELD: usize = 2;
const REASONS: [&str; 2] = ["new lens", "audit"];

/// Why it is held there, by its own word.
fn reasons(hall: &Hall) -> BTreeSet<String> {
    let status = hall.plant.agents[HELD].status().unwrap_or_default();
    let holds = status["holds"].as_array().cloned().unwrap_or_default();
    holds.iter().filter_map(|hold| hold["reason"].as_str()).map(str::to_owned).collect()
}

#[test]
fn holds_of_two_agents_reach_a_third_without_a_hub_and_each_is_taken_back_by_itself() {
    let Some(mut hall) = Hall::start(3) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1, 2]);
    let (held, target) = (assignment("dev"), name(HELD));
    let before = hall.plant.text_on(&target).expect("it runs");

    hall.await_so("all know each other by name", SOON, |hall| (0..2).all(|host| hall.knows(host, &target)));
    hall.site.cable.as_ref().expect("the hub has a cable").cut();
    for (host, reason) in REASONS.iter().enumerate() {
        let said = hall.on(host, &["hold", "--cluster", &target, held, "--reason", reason]);
        assert!(said.code == 0 && said.stdout.contains(&target), "{said:?}");
    }
    let both: BTreeSet<String> = REASONS.map(str::to_owned).into();
    hall.await_so("both are in force", SOON, |hall| reasons(hall) == both);

    // Others take what comes; it doesn't.
    hall.plant.push_app("dev", "version 2");
    hall.site.cable.as_ref().expect("the hub has a cable").mend();
    hall.await_text(&[0, 1], "version 2");
    let stays = |hall: &Hall| hall.plant.text_on(&target).as_ref() == Some(&before);
    hall.await_so("the hub knows both, and that they are obeyed", SOON * 2, |hall| {
        let holds = hall.plant.seen(&target)["holds"].as_array().cloned().unwrap_or_default();
        let obeyed = holds.iter().filter(|hold| hold["writer"] == "peer" && hold["obeyed"] == true);
        stays(hall) && obeyed.filter_map(|hold| hold["reason"].as_str()).collect::<BTreeSet<_>>().len() == 2
    });
    let shown = hall.plant.world.kedge.run(["describe", "cluster", &target]);
    assert!(REASONS.iter().all(|reason| shown.contains(reason)), "{shown}");
    let told = |hall: &Hall| hall.plant.world.kedge.run(["history", "--cluster", &target, "--kind", "cluster"]);
    let history = told(&hall);
    assert!(REASONS.iter().all(|reason| history.contains(&format!(": {reason}"))), "{history}");

    // One is taken back where it was made: the other one stays.
    let unhold = ["unhold", "--cluster", &target, held];
    assert_eq!(hall.on(0, &unhold).code, 0);
    hall.await_so("one is in force", SOON, |hall| reasons(hall) == BTreeSet::from([REASONS[1].to_owned()]));
    hall.stays_so("it is as it was", Duration::from_secs(3), stays);
    assert_eq!(hall.on(1, &unhold).code, 0);
    hall.await_text(&[HELD], "version 2");
    hall.await_converged(&[HELD]);
    hall.await_so("the history tells both ends", SOON, |hall| told(hall).matches("is no longer held").count() == 2);

    // Somebody takes an agent away and holds from there. The hub lifts it, and its word comes through the site.
    assert_eq!(hall.on(1, &["hold", "--cluster", &target, held, "--reason", "stolen", "--for", "2d"]).code, 0);
    hall.await_so("the hub knows that it is obeyed", SOON * 2, |hall| {
        let holds = hall.plant.seen(&target)["holds"].as_array().cloned().unwrap_or_default();
        holds.iter().any(|hold| hold["writer"] == "peer" && hold["obeyed"] == true && hold["reason"] == "stolen")
    });
    let status = hall.plant.agents[HELD].status().unwrap_or_default();
    let left = status["holds"][0]["endsInSeconds"].as_u64().unwrap_or_default();
    assert!((86_400..=172_800).contains(&left), "it lasts what its maker said: {status}");
    hall.plant.push_app("dev", "version 3");
    hall.await_text(&[0, 1], "version 3");
    let lift = ["unhold", &target, held, "--peers", "--reason", "it was stolen"];
    hall.plant.world.kedge.run(lift);
    hall.await_text(&[HELD], "version 3");
    assert!(reasons(&hall).is_empty());
}
