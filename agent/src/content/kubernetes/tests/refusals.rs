//! What is refused, with its place, and what no text may do.

use proptest::prelude::*;

use super::*;

#[test]
fn a_workload_stays_in_its_namespace() {
    let mut world = World::new();
    let escape = format!(
        "# first\n---\n{}",
        DEPLOYMENT.replace("name: web\n  uid", "name: web\n  namespace: kube-system\n  uid")
    );
    let failure = world.workload(&escape).unwrap_err();
    assert_eq!(failure.reason, "NamespaceEscape");
    assert!(
        failure.message.starts_with("app/web.yaml:3: Deployment web is for the namespace kube-system"),
        "{}",
        failure.message
    );
    let own = DEPLOYMENT.replace("name: web\n  uid", "name: web\n  namespace: shop\n  uid");
    assert!(world.workload(&own).is_ok());
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\n";
    let failure = world.workload(role).unwrap_err();
    assert_eq!(failure.reason, "ClusterScope");
    assert!(
        failure.message.starts_with("app/web.yaml:1: ClusterRole all belongs to the whole cluster"),
        "{}",
        failure.message
    );
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    assert_eq!(world.workload(namespace).unwrap_err().reason, "ClusterScope");

    world.parameters.scope = Scope::Cluster;
    assert_eq!(world.workload(role).unwrap().objects.last().unwrap().id.namespace, None);
    assert_eq!(world.workload(&escape).unwrap().objects.last().unwrap().id.namespace.as_deref(), Some("kube-system"));
    let hostile = DEPLOYMENT.replace("name: web\n  uid", "name: web\n  namespace: a/../b\n  uid");
    assert!(world.workload(&hostile).unwrap_err().message.contains("can't be a namespace"));
}

#[test]
fn a_kind_that_nobody_knows_is_named_and_may_come() {
    let world = World::new();
    let failure = world.workload("# x\napiVersion: acme.io/v1\nkind: Camera\nmetadata: {name: front}\n").unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.passes), ("UnknownKind", true));
    assert!(
        failure.message.starts_with("app/web.yaml:2: the cluster has no kind Camera of acme.io/v1;"),
        "{}",
        failure.message
    );
    let packages = world.packages(&[], &[("manifests/a.yaml", DEPLOYMENT)]);
    let failure = goal_of(ASSIGNMENT, &packages, 0, &world.objects, &world.index, &world.facts, &Away).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.passes), ("ApiServer", true));
}

#[test]
fn several_refusals_are_said_at_once() {
    let text = "apiVersion: acme.io/v1\nkind: Camera\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b, namespace: x}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: c}\n";
    let failure = World::new().workload(text).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.passes), ("NamespaceEscape", false));
    for place in ["app/web.yaml:1:", "app/web.yaml:5:", "app/web.yaml:9:"] {
        assert!(failure.message.contains(place), "{}", failure.message);
    }
}

#[test]
fn two_of_one_object_are_refused_whatever_their_versions() {
    let world = World::new();
    let twice = format!("{DEPLOYMENT}---\n{}", DEPLOYMENT.replace("apps/v1", "apps/v1beta1"));
    let failure = world.workload(&twice).unwrap_err();
    assert_eq!(failure.reason, "BadPackage");
    assert!(
        failure.message.starts_with("app/web.yaml:17: Deployment shop/web is here and at app/web.yaml:1"),
        "{}",
        failure.message
    );
    let of_both = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: platform-config}\n";
    let failure = world.workload(of_both).unwrap_err();
    assert!(failure.message.ends_with("is here and at platform-config.yaml:1"), "{}", failure.message);
}

#[test]
fn an_object_over_the_limit_is_refused_with_its_size() {
    let text =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: big}}\ndata:\n  x: {}\n", "y".repeat(1 << 20));
    let failure = World::new().workload(&text).unwrap_err();
    assert_eq!(failure.reason, "ObjectTooLarge");
    assert!(failure.message.starts_with("app/web.yaml:1: ConfigMap shop/big has 10487"), "{}", failure.message);
    let many: Vec<String> =
        (0..2_001).map(|number| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\n")).collect();
    let failure = World::new().workload(&many.join("---\n")).unwrap_err();
    assert!(failure.message.contains("hold 2004 objects, more than 2000"), "{}", failure.message);
}

#[test]
fn an_unbound_name_is_named_and_hosts_have_none_here() {
    let world = World::new();
    for (name, expected) in
        [("cluster.labels.nope", "no such label"), ("host.ip", "many hosts"), ("host.arch", "many hosts")]
    {
        let configuration = CONFIGURATION.replace("cluster.name", name);
        let packages = world.packages(&[("platform-config.yaml", &configuration)], &[("manifests/a.yaml", DEPLOYMENT)]);
        let failure = world.goal(&packages).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.passes), ("Unbound", false));
        assert!(
            failure.message.starts_with(&format!("platform-config.yaml:5: `{name}` isn't bound")),
            "{}",
            failure.message
        );
        assert!(failure.message.contains(expected), "{}", failure.message);
    }
    assert!(
        world.workload(&DEPLOYMENT.replace("web:1", "'web:${HOME}'")).is_ok(),
        "the application's texts are its own"
    );
}

#[test]
fn a_package_without_objects_or_for_hosts_is_refused() {
    let mut world = World::new();
    for text in ["# nothing\n", "apiVersion: v1\nkind: List\nitems: []\n"] {
        assert!(world.workload(text).unwrap_err().message.contains("holds no object"));
    }
    let labels = DEPLOYMENT.replace("labels: {app: web}\nspec", "labels: [a]\nspec");
    let failure = world.workload(&labels).unwrap_err();
    assert!(
        failure.message.starts_with("app/web.yaml:1: `metadata.labels` of the Deployment must be a map"),
        "{}",
        failure.message
    );
    world.parameters.to = Destination::Host;
    assert_eq!(world.workload(DEPLOYMENT).unwrap_err().reason, "Unsupported");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_manifest_panics(text in any::<String>(), cut in 0..DEPLOYMENT.len(), more in "[-{}\\[\\]:a \n]{0,40}") {
        let world = World::new();
        let _ = world.workload(&text);
        let _ = world.workload(&DEPLOYMENT[..cut]);
        let _ = world.workload(&format!("{DEPLOYMENT}{more}"));
        let _ = world.workload(&DEPLOYMENT.replace("labels: {app: web}", &format!("annotations: {more}")));
    }
}
