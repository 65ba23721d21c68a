//! A site that splits and heals, and a host that was off meanwhile: whoever comes back gets the newest from its peers.

use crate::hall::{Hall, name};

#[test]
fn halves_of_a_site_go_on_alone_and_meet_again_with_the_newest() {
    let Some(mut hall) = Hall::start(4) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1, 2, 3]);
    let before = hall.plant.text_on(&name(0)).expect("it runs");

    hall.plant.agents[1].stop();
    hall.site.split(&[2, 3]);
    hall.plant.push_app("dev", "version 2");
    hall.await_text(&[0], "version 2");
    for host in [2, 3] {
        assert_eq!(hall.plant.text_on(&name(host)).as_deref(), Some(before.as_str()), "it goes on as it was");
    }
    hall.plant.push_app("dev", "version 3");
    hall.await_text(&[0], "version 3");

    hall.site.heal();
    // The one that was off has missed two versions.
    hall.plant.agents[1].start_again();
    hall.await_text(&[1, 2, 3], "version 3");
    hall.await_converged(&[0, 1, 2, 3]);
}
