//! The applier against a real API server, where `KEDGE_TEST_KUBECONFIG` names one. Each test has a namespace of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod away;
mod drift;
mod putting;
mod removing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::KubernetesApplier;
use crate::apply::Host as _;
use crate::clock::SystemClock;
use crate::cluster::Cluster;
use crate::cluster::kinds::Discovered;
use crate::cluster::request::{ApiError, Call, JSON, address};
use crate::cluster::watches::Watches;
use crate::content::kubernetes::Kinds as _;
use crate::goal::{Check, ObjectGoal, ObjectId, ObjectTerms, OnDrift, Part, Probe, Stage};
use crate::objects::Objects;
use crate::observed::{ObjectState, Subjects};
use crate::record::{Failure, Traced};
use crate::step::Step;
use crate::trace::Tracer;

pub(super) struct Trial {
    pub applier: KubernetesApplier,
    pub cluster: Cluster,
    pub namespace: String,
    kinds: Arc<Discovered>,
    objects: Objects,
    noticed: UnboundedReceiver<BTreeSet<String>>,
    runtime: tokio::runtime::Handle,
    open: Arc<AtomicBool>,
    _folder: tempfile::TempDir,
}

const MERGE: &str = "application/merge-patch+json";
/// What the operator is promised.
const SOON: Duration = Duration::from_secs(2);

impl Trial {
    /// None: there is no API server here.
    pub fn begin(name: &str) -> Option<Trial> {
        let Some(kubeconfig) = std::env::var_os("KEDGE_TEST_KUBECONFIG").map(PathBuf::from) else {
            println!("KEDGE-SKIP apply::kubernetes::{name}: KEDGE_TEST_KUBECONFIG isn't set");
            return None;
        };
        Some(Trial::at(&kubeconfig, name))
    }

