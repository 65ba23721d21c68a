//! Looking back: what changed when, by whom and why, also on a cluster that was away; and the way of a commit.

use kedge_model::wire::Timestamp;
use kedge_status::Condition;
use kedge_tests::lab::await_some;
use kedge_tests::world::cluster::{Cluster, now, report};
use kedge_tests::world::{Database, SOON, World};
use serde_json::Value;

use crate::each_database::on_each_database;

on_each_database![
    an_agent_that_was_offline_delivers_its_past_with_the_true_times,
    the_way_of_a_commit_leads_from_git_to_converged_clusters,
];

const HOUR: i64 = 3_600_000;
const ASSIGNMENT: &str = "hello-functional-test";

fn moment(value: &Value) -> i64 {
    let text = value.as_str().unwrap();
    let seconds = std::process::Command::new("date").args(["-u", "-d", text, "+%s%3N"]).output().unwrap();
    String::from_utf8_lossy(&seconds.stdout).trim().parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Says something of the assignment that was so long ago, by a clock of its own.
fn say(drone: &mut Cluster, condition: Condition, at: i64, clock: u64) {
    let state = drone.agent.state.clone().unwrap();
    let key = state.entries[0].packages_key();
    let mut said = report(condition, Some(key), Some(key), state.generation);
    (said.since, said.observed_at, said.clock) = (Timestamp(at), Timestamp(at), clock);
    drone.set(ASSIGNMENT, said);
}

fn an_agent_that_was_offline_delivers_its_past_with_the_true_times(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    drone.converge();

    // For three days nobody hears of it. It fails, and recovers after a restart with a clock that is five hours slow.
    let gone = now().0;
    let failed = Condition::Failed { reason: "HealthCheck".into(), message: "the unit doesn't answer".into() };
    say(&mut drone, Condition::Converging, gone - 70 * HOUR, 0);
    say(&mut drone, failed, gone - 69 * HOUR, 0);
    say(&mut drone, Condition::Converged, gone - 30 * HOUR - 5 * HOUR, 2);
    drone.document.set_clock(2, 5 * HOUR, now()).unwrap();
    drone.send().unwrap();
    // The same once more, and once more after something else changed: nothing is told twice.
    drone.send().unwrap();
    drone.document.set_fact("kernel", "6.1", now()).unwrap();
    drone.send().unwrap();

    let told = world.api.list("/api/v1/history?cluster=drone-1&kind=condition");
    let of = |item: &Value| (item["event"].as_str().unwrap().to_owned(), moment(&item["at"]));
    let past: Vec<(String, i64)> = told.iter().map(of).collect();
    assert_eq!(past.len(), 4, "{told:#?}");
    assert_eq!(past[0].0, "Converged");
    assert_eq!(past[1], ("Converged".to_owned(), gone - 30 * HOUR));
    assert_eq!(past[2], ("Failed".to_owned(), gone - 69 * HOUR));
    assert_eq!(past[3], ("Converging".to_owned(), gone - 70 * HOUR));
    let flag = |name: &str| told.iter().map(|item| item[name] == true).collect::<Vec<_>>();
    assert_eq!(flag("late"), [false, true, true, true]);
    assert_eq!(flag("corrected"), [false, true, false, false]);
    for item in &told {
        assert_eq!((&item["workload"], &item["clusterName"]), (&"hello".into(), &"drone-1".into()), "{item}");
        assert_eq!(item["assignment"], "drone/hello-functional-test");
    }

    // The same through the command line, and what people and the hub did around it.
    let shown = world.kedge.run(["history", "--cluster", "drone-1", "--since", "4d"]);
    assert!(shown.contains("failed on drone-1: HealthCheck") && shown.contains("(late)"), "{shown}");
    let recent = world.kedge.run(["history", "--cluster", "drone-1", "--kind", "condition", "--since", "1h"]);
    assert!(!recent.contains("failed"), "{recent}");
    for kind in ["generation", "publish", "cluster", "audit"] {
        let found = world.api.list(&format!("/api/v1/history?kind={kind}"));
        assert!(!found.is_empty(), "{kind}");
        assert!(found.iter().all(|item| !item["title"].as_str().unwrap().is_empty()), "{found:?}");
    }
    let joined = world.api.list("/api/v1/history?kind=cluster&cluster=drone-1");
    assert_eq!(joined.last().unwrap()["title"], "drone-1 joined dev/drone/all");

    // After a restart it is all there.
    let mut world = world;
    world.hub.stop();
    world.hub.start_again();
    assert_eq!(world.api.list("/api/v1/history?cluster=drone-1&kind=condition").len(), 4);
}

fn the_way_of_a_commit_leads_from_git_to_converged_clusters(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    drone.converge();
    let commit = world.sample.change_drones("Quadcopter");
    drone.await_generation(2);
    drone.converge();

    let path = format!("/api/v1/history/commits/{}", &commit[..10]);
    let way = await_some("the commit is converged", SOON, || {
        let answer =
            world.api.try_ask(http::Method::GET, &path, None, &[]).ok().filter(|answer| answer.status == 200)?;
        let way = answer.json();
        let steps = way["items"].as_array()?.clone();
        steps.iter().any(|step| step["step"] == "converged").then_some(way)
    });
    assert_eq!(way["commit"], commit.as_str());
    let steps: Vec<&str> = way["items"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    for step in ["pushed", "read", "scheduled", "published", "packed", "issued", "firstConverged", "converged"] {
        assert_eq!(steps.iter().filter(|known| **known == step).count(), 1, "{step} in {way:#}");
    }
    let at: Vec<i64> = way["items"].as_array().unwrap().iter().map(|step| moment(&step["at"])).collect();
    assert!(at.is_sorted(), "{way:#}");
    let shown = world.kedge.run(["history", "commit", &commit[..10]]);
    assert!(shown.contains("firstConverged") && shown.contains(&commit), "{shown}");
    let listed = world.kedge.json(["history", "--workload", "hello", "--kind", "generation"]);
    assert!(listed.to_string().contains("drone/hello-functional-test"), "{listed}");
    assert_eq!(world.api.status_of("/api/v1/history/commits/ffffffffffff"), 404);
}
