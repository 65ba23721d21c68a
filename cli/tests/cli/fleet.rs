//! `kedge status`, `kedge drift` and `kedge get conditions`: words and shapes, readable without colour.

use serde_json::{Value, json};

use crate::fake_hub::{Canned, FakeHub};
use crate::stage::Stage;

fn ok(document: Value) -> Canned {
    (200, "kedge-tick: 7\r\n", document)
}

fn environment(name: &str, clusters: (u64, u64), conditions: [u64; 4]) -> Value {
    let [converged, converging, failed, unknown] = conditions;
    json!({
        "name": name, "promotedCommit": "c0ffee1234567890c0ffee1234567890c0ffee12", "promotedSubject": "faster", "order": 0,
        "running": [{"commit": "c0ffee1234567890c0ffee1234567890c0ffee12", "subject": "faster"}],
        "clusters": {"known": clusters.0 - clusters.1, "unknown": clusters.1, "total": clusters.0, "joined": 0},
        "conditions": {"converged": converged, "converging": converging, "failed": failed, "unknown": unknown},
        "rollouts": {"moving": 0, "stopped": 0, "paused": 0, "waiting": 0}, "quarantined": 0,
        "drifted": 0, "problems": {"errors": 0, "warnings": 0}, "rings": [], "types": [],
    })
}

fn fleet() -> Value {
    let mut stage = environment("stage", (12, 1), [20, 2, 1, 3]);
    stage["oldestUnknown"] = json!("2026-01-02T03:04:05.678Z");
    stage["quarantined"] = json!(2);
    stage["problems"]["errors"] = json!(2);
    stage["next"] = json!({"commit": "beef567890123456", "subject": "slower", "waitsFor": ["dev soaks for 4m"]});
    json!({"environments": [environment("dev", (4, 0), [8, 0, 0, 0]), stage], "problems": {"errors": 2, "warnings": 0},
        "repositories": {"good": 3, "failing": 1}, "at": "2026-01-02T03:04:05Z"})
}

fn row(cluster: &str, condition: &str) -> Value {
    json!({"cluster": format!("{cluster:0<32}"), "clusterName": cluster, "environment": "stage", "clusterType": "drone",
        "ring": "all", "assignment": "hello-test", "workload": "hello", "condition": condition, "reason": "HealthCheck",
        "message": "hello.service isn't running", "version": "1.4.1", "reality": "differs",
        "since": "2026-01-02T03:00:00Z", "observedAt": "2026-01-02T03:01:00Z"})
}

fn rollouts() -> Value {
    let rollout = |id: u64, state: &str, why: &str, ring: &str| {
        json!({"id": id, "environment": "stage", "lane": "platform", "state": state, "why": why, "commit": "c0ffee1234567890",
            "subject": "faster", "author": "anna", "moves": 1, "createdAt": "2026-01-02T03:00:00Z", "updatedAt": "2026-01-02T03:04:00Z",
            "rings": [{"ring": "canary", "state": ring}]})
    };
    json!({"items": [rollout(13, "Active", "", "rolling"), rollout(12, "Stopped", "ring canary: 1 failed", "stopped")]})
}

fn hub() -> FakeHub {
    FakeHub::start(&[
        ("GET /fleet", ok(fleet())),
        ("GET /conditions", ok(json!({"items": [row("c3", "Failed")]}))),
        ("GET /rollouts", ok(rollouts())),
        ("GET /problems", ok(json!({"total": 6, "items": []}))),
    ])
}

#[test]
fn a_glance_shows_what_runs_what_moves_and_what_is_wrong() {
    let (hub, stage) = (hub(), Stage::empty());
    insta::assert_snapshot!(hub.kedge(&stage, &["status"]).exits(0).stdout, @r"
    ENVIRONMENT  COMMIT      CLUSTERS  OFFLINE  CONVERGED  CONVERGING  FAILED  UNKNOWN
    dev          c0ffee1234  4         -        ● 8        -           -       -
    stage        c0ffee1234  12        1        ● 20       ◐ 2         ▲ 1     ○ 3

    Moving:
      ◐ stage: rollout 13 of c0ffee1234 faster: canary rolling  > kedge rollout show 13
      ◐ stage: beef567890 slower waits: dev soaks for 4m  > kedge promote

    Wrong:
      ▲ stage: rollout 12 of c0ffee1234 faster is Stopped (ring canary: 1 failed); canary stopped  > kedge rollout show 12
      ▲ stage: drone/hello-test HealthCheck on c3; still running 1.4.1
          hello.service isn't running
          > kedge get conditions -e stage --condition Failed
      ○ stage: 1 cluster has been offline since 2026-01-02 03:04:05Z  > kedge get clusters -e stage --condition Unknown
      ! stage: 2 assignments are quarantined  > kedge get assignments -e stage --state quarantined
      ! stage: 2 findings  > kedge get findings -e stage --state error
      ! 1 repository fails  > kedge get repositories --state failing
    ");
    assert_eq!(
        hub.asked(),
        [
            "GET /fleet",
            "GET /conditions?condition=Failed&limit=100",
            "GET /rollouts?unfinished=true&limit=20",
            "GET /problems?limit=1"
        ]
    );
}

#[test]
fn a_glance_of_one_workload_asks_for_it_alone() {
    let (hub, stage) = (hub(), Stage::empty());
    hub.kedge(&stage, &["status", "stage", "--workload", "hello", "-o", "yaml"])
        .exits(0)
        .shows(&["failures:\n", "rollouts:\n"]);
    assert_eq!(hub.asked()[0], "GET /fleet?environment=stage&workload=hello");
    let json = hub.kedge(&stage, &["status", "-o", "json"]).exits(0);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&document["environments"][1]["conditions"]["failed"], &document["failures"][0]["clusterName"]),
        (&json!(1), &json!("c3"))
    );
}

