//! What applying may and may not do.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Trial, deployment, settings};
use crate::observed::ObjectState;

#[test]
fn a_conflict_names_the_manager_and_the_field() {
    let Some(mut trial) = Trial::begin("conflict") else { return };
    let map = trial.goal(settings("colours", "red"));
    let path = format!("/api/v1/namespaces/{}/configmaps", trial.namespace);
    trial.post(&path, &settings("colours", "blue")).unwrap();
    let (failed, trace) = trial.put(&[&map]);
    let failure = failed.unwrap_err();
    assert_eq!(failure.reason, "Conflict");
    assert!(failure.message.contains("data.colour is managed by kubectl-create"), "{}", failure.message);
    assert!(trace.iter().any(|line| line.failed.is_some()), "{trace:?}");
    assert_eq!(trial.get(&map.id).unwrap()["data"]["colour"], "blue");
    let take = map.with(|terms| terms.take = true);
    trial.put(&[&take]).0.unwrap();
    assert_eq!(trial.get(&take.id).unwrap()["data"]["colour"], "red");
}

#[test]
fn another_applier_is_left_alone_and_stops_new_content() {
    let Some(mut trial) = Trial::begin("applier") else { return };
    let map = trial.goal(settings("colours", "red"));
    trial.put(&[&map]).0.unwrap();
    trial.look(&map);
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": "green"}});
    trial.apply_as("flux", &map.id, &theirs);
    trial.notice();
    assert_eq!(trial.look(&map), Some(ObjectState::AsApplied), "not fought over");
    trial.put(&[&map]).0.unwrap();
    assert_eq!(trial.get(&map.id).unwrap()["data"]["colour"], "green");
    let new = trial.goal(settings("colours", "yellow"));
    let failure = trial.put(&[&new]).0.unwrap_err();
    assert!(failure.reason == "Conflict" && failure.message.contains("data.colour is managed by flux"), "{failure:?}");
}

#[test]
fn an_immutable_field_fails_or_is_made_again() {
    let Some(mut trial) = Trial::begin("immutable") else { return };
    let fixed = |value: &str| {
        let mut map = settings("fixed", value);
        map["immutable"] = json!(true);
        map
    };
    let first = trial.goal(fixed("red"));
    trial.put(&[&first]).0.unwrap();
    let uid = trial.get(&first.id).unwrap()["metadata"]["uid"].clone();
    let second = trial.goal(fixed("blue"));
    let failure = trial.put(&[&second]).0.unwrap_err();
    println!("{failure:?}");
    assert!(failure.reason == "Immutable" && failure.message.contains("kedge.dev/recreate"), "{failure:?}");
    let again = second.with(|terms| terms.recreate = true);
    trial.put(&[&again]).0.unwrap();
    let live = trial.get(&again.id).unwrap();
    assert!(live["data"]["colour"] == "blue" && live["metadata"]["uid"] != uid, "{live}");
    assert_eq!(trial.look(&again), Some(ObjectState::AsApplied));
}

#[test]
fn a_changed_job_says_which_field_cannot_be_changed() {
    let Some(mut trial) = Trial::begin("job") else { return };
    let job = |image: &str| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "x", "image": image}]});
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"}, "spec": {"template": {"spec": pod}}})
    };
    let first = trial.goal(job("a:1"));
    trial.put(&[&first]).0.unwrap();
    let second = trial.goal(job("a:2"));
    let failure = trial.put(&[&second]).0.unwrap_err();
    println!("{failure:?}");
    assert!(failure.reason == "Immutable" && failure.message.contains("spec.template"), "{failure:?}");
    assert!(failure.message.len() < 400, "{failure:?}");
    let broken = trial.goal(job("")).with(|terms| terms.recreate = true);
    let failure = trial.put(&[&broken]).0.unwrap_err();
    assert_eq!(failure.reason, "Rejected", "{failure:?}");
    assert_eq!(trial.get(&first.id).unwrap()["spec"]["template"]["spec"]["containers"][0]["image"], "a:1");
    let again = second.with(|terms| terms.recreate = true);
    trial.put(&[&again]).0.unwrap();
    assert_eq!(trial.get(&first.id).unwrap()["spec"]["template"]["spec"]["containers"][0]["image"], "a:2");
}

#[test]
fn a_forbidden_object_is_told_with_verb_and_kind_and_the_rest_is_applied() {
    let Some(mut trial) = Trial::begin("forbidden") else { return };
    let account = Some(format!("system:serviceaccount:{}:nobody", trial.namespace));
    let web = trial.goal(deployment("web", "shop:1")).with(|terms| terms.account = account);
    let map = trial.goal(settings("colours", "red"));
    let (failed, trace) = trial.put(&[&web, &map]);
    let failure = failed.unwrap_err();
    println!("{failure:?} {trace:?}");
    assert_eq!(failure.reason, "Forbidden");
    for word in ["cannot patch", "deployments", "apps", ":nobody"] {
        assert!(failure.message.contains(word), "{failure:?}");
    }
    assert_eq!(trial.get(&map.id).unwrap()["data"]["colour"], "red");
    // The way back of what never came.
    let (done, trace) = trial.remove(&[&web, &map]);
    println!("{trace:?}");
    done.unwrap();
}

