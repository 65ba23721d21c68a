//! Where objects may be: a workload's in its own namespace, unless the Delivery allows it the cluster; the platform's anywhere. And as
//! whom a workload's objects are applied.

use kedge_model::kinds::Scope;
use kedge_model::wire::ApplyParameters;

use super::accounts::{self, ACCOUNT, BINDINGS};
use super::document::Document;
use crate::goal::Part;
use crate::record::Failure;

pub(super) struct Confinement {
    /// The assignment's own.
    pub namespace: String,
    scope: Scope,
    /// As the API server calls the service account that a workload's objects are applied as. None: they are for the whole cluster, and the
    /// agent applies them as itself.
    pub account: Option<String>,
}

impl Confinement {
    pub fn of(assignment: &str, parameters: &ApplyParameters, documents: &[Document]) -> Result<Confinement, Failure> {
        let namespace = match &parameters.namespace {
            Some(namespace) => namespace.clone(),
            None => given(documents)?.unwrap_or(assignment).to_owned(),
        };
        if !is_label(&namespace) {
            let message = format!(
                "`{}` ({} characters) can't be a namespace: there are lower-case letters, digits and `-`, at most 63",
                namespace.escape_debug(),
                namespace.chars().count()
            );
            return Err(Failure::new("BadPackage", message));
        }
        let account = match (&parameters.service_account, parameters.scope) {
            (Some(account), _) => Some(user_of(account, &namespace)?),
            (None, Scope::Namespace) => Some(accounts::user(&namespace)),
            (None, Scope::Cluster) => None,
        };
        Ok(Confinement { namespace, scope: parameters.scope, account })
    }

    /// The object's namespace; none: it belongs to the cluster.
    pub fn namespace_of(&self, document: &Document, namespaced: bool) -> Result<Option<String>, Failure> {
        let is_free = document.part == Part::Platform || self.scope == Scope::Cluster;
        let (kind, name, place) = (&document.kind, &document.name, document.place());
        if !namespaced {
            return match is_free {
                true => Ok(None),
                false => Err(Failure::new(
                    "ClusterScope",
                    format!(
                        "{place}: {kind} {name} belongs to the whole cluster, and the workload is confined to the namespace {}; the platform team can bring it, or allow `scope: cluster` in the Delivery",
                        self.namespace
                    ),
                )),
            };
        }
        let namespace = document.namespace.as_deref().unwrap_or(&self.namespace);
        if namespace != self.namespace && !is_free {
            return Err(Failure::new(
                "NamespaceEscape",
                format!(
                    "{place}: {kind} {name} is for the namespace {}, and the workload is confined to {}; leave `metadata.namespace` out",
                    namespace.escape_debug(),
                    self.namespace
                ),
            ));
        }
        if document.part == Part::Workload && is_reserved(document) {
            return Err(document.wrong(&format!("the agent makes {kind} {name} itself; choose another name")));
        }
        match is_label(namespace) {
            true => Ok(Some(namespace.to_owned())),
            false => Err(document.wrong(&format!("`{}` can't be a namespace", namespace.escape_debug()))),
        }
    }
}

/// What the agent makes in a workload's namespace.
fn is_reserved(document: &Document) -> bool {
    let (group, _) = document.version.split_once('/').unwrap_or_default();
    match (group, document.kind.as_str()) {
        ("", "ServiceAccount") => document.name == ACCOUNT,
        ("rbac.authorization.k8s.io", "RoleBinding") => BINDINGS.iter().any(|(name, _)| *name == document.name),
        _ => false,
    }
}

/// The namespace that the platform package makes.
fn given(documents: &[Document]) -> Result<Option<&str>, Failure> {
    let is_namespace = |one: &&Document| one.part == Part::Platform && one.kind == "Namespace" && one.version == "v1";
    let mut namespaces = documents.iter().filter(is_namespace);
    match (namespaces.next(), namespaces.next()) {
        (first, None) => Ok(first.map(|one| one.name.as_str())),
        (_, Some(second)) => Err(second
            .wrong("this is a second Namespace: the Delivery must say with `namespace` which one is the workload's")),
    }
}

/// `NAME`, or `NAMESPACE/NAME`.
fn user_of(account: &str, own: &str) -> Result<String, Failure> {
    let (namespace, name) = account.split_once('/').unwrap_or((own, account));
    let is_name = name.len() <= 253 && name.split('.').all(is_label);
    match is_label(namespace) && is_name {
        true => Ok(format!("system:serviceaccount:{namespace}:{name}")),
        false => {
            let message =
                format!("the Delivery's serviceAccount `{}` is no `NAME` or `NAMESPACE/NAME`", account.escape_debug());
            Err(Failure::new("BadPackage", message))
        }
    }
}

/// A label of the domain name system, as Kubernetes wants it for namespaces.
pub(super) fn is_label(text: &str) -> bool {
    let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(letters) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_of_the_own_namespace_unless_it_says_another() {
        assert_eq!(user_of("deployer", "shop").unwrap(), "system:serviceaccount:shop:deployer");
        assert_eq!(user_of("ops/a.b", "shop").unwrap(), "system:serviceaccount:ops:a.b");
        for account in ["", "a/b/c", "/a", "a/", "system:masters", "A"] {
            assert_eq!(user_of(account, "shop").unwrap_err().reason, "BadPackage", "{account}");
        }
    }
}
