//! What people type: commands in bulk reach every member once, and `watch` tells the way and ends.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::{A_WHILE, CANARIES, OTHERS, rings_of, tighten, with_rings};

const FREEZE: &str = "freezes: [{from: 2020-01-01, to: 2120-01-01, timeZone: UTC, reason: inventory}]";

/// The streams of `with_rings`.
const STREAMS: [(&str, &str); 4] = [(LINE, "canary"), (LINE, "rest"), (PRESS, "canary"), (PRESS, "rest")];

/// Generation and restart counter of each stream.
fn numbers(plant: &Plant) -> Vec<(u64, u64)> {
    let number = |(cluster_type, ring): (&str, &str)| {
        let (generation, entry) = plant.entry("dev", cluster_type, ring).unwrap();
        (generation, entry["restart"].as_u64().unwrap_or_default())
    };
    STREAMS.into_iter().map(number).collect()
}

/// How many desired states each box has taken so far.
fn taken(plant: &Plant) -> Vec<usize> {
    plant.agents.iter().map(|agent| agent.log().matches("new desired state").count()).collect()
}

/// So many boxes take one more than before, and nobody two.
#[track_caller]
fn await_one_more(plant: &Plant, before: &[usize], boxes: usize) {
    let more =
        |plant: &Plant| -> Vec<usize> { taken(plant).iter().zip(before).map(|(now, then)| now - then).collect() };
    plant.await_so("they take it", MOVED_WITHIN, |plant| more(plant).iter().sum::<usize>() >= boxes);
    plant.stays_so("each takes it once", A_WHILE, |plant| {
        let more = more(plant);
        more.iter().all(|more| *more <= 1) && more.iter().sum::<usize>() == boxes
    });
}

/// `kedge rollout watch` in a terminal of its own.
fn watch(plant: &Plant, more: &[&str]) -> Child {
    let arguments = [&["rollout", "watch"], more].concat();
    plant.world.kedge.command(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// Its lines and its exit code, once it has ended.
fn ended(mut watch: Child) -> (Vec<String>, i32) {
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap).collect();
    (lines, watch.wait().unwrap().code().unwrap_or(-1))
}

#[test]
fn a_restart_reaches_every_member_once_and_a_reapply_those_that_failed() {
    let Some(mut plant) = with_rings(Policy::chain(&["dev"]).with("dev", &["failure: {budget: 100%}"])) else { return };
    let (before, states) = (numbers(&plant), taken(&plant));
    let said = plant.world.kedge.try_run(["restart", "-e", "dev", "--workload", "hello", "--reason", "a leak"]);
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("in 4 streams"), "{}", said.stderr);
    await_one_more(&plant, &states, plant.agents.len());
    plant.await_converged("dev");
    let once: Vec<(u64, u64)> = before.iter().map(|(generation, restart)| (generation + 1, restart + 1)).collect();
    assert_eq!(numbers(&plant), once, "one generation more, and one restart");

    // One box fails: what is asked of its stream is asked of nobody else.
    plant.agent(OTHERS[0]).write("sick-of", "version 2\n");
    plant.push_app("dev", "version 2");
    plant.await_condition(OTHERS[0], "Failed");
    plant.await_text(&CANARIES, "version 2");
    plant.await_text(&OTHERS[1..], "version 2");
    plant.agent(OTHERS[0]).remove("sick-of");
    let (before, states) = (numbers(&plant), taken(&plant));
    plant.world.kedge.run(["reapply", "-e", "dev", "--workload", "hello", "--now", "--reason", "mended"]);
    plant.await_text(&OTHERS[..1], "version 2");
    plant.await_converged("dev");
    let after = numbers(&plant);
    let raised: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before.1 != after.1).collect();
    assert_eq!(raised, [false, true, false, false], "{before:?} {after:?}");
    // The stream of the box that failed has three.
    await_one_more(&plant, &states, 3);
}

#[test]
fn now_goes_through_a_freeze_on_every_member_once_and_watch_tells_the_way_and_ends() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    tighten(&plant, &rings_of(Policy::chain(&["dev"]).with("dev", &[FREEZE, "soak: 2s"])));
    let before = numbers(&plant);
    let commit = plant.push_app("dev", "version 2");
    let rollout = plant.await_rollout("dev", &commit, "Active");
    let id = rollout["id"].to_string();
    plant.await_so("it says why it waits", MOVED_WITHIN, |plant| {
        plant.status("dev", &["--source-commit", &commit]).stdout.contains("inventory")
    });
    let follower = watch(&plant, &["-e", "dev", "--source-commit", &commit]);
    plant.stays_so("the freeze holds", A_WHILE, |plant| {
        CANARIES.iter().chain(&OTHERS).all(|name| plant.text_on(name).as_deref() == Some("version 1"))
    });

    plant.world.kedge.run(["rollout", "now", &id, "--reason", "the inventory is over early"]);
    let (lines, code) = ended(follower);
    assert_eq!(code, 0, "{lines:#?}");
    assert!(lines.len() >= 3, "it tells the way: {lines:#?}");
    assert!(lines[0].contains("not complete"), "{lines:#?}");
    let last = lines.last().unwrap();
    assert!(last.starts_with("7 of 7: 7 converged") && last.ends_with("complete"), "{lines:#?}");
    assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "each change once: {lines:#?}");
    plant.await_text(&CANARIES, "version 2");
    plant.await_text(&OTHERS, "version 2");
    let once: Vec<(u64, u64)> = before.iter().map(|(generation, restart)| (generation + 1, *restart)).collect();
    assert_eq!(numbers(&plant), once, "each stream got one new generation");

    // What can't become complete by itself ends it too, with another code.
    let bad = plant.push_app("dev", "sick version");
    let rollout = plant.await_rollout("dev", &bad, "Active");
    let follower = watch(&plant, &[&rollout["id"].to_string(), "-o", "json"]);
    plant.world.kedge.run(["rollout", "now", &rollout["id"].to_string(), "--reason", "to see it"]);
    let (lines, code) = ended(follower);
    assert_eq!(code, 3, "{lines:#?}");
    let last: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!((&last["ended"], &last["complete"]), (&true.into(), &false.into()), "{last}");
    assert!(last["headline"].as_str().is_some_and(|line| line.contains("failed (HealthCheck")), "{last}");
}