    fn at(kubeconfig: &Path, name: &str) -> Trial {
        let kubeconfig = kubeconfig.to_owned();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let cluster = Cluster::connect(Some(&kubeconfig)).await.unwrap();
                let (tell, noticed) = unbounded_channel();
                let watches = Watches::start(cluster.clone(), tell);
                send.send((cluster, watches, noticed, tokio::runtime::Handle::current())).unwrap();
                std::future::pending::<()>().await;
            });
        });
        let (cluster, watches, noticed, runtime) = receive.recv().unwrap();
        let kinds = Arc::new(Discovered::new(cluster.clone(), runtime.clone()));
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects")).unwrap();
        let open = Arc::new(AtomicBool::new(true));
        let gate = Arc::clone(&open);
        let applier = KubernetesApplier::new(
            cluster.clone(),
            Arc::clone(&kinds),
            watches,
            objects.clone(),
            runtime.clone(),
            Arc::new(move || gate.load(Ordering::SeqCst)),
        );
        let namespace = format!("{name}-{:08x}", rand::random::<u32>());
        let trial = Trial { applier, cluster, namespace, kinds, objects, noticed, runtime, open, _folder: folder };
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": trial.namespace}});
        trial.post("/api/v1/namespaces", &space).unwrap();
        trial
    }

    /// A goal of this object, in the trial's namespace, with our label.
    pub fn goal(&self, mut object: Value) -> ObjectGoal {
        let (api, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let info = self.kinds.find(api, kind).unwrap().unwrap_or_else(|| panic!("no {kind}"));
        if info.namespaced {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        object["metadata"]["labels"]["kedge.dev/assignment"] = json!(self.namespace);
        let id = ObjectId {
            group: info.group,
            version: info.version,
            kind: info.kind,
            plural: info.plural,
            namespace: info.namespaced.then(|| self.namespace.clone()),
            name: object["metadata"]["name"].as_str().unwrap().to_owned(),
        };
        let stage = match id.kind.as_str() {
            "Namespace" => Stage::Namespaces,
            "CustomResourceDefinition" => Stage::Definitions,
            _ => Stage::Rest,
        };
        let content = self.objects.put(object.to_string().as_bytes()).unwrap();
        let (part, account, drift) = (Part::Workload, None, OnDrift::Repair);
        let terms = ObjectTerms { id, content, part, stage, account, take: false, keep: false, recreate: false, drift };
        terms.into()
    }

    pub fn put(&mut self, objects: &[&ObjectGoal]) -> (Result<(), Failure>, Vec<Traced>) {
        let objects = objects.iter().map(|one| (*one).clone()).collect();
        self.execute(&Step::PutObjects { objects })
    }

    pub fn remove(&mut self, objects: &[&ObjectGoal]) -> (Result<(), Failure>, Vec<Traced>) {
        let objects = objects.iter().map(|one| (*one).clone()).collect();
        self.execute(&Step::RemoveObjects { objects })
    }

    pub fn look(&self, goal: &ObjectGoal) -> Option<ObjectState> {
        let objects = BTreeMap::from([(goal.id.clone(), goal.clone())]);
        let observed = self.applier.look(&Subjects { objects, ..Subjects::default() }).unwrap();
        observed.objects.get(&goal.id).cloned()
    }

    pub fn check(&mut self, goal: &ObjectGoal) -> Result<(), Failure> {
        self.applier.check(&Check { probe: Probe::Objects(vec![goal.id.clone()]), timeout_seconds: 0 })
    }

    /// Waits until the watches say that somebody touched this trial's objects.
    pub fn notice(&mut self) -> Duration {
        let began = Instant::now();
        assert!(!self.is_quiet(SOON), "nothing was noticed");
        began.elapsed()
    }

    /// Other trials have watches at the same server, and everybody sees everybody's objects.
    pub fn is_quiet(&mut self, time: Duration) -> bool {
        let (namespace, noticed) = (self.namespace.clone(), &mut self.noticed);
        let heard = async { while !noticed.recv().await.unwrap().contains(&namespace) {} };
        self.runtime.block_on(async { tokio::time::timeout(time, heard).await }).is_err()
    }

    pub fn close_gate(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    pub fn get(&self, id: &ObjectId) -> Result<Value, ApiError> {
        self.call(Method::GET, &address(id), None)
    }

    pub fn delete(&self, id: &ObjectId) {
        self.call(Method::DELETE, &address(id), None).unwrap();
    }

    pub fn post(&self, path: &str, object: &Value) -> Result<Value, ApiError> {
        self.call(Method::POST, &format!("{path}?fieldManager=kubectl-create"), Some((JSON, object)))
    }

    /// As `kubectl edit` does it.
    pub fn edit(&self, id: &ObjectId, patch: &Value) {
        let path = format!("{}?fieldManager=kubectl-edit", address(id));
        self.call(Method::PATCH, &path, Some((MERGE, patch))).unwrap();
    }

    pub fn scale(&self, id: &ObjectId, replicas: u32) {
        let path = format!("{}/scale?fieldManager=horizontal-pod-autoscaler", address(id));
        self.call(Method::PATCH, &path, Some((MERGE, &json!({"spec": {"replicas": replicas}})))).unwrap();
    }

    /// Another applier that takes what it wants.
    pub fn apply_as(&self, manager: &str, id: &ObjectId, object: &Value) {
        let path = format!("{}?fieldManager={manager}&force=true", address(id));
        self.call(Method::PATCH, &path, Some(("application/apply-patch+yaml", object))).unwrap();
    }

    fn call(&self, method: Method, path: &str, body: Option<(&'static str, &Value)>) -> Result<Value, ApiError> {
        let body = body.map(|(kind, value)| (kind, Bytes::from(value.to_string())));
        let call = Call { method, body, ..Call::get(path.to_owned()) };
        self.runtime.block_on(self.cluster.call(&call))
    }

    fn execute(&mut self, step: &Step) -> (Result<(), Failure>, Vec<Traced>) {
        let clock = SystemClock;
        let mut trace = Tracer::new(&clock);
        let done = self.applier.execute(step, &mut trace);
        (done, trace.take())
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        _ = self.call(Method::DELETE, &format!("/api/v1/namespaces/{}", self.namespace), None);
    }
}

pub(super) fn settings(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"colour": value}})
}

pub(super) fn deployment(name: &str, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
            {"name": "side", "image": "side:1", "resources": {"limits": {"cpu": "1000m"}}}, {"name": "web", "image": image},
        ]}},
    }})
}
