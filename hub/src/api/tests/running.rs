//! What runs, from the packages that were delivered and reported, beside what Git says.

use kedge_model::kinds::Offline;
use kedge_model::wire::{Digest, PackagesKey, Stream};
use kedge_status::{Condition, Report};
use serde_json::{Value, json};

use super::answers::{HELLO, Newcomer, Standing, drones, failed, join, report};
use super::fixture::Hub;
use super::rollouts::{rolls, run};

fn platform(name: &str) -> Digest {
    Digest::of(format!("platform {name}").as_bytes())
}

fn workload() -> Digest {
    Digest::of(b"workload")
}

/// A state of a ring of the drones, with these platform files.
pub fn entry(name: &str) -> Value {
    let package = |digest: Digest, commit: &str| json!({"digest": digest.to_string(), "size": 1, "repo": "https://git.example/r", "commit": commit});
    json!([{
        "assignment": HELLO, "mode": "apply", "version": "1.0.0",
        "parameters": {"to": "host", "scope": "namespace", "conflicts": "fail", "timeoutSeconds": 1, "soakSeconds": 1,
            "rollback": "auto", "drift": "repair"},
        "platform": package(platform(name), name),
        "workload": package(workload(), "source"),
    }])
}

pub fn runs(condition: Condition, name: &str) -> Report {
    let key = PackagesKey::of_packages(&platform(name), &workload());
    Report { running: Some(key), desired: Some(key), ..report(condition, "") }
}

pub async fn drone(hub: &Hub, number: u8, standing: Standing, report: Report) {
    let name = format!("drone-{number}");
    join(hub, Newcomer { number, name: &name, stream: drones(), standing, told: Some(vec![(HELLO, report)]) }).await;
}

pub fn deliver(hub: &Hub, name: &str, region: &str, pin: &str) {
    let text = format!("REGION: {region}\nDB_PASSWORD: hunter-{name}\nPIN: \"{pin}\"\nPORT: \"80\"\n");
    hub.services.delivered.lock().unwrap().insert(platform(name), text);
}

async fn whole(hub: &Hub, token: &str) -> Value {
    hub.get(token, &format!("/assignments/dev/drone/{HELLO}")).await.ok().body
}

/// The value of a group's configuration.
fn value<'a>(whole: &'a Value, group: &Value, key: &str) -> &'a Value {
    let views = whole["configurations"].as_array().unwrap();
    let view = views.iter().find(|view| view["id"] == group["configuration"]).unwrap_or_else(|| panic!("{whole:#}"));
    view["values"].as_array().unwrap().iter().find(|value| value["key"] == key).unwrap_or_else(|| panic!("{view:#}"))
}

async fn each_group_shows_what_it_runs_and_git_stands_beside_it(hub: Hub) {
    deliver(&hub, "old", "south", "0815");
    deliver(&hub, "new", "west", "4711");
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    hub.store.name_platforms().await.unwrap();
    hub.state_of("dev", "drone", 2, 2_000_000, &entry("new")).await;
    // One has it, one failed and went back by itself, one is away with what it had.
    drone(&hub, 1, Standing::InContact, runs(Condition::Converged, "new")).await;
    drone(&hub, 2, Standing::InContact, runs(failed(), "old")).await;
    drone(&hub, 3, Standing::Silent, runs(Condition::Converged, "old")).await;
    name(&hub, "old").await;
    let whole = whole(&hub, &hub.platform).await;
    let groups = whole["running"].as_array().unwrap();
    let (old, new) = (&groups[0], &groups[1]);
    assert_eq!((&old["count"], &old["failed"], &old["unknown"]), (&json!(2), &json!(1), &json!(1)), "{whole:#}");
    assert_eq!((&old["asDesired"], &new["asDesired"]), (&json!(false), &json!(true)));
    assert!(old["offlineSince"].as_str().is_some_and(|since| since.starts_with("2023-")), "{old}");
    assert!(new.get("offlineSince").is_none());
    let region = value(&whole, old, "REGION");
    assert_eq!((&region["value"], &region["differs"], &region["git"]), (&json!("south"), &json!(true), &json!("west")));
    let region = value(&whole, new, "REGION");
    assert_eq!((&region["value"], &region["differs"]), (&json!("west"), &json!(false)));
    let gone = value(&whole, new, "PORT");
    assert_eq!((&gone["differs"], gone.get("git")), (&json!(true), None), "Git doesn't set it");
    assert_eq!(old["version"], "1.0.0");
    assert_eq!(whole["desired"][0]["configuration"], new["configuration"]);
}

