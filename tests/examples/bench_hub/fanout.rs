//! Ten thousand agents hold polls over mTLS in one process, and a state of about 8 kB changes.

use std::time::{Duration, Instant};

use kedge_model::wire::{DesiredState, Envelope, Generation};
use kedge_tests::agent::crowd::Crowd;
use kedge_tests::lab::await_true;
use kedge_tests::world::cluster::{block_on, now};
use kedge_tests::world::{Database, World, large};

use super::{Figures, hub_memory, metric, rounded, scaled};

const AGENTS: usize = 10_000;

/// Nine entries make a signed state of about 8 kB.
const ASSIGNMENTS: usize = 9;

/// Joining and connecting take their time on two cores; that isn't measured.
const PREPARED_WITHIN: Duration = Duration::from_secs(600);

pub fn measure(scale: f64, figures: &mut Figures) {
    let count = scaled(AGENTS, scale);
    let mut world = World::prepare(Database::Sqlite, |settings, _| {
        // Longer than the measurement: nobody comes back by himself.
        settings.wait = "10m".to_owned();
        settings.agents.push("max_connections = 60000".to_owned());
    })
    .expect("a hub");
    world.sample.grow(ASSIGNMENTS);
    world.hub.start_again();
    world.meet();
    world.await_generation("dev", large::CLUSTER_TYPE, 1);
    let token = world.token(large::CLUSTER_TYPE, &["--uses", &count.to_string()]);

    let began = Instant::now();
    let agents = block_on(Crowd::join(&token, count)).unwrap();
    eprintln!("fanout: {count} agents joined in {:.1} s", began.elapsed().as_secs_f64());
    let before = hub_memory(&mut world, "VmRSS");
    let mut crowd = block_on(async { Crowd::start(agents) });
    block_on(crowd.all_reach(Generation(1), Instant::now()));
    await_true("all hold a poll", PREPARED_WITHIN, || metric(&world, "kedge_hub_polls_held") >= count as f64);
    let held = hub_memory(&mut world, "VmRSS");
    eprintln!(
        "fanout: {held:.0} MB with {count} polls held, {before:.0} MB before: {:.1} kB a connection",
        (held - before) * 1024.0 / count as f64
    );

    world.sample.commit_one_value("changed");
    world.sample.control_plane.push("dev");
    let took = block_on(crowd.all_reach(Generation(2), Instant::now()));
    assert!(took < Duration::MAX, "the crowd broke up");
    let ended = now();
    let stored = world.api.envelope("dev", large::CLUSTER_TYPE, 2);
    let envelope = Envelope::from_json(stored.as_bytes()).unwrap();
    let state: DesiredState = serde_json::from_slice(&envelope.payload).unwrap();
    // From the moment the hub made the state until the last agent has verified it.
    let fanout = (ended.0 - state.created_at.0) as f64 / 1000.0;
    let peak = hub_memory(&mut world, "VmHWM");
    eprintln!("fanout: a state of {} bytes reached all in {fanout:.2} s; {peak:.0} MB at most", stored.len());
    figures.insert("agents".to_owned(), count.into());
    figures.insert("fanout_s".to_owned(), rounded(fanout, 2));
    figures.insert("rss_mb".to_owned(), rounded(peak, 1));
    block_on(crowd.stop());
}
