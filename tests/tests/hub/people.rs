//! The API for people and programs over real HTTP: who may do what, what is hidden, what is written down, how much may be
//! asked, and how the hub ends.

use std::thread;
use std::time::{Duration, Instant};

use http::Method;
use kedge_tests::lab::await_true;
use kedge_tests::world::api::Api;
use kedge_tests::world::{Database, SOON, World};
use serde_json::{Value, json};

use crate::each_database::on_each_database;

on_each_database![roles_see_and_do_what_is_theirs_and_every_write_is_written_down];

/// A token for a person, made by the administrator.
fn person(world: &World, name: &str, role: &str, workspaces: &[&str]) -> Api {
    let made = world.person(name, role, workspaces);
    world.api.with_token(made["token"].as_str().unwrap_or_else(|| panic!("{made}")))
}

fn roles_see_and_do_what_is_theirs_and_every_write_is_written_down(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    // A value that looks secret, in everybody's configuration.
    world.sample.edit(
        "dev",
        "configs/environment.yaml",
        "LOG_LEVEL: debug",
        "LOG_LEVEL: debug\n  DB_PASSWORD: hunter2",
    );
    world.await_generation("dev", "drone", 2);
    let viewer = person(&world, "vera", "viewer", &[]);
    let own = person(&world, "anna", "application", &["hello-team"]);
    let other = person(&world, "otto", "application", &["other-team"]);
    let nobody = Api::at(&world.hub.url(""));
    let made_up = nobody.with_token("kedge_000000000000_guessed");

    let assignment = "/api/v1/assignments/dev/drone/hello-functional-test";
    await_true("the secret is in the catalogue", SOON, || world.api.get(assignment).to_string().contains("hunter2"));
    // (path, viewer, own team, other team)
    let reads = [
        ("/api/v1/environments", 200, 200, 200),
        ("/api/v1/clusters", 200, 200, 200),
        ("/api/v1/access-tokens", 403, 403, 403),
        (assignment, 200, 200, 404),
        ("/api/v1/desired-states/dev/drone/all", 200, 200, 404),
        ("/api/v1/workloads", 200, 200, 200),
        ("/api/v1/nothing-here", 404, 404, 404),
    ];
    for (path, by_viewer, by_own, by_other) in reads {
        assert_eq!(
            world.api.status_of(path),
            if path.ends_with("nothing-here") { 404 } else { 200 },
            "platform: {path}"
        );
        assert_eq!(viewer.status_of(path), by_viewer, "viewer: {path}");
        assert_eq!(own.status_of(path), by_own, "own team: {path}");
        assert_eq!(other.status_of(path), by_other, "other team: {path}");
        assert_eq!((nobody.status_of(path), made_up.status_of(path)), (401, 401), "strangers: {path}");
    }
    assert!(other.list("/api/v1/assignments").is_empty() && other.list("/api/v1/workloads").is_empty());
    assert_eq!(own.list("/api/v1/assignments?environment=dev").len(), 3);
    for (who, api) in [("viewer", &viewer), ("own team", &own)] {
        let text = api.get(assignment).to_string();
        assert!(text.contains("DB_PASSWORD") && !text.contains("hunter2"), "{who}: {text}");
    }

    let writes = [
        (Method::POST, "/api/v1/access-tokens", json!({"person": "vera", "role": "platform"})),
        (Method::POST, "/api/v1/people", json!({"name": "x"})),
        (Method::POST, "/api/v1/join-tokens", json!({"environment": "dev", "clusterType": "drone"})),
        (Method::POST, "/api/v1/clusters/drone-1/retire", json!({})),
        (Method::POST, "/api/v1/clusters/drone-1/revoke", json!({})),
        (Method::PATCH, "/api/v1/clusters/drone-1", json!({"clusterType": "large"})),
    ];
    let _drone = world.join("drone", "drone-1");
    for (method, path, body) in &writes {
        for (who, api) in [("viewer", &viewer), ("own team", &own), ("other team", &other)] {
            let answer = api.ask(method.clone(), path, Some(body), &[]);
            assert_eq!((answer.status, answer.reason().as_str()), (403, "Forbidden"), "{who} {path}: {}", answer.text);
        }
        assert_eq!(nobody.ask(method.clone(), path, Some(body), &[]).status, 401, "{path}");
    }
    world.kedge.run(["cluster", "retire", "drone-1"]);

    // Who, when, what, from where; also what was refused. Never a secret.
    let audit = world.api.list("/api/v1/audit");
    let find = |action: &str, who: &str| {
        let entry = audit.iter().find(|entry| entry["action"] == action && entry["who"] == who);
        entry.unwrap_or_else(|| panic!("{action} by {who} isn't in {audit:?}")).clone()
    };
    let admin = world.api.get("/api/v1/whoami")["name"].as_str().unwrap().to_owned();
    let retired = find("cluster.retire", &admin);
    assert_eq!((&retired["result"], &retired["address"]), (&json!("done"), &json!("127.0.0.1")));
    assert!(retired["at"].is_string() && retired["object"].to_string().contains("drone-1"), "{retired}");
    find("join-token.create", &admin);
    let refused =
        audit.iter().filter(|entry| entry["who"] == "vera" && entry["result"].to_string().contains("refused"));
    assert_eq!(refused.count(), writes.len());
    assert!(!format!("{audit:?}").contains("hunter2"));

    // A revoked token is out at once.
    let id = viewer.get("/api/v1/whoami")["token"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/access-tokens/{id}");
    assert_eq!(world.api.ask(Method::DELETE, &path, None, &[]).status, 403, "an administrator's business");
    assert_eq!(world.administrator().ask(Method::DELETE, &path, None, &[]).status, 204);
    assert_eq!(viewer.status_of("/api/v1/environments"), 401);
}

#[test]
fn pages_tags_and_filters_do_what_programs_rely_on() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let token = world.token("drone", &["--uses", "7", "--labels", "site=north"]);
    for number in 0..7 {
        kedge_tests::world::cluster::Cluster::join(&token, &format!("drone-{number}"));
    }
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    let all: Vec<String> = world.api.list("/api/v1/clusters?limit=3").iter().map(name).collect();
    assert_eq!(all, (0..7).map(|number| format!("drone-{number}")).collect::<Vec<_>>(), "three pages, nothing twice");
    let first = world.api.get("/api/v1/clusters?limit=3");
    assert_eq!((first["items"].as_array().unwrap().len(), first["next"].is_string()), (3, true));
    for (bad, reason) in [
        ("limit=0", "BadLimit"),
        ("limit=501", "BadLimit"),
        ("cursor=!!", "BadCursor"),
        ("labelSelector=a in (", "BadSelector"),
    ] {
        let answer = world.api.ask(Method::GET, &format!("/api/v1/clusters?{bad}"), None, &[]);
        assert_eq!((answer.status, answer.reason().as_str()), (400, reason), "{bad}");
    }
    assert_eq!(world.api.list("/api/v1/clusters?labelSelector=site%20in%20(north)").len(), 7);
    assert!(world.api.list("/api/v1/clusters?labelSelector=site!=north").is_empty());

    let answer = world.api.ask(Method::GET, "/api/v1/clusters", None, &[]);
    let tag = answer.header("etag").to_owned();
    assert!(tag.starts_with('"'), "strong: {tag}");
    let known = world.api.ask(Method::GET, "/api/v1/clusters", None, &[("if-none-match", &tag)]);
    assert_eq!((known.status, known.text.as_str()), (304, ""));
    world.kedge.run(["cluster", "relabel", "drone-3", "colour=blue"]);
    let news = world.api.ask(Method::GET, "/api/v1/clusters", None, &[("if-none-match", &tag)]);
    assert_eq!(news.status, 200);

    // A watch is answered by the change, not by the clock. It may be told of a change again that it has seen.
    let (api, began) = (world.api.clone(), Instant::now());
    let mut tick = news.header("kedge-tick").to_owned();
    let watcher = thread::spawn(move || {
        loop {
            let answer = api.ask(Method::GET, &format!("/api/v1/clusters?after={tick}&wait=30s"), None, &[]);
            assert_eq!(answer.status, 200, "{}", answer.text);
            if answer.json()["items"].as_array().unwrap().iter().any(|item| name(item) == "drone-4") {
                return;
            }
            tick = answer.header("kedge-tick").to_owned();
        }
    });
    thread::sleep(Duration::from_millis(300));
    world.kedge.run(["cluster", "relabel", "drone-4", "colour=red"]);
    watcher.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn who_asks_too_much_is_told_to_wait() {
    let Some(world) = World::start_with(Database::Sqlite, |settings, _| settings.rate = 5) else { return };
    let hurry = |api: &Api| {
        let answers: Vec<_> = (0..40).map(|_| api.ask(Method::GET, "/api/v1/whoami", None, &[])).collect();
        let refused: Vec<_> = answers.into_iter().filter(|answer| answer.status == 429).collect();
        assert!(refused.iter().all(|answer| answer.retry_after().is_some_and(|wait| !wait.is_zero())));
        refused.len()
    };
    assert!(hurry(&world.api) > 10, "one token");
    assert!(hurry(&Api::at(&world.hub.url(""))) > 10, "one address without a token");
    assert_eq!(Api::at(&world.hub.url("")).status_of("/healthz"), 200, "health is no matter of limits");
}

#[test]
fn the_description_and_the_metrics_are_what_they_should_be() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let committed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let committed: Value = serde_json::from_slice(&std::fs::read(committed).unwrap()).unwrap();
    assert_eq!(world.api.get("/api/v1/openapi.json"), committed, "what is served is what is committed");
    assert!(committed["openapi"].as_str().unwrap().starts_with("3.1"));

    let answer = world.api.ask(Method::GET, "/metrics", None, &[("accept", "application/openmetrics-text")]);
    assert_eq!(answer.status, 200);
    assert_eq!(Api::at(&world.hub.url("")).status_of("/metrics"), 401, "numbers are for who shows a token");
    assert_eq!(person(&world, "anna", "application", &["hello-team"]).status_of("/metrics"), 403);
    assert!(answer.header("content-type").contains("openmetrics") && answer.text.trim_end().ends_with("# EOF"));
    let value = |name: &str| {
        let line = answer.text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .unwrap_or_else(|| panic!("{name} is missing"))
    };
    assert!(value("kedge_hub_leader") > 0.0 && value("kedge_hub_states_issued") >= 3.0);
    let ready = Api::at(&world.hub.url("")).ask(Method::GET, "/readyz", None, &[]);
    assert_eq!((ready.status, ready.text.as_str()), (200, "ok\n"));
}

