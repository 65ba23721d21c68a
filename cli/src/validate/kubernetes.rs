//! Manifests of a Delivery that is confined to its namespace: what the agent would refuse, and what the namespace's account can't do unless
//! the platform team allows it. Called by `delivered`.

mod kinds;
mod objects;

use std::collections::BTreeSet;

use kedge_model::kinds::{Delivery, Scope};
use kedge_model::kubernetes::{ACCOUNT, BINDINGS, TO_WORKLOAD};
use kedge_model::{AssignmentId, Problem};
use kedge_scheduler::Files;

use super::folder::{Folder, binds, text};
use kinds::{Kinds, Reach};
use objects::Object;

const RBAC: &str = "rbac.authorization.k8s.io";
/// Gives every right, so that nobody without all of them may bind it.
const EVERYTHING: &str = "cluster-admin";

/// An error says why it can't be told.
pub(super) fn check(
    id: &AssignmentId,
    files: &Files,
    delivery: &Delivery,
    folder: &Folder<'_>,
) -> Result<Vec<Problem>, String> {
    if delivery.scope == Scope::Cluster {
        return Ok(Vec::new());
    }
    let found = objects::of(folder)?;
    let of_platform = objects::of_text(Files::NAMESPACE, &files.namespace).unwrap_or_default();
    let all = || found.iter().flat_map(|(_, objects)| objects).chain(&of_platform);
    let kinds = Kinds::of(all());
    let namespace = namespace(id, &files.namespace, delivery, &of_platform);
    let mut problems = Vec::new();
    // One sentence for a kind, however many objects of it there are.
    let mut told = BTreeSet::new();
    for (file, objects) in &found {
        for object in objects {
            let reach = kinds.reach(object);
            let refused = confined(object, reach, namespace.as_deref()).or_else(|| reserved(object));
            let problem = match refused {
                Some(problem) => Some(problem),
                // What an account of the platform's own may do is in the cluster.
                None if delivery.service_account.is_some() => None,
                None => right(object, reach).filter(|_| told.insert((object.group(), object.kind.as_str()))),
            };
            problems.extend(problem.map(|problem| folder.at(problem, file, object.line, object.column)));
        }
    }
    Ok(problems)
}

/// The workload's own; none: only the cluster knows.
fn namespace(id: &AssignmentId, text: &str, delivery: &Delivery, of_platform: &[Object]) -> Option<String> {
    if let Some(namespace) = &delivery.namespace {
        return Some(namespace.clone());
    }
    let mut made = of_platform.iter().filter(|object| object.version == "v1" && object.kind == "Namespace");
    match (made.next(), made.next()) {
        _ if binds(text) => None,
        (None, _) => Some(id.target.to_string()),
        (Some(object), None) => Some(object.name.clone()),
        (Some(_), Some(_)) => None,
    }
}

fn confined(object: &Object, reach: Reach, namespace: Option<&str>) -> Option<Problem> {
    let (kind, name) = (&object.kind, &object.name);
    let confined = namespace.map_or("its own".to_owned(), |namespace| namespace.to_owned());
    if reach == Reach::Cluster {
        let message = format!(
            "{kind} {name} belongs to the whole cluster, and the workload is confined to the namespace {confined}"
        );
        return Some(
            Problem::error("ClusterScope", message)
                .hint("the platform team can bring it, or allow `scope: cluster` in the Delivery"),
        );
    }
    let other = object.namespace.as_deref().filter(|other| namespace.is_some_and(|own| own != *other))?;
    let message = format!(
        "{kind} {name} is for the namespace {}, and the workload is confined to {confined}",
        other.escape_debug()
    );
    Some(Problem::error("NamespaceEscape", message).hint("leave `metadata.namespace` out"))
}

/// What the agent makes in a workload's namespace.
fn reserved(object: &Object) -> Option<Problem> {
    let is_reserved = match (object.group(), object.kind.as_str()) {
        ("", "ServiceAccount") => object.name == ACCOUNT,
        (RBAC, "RoleBinding") => BINDINGS.iter().any(|(name, _)| *name == object.name),
        _ => false,
    };
    let message = format!("the agent makes {} {} itself", object.kind, object.name);
    is_reserved.then(|| Problem::error("BadPackage", message).hint("choose another name"))
}

/// What the namespace's account may not do by itself. Whether the platform gave it more is in the cluster.
fn right(object: &Object, reach: Reach) -> Option<Problem> {
    let (group, kind, name) = (object.group(), &object.kind, &object.name);
    let (message, rule) = match reach {
        Reach::Custom | Reach::Platform => {
            let of_group = if group.is_empty() { String::new() } else { format!(" of {group}") };
            (
                format!("{kind}{of_group} isn't among what a workload may use by itself"),
                format!("the rule `apiGroups: [{group:?}]` for the resources of {kind}"),
            )
        }
        Reach::Namespace if group == RBAC && gives_everything(object) => {
            (format!("{kind} {name} gives rights that the workload doesn't have itself"), "those rules".to_owned())
        }
        Reach::Namespace | Reach::Cluster => return None,
    };
    Some(Problem::warning("Forbidden", message).hint(format!(
        "where the cluster doesn't allow it yet, the platform team adds a ClusterRole labelled {TO_WORKLOAD}: \"true\" with {rule}"
    )))
}

fn gives_everything(object: &Object) -> bool {
    object.kind == "RoleBinding"
        && text(&object.node, &["roleRef", "kind"]) == Some("ClusterRole")
        && text(&object.node, &["roleRef", "name"]) == Some(EVERYTHING)
}
