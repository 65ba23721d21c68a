//! From `git push` to the new desired state at an agent that waits for it, in a platform of ten thousand assignments.

use std::time::{Duration, Instant};

use kedge_tests::lab::await_some;
use kedge_tests::world::{Database, World, large};

use super::{Figures, median, metric, rounded, scaled};

/// Its square is the number of assignments.
const SIDE: usize = 100;

const ROUNDS: usize = 7;

/// The first commit has all of them; that isn't measured here.
const FIRST_WITHIN: Duration = Duration::from_secs(1200);

pub fn measure(scale: f64, figures: &mut Figures) {
    let side = scaled(SIDE * SIDE, scale).isqrt().max(8);
    let mut world = World::prepare(Database::Sqlite, |settings, _| settings.wait = "10m".to_owned()).expect("a hub");
    world.sample.grow(side);
    let began = Instant::now();
    world.hub.start_again();
    world.meet();
    await_some("the first states", FIRST_WITHIN, || world.api.generation("dev", large::CLUSTER_TYPE));
    eprintln!("push: {} assignments from nothing in {:.1} s", side * side, began.elapsed().as_secs_f64());
    let mut waiting = world.join(large::CLUSTER_TYPE, "waiting");
    waiting.await_generation(1);
    waiting.converge();

    let (mut times, mut own) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        world.sample.commit_one_value(&format!("round-{round}"));
        let before = metric(&world, "kedge_hub_own_seconds_sum");
        let generation = waiting.agent.generation;
        let held = waiting.hold();
        let began = Instant::now();
        world.sample.control_plane.push("dev");
        let pushed = began.elapsed();
        let (next, answer) = held.answer(FIRST_WITHIN);
        answer.unwrap();
        waiting = next;
        let took = began.elapsed();
        assert!(waiting.agent.generation > generation);
        own.push(metric(&world, "kedge_hub_own_seconds_sum") - before);
        times.push(took.as_secs_f64());
        eprintln!("push: {:.3} s, of which git push took {:.3} s", took.as_secs_f64(), pushed.as_secs_f64());
    }
    eprintln!("push: our own part, without the git programs, {:.0} ms", median(own) * 1000.0);
    figures.insert("push_to_desired_s".to_owned(), rounded(median(times), 3));
}
