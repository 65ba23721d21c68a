//! What runs where, asked of a real hub over real agents: one box fails, one was changed by hand, one is stopped, and one is well.
//! The numbers, the lists behind them and the words of the command line agree.

use kedge_tests::world::plant::{AWAY_WITHIN, LINE, MOVED_WITHIN, Plant, assignment, workload};
use serde_json::{Value, json};

const SICK: &str = "dev-factory-line-1";
const CHANGED: &str = "dev-factory-line-2";
const STOPPED: &str = "dev-factory-line-3";

fn names(plant: &Plant, query: &str) -> Vec<String> {
    let rows = plant.world.api.list(&format!("/api/v1/conditions?environment=dev&{query}"));
    rows.iter().map(|row| row["clusterName"].as_str().unwrap_or_default().to_owned()).collect()
}

fn dev(plant: &Plant) -> Value {
    let fleet = plant.world.api.get("/api/v1/fleet");
    let environments = fleet["environments"].as_array().cloned().unwrap_or_default();
    environments.into_iter().find(|environment| environment["name"] == "dev").unwrap_or_default()
}

#[test]
fn numbers_lists_and_words_agree_on_a_failing_a_changed_and_a_stopped_box() {
    let Some(mut plant) = Plant::start(None) else { return };
    plant.add("dev", LINE, "", 4);
    plant.await_converged("dev");
    assert_eq!(dev(&plant)["conditions"], json!({"converged": 4, "converging": 0, "failed": 0, "unknown": 0}));
    let calm = plant.world.kedge.run(["status"]);
    assert!(calm.contains("● 4") && !calm.contains('▲') && !calm.contains('○'), "{calm}");

    plant.agent(STOPPED).stop();
    plant.agent(SICK).write("sick-of", "version 2\n");
    let gitops = &plant.world.sample.hello_gitops;
    gitops.switch("dev");
    let mut second = workload(assignment("dev"), "version 2");
    second.more.push("drift: report".to_owned());
    second.push(gitops, "line-test");
    plant.await_text(&[CHANGED, "dev-factory-line-4"], "version 2");
    plant.await_condition(CHANGED, "Converged");
    plant.agent(CHANGED).write(&format!("srv/{}/app.txt", assignment("dev")), "by hand\n");
    plant.await_condition(SICK, "Failed");
    plant.await_condition(STOPPED, "Unknown");
    plant.await_so("the drift is told", AWAY_WITHIN, |plant| names(plant, "drift=true") == [CHANGED]);
    plant.await_so("all is settled", MOVED_WITHIN, |plant| names(plant, "condition=Converging").is_empty());

    let shown = dev(&plant);
    assert_eq!(shown["conditions"], json!({"converged": 2, "converging": 0, "failed": 1, "unknown": 1}));
    assert_eq!(shown["clusters"], json!({"known": 3, "unknown": 1, "total": 4, "joined": 0}));
    assert!(shown["oldestUnknown"].is_string(), "{shown}");
    assert_eq!(names(&plant, "condition=Failed"), [SICK]);
    assert_eq!(names(&plant, "condition=Unknown"), [STOPPED]);
    assert_eq!(names(&plant, "condition=Converged"), [CHANGED, "dev-factory-line-4"]);
    let silent = plant.world.api.list("/api/v1/conditions?condition=Unknown");
    assert_eq!((&silent[0]["lastKnown"], &silent[0]["reason"]), (&json!("Converged"), &json!("Silent")));

    let drift = plant.world.api.get("/api/v1/drift?environment=dev");
    assert_eq!(drift["totals"], json!({"asDesired": 1, "differs": 1, "drifted": 1, "unknown": 1}), "{drift}");
    for (field, expected) in [("differs", SICK), ("drifted", CHANGED), ("unknown", STOPPED)] {
        assert_eq!(names(&plant, &format!("reality={field}")), [expected]);
    }

    let told = plant.world.kedge.run(["status", "dev"]);
    for words in ["● 2", "▲ 1", "○ 1", &format!("HealthCheck on {SICK}"), "1 cluster has been offline since"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let told = plant.world.kedge.run(["drift"]);
    assert!(told.contains("1 as desired, 1 differs, 1 drifted, 1 unknown"), "{told}");
    assert!(told.contains(CHANGED) && told.contains("app.txt"), "{told}");
    let listed = plant.world.kedge.run(["get", "conditions", "-e", "dev", "--condition", "Failed"]);
    assert!(listed.contains(SICK) && listed.contains("▲ Failed") && !listed.contains(STOPPED), "{listed}");
    let found = plant.world.api.get(&format!("/api/v1/search?q={SICK}"));
    assert_eq!((&found[0]["kind"], &found[0]["name"]), (&json!("cluster"), &json!(SICK)));
    let whole = plant.world.api.get("/api/v1/workloads-overview/hello");
    assert!(whole["environments"].as_array().is_some_and(|all| all.len() == 3), "{whole}");
}
