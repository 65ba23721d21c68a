//! Whole goals of clusters from real archives.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod refusals;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kedge_model::kinds::{Drift, Rollback, Scope};
use kedge_model::wire::PackageRef;
use serde_json::{Value, json};

use super::*;
use crate::archive::tests::pack;
use crate::bind::tests::facts;
use crate::goal::{OnDrift, Stage};
use crate::store::memory::MemoryStore;

const ASSIGNMENT: &str = "web-test";
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: deployer}\n";
const CONFIGURATION: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: platform-config, namespace: shop}\ndata:\n  AT: ${cluster.name}\n";
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  uid: x\n  creationTimestamp: null\n  labels: {app: web}\nspec:\n  replicas: 2\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers: [{name: web, image: web:1}]\nstatus: {replicas: 2}\n";

struct World {
    _folder: tempfile::TempDir,
    objects: Objects,
    index: PackageIndex,
    parameters: ApplyParameters,
    restart: u64,
    facts: HostFacts,
}

/// A server with the usual kinds.
#[derive(Debug)]
struct Usual;

/// A server that can't be asked.
#[derive(Debug)]
struct Away;

impl Kinds for Usual {
    fn find(&self, api_version: &str, kind: &str) -> Result<Option<KindInfo>, Failure> {
        let known = [
            ("v1", "Namespace", "namespaces", false),
            ("v1", "ServiceAccount", "serviceaccounts", true),
            ("v1", "ConfigMap", "configmaps", true),
            ("v1", "Secret", "secrets", true),
            ("v1", "Service", "services", true),
            ("v1", "ResourceQuota", "resourcequotas", true),
            ("v1", "LimitRange", "limitranges", true),
            ("apps/v1", "Deployment", "deployments", true),
            ("apps/v1", "StatefulSet", "statefulsets", true),
            ("apps/v1beta1", "Deployment", "deployments", true),
            ("batch/v1", "Job", "jobs", true),
            ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", true),
            ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
        ];
        let found = known.iter().find(|(version, name, ..)| (*version, *name) == (api_version, kind));
        Ok(found.map(|(version, kind, plural, namespaced)| {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            KindInfo {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: (*kind).to_owned(),
                plural: (*plural).to_owned(),
                namespaced: *namespaced,
            }
        }))
    }
}

impl Kinds for Away {
    fn find(&self, _: &str, _: &str) -> Result<Option<KindInfo>, Failure> {
        Err(Failure::passing("ApiServer", "connection refused"))
    }
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects")).unwrap();
        World {
            _folder: folder,
            objects,
            index: PackageIndex::new(Arc::new(MemoryStore::default())),
            parameters: ApplyParameters {
                to: Destination::Kubernetes,
                namespace: None,
                scope: Scope::Namespace,
                conflicts: Conflicts::Fail,
                service_account: None,
                timeout_seconds: 300,
                soak_seconds: 30,
                rollback: Rollback::Auto,
                drift: Drift::Repair,
            },
            restart: 0,
            facts: facts(),
        }
    }

    fn packages(&self, platform: &[(&str, &str)], workload: &[(&str, &str)]) -> Packages {
        let put = |files: &[(&str, &str)]| {
            let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_bytes(), false)).collect();
            let blob = pack(&files);
            let digest = self.objects.put(&blob).unwrap();
            let size = blob.len() as u64;
            PackageRef { digest, size, repo: "r".to_owned(), commit: "c".to_owned(), artifacts: vec![] }
        };
        Packages {
            parameters: self.parameters.clone(),
            platform: put(platform),
            workload: put(workload),
            version: None,
        }
    }

    fn goal(&self, packages: &Packages) -> Result<Goal, Failure> {
        goal_of(ASSIGNMENT, packages, self.restart, &self.objects, &self.index, &self.facts, &Usual)
    }

    /// In the namespace above.
    fn workload(&self, text: &str) -> Result<Goal, Failure> {
        self.goal(&self.packages(
            &[("namespace.yaml", NAMESPACE), ("platform-config.yaml", CONFIGURATION)],
            &[("manifests/app/web.yaml", text)],
        ))
    }

    fn read(&self, goal: &Goal, kind: &str) -> Value {
        let object = goal.objects.iter().find(|object| object.id.kind == kind).unwrap();
        serde_json::from_slice(&self.objects.read_small(&object.content, 2 << 20).unwrap()).unwrap()
    }
}

