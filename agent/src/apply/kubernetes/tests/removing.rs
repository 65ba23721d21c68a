//! What goes and what stays.

use serde_json::json;

use super::{Trial, settings};

#[test]
fn a_removed_object_goes_and_one_without_our_label_stays() {
    let Some(mut trial) = Trial::begin("removed") else { return };
    let (ours, replaced) = (trial.goal(settings("ours", "red")), trial.goal(settings("replaced", "red")));
    trial.put(&[&ours, &replaced]).0.unwrap();
    trial.delete(&replaced.id);
    trial.post(&format!("/api/v1/namespaces/{}/configmaps", trial.namespace), &settings("replaced", "blue")).unwrap();
    let (done, trace) = trial.remove(&[&ours, &replaced]);
    done.unwrap();
    assert_eq!(trial.get(&ours.id).unwrap_err().code(), Some(404));
    assert_eq!(trial.get(&replaced.id).unwrap()["data"]["colour"], "blue");
    assert!(trace[0].output.contains("stays: somebody replaced it"), "{trace:?}");
    trial.remove(&[&ours]).0.unwrap();
}

#[test]
fn a_claim_stays_and_keeps_its_namespace() {
    let Some(mut trial) = Trial::begin("claim") else { return };
    let name = format!("{}-inner", trial.namespace);
    let space = trial.goal(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let mut claim = trial
        .goal(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}));
    trial.put(&[&space]).0.unwrap();
    claim = inside(&trial, &claim, &name);
    trial.put(&[&claim]).0.unwrap();
    let (done, trace) = trial.remove(&[&claim]);
    done.unwrap();
    assert!(trace[0].output.contains("stays: it holds data"), "{trace:?}");
    let (done, trace) = trial.remove(&[&space]);
    done.unwrap();
    println!("{trace:?}");
    assert!(trace[0].output.contains("stays: it still holds PersistentVolumeClaim data"), "{trace:?}");
    trial.edit(&claim.id, &json!({"metadata": {"annotations": {"kedge.dev/prune": "always"}}}));
    let (done, trace) = trial.remove(&[&claim]);
    done.unwrap();
    // The controller that protects claims lets it go, since no pod uses it.
    assert_eq!(trial.get(&claim.id).unwrap_err().code(), Some(404), "{trace:?}");
    trial.remove(&[&space]).0.unwrap();
}

/// The same object in another namespace.
fn inside(trial: &Trial, goal: &crate::goal::ObjectGoal, namespace: &str) -> crate::goal::ObjectGoal {
    let bytes = trial.objects.read_small(&goal.content, 1 << 20).unwrap();
    let mut object: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    object["metadata"]["namespace"] = json!(namespace);
    let content = trial.objects.put(object.to_string().as_bytes()).unwrap();
    goal.with(|terms| {
        terms.content = content;
        terms.id.namespace = Some(namespace.to_owned());
    })
}
