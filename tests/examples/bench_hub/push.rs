//! From `git push` to the new desired state at an agent that waits for it, in a platform of ten thousand assignments.

use std::time::{Duration, Instant};

use kedge_tests::lab::await_some;
use kedge_tests::world::{Database, World, large};

use super::{Figures, median, rounded, scaled};

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
        let (walk, programs) = await_some("the hub says how long it took", FIRST_WITHIN, || logged(&mut world, round));
        own.push(walk - programs);
        times.push(took.as_secs_f64());
        eprintln!(
            "push: {:.3} s; the person's git push took {:.3} s, the hub's walk {walk:.0} ms, of which its git programs {programs:.0} ms",
            took.as_secs_f64(),
            pushed.as_secs_f64()
        );
    }
    eprintln!(
        "push: our own part, from reading to signing and what people see, without the git programs: {:.0} ms",
        median(own)
    );
    figures.insert("push_to_desired_s".to_owned(), rounded(median(times), 3));
}

/// Milliseconds of this round's reconciliation and of the git programs in it, from the hub's log.
fn logged(world: &mut World, round: usize) -> Option<(f64, f64)> {
    let log = world.hub.part().log();
    let field = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("{name}="))?;
        rest.split_whitespace().next()?.parse::<f64>().ok()
    };
    let walks: Vec<f64> =
        log.lines().filter(|line| line.contains("rendered=1 ")).filter_map(|line| field(line, "took_ms")).collect();
    let pushes: Vec<f64> = log.lines().filter_map(|line| field(line, "programs_ms")).collect();
    // The first push was that of all assignments.
    Some((*walks.get(round)?, *pushes.get(round + 1)?))
}
