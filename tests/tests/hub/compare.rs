//! What a change would do, asked of the hub before it is merged; and two environments next to each other, before and after a
//! promotion, and at two times.

use std::time::Instant;

use kedge_tests::lab::await_true;
use kedge_tests::world::{Database, SOON, World};
use serde_json::{Value, json};

use crate::each_database::on_each_database;

on_each_database![
    a_branch_is_planned_with_its_assignments_and_clusters_and_changes_nothing,
    environments_differ_until_the_commit_is_promoted_and_the_past_stays_comparable,
];

const DRONES: &str = "cluster-types/north/drone/config.yaml";

fn a_branch_is_planned_with_its_assignments_and_clusters_and_changes_nothing(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    let generation = world.api.generation("dev", "drone");

    // A value on a branch that nobody merged.
    let control_plane = &world.sample.control_plane;
    control_plane.switch("dev");
    control_plane.create_branch("quad");
    let text = std::fs::read_to_string(control_plane.path(DRONES)).unwrap();
    let changed = text.replace("CLUSTER_NAME: Drone", "CLUSTER_NAME: Quad");
    let commit = control_plane.change(DRONES, &changed);
    let plan = world.kedge.json(["plan", "-e", "dev", "--hub", "--to", "quad"]);
    let assignments = plan["assignments"].as_array().unwrap();
    assert_eq!(assignments.len(), 1, "{plan:#}");
    assert_eq!(assignments[0]["name"], "drone/hello-functional-test");
    assert_eq!(
        assignments[0]["values"],
        json!([{"key": "CLUSTER_NAME", "before": "Drone", "after": "Quad", "redacted": false}])
    );
    assert_eq!((&plan["to"]["of"], &plan["to"]["environment"]), (&json!("environment"), &json!(commit)));
    assert_eq!(plan["clusters"], json!({"online": 1, "offline": 0, "total": 1, "waiting": 0}));
    let shown = world.kedge.run(["plan", "-e", "dev", "--hub", "--to", "quad"]);
    assert!(shown.contains("CLUSTER_NAME  \"Drone\" → \"Quad\"") && shown.contains("1 online, 0 offline"), "{shown}");

    // The same as a file, before there is a commit; and without it the assignment would go.
    let file = world.folder.path().join("config.yaml");
    std::fs::write(&file, &changed).unwrap();
    let pasted = world.kedge.json(["plan", "-e", "dev", "--hub", "--file", &format!("{DRONES}={}", file.display())]);
    assert_eq!((&pasted["assignments"], &pasted["pasted"][0]["change"]), (&plan["assignments"], &json!("replaced")));
    let gone = world.kedge.json(["plan", "-e", "dev", "--hub", "--file", "scheduling/functional-test.yaml="]);
    let waits: Vec<&Value> =
        gone["perType"].as_array().unwrap().iter().filter(|one| one["waits"].is_object()).collect();
    assert_eq!(waits.len(), 2, "a type that loses all it has waits for a person: {gone:#}");
    assert_eq!(gone["clusters"]["waiting"], 1, "{gone:#}");

    // A revision that isn't there is said, and fails nothing else.
    let refused = world.kedge.try_run(["plan", "-e", "dev", "--hub", "--to", "nowhere"]);
    assert!(refused.code == 1 && refused.stderr.contains("nowhere"), "{refused:?}");
    assert_eq!(world.api.failing(&world.git.url("control-plane")), None);
    assert_eq!(world.api.generation("dev", "drone"), generation, "nothing was published");
}

fn environments_differ_until_the_commit_is_promoted_and_the_past_stays_comparable(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    world.await_generation("stage", "factory-line", 1);
    let greeting = |left: &str, right: &str| {
        let compared = world.kedge.json(["compare", left, right, "--all"]);
        let keys = compared["workloads"][0]["configuration"].as_array().cloned().unwrap_or_default();
        assert_eq!(compared["workloads"][0]["workload"], "hello", "{compared:#}");
        let values = |side: &Value| side[0]["value"].as_str().map(str::to_owned).unwrap_or_default();
        keys.iter().find(|key| key["key"] == "GREETING").map(|key| (values(&key["left"]), values(&key["right"])))
    };
    assert_eq!(greeting("dev/large", "stage/large"), None, "both are at the same commit of main");

    let commit = world.sample.edit("main", "configs/hello.yaml", "GREETING: Hello", "GREETING: Moin");
    let plan = world.kedge.json(["plan", "-e", "stage", "--hub", "--to", "main"]);
    assert_eq!((&plan["to"]["of"], &plan["to"]["main"]), (&json!("main"), &json!(commit)));
    let touched: Vec<&Value> =
        plan["assignments"].as_array().unwrap().iter().map(|one| &one["values"][0]["key"]).collect();
    assert!(!touched.is_empty() && touched.iter().all(|key| *key == "GREETING"), "{plan:#}");

    let promote = |environment: &str| {
        let before = world.git.head("gitops", environment);
        let text = world.sample.control_plane.read_remote(environment, "base-repo.yaml").unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with("commit:")).unwrap();
        world.sample.edit(environment, "base-repo.yaml", line, &format!("  commit: \"{commit}\""));
        world.await_commit(environment, before.as_deref());
    };
    promote("dev");
    let differs = ("Moin".to_owned(), "Hello".to_owned());
    await_true("dev is ahead of stage", SOON, || greeting("dev/large", "stage/large") == Some(differs.clone()));
    let moment = Instant::now();
    let generation = world.api.generation("stage", "factory-line").unwrap();
    promote("stage");
    await_true("stage has it", SOON, || greeting("dev/large", "stage/large").is_none());
    world.await_generation("stage", "factory-line", generation + 1);

    // What stage was before comes from its states and from the branch.
    let then = format!("stage@{}ms", moment.elapsed().as_millis());
    let whole = world.kedge.json(["compare", &then, "stage", "--all"]);
    assert_eq!(greeting(&then, "stage"), Some(("Hello".to_owned(), "Moin".to_owned())), "{whole:#}");
    let shown = world.kedge.try_run(["compare", &then, "stage", "--exit-code"]);
    assert!(shown.code == 1 && shown.stdout.contains("GREETING"), "{shown:?}");
    assert_eq!(world.kedge.try_run(["compare", "stage", "stage", "--exit-code"]).code, 0);
}
