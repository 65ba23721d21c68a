//! Commands that ask a hub: what they send, what they print, and what they say when it goes wrong.

use std::os::unix::fs::PermissionsExt as _;

use kedge_api::assignments::AssignmentSummary;
use kedge_api::page::Stored;
use kedge_api::promotions::{EnvironmentPromotion, PromotionSummary};
use serde_json::{Value, json};

use crate::fake_hub::{self, Canned, FakeHub};
use crate::stage::{Stage, run};

fn ok(document: Value) -> Canned {
    (200, "kedge-tick: 7\r\n", document)
}

fn clusters() -> Value {
    let cluster = |name: &str, state: &str, unknown: Value| {
        json!({
            "id": format!("{name:0<32}"), "name": name, "environment": "dev", "clusterType": "drone", "ring": "all",
            "labels": {"region": "west"}, "site": "north", "state": state, "generation": 12,
            "joinedAt": "2026-01-01T00:00:00Z", "lastContact": "2026-01-02T03:04:05.678Z",
            "checkInDeadline": "2026-01-02T03:05:05Z", "unknownSince": unknown, "certificateUntil": "2026-04-01T00:00:00Z",
            "facts": {"agentVersion": "0.1.0", "architecture": "x86_64", "system": "Debian 12"},
        })
    };
    let mut all = json!({"items": [
        cluster("a1", "active", Value::Null),
        cluster("b2", "active", json!("2026-01-02T04:00:00Z")),
        cluster("c3", "retired", Value::Null),
    ]});
    all["items"][0]["issues"] = json!({"converging": 0, "failed": 1, "drifted": 0});
    all
}

/// Commits in an environment, each with its state and what it waits for.
fn promoted(environment: &str, current: Option<&str>, commits: &[(&str, &str, &[&str])]) -> Value {
    let promotions = commits.iter().map(|(commit, state, waits_for)| PromotionSummary {
        commit: (*commit).to_owned(),
        state: (*state).to_owned(),
        waits_for: waits_for.iter().map(|wait| (*wait).to_owned()).collect(),
        ..PromotionSummary::default()
    });
    json!(EnvironmentPromotion {
        environment: environment.to_owned(),
        current: current.map(str::to_owned),
        promotions: promotions.collect(),
        ..EnvironmentPromotion::default()
    })
}

fn assignment(name: &str, state: &str, policies: &[&str]) -> Value {
    let object = AssignmentSummary {
        environment: "dev".to_owned(),
        name: name.to_owned(),
        state: state.to_owned(),
        policies: policies.iter().map(|policy| (*policy).to_owned()).collect(),
        ..AssignmentSummary::default()
    };
    json!(Stored { object, updated_at: "2026-01-02T03:04:05Z".to_owned() })
}