/// As an issued state writes it down.
pub async fn name(hub: &Hub, name: &str) {
    let key = PackagesKey::of_packages(&platform(name), &workload());
    let mut tx = hub.store.write().await.unwrap();
    sqlx::query(
        "INSERT INTO contents (packages, version, platform_commit, workload_commit) VALUES ($1, '1.0.0', $2, 'source')",
    )
    .bind(key.to_string())
    .bind(name)
    .execute(tx.connection())
    .await
    .unwrap();
    tx.commit().await.unwrap();
    // Written before a platform package was: the states say which it is.
    hub.store.name_platforms().await.unwrap();
    let known = hub.store.contents(&[key.to_string()]).await.unwrap();
    assert_eq!(known[&key.to_string()].platform, Some(platform(name)));
}

async fn secrets_of_what_runs_are_for_the_platform_team(hub: Hub) {
    deliver(&hub, "old", "south", "0815");
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    drone(&hub, 1, Standing::InContact, runs(Condition::Converged, "old")).await;
    for (token, sees) in [(&hub.platform, true), (&hub.viewer, false), (&hub.team, false)] {
        let whole = whole(&hub, token).await;
        let gone = &value(&whole, &whole["running"][0], "PORT")["value"];
        assert_eq!(*gone == "80", sees, "Git doesn't say any more whether it is a secret: {gone}");
        let text = whole.to_string();
        for secret in ["hunter-old", "0815", "hunter2", "4711"] {
            assert_eq!(text.contains(secret), sees, "{secret}: {text}");
        }
        assert!(text.contains("south"), "{text}");
    }
}

async fn what_cannot_be_known_is_said_and_never_taken_from_git(hub: Hub) {
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    drone(&hub, 1, Standing::InContact, runs(Condition::Converged, "old")).await;
    drone(&hub, 2, Standing::InContact, runs(Condition::Converged, "of another hub")).await;
    let whole = whole(&hub, &hub.platform).await;
    let views = whole["configurations"].as_array().unwrap();
    assert_eq!((views.len(), &views[0]["values"]), (1, &json!([])), "{whole:#}");
    assert!(views[0]["unknown"].as_str().is_some_and(|why| why.contains("isn't kept")), "{whole:#}");
    let groups = whole["running"].as_array().unwrap();
    assert_eq!(groups.iter().filter(|group| group.get("configuration").is_none()).count(), 1, "{whole:#}");
}

async fn a_comparison_is_of_what_runs(hub: Hub) {
    deliver(&hub, "old", "south", "0815");
    deliver(&hub, "new", "west", "4711");
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    hub.state_of("dev", "drone", 2, 2_000_000, &entry("new")).await;
    drone(&hub, 1, Standing::InContact, runs(failed(), "old")).await;
    name(&hub, "old").await;
    let compared = hub.get(&hub.viewer, "/compare?left=dev/drone@1970-01-01T00:20:00Z&right=dev/drone").await.ok();
    let hello = compared.body["workloads"].as_array().unwrap().iter().find(|one| one["workload"] == "hello").unwrap();
    assert_eq!(
        (&hello["same"], &hello["configuration"]),
        (&json!(true), &json!([])),
        "it never got the new: {hello:#}"
    );
    let now = hub.get(&hub.viewer, "/compare?left=dev/drone@1970-01-01T00:40:00Z&right=dev/drone").await.ok();
    let keys: Vec<String> = now.body["workloads"][0]["configuration"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key["key"].to_string())
        .collect();
    assert_eq!(keys, ["\"DB_PASSWORD\"", "\"PIN\"", "\"REGION\""], "{}", now.text);
}

async fn platform_packages_that_somebody_runs_are_kept(hub: Hub) {
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    name(&hub, "old").await;
    assert!(hub.store.running_platforms().await.unwrap().is_empty());
    drone(&hub, 1, Standing::Silent, runs(Condition::Converged, "old")).await;
    assert_eq!(hub.store.running_platforms().await.unwrap(), [platform("old")].into());
    assert_eq!(Stream::ALL, "all");
}

/// A target that Git renamed: the rollout of the new name went back.
const RENAMED: &str = "hello-smoke-test";

