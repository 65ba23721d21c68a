//! What others do to applied objects, and what is seen of it.

use std::time::Duration;

use serde_json::json;

use super::{Trial, deployment, settings};
use crate::goal::OnDrift;
use crate::observed::ObjectState;

#[test]
fn an_edited_image_is_noticed_told_and_put_back() {
    let Some(mut trial) = Trial::begin("edited") else { return };
    let web = trial.goal(deployment("web", "shop:1"));
    assert_eq!(trial.look(&web), Some(ObjectState::Absent));
    trial.put(&[&web]).0.unwrap();
    assert_eq!(trial.look(&web), Some(ObjectState::AsApplied));
    assert!(trial.is_quiet(Duration::from_millis(300)), "our own change concerns nobody");
    let image = json!([{"name": "side", "image": "side:1"}, {"name": "web", "image": "evil:9"}]);
    trial.edit(&web.id, &json!({"spec": {"template": {"spec": {"containers": image}}}}));
    let took = trial.notice();
    let Some(ObjectState::Differs(what)) = trial.look(&web) else { panic!() };
    println!("noticed after {took:?}: {what}");
    assert!(what.contains("spec.template.spec.containers[web].image is evil:9 instead of shop:1"), "{what}");
    assert!(what.contains("containers[side].resources.limits.cpu is missing instead of 1"), "{what}");
    trial.put(&[&web]).0.unwrap();
    assert_eq!(trial.look(&web), Some(ObjectState::AsApplied));
    assert_eq!(trial.get(&web.id).unwrap()["spec"]["template"]["spec"]["containers"][1]["image"], "shop:1");
}

#[test]
fn a_deleted_object_is_noticed_and_put_back() {
    let Some(mut trial) = Trial::begin("deleted") else { return };
    let web = trial.goal(deployment("web", "shop:1"));
    trial.put(&[&web]).0.unwrap();
    assert_eq!(trial.look(&web), Some(ObjectState::AsApplied));
    trial.delete(&web.id);
    trial.notice();
    assert_eq!(trial.look(&web), Some(ObjectState::Absent));
    trial.put(&[&web]).0.unwrap();
    assert_eq!(trial.look(&web), Some(ObjectState::AsApplied));
}

#[test]
fn a_taken_label_and_a_removed_key_are_seen() {
    let Some(mut trial) = Trial::begin("label") else { return };
    let map = trial.goal(settings("colours", "red"));
    trial.put(&[&map]).0.unwrap();
    assert_eq!(trial.look(&map), Some(ObjectState::AsApplied));
    trial.edit(&map.id, &json!({"data": {"colour": null, "other": "mine"}}));
    trial.notice();
    assert_eq!(trial.look(&map), Some(ObjectState::Differs("data.colour is missing instead of red".to_owned())));
    trial.put(&[&map]).0.unwrap();
    assert_eq!(trial.get(&map.id).unwrap()["data"], json!({"colour": "red", "other": "mine"}));
    trial.edit(&map.id, &json!({"metadata": {"labels": {"kedge.dev/assignment": null}}, "data": {"colour": "blue"}}));
    trial.notice();
    let Some(ObjectState::Differs(what)) = trial.look(&map) else { panic!() };
    assert!(what.contains("data.colour is blue instead of red") && what.contains("kedge.dev/assignment"), "{what}");
    trial.put(&[&map]).0.unwrap();
    assert_eq!(trial.look(&map), Some(ObjectState::AsApplied));
}

#[test]
fn scaled_replicas_are_left_to_the_autoscaler() {
    let Some(mut trial) = Trial::begin("scaled") else { return };
    let web = trial.goal(deployment("web", "shop:1"));
    trial.put(&[&web]).0.unwrap();
    assert_eq!(trial.look(&web), Some(ObjectState::AsApplied));
    trial.scale(&web.id, 5);
    trial.notice();
    assert_eq!(trial.look(&web), Some(ObjectState::AsApplied));
    let new = trial.goal(deployment("web", "shop:2"));
    let (done, trace) = trial.put(&[&new]);
    done.unwrap();
    assert!(trace[0].output.contains("leaves spec.replicas"), "{trace:?}");
    let live = trial.get(&web.id).unwrap();
    assert_eq!(
        (&live["spec"]["replicas"], &live["spec"]["template"]["spec"]["containers"][1]["image"]),
        (&json!(5), &json!("shop:2"))
    );
    assert_eq!(trial.look(&new), Some(ObjectState::AsApplied));
}

#[test]
fn a_status_and_an_ignored_object_ask_for_nothing() {
    let Some(mut trial) = Trial::begin("status") else { return };
    let web = trial.goal(deployment("web", "shop:1"));
    let ignored = trial.goal(settings("loose", "red")).with(|terms| terms.drift = OnDrift::Ignore);
    trial.put(&[&web, &ignored]).0.unwrap();
    trial.edit(&web.id, &json!({"metadata": {"annotations": {"somebody": "else"}}}));
    assert!(trial.is_quiet(Duration::from_millis(500)), "a field that isn't ours");
    trial.delete(&ignored.id);
    trial.notice();
    assert_eq!(trial.look(&ignored), Some(ObjectState::AsApplied));
}

#[test]
fn a_secrets_value_is_never_told() {
    let Some(mut trial) = Trial::begin("secret") else { return };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "Z2VoZWlt"}});
    let secret = trial.goal(secret);
    trial.put(&[&secret]).0.unwrap();
    trial.look(&secret);
    trial.edit(&secret.id, &json!({"data": {"k": "YW5kZXJz"}}));
    trial.notice();
    assert_eq!(trial.look(&secret), Some(ObjectState::Differs("data.k differs".to_owned())));
}
