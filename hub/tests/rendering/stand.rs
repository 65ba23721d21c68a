//! The two ways, each with programs of a test's own and a folder that must be empty afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kedge_hub::pack::Sandbox;
use kedge_hub::pack::archive::Contents;
use kedge_hub::pack::installed::Installed;
use kedge_hub::pack::local::Local;
use kedge_hub::pack::renderer::Renderer;
use kedge_hub::pack::request::{Program, RenderError, Request};

pub const HUB: &str = env!("CARGO_BIN_EXE_kedge-hub");

/// Where renderings are made.
pub enum Stand {
    Namespaces { folder: tempfile::TempDir, local: Local },
    Renderer(Served),
}

/// A real renderer, which goes with the value.
pub struct Served {
    pub folder: tempfile::TempDir,
    pub client: Renderer,
    process: Child,
    installed: Installed,
}

/// What a person reads of a test that couldn't be made.
pub fn skip(reason: &str) {
    println!("KEDGE-SKIP {}: {reason}", std::thread::current().name().unwrap_or("test"));
}

/// Each way that this machine has, with these programs.
pub async fn stands(installed: impl Fn(&Path) -> Installed) -> Vec<Stand> {
    let mut stands = Vec::new();
    match Sandbox::find().await {
        Ok(_) => {
            let folder = tempfile::tempdir().unwrap();
            let local = Local::in_namespaces(installed(folder.path()), folder.path().join("renderings"));
            stands.push(Stand::Namespaces { folder, local });
        }
        Err(lack) => skip(&lack.to_string()),
    }
    stands.extend(Served::start(installed).map(Stand::Renderer));
    stands
}

/// A script in place of kustomize.
pub fn script(folder: &Path, body: &str) -> Installed {
    let path = folder.join("kustomize");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Installed { kustomize: path, helm: "/nowhere/helm".into() }
}

pub fn request(files: &[(&str, &str)], path: &str) -> Request {
    let mut contents = Contents::default();
    for (path, text) in files {
        contents.add(path, text.as_bytes().to_vec(), false).unwrap();
    }
    let (release, namespace) = ("hello".to_owned(), "dev-drone-hello".to_owned());
    Request { program: Program::Kustomize, path: path.to_owned(), release, namespace, files: contents }
}

/// What came of a script by each way, named.
pub async fn each(body: &str) -> Vec<(&'static str, Result<String, RenderError>)> {
    let mut outcomes = Vec::new();
    for stand in stands(|folder| script(folder, body)).await {
        let outcome = stand.render(request(&[("app/kustomization.yaml", "namePrefix: x-\n")], "app")).await;
        assert_eq!(stand.left(), 0, "{}: nothing of the rendering is left", stand.name());
        outcomes.push((stand.name(), outcome.map(|output| String::from_utf8(output).unwrap())));
    }
    outcomes
}

impl Stand {
    pub fn name(&self) -> &'static str {
        match self {
            Stand::Namespaces { .. } => "bubblewrap",
            Stand::Renderer(_) => "renderer",
        }
    }

    pub async fn render(&self, request: Request) -> Result<Vec<u8>, RenderError> {
        match self {
            Stand::Namespaces { local, .. } => local.render(request).await,
            Stand::Renderer(served) => served.client.render(&request).await,
        }
    }

    fn left(&self) -> usize {
        match self {
            Stand::Namespaces { folder, .. } => fs::read_dir(folder.path().join("renderings")).unwrap().count(),
            Stand::Renderer(served) => served.left(),
        }
    }
}

impl Served {
    /// None where this machine's kernel can't shut programs off.
    pub fn start(installed: impl Fn(&Path) -> Installed) -> Option<Served> {
        let folder = tempfile::tempdir().unwrap();
        let installed = installed(folder.path());
        let (process, socket) = (spawn(folder.path(), &installed), socket(folder.path()));
        let mut served = Served { client: Renderer::at(socket), folder, process, installed };
        served.wait().then_some(served)
    }

    /// Whether it serves.
    fn wait(&mut self) -> bool {
        let began = Instant::now();
        while UnixStream::connect(self.client.socket()).is_err() {
            if self.process.try_wait().unwrap().is_some() {
                let log = self.log();
                assert!(log.contains("can't be had here") || log.contains("isn't in force here"), "{log}");
                skip(log.trim());
                return false;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }

    /// Renderings whose files stay; at its start the renderer asks programs for their versions.
    pub fn left(&self) -> usize {
        let began = Instant::now();
        loop {
            let left = fs::read_dir(self.folder.path().join("kedge-renderer")).unwrap().count();
            if left == 0 || began.elapsed() > Duration::from_secs(20) {
                return left;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("renderer.log")).unwrap()
    }

    /// As a power cut does.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub fn start_again(&mut self) {
        self.process = spawn(self.folder.path(), &self.installed);
        assert!(self.wait());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("renderer.sock")
}

fn spawn(folder: &Path, installed: &Installed) -> Child {
    let log = fs::File::create(folder.join("renderer.log")).unwrap();
    Command::new(HUB)
        .arg("renderer")
        .arg("--socket")
        .arg(socket(folder))
        .arg("--kustomize")
        .arg(&installed.kustomize)
        .arg("--helm")
        .arg(&installed.helm)
        .arg("--folder")
        .arg(folder)
        .env("A_SECRET_OF_THE_RENDERER", "x")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Whether a process has this among its words.
pub fn runs(word: &str) -> bool {
    let of = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    let lines: Vec<Vec<u8>> = fs::read_dir("/proc").unwrap().flatten().map(of).collect();
    lines.iter().any(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()))
}