async fn what_git_does_not_describe_any_more_still_belongs_to_its_workload(hub: Hub) {
    rolls(&hub, Offline::Complete, |_| {}).await;
    run(&hub, &format!("UPDATE rollout_items SET assignment = '{RENAMED}'"), &[]).await;
    deliver(&hub, "old", "south", "0815");
    let mut entries = entry("old");
    entries[0]["assignment"] = json!(RENAMED);
    hub.state_of("dev", "drone", 1, 1_000_000, &entries).await;
    let told = Some(vec![(RENAMED, runs(Condition::Converged, "old"))]);
    join(&hub, Newcomer { number: 1, name: "drone-1", stream: drones(), standing: Standing::InContact, told }).await;
    for token in [&hub.viewer, &hub.team] {
        let whole = hub.get(token, &format!("/assignments/dev/drone/{RENAMED}")).await.ok().body;
        assert_eq!((&whole["state"], &whole["workload"]), (&json!("removed"), &json!("hello")), "{whole:#}");
        assert!(whole["note"].as_str().is_some_and(|note| note.contains("doesn't describe it any more")), "{whole:#}");
        assert_eq!((&whole["running"][0]["count"], &whole["desired"][0]["ring"]), (&json!(1), &json!("all")));
        assert_eq!(whole["configurations"][0]["asInGit"], false, "{whole:#}");
        let overview = hub.get(token, "/workloads-overview/hello").await.ok().body;
        let all = overview["environments"][0]["assignments"].as_array().unwrap();
        let one = all.iter().find(|one| one["target"] == RENAMED).unwrap_or_else(|| panic!("{overview:#}"));
        assert_eq!((&one["state"], &one["conditions"]["converged"]), (&json!("removed"), &json!(1)));
    }
    hub.get(&hub.viewer, "/assignments/dev/drone/hello-never").await.refused(404, "NotFound");
    let conditions = hub.get(&hub.viewer, "/conditions?environment=dev&workload=hello").await.ok().body;
    let rows = conditions["items"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["assignment"], &rows[0]["workload"]), (1, &json!(RENAMED), &json!("hello")));
    let drift = hub.get(&hub.viewer, "/drift?environment=dev&workload=hello").await.ok().body;
    assert_eq!((&drift["totals"]["asDesired"], &drift["groups"][0]["workload"]), (&json!(1), &json!("hello")));
    let fleet = hub.get(&hub.viewer, "/fleet?environment=dev&workload=hello").await.ok().body;
    assert_eq!(fleet["environments"][0]["conditions"]["converged"], 1, "{fleet:#}");
    let other = hub.get(&hub.viewer, "/conditions?environment=dev&workload=spy").await.ok().body;
    assert_eq!(other["items"], json!([]));
}

async fn what_somebody_changed_on_a_cluster_is_neither_desired_nor_as_in_git(hub: Hub) {
    deliver(&hub, "old", "south", "0815");
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    let edited = Some("platform-config.env was changed".to_owned());
    drone(&hub, 1, Standing::InContact, Report { drift: edited, ..runs(Condition::Converged, "old") }).await;
    drone(&hub, 2, Standing::InContact, runs(Condition::Converged, "old")).await;
    let whole = whole(&hub, &hub.platform).await;
    let (well, changed) = (&whole["running"][0], &whole["running"][1]);
    assert_eq!((&well["count"], &well["asDesired"], well.get("drifted")), (&json!(1), &json!(true), None), "{whole:#}");
    assert_eq!((&changed["count"], &changed["asDesired"]), (&json!(1), &json!(false)), "{whole:#}");
    assert_eq!((&changed["driftedOn"], changed.get("configuration")), (&json!(["drone-1"]), None));
    let fleet = hub.get(&hub.viewer, "/fleet").await.ok().body;
    assert_eq!(fleet["environments"][0]["drifted"], 1, "{fleet:#}");
    let of_spy = hub.get(&hub.viewer, "/fleet?workload=spy").await.ok().body;
    assert_eq!(of_spy["environments"][0]["drifted"], 0, "{of_spy:#}");
    let compared = hub.get(&hub.viewer, "/compare?left=dev&right=dev").await.ok().body;
    let note = compared["notes"][0].as_str().unwrap();
    assert!(note.contains("was changed on 1 cluster (drone-1)"), "{note}");
    assert_eq!(compared["notes"].as_array().unwrap().len(), 1, "both sides say the same");
}

on_each_database! {
    what_git_does_not_describe_any_more_still_belongs_to_its_workload,
    what_somebody_changed_on_a_cluster_is_neither_desired_nor_as_in_git,
    each_group_shows_what_it_runs_and_git_stands_beside_it,
    secrets_of_what_runs_are_for_the_platform_team,
    what_cannot_be_known_is_said_and_never_taken_from_git,
    a_comparison_is_of_what_runs,
    platform_packages_that_somebody_runs_are_kept,
}