#[test]
fn a_login_is_checked_and_stored_for_the_owner_alone() {
    let who = json!({"token": "id", "person": "p1", "name": "anna", "role": "application", "workspaces": ["harbour"], "hub": "0.1.0"});
    let hub = FakeHub::start(&[("GET /whoami", ok(who)), ("GET /clusters", ok(clusters()))]);
    let stage = Stage::empty();
    stage.write("token", "kedge_id_secret\n");
    let login = stage.kedge(["login", &hub.url, "--token-file", "token"]).exits(0);
    login.says(&["as anna (application of harbour)", ".home/.config/kedge/hub.json"]);
    let file = stage.file(".home/.config/kedge/hub.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    stage.kedge(["get", "clusters"]).exits(0).shows(&["a1 "]);
    // Another hub doesn't get this one's token.
    let other = FakeHub::start(&[]);
    stage.kedge(["get", "clusters", "--hub", &other.url]).exits(2).says(&["there is no access token for the hub"]);
    assert!(other.asked().is_empty());
}

#[test]
fn a_login_with_a_wrong_token_stores_nothing() {
    let hub = FakeHub::start(&[]);
    let stage = Stage::empty();
    stage.write("token", "kedge_id_wrong");
    stage.kedge(["login", &hub.url, "--token-file", "token"]).exits(1).says(&["doesn't know this access token"]);
    assert!(!stage.file(".home/.config/kedge/hub.json").exists());
    stage.write("token", "kedge-join-1.abc");
    stage.kedge(["login", &hub.url, "--token-file", "token"]).exits(2).says(&["holds a join token"]);
    stage.write("token", "");
    stage.kedge(["login", &hub.url, "--token-file", "token"]).exits(2).says(&["holds no access token"]);
}

#[test]
fn clusters_are_a_table_and_silence_is_not_green() {
    let hub = FakeHub::start(&[("GET /clusters", ok(clusters()))]);
    let stage = Stage::empty();
    insta::assert_snapshot!(hub.kedge(&stage, &["get", "clusters"]).exits(0).stdout, @r"
    NAME  ENVIRONMENT  TYPE   RING  CONDITION  STATUS                              GENERATION  LAST HEARD
    a1    dev          drone  all   ▲ Failed   in contact                          12          2026-01-02 03:04:05Z
    b2    dev          drone  all   ○ Unknown  offline since 2026-01-02 04:00:00Z  12          2026-01-02 03:04:05Z
    c3    dev          drone  all   -          retired                             12          2026-01-02 03:04:05Z
    ");
    let wide = hub.kedge(&stage, &["get", "clusters", "a1", "-o", "wide"]).exits(0);
    insta::assert_snapshot!(wide.stdout, @r"
    NAME  ENVIRONMENT  TYPE   RING  CONDITION  STATUS      GENERATION  LAST HEARD            ID                                SITE   VIA  RELAY  AGENT  SYSTEM     LABELS
    a1    dev          drone  all   ▲ Failed   in contact  12          2026-01-02 03:04:05Z  a1000000000000000000000000000000  north  -    -      0.1.0  Debian 12  region=west
    ");
    let json = hub.kedge(&stage, &["get", "clusters", "-o", "json"]).exits(0);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["items"].as_array().unwrap().len(), 3);
    hub.kedge(&stage, &["get", "clusters", "-o", "yaml"]).exits(0).shows(&["items:\n", "clusterType: drone\n"]);
    hub.kedge(&stage, &["get", "clusters", "zz"])
        .exits(2)
        .says(&["no cluster named `zz`", "Hint: kedge get clusters lists what there is"]);
}

#[test]
fn problems_are_told_with_their_way_out_and_an_exit_code() {
    let problem = json!({"id": "rollouts/prod/7", "kind": "rollouts", "severity": "error", "code": "RolloutStopped",
        "environments": ["prod"], "count": 1, "message": "rollout 7 stopped: 2 of 2 clusters failed",
        "brings": ["drone/hello is Failed on 2 clusters"], "command": "kedge rollout show 7", "link": "/rollouts/7"});
    let hub = FakeHub::start(&[("GET /problems", ok(json!({"total": 1, "items": [problem]})))]);
    let stage = Stage::empty();
    insta::assert_snapshot!(hub.kedge(&stage, &["get", "problems"]).exits(3).stdout, @r"
    STATE  KIND      ENVIRONMENT  CODE            MESSAGE                                                                         NEXT
    error  rollouts  prod         RolloutStopped  rollout 7 stopped: 2 of 2 clusters failed; drone/hello is Failed on 2 clusters  kedge rollout show 7
    ");
    hub.kedge(&stage, &["get", "problems", "-o", "json"]).exits(3).shows(&["\"RolloutStopped\""]);
    let warning = json!({"id": "clusters/dev/AgentWarns/DiskLow", "kind": "clusters", "severity": "error", "code": "DiskLow",
        "environments": ["dev"], "count": 1000, "message": "1000 clusters of dev warn: the disk is nearly full",
        "hint": "make room on the host", "command": "kedge get clusters -e dev --warning DiskLow",
        "link": "/clusters?environment=dev&state=active&warning=DiskLow", "since": "2026-11-16T11:00:00Z",
        "examples": [{"cluster": "drone-1", "message": "less than 16 MiB of the disk are free"}, {"cluster": "drone-2"}]});
    let hub = FakeHub::start(&[("GET /problems", ok(json!({"total": 1, "items": [warning]})))]);
    insta::assert_snapshot!(hub.kedge(&stage, &["get", "problems"]).exits(3).stdout, @r"
    STATE  KIND      ENVIRONMENT  CODE     MESSAGE                                                                                                       NEXT
    error  clusters  dev          DiskLow  1000 clusters of dev warn: the disk is nearly full (drone-1: less than 16 MiB of the disk are free; drone-2)  kedge get clusters -e dev --warning DiskLow
    ");
    insta::assert_snapshot!(hub.kedge(&stage, &["get", "problems", "-o", "wide"]).exits(3).stdout, @r"
    STATE  KIND      ENVIRONMENT  CODE     MESSAGE                                                                                                       NEXT                                         SINCE                 HINT                   WRITTEN IN  ID
    error  clusters  dev          DiskLow  1000 clusters of dev warn: the disk is nearly full (drone-1: less than 16 MiB of the disk are free; drone-2)  kedge get clusters -e dev --warning DiskLow  2026-11-16 11:00:00Z  make room on the host  -           clusters/dev/AgentWarns/DiskLow
    ");
    let listed = FakeHub::start(&[("GET /clusters", ok(clusters()))]);
    listed.kedge(&stage, &["get", "clusters", "-e", "dev", "--warning", "DiskLow"]).exits(0);
    assert!(listed.asked().iter().any(|asked| asked.contains("environment=dev&warning=DiskLow")));
    let calm = FakeHub::start(&[("GET /problems", ok(json!({"total": 0, "items": []})))]);
    calm.kedge(&stage, &["get", "problems"]).exits(0).says(&["nothing needs attention"]);
}

#[test]
fn a_name_that_there_is_not_is_wrong_usage() {
    let refused = json!({"code": "UnknownName", "detail": "there is no ring `canarry`", "nearest": "canary",
        "hint": "did you mean `canary`?"});
    let hub = FakeHub::start(&[("GET /clusters", (404, "", refused))]);
    let args = ["get", "clusters", "--ring", "canarry"];
    hub.kedge(&Stage::empty(), &args).exits(2).says(&["there is no ring `canarry`", "Hint: did you mean `canary`?"]);
}

#[test]
fn a_word_or_a_time_that_cannot_be_read_is_wrong_usage() {
    for (reason, flag, message) in [
        ("BadKind", "--kind", "unknown kind `foo`; there are: condition, drift"),
        ("BadTime", "--since", "`since`: can't read `foo` as a time"),
        ("BadQuery", "--who", "there is no person `foo`"),
    ] {
        let refused = json!({"code": reason, "detail": message});
        let hub = FakeHub::start(&[("GET /history", (400, "", refused))]);
        hub.kedge(&Stage::empty(), &["history", flag, "foo"]).exits(2).says(&[message]);
    }
}

#[test]
fn a_flag_that_does_not_fit_the_list_is_refused_before_the_hub_is_asked() {
    let hub = FakeHub::start(&[]);
    let stage = Stage::empty();
    for (args, told, takes) in [
        (
            &["get", "problems", "--ring", "canary"][..],
            "`--ring` doesn't apply to problems",
            "it takes -e/--environment, --of-kind",
        ),
        (&["get", "environments", "--ring", "x"], "`--ring` doesn't apply to environments", "it takes -e"),
        (&["get", "clusters", "--workload", "x"], "`--workload` doesn't apply to clusters", "--cluster-type"),
        (&["get", "clusters", "--drift"], "`--drift` doesn't apply to clusters", "--condition"),
        (&["get", "conditions", "-l", "a=b"], "`-l/--selector` doesn't apply to conditions", "--drift"),
        (&["get", "tokens", "-e", "nope"], "`-e/--environment` doesn't apply to tokens", "takes no filter"),
        (&["get", "workloads", "--cluster-type", "x"], "`--cluster-type` doesn't apply to workloads", "--workspace"),
        (&["get", "repositories", "--workload", "y"], "`--workload` doesn't apply to repositories", "it takes"),
        (&["get", "findings", "--workload", "y"], "`--workload` doesn't apply to findings", "it takes"),
        (&["token", "revoke", ""], "a name or an id is empty", ""),
        (&["evidence", "show", "x"], "a number is wanted here", "x"),
        (&["rollout", "show", "x"], "a number is wanted here", "x"),
    ] {
        hub.kedge(&stage, args).exits(2).says(&[told, takes]);
    }
    assert!(hub.asked().is_empty());
}

#[test]
fn a_label_that_no_selector_could_name_is_refused() {
    let token = ["token", "create", "-e", "dev", "-t", "drone", "--labels"];
    let hub = FakeHub::start(&[]);
    for (label, told) in [("a b=c", "`a b` can't be a label's key"), ("a=b c", "`b c` can't be a label's value")] {
        let args: Vec<&str> = token.into_iter().chain([label]).collect();
        hub.kedge(&Stage::empty(), &args).exits(2).says(&[told]);
    }
}

#[test]
fn a_single_thing_that_is_not_there_is_wrong_usage_with_the_nearest_name() {
    let items = json!({"items": [{"name": "stage"}, {"name": "prod"}]});
    let missing =
        json!({"code": "NotFound", "detail": "there is no cluster `drone-8`", "hint": "did you mean `drone-7`?"});
    let hub = FakeHub::start(&[("GET /environments", ok(items)), ("GET /clusters/drone-8", (404, "", missing))]);
    let stage = Stage::empty();
    let told = ["no environment named `stagee`", "Hint: did you mean `stage`?"];
    hub.kedge(&stage, &["get", "environments", "stagee"]).exits(2).says(&told);
    let told = ["there is no cluster `drone-8`", "Hint: did you mean `drone-7`?"];
    hub.kedge(&stage, &["describe", "cluster", "drone-8"]).exits(2).says(&told);
}

#[test]
fn what_a_problem_is_about_is_told_once_and_with_its_place() {
    let origin = json!({"repo": "https://git.example/control-plane", "file": "a.yaml", "line": 3});
    let example = json!({"id": "f1", "message": "no such template", "origin": origin});
    let problem = json!({"id": "schedule/x", "kind": "schedule", "severity": "error", "code": "UnknownName",
        "environments": ["dev", "stage"], "count": 2, "message": "2 findings of UnknownName", "brings": [],
        "command": "kedge get findings -l code=UnknownName -o wide", "link": "/findings", "examples": [example, example]});
    let hub = FakeHub::start(&[("GET /problems", ok(json!({"total": 1, "items": [problem]})))]);
    let shown = hub.kedge(&Stage::empty(), &["get", "problems", "-o", "wide"]).exits(3).stdout;
    assert_eq!(shown.matches("no such template").count(), 1, "{shown}");
    assert!(shown.contains("WRITTEN IN") && shown.contains("a.yaml:3"), "{shown}");
}

#[test]
fn to_look_at_a_promotion_changes_nothing() {
    let promotions = promoted("prod", None, &[("4f2a91c000", "Waiting", &[])]);
    let hub = FakeHub::start(&[
        ("GET /promotions/prod", ok(promotions.clone())),
        ("POST /promotions/prod/approve", ok(promotions.clone())),
        ("POST /promotions/prod/start", ok(promotions)),
    ]);
    let stage = Stage::empty();
    let asked = |args: &[&str]| {
        hub.kedge(&stage, args).exits(0);
        hub.asked().first().cloned().unwrap_or_default()
    };
    assert!(asked(&["promote", "prod"]).starts_with("GET /promotions/prod"));
    assert!(asked(&["promote", "approve", "prod", "--reason", "seen"]).starts_with("POST /promotions/prod/approve"));
    assert!(asked(&["promote", "start", "prod"]).starts_with("POST /promotions/prod/start"));
    let now = "to act: kedge promote approve prod --reason TEXT";
    hub.kedge(&stage, &["promote", "prod", "--approve"]).exits(2).says(&["only shows where commits are", now]);
    hub.kedge(&stage, &["promote", "override", "prod"]).exits(2).says(&["an override needs a reason"]);
    assert!(hub.asked().is_empty());
}

#[test]
fn a_superseded_promotion_never_stands_for_its_environment() {
    let prod = promoted(
        "prod",
        Some("aaaaaaaaaa"),
        &[
            ("0123456789", "Superseded", &[]),
            ("4f2a91c000", "Waiting", &["needs 2 approvals"]),
            ("aaaaaaaaaa", "Passed", &[]),
        ],
    );
    let hub = FakeHub::start(&[
        ("GET /promotions/prod", ok(prod.clone())),
        ("GET /promotions", ok(json!({"items": [prod]}))),
    ]);
    let one = hub.kedge(&Stage::empty(), &["promote", "prod"]).exits(0).stdout;
    assert!(one.starts_with("prod: 4f2a91c000 is Waiting"), "{one}");
    let all = hub.kedge(&Stage::empty(), &["promote"]).exits(0).stdout;
    assert!(all.contains("4f2a91c000") && all.contains("needs 2 approvals") && !all.contains("Superseded"), "{all}");
}

#[test]
fn filters_and_pages_are_asked_of_the_hub() {
    let first = json!({"items": [assignment("drone/a", "rendered", &["p"])], "next": "CUR"});
    let second = json!({"items": [assignment("drone/b", "quarantined", &[])]});
    let asked = "GET /assignments?environment=dev&labelSelector=region%3Dwest%2Csize+in+%28a%2Cb%29&clusterType=drone";
    let hub = FakeHub::start(&[
        (&format!("{asked}&limit=500"), ok(first)),
        (&format!("{asked}&limit=500&cursor=CUR"), ok(second)),
    ]);
    let selector = "region=west,size in (a,b)";
    let args = ["get", "assignments", "-e", "dev", "-l", selector, "--cluster-type", "drone"];
    insta::assert_snapshot!(hub.kedge(&Stage::empty(), &args).exits(0).stdout, @r"
    NAME     ENVIRONMENT  WORKSPACE  STATE        POLICIES
    drone/a  dev          -          rendered     p
    drone/b  dev          -          quarantined  -
    ");
}

#[test]
fn a_watch_prints_changes_and_what_went_and_survives_too_much() {
    let changed = json!({"items": [assignment("drone/a", "quarantined", &[])],
        "removed": [{"environment": "dev", "name": "drone/gone"}]});
    let hub = FakeHub::start(&[
        ("GET /assignments?limit=500", ok(json!({"items": []}))),
        ("GET /assignments?after=7&wait=30s", (200, "kedge-tick: 9\r\n", changed)),
        ("GET /assignments?after=9&wait=30s", (403, "", json!({"code": "Forbidden", "detail": "that is enough"}))),
    ]);
    let run = hub.kedge(&Stage::empty(), &["get", "assignments", "--watch"]).exits(1);
    assert_eq!(run.stdout, "drone/a  dev  -  quarantined  -\n- drone/gone  dev\n");
    run.says(&["Error: that is enough"]);
}

#[test]
fn an_assignment_is_described_with_the_origin_of_every_value() {
    let origin = |line: u32| json!({"repo": "https://git.example/cp", "revision": "dev@sha1:1f0e0d0c0b0a0908", "file": "west.yaml", "line": line});
    let document = json!({
        "environment": "dev", "name": "drone/hello", "clusterType": "drone", "target": "hello", "workload": "hello",
        "workspace": "harbour", "labels": {"purpose": "test"}, "policies": ["functional-test"], "state": "rendered",
        "updatedAt": "2026-01-02T03:04:05.678Z",
        "provenance": {
            "policies": [{"name": "functional-test", "clusterTypes": "region=west", "targets": "purpose=test", "origin": origin(1)}],
            "targetOrigin": origin(9), "manifests": {"repo": "r"}, "files": [{"path": "drone/hello/namespace.yaml", "digest": "sha256:00"}],
        },
        "configuration": [
            {"key": "DB_PASSWORD", "value": "[redacted]", "secret": true, "candidates": [
                {"configMap": "common", "text": "[redacted]", "effect": "wins", "origin": origin(4)}]},
            {"key": "REGION", "value": "west", "secret": false, "candidates": [
                {"configMap": "common", "text": "nowhere", "effect": "overridden", "origin": origin(3)},
                {"configMap": "west", "text": "west", "effect": "wins", "origin": origin(9)}]},
        ],
        "desired": [{"ring": "all", "generation": 4, "assignment": "hello", "mode": "apply", "version": "1.2",
            "platform": {"digest": "sha256:0123456789abcdef0123", "size": 1, "repo": "g", "commit": "1111111111ffff"},
            "workload": {"digest": "sha256:fedcba98765432100123", "size": 1, "repo": "h", "commit": "2222222222ffff"}}],
        "counts": [{"clusterType": "drone", "ring": "all", "assignment": "hello", "packages": "p", "condition": "Converged", "count": 73}],
        "running": [{"ring": "all", "packages": "p", "version": "1.2", "configuration": "c", "asDesired": true, "count": 73,
            "converged": 73, "converging": 0, "failed": 0, "unknown": 0}],
        "configurations": [{"id": "c", "asInGit": true, "values": []}],
    });
    let one = ok(json!({"items": [{"name": "dev"}]}));
    let hub = FakeHub::start(&[("GET /environments", one), ("GET /assignments/dev/drone/hello", ok(document))]);
    let run = hub.kedge(&Stage::empty(), &["describe", "assignment", "drone/hello"]).exits(0);
    insta::assert_snapshot!(run.stdout, @r#"
    name           drone/hello
    environment    dev
    cluster type   drone
    state          rendered
    labels         purpose=test
    manifests      repo=r
    target origin  west.yaml:9 of https://git.example/cp at dev@1f0e0d0c0b
    target         hello
    updated at     2026-01-02 03:04:05Z
    workload       hello
    workspace      harbour

    Clusters
      RING  PACKAGES  CONDITION  COUNT
      all   p         Converged  73

    Desired
      RING  GENERATION  MODE   VERSION  PLATFORM                           WORKLOAD
      all   4           apply  1.2      sha256:0123456789ab of 1111111111  sha256:fedcba987654 of 2222222222

    Files
      PATH                        DIGEST
      drone/hello/namespace.yaml  sha256:00

    Policies
      NAME             CLUSTER TYPES  TARGETS       ORIGIN
      functional-test  region=west    purpose=test  west.yaml:1 of https://git.example/cp at dev@1f0e0d0c0b

    Running, as the clusters reported it
      RING  VERSION  COUNT  CONVERGED  CONVERGING  FAILED  UNKNOWN  AS DESIRED
      all   1.2      73     73         0           0       0        true

    Configuration that runs, as in Git
      DB_PASSWORD (secret)  =       "[redacted]"
        wins                common  west.yaml:4 of https://git.example/cp at dev@1f0e0d0c0b
      REGION                =       "west"
        overridden          common  west.yaml:3 of https://git.example/cp at dev@1f0e0d0c0b
        wins                west    west.yaml:9 of https://git.example/cp at dev@1f0e0d0c0b
    "#);
}

#[test]
fn a_cluster_is_described_with_its_conditions() {
    let mut cluster = clusters()["items"][1].take();
    cluster["membership"] = json!(3);
    cluster["token"] = json!("j1");
    cluster["conditions"] = json!([
        {"assignment": "hello", "condition": "Unknown", "reason": "Silent", "message": "last heard: Converged", "since": "2026-01-02T04:00:00Z"},
    ]);
    let hub = FakeHub::start(&[("GET /clusters/b2", ok(cluster))]);
    insta::assert_snapshot!(hub.kedge(&Stage::empty(), &["describe", "cluster", "b2"]).exits(0).stdout, @r"
    name               b2
    id                 b2000000000000000000000000000000
    environment        dev
    cluster type       drone
    ring               all
    state              active
    certificate until  2026-04-01 00:00:00Z
    next check-in by   2026-01-02 03:05:05Z
    facts              agentVersion=0.1.0,architecture=x86_64,system=Debian 12
    generation         12
    joined at          2026-01-01 00:00:00Z
    labels             region=west
    last contact       2026-01-02 03:04:05Z
    membership         3
    site               north
    token              j1
    unknown since      2026-01-02 04:00:00Z

    Conditions
      ASSIGNMENT  CONDITION  REASON  SINCE                 MESSAGE
      hello       Unknown    Silent  2026-01-02 04:00:00Z  last heard: Converged
    ");
}

#[test]
fn a_join_token_alone_is_on_stdout() {
    let made = json!({"id": "j1", "token": "kedge-join-1.abc", "expiresAt": "2026-01-09T03:04:05Z"});
    let hub =
        FakeHub::start(&[("POST /join-tokens", (201, "", made)), ("DELETE /join-tokens/j1", (204, "", Value::Null))]);
    let stage = Stage::empty();
    let args = [
        "token",
        "create",
        "--environment",
        "dev",
        "--cluster-type",
        "drone",
        "--labels",
        "a=b,c=d",
        "--site",
        "north",
        "--uses",
        "5",
        "--expires",
        "7d",
    ];
    let run = hub.kedge(&stage, &args).exits(0);
    assert_eq!(run.stdout, "kedge-join-1.abc\n");
    run.says(&["token j1, good until 2026-01-09 03:04:05Z; it isn't shown again"]);
    let body = r#"{"clusterType":"drone","environment":"dev","expires":"7d","labels":{"a":"b","c":"d"},"site":"north","uses":5}"#;
    assert_eq!(hub.asked(), [format!("POST /join-tokens {body}")]);
    hub.kedge(&stage, &["token", "revoke", "j1"]).exits(0).says(&["join token j1 is revoked"]);
}

#[test]
fn access_tokens_are_made_for_people() {
    let made = json!({"id": "t1", "token": "kedge_t1_secret", "expiresAt": "2026-04-02T03:04:05Z"});
    let hub = FakeHub::start(&[("POST /access-tokens", (201, "", made))]);
    let args =
        ["access", "create", "--person", "team", "--role", "application", "--workspace", "harbour", "--expires", "90d"];
    let run = hub.kedge(&Stage::empty(), &args).exits(0);
    assert_eq!(run.stdout, "kedge_t1_secret\n");
    run.says(&["token t1, good until 2026-04-02 03:04:05Z; it isn't shown again"]);
    let body = r#"{"expires":"90d","person":"team","role":"application","workspaces":["harbour"]}"#;
    assert_eq!(hub.asked(), [format!("POST /access-tokens {body}")]);
}

#[test]
fn an_access_token_without_an_end_is_said_to_have_none() {
    let made = json!({"id": "t2", "token": "kedge_t2_secret"});
    let hub = FakeHub::start(&[("POST /access-tokens", (201, "", made))]);
    let args =
        ["access", "create", "--person", "anna", "--name", "dashboard", "--role", "viewer", "--expires", "never"];
    let run = hub.kedge(&Stage::empty(), &args).exits(0);
    run.says(&["token t2; it isn't shown again", "it doesn't expire: revoke it"]);
    let body = r#"{"expires":"never","name":"dashboard","person":"anna","role":"viewer"}"#;
    assert_eq!(hub.asked(), [format!("POST /access-tokens {body}")]);
}

#[test]
fn people_are_added_changed_and_removed() {
    let anna = json!({"id": "p1", "name": "anna", "emails": ["anna@example.com"], "createdAt": "2026-01-02T03:04:05Z"});
    let answers = [
        ("POST /people", (201, "", anna.clone())),
        ("PATCH /people/anna", (200, "", anna)),
        ("DELETE /people/anna", (204, "", json!(null))),
    ];
    let (hub, stage) = (FakeHub::start(&answers), Stage::empty());
    let add = ["person", "add", "anna", "--email", "anna@example.com"];
    hub.kedge(&stage, &add).exits(0).says(&["anna is person p1"]);
    hub.kedge(&stage, &["person", "set", "anna", "--email", "anna@example.com"]).exits(0);
    hub.kedge(&stage, &["person", "remove", "anna"]).exits(0).says(&["all its tokens have ended"]);
    let body = r#"{"emails":["anna@example.com"],"name":"anna"}"#;
    let set = r#"{"emails":["anna@example.com"]}"#;
    assert_eq!(
        hub.asked(),
        [format!("POST /people {body}"), format!("PATCH /people/anna {set}"), "DELETE /people/anna".to_owned()]
    );
}

#[test]
fn clusters_are_moved_relabelled_replaced_retired_and_revoked() {
    let mut cluster = fake_hub::cluster("a1", "large");
    cluster["labels"] = json!({"a": "b"});
    let made = json!({"id": "j2", "token": "kedge-join-1.new", "expiresAt": "2026-01-09T03:04:05Z"});
    let hub = FakeHub::start(&[
        ("PATCH /clusters/a1", ok(cluster.clone())),
        ("POST /clusters/a1/replace", (201, "", made)),
        ("POST /clusters/a1/retire", ok(cluster.clone())),
        ("POST /clusters/a1/revoke", ok(cluster)),
        ("POST /environments/dev/cluster-types/drone/confirm", (202, "", Value::Null)),
    ]);
    let stage = Stage::empty();
    let kedge = |args: &[&str]| hub.kedge(&stage, args).exits(0);
    kedge(&["cluster", "move", "a1", "--cluster-type", "large"]).says(&["a1 now follows dev/large/all"]);
    kedge(&["cluster", "relabel", "a1", "a=b", "old-"]).says(&["labels of a1: a=b"]);
    assert_eq!(kedge(&["cluster", "replace", "a1"]).stdout, "kedge-join-1.new\n");
    kedge(&["cluster", "retire", "a1"]).says(&["a1 is retired"]);
    kedge(&["cluster", "revoke", "a1"]).says(&["a1 is revoked"]);
    kedge(&["publish", "confirm", "dev", "drone"]).says(&["confirmed: drone in dev"]);
    let asked = hub.asked();
    assert_eq!(asked[0], r#"PATCH /clusters/a1 {"clusterType":"large"}"#);
    assert_eq!(asked[1], r#"PATCH /clusters/a1 {"labels":{"a":"b","old":null}}"#);
    hub.kedge(&stage, &["cluster", "move", "a1"]).exits(2).says(&["say where the cluster should go"]);
    hub.kedge(&stage, &["cluster", "relabel", "a1", "x"]).exits(2).says(&["`x` isn't KEY=VALUE"]);
}

#[test]
fn the_audit_log_is_a_table() {
    let entry = json!({"number": 3, "at": "2026-01-02T03:04:05Z", "who": "anna", "token": "t", "role": "platform",
        "action": "cluster.move", "object": "a1", "environment": "dev", "detail": {"to": {}}, "address": "10.0.0.7", "result": "done"});
    let hub = FakeHub::start(&[("GET /audit?environment=dev&limit=50", ok(json!({"items": [entry]})))]);
    insta::assert_snapshot!(hub.kedge(&Stage::empty(), &["audit", "-e", "dev"]).exits(0).stdout, @r"
    WHEN                  WHO   FROM      ACTION        OBJECT  ENVIRONMENT  RESULT
    2026-01-02 03:04:05Z  anna  10.0.0.7  cluster.move  a1      dev          done
    ");
}

#[test]
fn history_is_asked_page_after_page_and_a_commit_for_its_way() {
    let entry = |title: &str| {
        json!({"id": 7, "at": "2026-01-02T03:04:05Z", "recordedAt": "2026-01-04T03:04:05Z", "late": true,
            "corrected": false, "kind": "condition", "event": "Failed", "environment": "dev", "title": title, "detail": {}})
    };
    let way = json!({"commit": "3f2a91c0", "subject": "Raise the limit", "items": [
        {"environment": "dev", "step": "read", "at": "2026-01-02T03:04:05Z", "tookMs": 120, "detail": {}}]});
    let hub = FakeHub::start(&[
        ("GET /history?environment=dev&workload=hello&since=7d&limit=50", {
            ok(json!({"items": [entry("it failed")], "next": "x"}))
        }),
        ("GET /history?environment=dev&workload=hello&since=7d&limit=49&cursor=x", {
            ok(json!({"items": [entry("it failed before")]}))
        }),
        ("GET /history/commits/3f2a", ok(way)),
    ]);
    let stage = Stage::empty();
    let run = hub.kedge(&stage, &["history", "-e", "dev", "--workload", "hello", "--since", "7d"]).exits(0);
    run.shows(&["2026-01-02 03:04:05Z", "it failed (late)", "it failed before (late)"]);
    hub.kedge(&stage, &["history", "commit", "3f2a"]).exits(0).shows(&["Raise the limit", "read", "120ms"]);
    hub.kedge(&stage, &["history", "commit", "3f2a", "-o", "json"]).exits(0).shows(&["\"tookMs\": 120"]);
    hub.kedge(&stage, &["history", "commit", "beef"]).exits(2).says(&["there is no"]);
}

#[test]
fn what_goes_wrong_is_diagnosed() {
    let stage = Stage::empty();
    stage.kedge(["get", "clusters"]).exits(2).says(&["no hub is known", "Hint: log in: kedge login URL"]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let args = ["get", "clusters", "--hub", &address];
    run(stage.command().args(args).env("KEDGE_TOKEN", "x")).exits(1).says(&["doesn't answer", "Hint: is it running?"]);
    run(stage.command().args(["get", "clusters", "--hub", "https://u:p@h"]).env("KEDGE_TOKEN", "x"))
        .exits(2)
        .says(&["isn't the address of a hub"]);
    let refused =
        json!({"code": "Forbidden", "detail": "making join tokens is for the platform team", "hint": "ask them"});
    let hub = FakeHub::start(&[
        ("POST /join-tokens", (403, "", refused)),
        ("GET /workloads", (200, "", json!("not a hub"))),
        ("GET /problems", (429, "retry-after: 1\r\n", json!({"code": "TooManyRequests", "detail": "slow down"}))),
    ]);
    hub.kedge(&stage, &["token", "create", "-e", "dev", "-t", "drone"])
        .exits(1)
        .says(&["Error: making join tokens is for the platform team", "Hint: ask them"]);
    hub.kedge(&stage, &["get", "workloads"]).exits(1).says(&["not as a hub does (status 200)"]);
    hub.asked();
    hub.kedge(&stage, &["get", "problems"]).exits(1).says(&["slow down"]);
    assert_eq!(hub.asked().len(), 4, "it is asked again after a pause, and not for ever");
}
