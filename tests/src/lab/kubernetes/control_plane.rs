//! The processes of a cluster, in a temporary folder that holds all of its files: etcd, the API server, the controllers, the
//! scheduler, and kwok, which plays the node. Stopped, killed and started again by the tests that are about that.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use super::certificates::Certificates;
use super::programs::Programs;
use super::{ADDRESS, ADMIN, ADMIN_TOKEN, AUDIT, kubeconfig_text};
use crate::lab::part::Part;
use crate::lab::port::Port;
use crate::lab::{await_true, http};

/// About 8 s on two idle cores.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// Watches are ended at once; requests under way get some seconds.
const STOPPED_WITHIN: Duration = Duration::from_secs(90);

/// What the lab's objects need, by the names of their controllers.
const CONTROLLERS: [&str; 18] = [
    "deployment",
    "replicaset",
    "statefulset",
    "daemonset",
    "job",
    "cronjob",
    "garbage-collector",
    "namespace",
    "serviceaccount",
    "resourcequota",
    "endpointslice",
    "persistentvolume-binder",
    "persistentvolumeclaim-protection",
    "persistentvolume-protection",
    "disruption",
    "root-ca-certificate-publisher",
    "ttl-after-finished",
    "clusterrole-aggregation",
];

/// A node with room for everything. What the API server would say against a new node is switched off there.
const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata:\n  name: node-1\n  annotations: {kwok.x-k8s.io/node: fake}\n  labels: \
    {kubernetes.io/hostname: node-1, kubernetes.io/os: linux, kubernetes.io/arch: amd64}\nstatus:\n  allocatable: &room {cpu: 100, \
    memory: 100Gi, ephemeral-storage: 100Gi, pods: 5000}\n  capacity: *room\n";

/// What pods do on the node: see the file.
const STAGES: &str = include_str!("stages.yaml");

