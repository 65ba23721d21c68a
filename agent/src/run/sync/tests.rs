//! The loop against a fake hub and a fake applier, in simulated time: a folder, an inotify and ledgers are real.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod fake;

use std::time::Duration;

use fake::{World, entry};
use kedge_model::wire::{Mode, Timestamp, Tombstone};

use crate::airgap::inbox::Inbox;
use crate::airgap::looked;
use crate::drift::Subject;
use crate::holds::Holds;
use crate::objects::Objects;
use crate::report;

#[tokio::test(start_paused = true)]
async fn a_new_state_is_fetched_applied_and_reported_once() {
    let world = World::new();
    world.hub.publish(1, vec![entry("web"), entry("db")]);
    world
        .run(async {
            world.applied("web").await;
            world.hub.until(|hub| hub.condition("web") == "Converged" && hub.condition("db") == "Converged").await;
            let sent = world.hub.sent();
            tokio::time::sleep(Duration::from_secs(6 * 3600)).await;
            assert_eq!(world.hub.sent(), sent, "an idle host has nothing to say");
            assert!(world.hub.polls() > 300);
            assert_eq!(world.hub.last_poll().generation.0, 1);
            assert!(world.hub.last_poll().look_age < 600);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_changes_after_a_restart_is_told_although_the_hub_has_no_news() {
    let world = World::new();
    world.hub.publish(1, vec![entry("web")]);
    world.run(world.hub.until(|hub| hub.condition("web") == "Converged")).await;
    world.drift_every(1);
    world
        .run(async {
            let sent = world.hub.sent();
            let began = tokio::time::Instant::now();
            world.hub.until(|hub| hub.sent.len() > sent).await;
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn weeks_without_the_hub_end_in_one_small_sync() {
    let world = World::new();
    world.hub.publish(1, vec![entry("web")]);
    world
        .run(async {
            world.hub.until(|hub| hub.condition("web") == "Converged").await;
            let before = world.hub.sent();
            world.hub.set_down(true);
            world.drift_every(1000);
            tokio::time::sleep(Duration::from_secs(21 * 86_400)).await;
            let changes = world.drifts();
            assert!(changes >= 3, "{changes}");
            world.drift_every(0);
            world.hub.set_down(false);
            world.hub.until(|hub| hub.sent.len() > before && hub.condition("web") == "Converged").await;
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert_eq!(world.hub.sent(), before + 1);
            let (bytes, events) = world.hub.last_document();
            assert!(bytes < 8192, "{bytes}");
            assert!(events >= changes * 2, "the history has {events} events of {changes} drifts");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_forged_state_changes_nothing_and_is_told() {
    let world = World::new();
    world.hub.publish(1, vec![entry("web")]);
    world
        .run(async {
            world.hub.until(|hub| hub.condition("web") == "Converged").await;
            let jobs = world.jobs();
            world.hub.forge(2, Vec::new());
            world.hub.until(|hub| hub.warning("StateRefused")).await;
            let polls = world.hub.polls();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(world.jobs(), jobs);
            assert_eq!(world.hub.last_poll().generation.0, 1);
            assert!(world.hub.polls() - polls < 100, "a hub that repeats itself is asked ever more slowly");
            world.hub.publish(3, vec![entry("web")]);
            world.hub.until(|hub| !hub.warning("StateRefused")).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn polls_go_on_while_the_applier_works() {
    let world = World::new();
    world.block("slow");
    world.hub.publish(1, vec![entry("slow")]);
    world
        .run(async {
            world.begun("slow").await;
            let polls = world.hub.polls();
            world.hub.until(|hub| hub.polls.len() > polls + 5).await;
            world.release();
            world.hub.until(|hub| hub.condition("slow") == "Converged").await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_held_assignment_is_left_alone_until_it_is_released() {
    let world = World::new();
    let holds = Holds::of(&world.paths);
    holds.hold(world.key(), "web", "mia", "new sensor", Timestamp(1)).unwrap();
    world.hub.publish(1, vec![entry("web"), entry("db")]);
    world
        .run(async {
            world.applied("db").await;
            world.hub.until(|hub| hub.held("web") && hub.condition("web") == "Converging").await;
            assert!(!world.jobs().iter().any(|job| job == "apply web"), "{:?}", world.jobs());
            holds.unhold(world.key(), "web", Timestamp(2)).unwrap();
            world.applied("web").await;
            world.hub.until(|hub| !hub.held("web")).await;
            assert!(world.jobs().contains(&"retry web".to_owned()));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_touched_right_after_a_hold_is_left_alone() {
    let world = World::new();
    let (_stop, mut agent, mut sync_loop) = world.furnish();
    Holds::of(&world.paths).hold(world.key(), "web", "mia", "new sensor", Timestamp(1)).unwrap();
    assert!(sync_loop.held.is_empty());
    sync_loop.notice(&[Subject::Assignment("web".to_owned())].into(), &mut agent);
    assert_eq!(sync_loop.held, ["web".to_owned()].into());
    agent.close(|_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn a_state_that_waits_for_its_turn_is_fetched_and_nothing_of_it_is_applied() {
    let world = World::new();
    world.hub.publish(1, vec![entry("web")]);
    world.run(world.hub.until(|hub| hub.condition("web") == "Converged")).await;
    let (_stop, mut agent, mut sync_loop) = world.furnish();
    let jobs = world.jobs();
    let objects = Objects::open(&world.paths.objects()).unwrap();
    let missing = |name: &str| match entry(name).mode {
        Mode::Apply(packages) => packages.blobs().any(|blob| !objects.has(&blob.digest)),
        Mode::Observe(_) => false,
    };
    assert!(missing("db"));
    sync_loop.take_news(world.hub.rumour(2, vec![entry("web"), entry("db")], None), &mut agent);
    sync_loop.refresh(&mut agent);
    let fetched = sync_loop.content.fetch.end().await;
    sync_loop.fetched(fetched);
    assert!(!missing("db"), "its content is here before its turn");
    sync_loop.refresh(&mut agent);
    sync_loop.fetch_next(&mut agent);
    assert_eq!((sync_loop.memory.request_base().generation.0, world.jobs()), (1, jobs));
    assert!(sync_loop.content.wanted().is_empty());

    let turn = world.hub.rumour(2, vec![entry("web"), entry("db")], Some(world.cluster()));
    sync_loop.take_news(turn, &mut agent);
    sync_loop.refresh(&mut agent);
    world.applied("db").await;
    assert_eq!(sync_loop.memory.request_base().generation.0, 2);
    agent.close(|_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn an_applier_that_breaks_down_is_made_again_and_the_others_go_on() {
    let world = World::new();
    world.break_once("bad");
    world.hub.publish(1, vec![entry("bad"), entry("good")]);
    world
        .run(async {
            world.hub.until(|hub| hub.condition("good") == "Converged" && hub.condition("bad") == "Converged").await;
            assert_eq!(world.made(), 2);
            world.hub.until(|hub| !hub.warning("ApplierBroke")).await;
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn content_that_cannot_be_had_stops_its_own_assignment_only() {
    let world = World::new();
    world.hub.lose("gone");
    world.hub.publish(1, vec![entry("gone"), entry("web")]);
    world
        .run(async {
            world.hub.until(|hub| hub.condition("web") == "Converged" && hub.condition("gone") == "Failed").await;
            assert!(world.jobs().contains(&"fail gone: Network".to_owned()), "{:?}", world.jobs());
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_removed_goes_and_what_is_absent_stays() {
    let world = World::new();
    world.hub.publish(1, vec![entry("a"), entry("b"), entry("c")]);
    world
        .run(async {
            world.hub.until(|hub| ["a", "b", "c"].iter().all(|name| hub.condition(name) == "Converged")).await;
            world.hub.publish_state(2, vec![entry("a")], |state| {
                state.confirmed = 2;
                state.removed = vec![Tombstone { assignment: "b".to_owned(), since: state.generation }];
            });
            world.hub.until(|hub| hub.condition("b").is_empty()).await;
            assert!(world.jobs().contains(&"remove b".to_owned()));
            assert!(!world.jobs().contains(&"remove c".to_owned()), "absence never deletes");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_told_is_on_disk_without_a_hub() {
    let world = World::new();
    world.hub.publish(1, vec![entry("web")]);
    world.run(world.hub.until(|hub| hub.condition("web") == "Converged")).await;
    world.hub.set_down(true);
    world.run(async { world.looked().await }).await;
    let shown = report::read(&*world.disk, &world.paths).unwrap().unwrap();
    assert_eq!(shown.reports["web"].condition.word(), "Converged");
}

#[tokio::test(start_paused = true)]
async fn another_label_binds_what_runs_again_once() {
    let world = World::new();
    world.hub.publish(1, vec![entry("web")]);
    world
        .run(async {
            world.applied("web").await;
            world.relabel(2);
            world.applied_times("web", 2).await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(world.jobs().iter().filter(|job| *job == "apply web").count(), 2);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_file_brought_is_followed_without_the_hub() {
    let world = World::new();
    world.hub.set_down(true);
    let (inbox, objects) = (Inbox::of(&world.paths), Objects::open(&world.paths.objects()).unwrap());
    let content = ["web", "db"].map(|name| ["platform", "workload"].map(|what| format!("{name} {what}")));
    content.iter().flatten().for_each(|bytes| _ = objects.put(bytes.as_bytes()).unwrap());
    // One lay there before the start.
    inbox.put(&world.hub.letter(1, vec![entry("web")])).unwrap();
    world
        .run(async {
            world.applied("web").await;
            inbox.put(&world.hub.letter(2, vec![entry("web"), entry("db")])).unwrap();
            world.applied("db").await;
            assert!(inbox.is_empty());
            // The same again, and an older one: neither changes anything, and only the older one is complained about.
            inbox.put(&world.hub.letter(2, vec![entry("web"), entry("db")])).unwrap();
            inbox.put(&world.hub.letter(1, vec![])).unwrap();
            world.looked().await;
            world.hub.set_down(false);
            world.hub.until(|hub| hub.condition("db") == "Converged" && hub.warning("StateRefused")).await;
            assert_eq!(world.hub.last_poll().generation.0, 2);
        })
        .await;
    assert!(looked::read(&world.paths).is_some());
}