#[test]
fn a_definition_and_its_object_come_together() {
    let Some(mut trial) = Trial::begin("definition") else { return };
    let group = format!("{}.example.com", trial.namespace);
    let definition = trial.goal(definition(&group));
    trial.put(&[&definition]).0.unwrap();
    let lamp = json!({"apiVersion": format!("{group}/v1"), "kind": "Lamp", "metadata": {"name": "desk"}, "spec": {"watts": 4}});
    let lamp = trial.goal(lamp);
    trial.put(&[&lamp]).0.unwrap();
    assert_eq!(trial.look(&lamp), Some(ObjectState::AsApplied));
    trial.check(&lamp).unwrap();
    trial.edit(&lamp.id, &json!({"spec": {"watts": 9}}));
    trial.notice();
    assert_eq!(trial.look(&lamp), Some(ObjectState::Differs("spec.watts is 9 instead of 4".to_owned())));
    trial
        .post(
            &format!("/apis/{group}/v1/namespaces/default/lamps"),
            &json!({"apiVersion": format!("{group}/v1"), "kind": "Lamp", "metadata": {"name": "foreign"}}),
        )
        .unwrap();
    trial.remove(&[&lamp]).0.unwrap();
    let (done, trace) = trial.remove(&[&definition]);
    done.unwrap();
    assert!(trace[0].output.contains("stays: it still holds Lamp default/foreign"), "{trace:?}");
    trial.get(&definition.id).unwrap();
    let mut foreign = lamp.id.clone();
    (foreign.namespace, foreign.name) = (Some("default".to_owned()), "foreign".to_owned());
    trial.delete(&foreign);
    trial.remove(&[&definition]).0.unwrap();
    assert_eq!(trial.get(&definition.id).unwrap_err().code(), Some(404));
}

#[test]
fn a_megabyte_passes_and_more_is_refused_by_its_word() {
    let Some(mut trial) = Trial::begin("large") else { return };
    let big = trial.goal(settings("big", &"x".repeat(1_000_000)));
    trial.put(&[&big]).0.unwrap();
    assert_eq!(trial.look(&big), Some(ObjectState::AsApplied));
    let bigger = trial.goal(settings("bigger", &"x".repeat(1_200_000)));
    let failure = trial.put(&[&bigger]).0.unwrap_err();
    println!("{} {}", failure.reason, failure.message);
    assert_eq!(failure.reason, "ObjectTooLarge");
    let biggest = trial.goal(settings("biggest", &"x".repeat(3_300_000)));
    let failure = trial.put(&[&biggest]).0.unwrap_err();
    println!("{} {}", failure.reason, failure.message);
    assert_eq!(failure.reason, "ObjectTooLarge");
}

#[test]
fn what_the_server_rejects_is_told_in_its_words_at_once() {
    let Some(mut trial) = Trial::begin("rejected") else { return };
    let began = Instant::now();
    let mut wrong: Value = deployment("web", "shop:1");
    wrong["spec"]["replicaz"] = json!(3);
    let wrong = trial.goal(wrong);
    let failure = trial.put(&[&wrong]).0.unwrap_err();
    println!("{failure:?}");
    assert!(failure.reason == "Rejected" && failure.message.contains("replicaz"), "{failure:?}");
    let nowhere = trial.goal(settings("colours", "red")).with(|terms| terms.id.namespace = Some("nowhere".to_owned()));
    let failure = trial.put(&[&nowhere]).0.unwrap_err();
    println!("{failure:?}");
    assert_eq!(failure.reason, "Rejected");
    assert!(began.elapsed() < Duration::from_secs(5));
    trial.close_gate();
    let map = trial.goal(settings("colours", "red"));
    let failure = trial.put(&[&map]).0.unwrap_err();
    assert!(failure.reason == "NotLeader" && failure.passes);
    assert_eq!(trial.get(&map.id).unwrap_err().code(), Some(404));
}

#[test]
fn many_objects_are_applied_quickly() {
    let Some(mut trial) = Trial::begin("many") else { return };
    let goals: Vec<_> = (0..500).map(|at| trial.goal(settings(&format!("map-{at}"), "red"))).collect();
    let began = Instant::now();
    trial.put(&goals.iter().collect::<Vec<_>>()).0.unwrap();
    println!("500 objects applied in {:?}", began.elapsed());
    let began = Instant::now();
    assert!(goals.iter().all(|goal| trial.look(goal) == Some(ObjectState::AsApplied)));
    assert!(goals.iter().all(|goal| trial.check(goal).is_ok()));
    println!("looked at and checked in {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(1), "without a request for each");
    let began = Instant::now();
    trial.remove(&goals.iter().collect::<Vec<_>>()).0.unwrap();
    println!("removed in {:?}", began.elapsed());
}

pub(super) fn definition(group: &str) -> Value {
    let spec = json!({"type": "object", "properties": {"watts": {"type": "integer"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("lamps.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
}
