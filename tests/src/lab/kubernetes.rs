//! A real Kubernetes: API server, controllers, scheduler and a node of kwok, on which pods run by their annotations. `control_plane`
//! starts it; this is what a test has of it, whether the suite started one for all tests or the test one of its own.

mod certificates;
mod control_plane;
mod programs;
mod proxy;
mod rest;

pub use control_plane::ControlPlane;
pub(crate) use programs::built;
pub use proxy::{Proxy, Request, Verdict};
pub use rest::{Audited, decoded};

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use certificates::Certificates;
use programs::Programs;

use super::http;

/// Names the folder of the cluster that the suite keeps for all of its tests.
const SHARED: &str = "KEDGE_TEST_KUBERNETES";

/// Files of a cluster's folder.
const ADDRESS: &str = "address";
const ADMIN: &str = "admin.kubeconfig";
const AUDIT: &str = "audit.log";

/// Of the administrator, who may do everything.
const ADMIN_TOKEN: &str = "token-of-the-administrator";

static NEXT: AtomicU32 = AtomicU32::new(1);

/// Access to a cluster as its administrator.
#[derive(Debug)]
pub struct Kubernetes {
    own: Option<ControlPlane>,
    folder: PathBuf,
    programs: Programs,
    address: SocketAddr,
    client: reqwest::blocking::Client,
}

/// What a run of kubectl gave.
#[derive(Debug)]
pub struct Ran {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Kubernetes {
    /// The suite's, or a new one where there is none. Without the programs the test is marked as skipped and there is none.
    pub fn shared() -> Option<Kubernetes> {
        match env::var_os(SHARED) {
            Some(folder) => Some(Kubernetes::in_folder(PathBuf::from(folder), programs::find_or_skip()?, None)),
            None => Kubernetes::start(),
        }
    }

    /// One for this test alone, whose parts it may stop.
    pub fn start() -> Option<Kubernetes> {
        let programs = programs::find_or_skip()?;
        let control_plane = ControlPlane::start(&programs);
        Some(Kubernetes::in_folder(control_plane.folder().to_owned(), programs, Some(control_plane)))
    }

    fn in_folder(folder: PathBuf, programs: Programs, own: Option<ControlPlane>) -> Kubernetes {
        let text = fs::read_to_string(folder.join(ADDRESS)).unwrap();
        let address = text.trim().parse().unwrap();
        Kubernetes { own, folder, programs, address, client: http::client() }
    }

    /// The parts, of a cluster of the test's own.
    pub fn control_plane(&mut self) -> &mut ControlPlane {
        self.own.as_mut().expect("a cluster that this test started")
    }

    /// Where the API server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The folder that others find it by.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A file for programs that act as the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join(ADMIN)
    }

    /// The same for the owner of a token, who reaches the API server at this address: its own, or a proxy's.
    pub fn kubeconfig_for(&self, folder: &Path, token: &str, server: SocketAddr) -> PathBuf {
        let path = folder.join(format!("kubeconfig-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::write(&path, kubeconfig_text(&self.folder, server, token)).unwrap();
        path
    }

    /// A proxy in front of the API server.
    pub fn proxy(&self) -> Proxy {
        Proxy::start(self.address, &Certificates::of(&self.folder))
    }

    /// A word that no other test of this cluster has, short enough for the names of everything.
    pub fn unique(&self) -> String {
        format!("{:x}-{:x}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs kubectl as the administrator, whatever it says.
    pub fn try_kubectl(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = Command::new(self.programs.kubectl());
        command.args(arguments).arg("--kubeconfig").arg(self.kubeconfig()).env("HOME", &self.folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        {
            use std::io::Write as _;
            // It may have ended already; what it says tells why.
            let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        }
        let output = child.wait_with_output().unwrap();
        Ran {
            ok: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs kubectl as the administrator; what it prints. Anything but success ends the test.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.try_kubectl(arguments, "").success(arguments)
    }

    /// `kubectl apply` of this YAML, by the administrator's own field manager.
    #[track_caller]
    pub fn apply(&self, yaml: &str) {
        let arguments = ["apply", "--server-side", "--field-manager=lab", "-f", "-"];
        self.try_kubectl(&arguments, yaml).success(&arguments);
    }
}

impl Ran {
    #[track_caller]
    fn success(self, arguments: &[&str]) -> String {
        assert!(self.ok, "kubectl {arguments:?}\n{}\n{}", self.stdout, self.stderr);
        self.stdout
    }
}

fn kubeconfig_text(folder: &Path, server: SocketAddr, token: &str) -> String {
    let authority = Certificates::of(folder).authority();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: lab\nclusters:\n  - name: lab\n    cluster: {{server: \"https://{server}\", \
         certificate-authority: {authority:?}}}\nusers:\n  - name: lab\n    user: {{token: {token:?}}}\ncontexts:\n  - name: lab\n    \
         context: {{cluster: lab, user: lab}}\n"
    )
}