#[test]
fn a_stop_finishes_what_runs_and_ends_what_waits_at_once() {
    let Some(mut world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    drone.converge();
    let held = drone.hold();
    let tick = world.api.ask(Method::GET, "/api/v1/clusters", None, &[]).header("kedge-tick").to_owned();
    let api = world.api.clone();
    let watcher =
        thread::spawn(move || api.ask(Method::GET, &format!("/api/v1/clusters?after={tick}&wait=50s"), None, &[]));
    thread::sleep(Duration::from_millis(500));
    assert!(!held.is_answered());
    let began = Instant::now();
    assert_eq!(world.hub.stop().code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let (_drone, answer) = held.answer(Duration::from_secs(5));
    let answer = answer.expect("an idle answer, no broken connection");
    assert!(answer.state.is_none());
    assert_eq!(watcher.join().unwrap().status, 200, "the watch got its answer");
}

#[test]
fn a_login_is_kept_and_a_hub_that_is_away_is_diagnosed() {
    let Some(mut world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let token = world.hub.places().data.join("platform-token");
    let url = world.hub.url("");
    let mut person = kedge_tests::world::kedge::Kedge::new("").unwrap();
    person.run(["login", &url, "--token-file", token.to_str().unwrap()]);
    let seen = person.run(["get", "environments"]);
    assert!(["dev", "stage", "prod"].iter().all(|name| seen.contains(name)), "{seen}");
    world.hub.stop();
    let run = person.try_run(["get", "environments"]);
    assert!(run.code != 0 && run.stderr.contains(&url) && run.stderr.to_lowercase().contains("running"), "{run:?}");
    person.set_token("");
}