/// Requests of service accounts are written down, for the tests about who asks for what; those of the lab's own parts aren't.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n  - level: Metadata\n    \
    userGroups: [\"system:serviceaccounts\"]\n  - level: None\n";

/// A running cluster.
#[derive(Debug)]
pub struct ControlPlane {
    // Before the folder, so that the programs have ended when its files go. Clients before servers.
    others: Vec<Part>,
    api_server: Option<Part>,
    _etcd: Part,
    programs: Programs,
    ports: Ports,
    folder: TempDir,
}

#[derive(Debug)]
struct Ports {
    etcd: Port,
    peers: Port,
    api: Port,
    kwok: Port,
}

impl ControlPlane {
    pub(super) fn start(programs: &Programs) -> ControlPlane {
        let folder = tempfile::Builder::new().prefix("kedge-kubernetes-").tempdir().unwrap();
        let ports = Ports { etcd: Port::claim(), peers: Port::claim(), api: Port::claim(), kwok: Port::claim() };
        let files = folder.path();
        Certificates::create(files);
        fs::write(files.join(ADMIN), kubeconfig_text(files, ports.api.address(), ADMIN_TOKEN)).unwrap();
        fs::write(files.join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n")).unwrap();
        fs::write(files.join("audit.yaml"), AUDIT_POLICY).unwrap();
        fs::write(files.join("stages.yaml"), STAGES).unwrap();
        fs::write(files.join(ADDRESS), ports.api.address().to_string()).unwrap();
        let etcd = start_etcd(programs, &ports, files);
        let mut plane = ControlPlane {
            others: Vec::new(),
            api_server: None,
            _etcd: etcd,
            programs: programs.clone(),
            ports,
            folder,
        };
        plane.start_api_server();
        plane.start_others();
        plane.add_node();
        plane
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// SIGTERM, or kill -9: connections end, and new ones are refused.
    pub fn stop_api_server(&mut self, how: Signal) {
        if let Some(mut part) = self.api_server.take() {
            part.stop(how, STOPPED_WITHIN);
        }
    }

    /// At the same address and on the same data.
    pub fn start_api_server(&mut self) {
        assert!(self.api_server.is_none(), "the API server is running");
        let (files, keys) = (self.folder.path(), Certificates::of(self.folder.path()));
        let mut command = Command::new(self.programs.api_server());
        command
            .arg(format!("--etcd-servers=http://{}", self.ports.etcd.address()))
            .arg(format!("--secure-port={}", self.ports.api.number()))
            .arg(named("--cert-dir", &files.join("certificates")))
            .arg(named("--tls-cert-file", &keys.certificate()))
            .arg(named("--tls-private-key-file", &keys.key()))
            .arg(named("--service-account-key-file", &keys.accounts_public()))
            .arg(named("--service-account-signing-key-file", &keys.accounts_key()))
            .arg(named("--token-auth-file", &files.join("tokens.csv")))
            .arg(named("--audit-policy-file", &files.join("audit.yaml")))
            .arg(named("--audit-log-path", &files.join(AUDIT)))
            .args([
                "--bind-address=127.0.0.1",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/16",
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                "--endpoint-reconciler-type=none",
                "--allow-privileged=true",
                "--profiling=false",
                "--shutdown-delay-duration=0s",
                // Debian's etcd can't tell how far a watch is, which lists by watches need: kwok would be refused again and again.
                "--feature-gates=WatchList=false",
            ]);
        let mut part = Part::start("kube-apiserver", &mut command, &files.join("kube-apiserver.log"));
        let (client, ready) = (http::client(), format!("https://{}/readyz", self.address()));
        part.await_ready(READY_WITHIN, |_| {
            client
                .get(&ready)
                .bearer_auth(ADMIN_TOKEN)
                .send()
                .ok()
                .filter(|answer| answer.status().is_success())
                .map(drop)
        });
        self.api_server = Some(part);
    }

    pub fn is_api_server_running(&mut self) -> bool {
        self.api_server.as_mut().is_some_and(Part::is_running)
    }

    fn start_others(&mut self) {
        let admin = named("--kubeconfig", &self.folder.path().join(ADMIN));
        let mut controllers = Command::new(self.programs.controller_manager());
        controllers
            .args([&admin, "--leader-elect=false", "--secure-port=0"])
            .arg(format!("--controllers={}", controllers_flag()));
        controllers.arg(named("--root-ca-file", &Certificates::of(self.folder.path()).authority()));
        controllers.args(["--concurrent-deployment-syncs=10", "--concurrent-namespace-syncs=10", "--kube-api-qps=200"]);
        controllers.arg("--kube-api-burst=400");
        let mut scheduler = Command::new(self.programs.scheduler());
        scheduler.args([&admin, "--leader-elect=false", "--secure-port=0"]);
        scheduler.args(["--kube-api-qps=200", "--kube-api-burst=400"]);
        let mut kwok = Command::new(self.programs.kwok());
        kwok.args([&admin, "--manage-all-nodes=true", "--node-lease-duration-seconds=0"]);
        kwok.arg(named("--config", &self.folder.path().join("stages.yaml")));
        kwok.arg(format!("--server-address={}", self.ports.kwok.address()));
        let all = [("kube-controller-manager", controllers), ("kube-scheduler", scheduler), ("kwok", kwok)];
        for (name, mut command) in all {
            // See the API server's feature gate.
            command.env("HOME", self.folder.path()).env("KUBE_FEATURE_WatchListClient", "false");
            self.others.push(Part::start(name, &mut command, &self.folder.path().join(format!("{name}.log"))));
        }
    }

    fn add_node(&self) {
        let file = self.folder.path().join("node.yaml");
        fs::write(&file, NODE).unwrap();
        let kubectl = |arguments: &[&str]| {
            let mut command = Command::new(self.programs.kubectl());
            command.args(arguments).arg(named("--kubeconfig", &self.folder.path().join(ADMIN)));
            command.env("HOME", self.folder.path()).output().unwrap()
        };
        await_true("the node is ready", READY_WITHIN, || {
            kubectl(&["apply", "-f", file.to_str().expect("a plain path")]);
            let ready = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
            kubectl(&["get", "node", "node-1", "-o", ready]).stdout == b"True"
        });
    }

    pub fn address(&self) -> SocketAddr {
        self.ports.api.address()
    }

    /// What the API server has logged.
    pub fn api_server_log(&self) -> String {
        fs::read_to_string(self.folder.path().join("kube-apiserver.log")).unwrap_or_default()
    }
}

fn start_etcd(programs: &Programs, ports: &Ports, files: &Path) -> Part {
    let (clients, peers) = (format!("http://{}", ports.etcd.address()), format!("http://{}", ports.peers.address()));
    let data: PathBuf = files.join("etcd");
    let mut command = Command::new(&programs.etcd);
    command.arg(named("--data-dir", &data)).args([
        "--name=lab",
        "--unsafe-no-fsync",
        "--log-level=warn",
        "--logger=zap",
    ]);
    command.args([format!("--listen-client-urls={clients}"), format!("--advertise-client-urls={clients}")]);
    command.args([format!("--listen-peer-urls={peers}"), format!("--initial-advertise-peer-urls={peers}")]);
    command.arg(format!("--initial-cluster=lab={peers}"));
    let mut part = Part::start("etcd", &mut command, &files.join("etcd.log"));
    let (client, health) = (http::client(), format!("{clients}/health"));
    part.await_ready(READY_WITHIN, |_| {
        client.get(&health).send().ok().filter(|answer| answer.status().is_success()).map(drop)
    });
    part
}

/// As the program calls them.
fn controllers_flag() -> String {
    CONTROLLERS.iter().map(|name| format!("{name}-controller")).collect::<Vec<_>>().join(",")
}

/// A flag with a path.
fn named(flag: &str, path: &Path) -> String {
    format!("{flag}={}", path.display())
}
