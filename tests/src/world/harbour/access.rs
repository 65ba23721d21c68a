//! The agent's rights in the cluster: the ones that its packaging gives it, in a namespace of the test's own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::Value;

use super::manifests::widget_group;
use crate::lab::kubernetes::Kubernetes;

/// What the agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Apply everything.
    Apply,
    /// Look at everything, and write its own Lease and Secrets.
    Observe,
}

const ACCOUNT: &str = "kedge-agent";

/// Makes the account; a kubeconfig for it that leads to the API server's address, or a proxy's.
pub(super) fn grant(
    kubernetes: &Kubernetes,
    (access, everything): (Access, bool),
    namespace: &str,
    folder: &Path,
    server: SocketAddr,
) -> PathBuf {
    kubernetes.apply(&text(access, namespace));
    if everything {
        kubernetes.apply(&everything_text(namespace));
    }
    let token = kubernetes.token(namespace, ACCOUNT);
    kubernetes.kubeconfig_for(folder, &token, server)
}

/// What an administrator does who lets the platform bring whatever it likes: for Deliveries with `scope: cluster`. Not by a label, which would
/// be for the agents of all tests.
fn everything_text(namespace: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {namespace}-kedge-agent-all}}\nroleRef: \
         {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}\nsubjects: [{{kind: ServiceAccount, name: \
         {ACCOUNT}, namespace: {namespace}}}]\n"
    )
}

/// The packaging's own text, in another namespace. Roles and bindings of the whole cluster get names of the test's own.
fn text(access: Access, namespace: &str) -> String {
    let rights = match access {
        Access::Apply => include_str!("../../../../packaging/kubernetes/manifests/apply/rights.yaml"),
        Access::Observe => include_str!("../../../../packaging/kubernetes/manifests/observe/rights.yaml"),
    };
    let own = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n");
    let account = include_str!("../../../../packaging/kubernetes/manifests/base/account.yaml");
    let documents = [&own, account, rights].into_iter().flat_map(|text| text.split("---\n"));
    let place = |document: &str| {
        let document = document.replace("namespace: kedge-system", &format!("namespace: {namespace}"));
        match document.contains("\nkind: ClusterRole") {
            true => document.replace("\n  name: kedge-agent", &format!("\n  name: {namespace}-kedge-agent")),
            false => document,
        }
    };
    documents.map(place).collect::<Vec<_>>().join("---\n")
}

/// What a test may leave that belongs to the whole cluster.
const LISTS: [&str; 5] = [
    "/api/v1/namespaces",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
];

/// Deletes all that bears the test's word, and doesn't wait. A cluster that is away keeps what it has.
pub(super) fn leave(kubernetes: &Kubernetes, id: &str) {
    for list in LISTS {
        let Some((_, all)) = kubernetes.try_ask(Method::GET, list, None) else { return };
        let items = all["items"].as_array().cloned().unwrap_or_default();
        let names = items.iter().filter_map(|one| one.pointer("/metadata/name").and_then(Value::as_str));
        for name in names.filter(|name| name.contains(&format!("-{id}")) || name.contains(&widget_group(id))) {
            kubernetes.try_ask(Method::DELETE, &format!("{list}/{name}"), None);
        }
    }
}
