//! Flux's real source-controller and kustomize-controller beside a cluster, for the objects of one namespace: what consumes the files
//! that a hub published, and what the agent observes. tests/shell/programs.sh builds them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::kubernetes::{Kubernetes, built};
use super::part::Part;
use super::port::Port;
use super::{http, skip};

const READY_WITHIN: Duration = Duration::from_secs(120);

/// Both controllers, running.
#[derive(Debug)]
pub struct Flux {
    // Before the folder, so that the programs have ended when their files go.
    _parts: Vec<Part>,
    _ports: Vec<Port>,
    _folder: TempDir,
}

/// A controller and where its program and CRDs are.
struct Controller {
    name: &'static str,
    home: PathBuf,
}

impl Flux {
    /// Starts them for this namespace, which is made. Without the programs the test is marked as skipped and there is none.
    pub fn start(kubernetes: &Kubernetes, namespace: &str) -> Option<Flux> {
        let find = |variable: &str, module: &str, name: &'static str| {
            built(variable, module, name).map(|home| Controller { name, home })
        };
        let source = find("KEDGE_FLUX_SOURCE", "flux-source", "source-controller");
        let kustomize = find("KEDGE_FLUX_KUSTOMIZE", "flux-kustomize", "kustomize-controller");
        let (Some(source), Some(kustomize)) = (source, kustomize) else {
            let why = env::var("KEDGE_NO_FLUX");
            skip(why.as_deref().unwrap_or("Flux isn't built (./tests/run flux builds it)"));
            return None;
        };
        kubernetes.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"));
        for controller in [&source, &kustomize] {
            let crds = controller.home.join("crds");
            let crds = crds.to_str().expect("a plain path");
            kubernetes.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", crds]);
        }
        kubernetes.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
        let folder = tempfile::Builder::new().prefix("kedge-flux-").tempdir().unwrap();
        let (mut parts, mut ports) = (Vec::new(), Vec::new());
        let storage = Port::claim();
        let store = vec![
            format!("--storage-path={}", folder.path().join("storage").display()),
            format!("--storage-addr={}", storage.address()),
            format!("--storage-adv-addr={}", storage.address()),
        ];
        std::fs::create_dir_all(folder.path().join("storage")).unwrap();
        ports.push(storage);
        for (controller, more) in [(source, store), (kustomize, Vec::new())] {
            let (metrics, health) = (Port::claim(), Port::claim());
            let mut command = controller.command(kubernetes, namespace, folder.path());
            command.arg(format!("--metrics-addr={}", metrics.address()));
            command.arg(format!("--health-addr={}", health.address())).args(more);
            let log = folder.path().join(format!("{}.log", controller.name));
            let mut part = Part::start(controller.name, &mut command, &log);
            let (client, ready) = (http::client(), format!("http://{}/readyz", health.address()));
            part.await_ready(READY_WITHIN, |_| {
                client.get(&ready).send().ok().filter(|answer| answer.status().is_success()).map(drop)
            });
            parts.push(part);
            ports.extend([metrics, health]);
        }
        Some(Flux { _parts: parts, _ports: ports, _folder: folder })
    }
}

impl Controller {
    fn command(&self, kubernetes: &Kubernetes, namespace: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.home.join(self.name));
        command.args(["--enable-leader-election=false", "--events-addr=", "--watch-all-namespaces=false"]);
        command.env("KUBECONFIG", kubernetes.kubeconfig()).env("RUNTIME_NAMESPACE", namespace);
        // It keeps clones and builds in temporary folders.
        command
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .env("KUBE_FEATURE_WatchListClient", "false")
            .current_dir(folder);
        command
    }
}