#[test]
fn nothing_that_a_cluster_says_moves_the_cursor() {
    let mut told = row("c3", "Failed");
    told["message"] = json!("\u{1b}[2Jgone");
    let hub = FakeHub::start(&[
        ("GET /fleet", ok(fleet())),
        ("GET /conditions", ok(json!({"items": [told]}))),
        ("GET /rollouts", ok(json!({"items": []}))),
        ("GET /problems", ok(json!({"total": 1, "items": []}))),
    ]);
    let run = hub.kedge(&Stage::empty(), &["status"]).exits(0);
    assert!(!run.stdout.contains('\u{1b}') && run.stdout.contains("gone"), "{}", run.stdout);
}

fn drift() -> Value {
    let group = |assignment: &str, numbers: [u64; 4], running: Value| {
        json!({"environment": "prod", "assignment": assignment, "clusterType": "drone", "workload": "hello",
            "desiredPackages": "0123456789abcdef", "desiredVersion": "1.4.2", "running": running, "asDesired": numbers[0],
            "differs": numbers[1], "drifted": numbers[2], "unknown": numbers[3], "converging": 0, "failed": 0})
    };
    let two = json!([{"packages": "0123456789abcdef", "version": "1.4.2", "count": 58},
        {"packages": "fedcba9876543210", "commit": "beef567890123456", "count": 2}]);
    let one = json!([{"packages": "0123456789abcdef", "version": "1.4.2", "count": 9}]);
    json!({"totals": {"asDesired": 66, "differs": 2, "drifted": 1, "unknown": 0},
        "groups": [group("drone/hello-line", [57, 2, 1, 0], two), group("drone/hello-store", [9, 0, 0, 0], one)]})
}

#[test]
fn drift_shows_desired_against_reality() {
    let mut drifted = row("c7", "Converged");
    drifted["drift"] = json!("hello.conf was edited");
    let hub = FakeHub::start(&[("GET /drift", ok(drift())), ("GET /conditions", ok(json!({"items": [drifted]})))]);
    let stage = Stage::empty();
    insta::assert_snapshot!(hub.kedge(&stage, &["drift"]).exits(0).stdout, @r"
    66 as desired, 2 differ, 1 drifted, 0 unknown

    ENVIRONMENT  ASSIGNMENT        DESIRED  RUNNING                       DIFFER  DRIFTED  FAILED  UNKNOWN
    prod         drone/hello-line  1.4.2    1.4.2 on 58, beef567890 on 2  2       1        -       -

    Drifted:
      stage c7 drone/hello-test: hello.conf was edited
    ");
    assert_eq!(hub.asked(), ["GET /drift?limit=500", "GET /conditions?drift=true&limit=20"]);
    hub.kedge(&stage, &["drift", "prod", "--all"]).exits(0).shows(&["drone/hello-store"]);
    let json = hub.kedge(&stage, &["drift", "prod", "-o", "json"]).exits(0);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((document["groups"].as_array().unwrap().len(), &document["totals"]["differs"]), (1, &json!(2)));
}

#[test]
fn conditions_are_a_list_with_shapes() {
    let mut silent = row("c9", "Unknown");
    (silent["reason"], silent["message"]) = (json!("Silent"), json!("last heard: Converged"));
    let hub = FakeHub::start(&[("GET /conditions", ok(json!({"items": [row("c3", "Failed"), silent]})))]);
    let stage = Stage::empty();
    insta::assert_snapshot!(hub.kedge(&stage, &["get", "conditions", "-e", "stage", "--workload", "hello"]).exits(0).stdout, @r"
    CLUSTER  ENVIRONMENT  ASSIGNMENT        CONDITION  REASON       RUNNING  SINCE                 MESSAGE
    c3       stage        drone/hello-test  ▲ Failed   HealthCheck  1.4.1    2026-01-02 03:00:00Z  hello.service isn't running
    c9       stage        drone/hello-test  ○ Unknown  Silent       1.4.1    2026-01-02 03:00:00Z  last heard: Converged
    ");
    hub.kedge(&stage, &["get", "conditions", "c3", "--drift", "-o", "json"]).exits(0);
    assert_eq!(
        hub.asked(),
        [
            "GET /conditions?environment=stage&workload=hello&limit=500",
            "GET /conditions?drift=true&cluster=c3&limit=500"
        ]
    );
    hub.kedge(&stage, &["get", "conditions", "--watch"]).exits(2).says(&["conditions can't be watched"]);
}
