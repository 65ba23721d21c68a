//! What is known of kinds without a cluster: those of Kubernetes itself, a few that every cluster has in the same way, and those that the
//! manifests define.

use std::collections::BTreeMap;

use super::objects::Object;
use crate::validate::folder::text;

/// Where objects of a kind are, and who may make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Cluster,
    /// In a namespace, and among what `admin` of Kubernetes may use there.
    Namespace,
    /// In a namespace, and the platform's to make.
    Platform,
    /// Of a definition; where, only the cluster knows.
    Custom,
}

/// Those that the manifests define: whether they are the cluster's.
pub(super) struct Kinds<'a>(BTreeMap<(&'a str, &'a str), bool>);

/// Group and kind; `*`: every kind of the group.
const CLUSTER: [(&str, &str); 33] = [
    ("", "ComponentStatus"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("admissionregistration.k8s.io", "*"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("cert-manager.io", "ClusterIssuer"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("gateway.networking.k8s.io", "GatewayClass"),
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodSecurityPolicy"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass"),
    ("snapshot.storage.k8s.io", "VolumeSnapshotContent"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("external-secrets.io", "ClusterSecretStore"),
    ("external-secrets.io", "ClusterExternalSecret"),
    ("kyverno.io", "ClusterPolicy"),
];
/// In a namespace, but not in `admin`.
const PLATFORM: [(&str, &str); 3] = [("", "LimitRange"), ("", "ResourceQuota"), ("discovery.k8s.io", "EndpointSlice")];
/// Groups of Kubernetes itself; all others come with a definition.
const BUILT_IN: [&str; 20] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io", "CustomResourceDefinition");

impl<'a> Kinds<'a> {
    pub fn of(objects: impl Iterator<Item = &'a Object>) -> Kinds<'a> {
        let defined = |object: &'a Object| {
            let group = text(&object.node, &["spec", "group"])?;
            let kind = text(&object.node, &["spec", "names", "kind"])?;
            Some(((group, kind), text(&object.node, &["spec", "scope"])? == "Cluster"))
        };
        let definitions = objects.filter(|object| (object.group(), object.kind.as_str()) == DEFINITION);
        Kinds(definitions.filter_map(defined).collect())
    }

    pub fn reach(&self, object: &Object) -> Reach {
        let key = (object.group(), object.kind.as_str());
        let is_listed = |list: &[(&str, &str)]| {
            list.iter().any(|(group, kind)| *group == key.0 && (*kind == "*" || *kind == key.1))
        };
        match self.0.get(&key) {
            Some(true) => Reach::Cluster,
            Some(false) => Reach::Custom,
            None if is_listed(&CLUSTER) => Reach::Cluster,
            None if is_listed(&PLATFORM) => Reach::Platform,
            None if BUILT_IN.contains(&key.0) => Reach::Namespace,
            None => Reach::Custom,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::objects::of_text;
    use super::*;

    #[test]
    fn a_kind_is_where_kubernetes_or_its_definition_says() {
        let text = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cameras.acme.io}
spec: {group: acme.io, scope: Cluster, names: {kind: Camera}}
---
{apiVersion: acme.io/v1, kind: Camera, metadata: {name: a}}
---
{apiVersion: acme.io/v1, kind: Lens, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}}
";
        let objects = of_text("a.yaml", text).unwrap();
        let kinds = Kinds::of(objects.iter());
        let found: Vec<Reach> = objects.iter().map(|object| kinds.reach(object)).collect();
        let expected =
            [Reach::Cluster, Reach::Cluster, Reach::Custom, Reach::Namespace, Reach::Platform, Reach::Cluster];
        assert_eq!(found, expected);
    }
}