#[test]
fn both_packages_become_objects_with_our_marks() {
    let mut world = World::new();
    world.parameters.service_account = Some("deployer".to_owned());
    let goal = world.workload(DEPLOYMENT).unwrap();
    let told: Vec<_> =
        goal.objects.iter().map(|one| (one.id.to_string(), one.part, one.stage, one.account.as_deref())).collect();
    let account = Some("system:serviceaccount:shop:deployer");
    assert_eq!(
        told,
        [
            ("Namespace shop".to_owned(), Part::Platform, Stage::Namespaces, None),
            ("ServiceAccount shop/deployer".to_owned(), Part::Platform, Stage::Configuration, None),
            ("ConfigMap shop/platform-config".to_owned(), Part::Platform, Stage::Configuration, None),
            ("Deployment shop/web".to_owned(), Part::Workload, Stage::Rest, account),
        ]
    );
    let id = &goal.objects[3].id;
    assert_eq!((id.group.as_str(), id.version.as_str(), id.plural.as_str()), ("apps", "v1", "deployments"));
    let labels = json!({"kedge.dev/assignment": "web-test"});
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "web:1", "name": "web"}]}});
    assert_eq!(
        world.read(&goal, "Deployment"),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop",
            "labels": {"app": "web", "kedge.dev/assignment": "web-test"}, "annotations": labels},
            "spec": {"replicas": 2, "template": template}})
    );
    assert_eq!(
        world.read(&goal, "Namespace"),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels, "annotations": labels}})
    );
    assert_eq!(world.read(&goal, "ConfigMap")["data"], json!({"AT": "line-7"}));
    assert_eq!((goal.bounds.timeout_seconds, goal.bounds.soak_seconds), (300, 30));
    assert!(goal.health.is_empty() && goal.files.is_empty());
    assert!(goal.objects.iter().all(|one| !one.take && !one.keep && !one.recreate && one.drift == OnDrift::Repair));
    assert_eq!(world.workload(DEPLOYMENT).unwrap(), goal, "the same packages are the same goal");
    let bytes = world.objects.read_small(&goal.objects[3].content, 1 << 20).unwrap();
    assert!(bytes.starts_with(br#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"#), "sorted");
}

#[test]
fn the_namespace_is_the_deliverys_then_the_platforms_then_the_assignments() {
    let mut world = World::new();
    let workload = [("manifests/a.yaml", DEPLOYMENT)];
    let place = |world: &World, platform: &[(&str, &str)]| {
        let goal = world.goal(&world.packages(platform, &workload))?;
        Ok::<_, Failure>(goal.objects.last().unwrap().id.namespace.clone().unwrap())
    };
    assert_eq!(place(&world, &[]).unwrap(), ASSIGNMENT);
    assert_eq!(place(&world, &[("namespace.yaml", NAMESPACE)]).unwrap(), "shop");
    let two = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n";
    let failure = place(&world, &[("namespace.yaml", two)]).unwrap_err();
    assert!(failure.message.starts_with("namespace.yaml:5: this is a second Namespace"), "{}", failure.message);
    world.parameters.namespace = Some("b".to_owned());
    assert_eq!(place(&world, &[("namespace.yaml", two)]).unwrap(), "b");
    world.parameters.namespace = Some("n".repeat(64));
    assert!(place(&world, &[]).unwrap_err().message.contains("(64 characters) can't be a namespace"));
}

#[test]
fn the_platform_may_bring_anything() {
    let world = World::new();
    let more = format!(
        "{NAMESPACE}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: all, namespace: x}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: other}}\n"
    );
    let goal = world.goal(&world.packages(&[("namespace.yaml", &more)], &[("manifests/w.yml", DEPLOYMENT)])).unwrap();
    let ids: Vec<_> = goal.objects.iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids[2..4], ["ClusterRole all", "ConfigMap other/a"]);
    assert_eq!(world.read(&goal, "ClusterRole")["metadata"]["namespace"], Value::Null);
}

#[test]
fn a_definition_in_the_packages_says_what_its_kind_is() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: cameras.acme.io}\nspec:\n  group: acme.io\n  names: {kind: Camera, plural: cameras}\n  scope: Namespaced\n  versions: [{name: v1, served: true, storage: true}, {name: v0, served: false}]\n";
    let camera = "apiVersion: acme.io/v1\nkind: Camera\nmetadata: {name: front}\n";
    let mut world = World::new();
    world.parameters.scope = Scope::Cluster;
    let goal = world.workload(&format!("{camera}---\n{definition}")).unwrap();
    let found = goal.objects.iter().find(|one| one.id.kind == "Camera").unwrap();
    assert_eq!(
        (found.id.plural.as_str(), found.id.namespace.as_deref(), found.stage),
        ("cameras", Some("shop"), Stage::Rest)
    );
    let failure = world.workload(&format!("{}---\n{definition}", camera.replace("v1", "v0"))).unwrap_err();
    assert_eq!(failure.reason, "UnknownKind");

    world.parameters.scope = Scope::Namespace;
    assert_eq!(world.workload(&format!("{camera}---\n{definition}")).unwrap_err().reason, "ClusterScope");
    let platform = format!("{NAMESPACE}---\n{definition}");
    let packages = world.packages(&[("namespace.yaml", &platform)], &[("manifests/c.yaml", camera)]);
    assert!(world.goal(&packages).is_ok());
    for (from, to) in
        [("plural: cameras", "plural: ../x"), ("scope: Namespaced", "scope: All"), ("group: acme.io", "group: 7")]
    {
        let broken = platform.replace(from, to);
        let packages = world.packages(&[("namespace.yaml", &broken)], &[("manifests/c.yaml", camera)]);
        let failure = world.goal(&packages).unwrap_err();
        assert!(
            failure.message.starts_with("namespace.yaml:10: the CustomResourceDefinition cameras.acme.io has no"),
            "{}",
            failure.message
        );
    }
}

