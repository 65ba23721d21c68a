//! A site that splits and heals, and a host that was off meanwhile: whoever comes back gets the newest from its peers.

use kedge_tests::lab::await_or_tell;
use kedge_tests::world::plant::Plant;

use super::uplink::{SETTLED, name, plant, story};

fn await_text(plant: &Plant, hosts: &[usize], text: &str) {
    let runs = |host: &usize| plant.text_on(&name(*host)).as_deref() == Some(text);
    await_or_tell(&format!("{hosts:?} run {text:?}"), SETTLED, || story(plant), || hosts.iter().all(runs));
}

fn await_converged(plant: &Plant, hosts: &[usize]) {
    let converged = |host: &usize| plant.condition(&name(*host)) == "Converged";
    await_or_tell(
        &format!("{hosts:?} are Converged on the hub"),
        SETTLED,
        || story(plant),
        || hosts.iter().all(converged),
    );
}

#[test]
fn halves_of_a_site_go_on_alone_and_meet_again_with_the_newest() {
    let Some((site, mut plant)) = plant(4) else { return };
    site.set_uplink(0, true);
    plant.agents.iter_mut().for_each(|agent| agent.start_again());
    await_converged(&plant, &[0, 1, 2, 3]);
    let before = plant.text_on(&name(0)).expect("it runs");

    plant.agents[1].stop();
    site.split(&[2, 3]);
    plant.push_app("dev", "version 2");
    await_text(&plant, &[0], "version 2");
    for host in [2, 3] {
        assert_eq!(plant.text_on(&name(host)).as_deref(), Some(before.as_str()), "it goes on as it was");
    }
    plant.push_app("dev", "version 3");
    await_text(&plant, &[0], "version 3");

    site.heal();
    // The one that was off has missed two versions.
    plant.agents[1].start_again();
    await_text(&plant, &[1, 2, 3], "version 3");
    await_converged(&plant, &[0, 1, 2, 3]);
}
