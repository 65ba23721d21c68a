//! When an object is applied, by its kind.

use crate::goal::Stage;

/// Accounts, rights, limits, settings, storage, classes: what running things need to be there.
const CONFIGURATION: [(&str, &str); 24] = [
    ("", "ConfigMap"),
    ("", "LimitRange"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "ResourceQuota"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("gateway.networking.k8s.io", "GatewayClass"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
];

pub(super) fn of(group: &str, kind: &str) -> Stage {
    match (group, kind) {
        ("", "Namespace") => Stage::Namespaces,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Stage::Definitions,
        // Webhooks and policies: they judge all that comes after them. An API service stands in front of a whole group.
        ("admissionregistration.k8s.io", _) | ("apiregistration.k8s.io", "APIService") => Stage::Webhooks,
        _ if CONFIGURATION.contains(&(group, kind)) => Stage::Configuration,
        _ => Stage::Rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first_and_what_judges_them_last() {
        for (group, kind, expected) in [
            ("", "Namespace", Stage::Namespaces),
            ("apiextensions.k8s.io", "CustomResourceDefinition", Stage::Definitions),
            ("rbac.authorization.k8s.io", "RoleBinding", Stage::Configuration),
            ("", "Secret", Stage::Configuration),
            ("example.com", "Secret", Stage::Rest),
            ("apps", "Deployment", Stage::Rest),
            ("", "Service", Stage::Rest),
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", Stage::Webhooks),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", Stage::Webhooks),
            ("apiregistration.k8s.io", "APIService", Stage::Webhooks),
        ] {
            assert_eq!(of(group, kind), expected, "{group} {kind}");
        }
    }
}
