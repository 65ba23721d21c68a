//! The agent's rights in the cluster: the ones that its packaging gives it, in a namespace of the test's own.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::Value;

use super::manifests::widget_group;
use crate::lab::kubernetes::{Kubernetes, Proxy};

/// What the agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Apply everything.
    Apply,
    /// Look at everything, and write its own Lease and Secrets.
    Observe,
}

const ACCOUNT: &str = "kedge-agent";

/// Makes the account; a kubeconfig for it that leads through the proxy.
pub(super) fn grant(kubernetes: &Kubernetes, access: Access, namespace: &str, folder: &Path, proxy: &Proxy) -> PathBuf {
    kubernetes.apply(&text(access, namespace));
    let token = kubernetes.token(namespace, ACCOUNT);
    kubernetes.kubeconfig_for(folder, &token, proxy.address())
}

fn text(access: Access, namespace: &str) -> String {
    let rules = match access {
        Access::Apply => "  - {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}\n  - {nonResourceURLs: [\"*\"], verbs: [get]}\n",
        Access::Observe => "  - {apiGroups: [\"*\"], resources: [\"*\"], verbs: [get, list, watch]}\n",
    };
    format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: \
         {{name: {ACCOUNT}, namespace: {namespace}}}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: \
         {{name: {namespace}}}\nrules:\n{rules}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: \
         {{name: {namespace}}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}\nsubjects:\n  \
         - {{kind: ServiceAccount, name: {ACCOUNT}, namespace: {namespace}}}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n\
         metadata: {{name: own, namespace: {namespace}}}\nrules:\n  - {{apiGroups: [\"\"], resources: [secrets], verbs: [\"*\"]}}\n  - \
         {{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [\"*\"]}}\n---\napiVersion: rbac.authorization.k8s.io/v1\n\
         kind: RoleBinding\nmetadata: {{name: own, namespace: {namespace}}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, \
         name: own}}\nsubjects:\n  - {{kind: ServiceAccount, name: {ACCOUNT}, namespace: {namespace}}}\n"
    )
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