#[test]
fn plain_texts_of_a_secret_become_its_data() {
    let world = World::new();
    let text =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: hi, b: new}\ndata: {b: b2xk, c: Yw==}\n";
    let secret = world.read(&world.workload(text).unwrap(), "Secret");
    assert_eq!(secret["data"], json!({"a": "aGk=", "b": "bmV3", "c": "Yw=="}));
    assert_eq!(secret.get("stringData"), None);
    let failure = world.workload(&text.replace("a: hi", "a: 123456")).unwrap_err();
    assert_eq!(failure.message, "app/web.yaml:1: `stringData.a` of the Secret must be a text; write it in quotes");
    let nothing = world.read(&world.workload(&text.replace("{a: hi, b: new}", "null")).unwrap(), "Secret");
    assert_eq!(nothing["data"], json!({"b": "b2xk", "c": "Yw=="}));
}

#[test]
fn a_job_stays_until_it_is_no_longer_wanted() {
    let world = World::new();
    let text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {ttlSecondsAfterFinished: 5, backoffLimit: 1}\n";
    assert_eq!(world.read(&world.workload(text).unwrap(), "Job")["spec"], json!({"backoffLimit": 1}));
}

#[test]
fn wishes_of_an_object_are_heard() {
    let mut world = World::new();
    world.parameters.conflicts = Conflicts::Take;
    let noted =
        |notes: &str| DEPLOYMENT.replace("  labels: {app: web}\nspec", &format!("  annotations: {{{notes}}}\nspec"));
    let wishes = noted("kedge.dev/prune: never, kedge.dev/recreate: 'true', kedge.dev/drift: report");
    let goal = world.workload(&wishes).unwrap();
    let last = goal.objects.last().unwrap();
    assert!(last.take && last.keep && last.recreate && last.drift == OnDrift::Report);
    assert_eq!(world.read(&goal, "Deployment")["metadata"]["annotations"]["kedge.dev/prune"], "never");
    let ignored = world.workload(&noted("kedge.dev/drift: ignore")).unwrap();
    assert_eq!(ignored.objects.last().unwrap().drift, OnDrift::Ignore);
    let failure = world.workload(&noted("kedge.dev/drift: never")).unwrap_err();
    assert!(
        failure.message.starts_with("app/web.yaml:7: `kedge.dev/drift: never` has no meaning"),
        "{}",
        failure.message
    );
    world.parameters.drift = Drift::Report;
    let reported = world.workload(&noted("kedge.dev/drift: repair")).unwrap();
    assert!(reported.objects.iter().all(|one| one.drift == OnDrift::Report));
}

#[test]
fn a_raised_counter_restarts_pods_and_nothing_else() {
    let mut world = World::new();
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: {spec: {containers: [{name: a}]}}}\n";
    let text = format!("{DEPLOYMENT}---\n{job}");
    let before = world.workload(&text).unwrap();
    world.restart = 3;
    let after = world.workload(&text).unwrap();
    let changed: Vec<_> = before.objects.iter().zip(&after.objects).filter(|(one, other)| one != other).collect();
    assert_eq!(changed.len(), 1);
    let annotations = &world.read(&after, "Deployment")["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(*annotations, json!({"kedge.dev/restart": "3"}));
}

#[test]
fn a_changed_configuration_rolls_those_that_ask() {
    let mut world = World::new();
    let asks = DEPLOYMENT.replace("  labels: {app: web}\nspec", "  annotations: {kedge.dev/restart-on: config}\nspec");
    let stateful = DEPLOYMENT.replace("kind: Deployment", "kind: StatefulSet");
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once, annotations: {kedge.dev/restart-on: config}}\nspec: {template: {spec: {containers: [{name: a}]}}}\n";
    let text = format!("{asks}---\n{stateful}---\n{job}");
    let before = world.workload(&text).unwrap();
    world.facts.cluster_name = "line-8".to_owned();
    let after = world.workload(&text).unwrap();
    let changed: Vec<_> = before
        .objects
        .iter()
        .zip(&after.objects)
        .filter(|(one, other)| one != other)
        .map(|(one, _)| one.id.kind.as_str())
        .collect();
    assert_eq!(changed, ["ConfigMap", "Deployment"]);
    let mark =
        world.read(&after, "Deployment")["spec"]["template"]["metadata"]["annotations"]["kedge.dev/config"].clone();
    assert_eq!(mark.as_str().unwrap().len(), 16);
}

#[test]
fn the_samples_application_becomes_a_goal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/sample/hello-gitops/kubernetes");
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (format!("manifests/{name}"), fs::read_to_string(entry.path()).unwrap())
        })
        // The hub reads it and leaves it out.
        .filter(|(name, _)| !name.ends_with("kustomization.yaml"))
        .collect();
    files.sort();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let world = World::new();
    let goal = world.goal(&world.packages(&[("namespace.yaml", NAMESPACE)], &files)).unwrap();
    let ids: Vec<_> = goal.objects.iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids[2..], ["Deployment shop/hello", "Service shop/hello"]);
}
