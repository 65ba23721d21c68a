//! The packer on real branches and repositories, made with gix.

mod branches;
mod hosts;
mod kubernetes_objects;
mod pins;
mod repository;
mod scale;
mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use async_trait::async_trait;
use kedge_hub_types::pack::PackedEntry;
use kedge_model::kinds::SourceRef;

use super::*;
use crate::git::Trust;
use repository::{Item, Repository};

/// Repositories of a test by address; the head of a branch is whatever it is when asked.
#[derive(Debug, Default)]
pub struct Shelves(pub Mutex<BTreeMap<String, PathBuf>>);

#[async_trait]
impl Sources for Shelves {
    async fn resolve(&self, repo: &str, reference: &SourceRef, _trust: &Trust) -> Result<SourceHead, SourceFault> {
        let found = self.0.lock().unwrap().get(repo).cloned();
        let fault = |message: &str| SourceFault { code: "SourceFailing", message: message.to_owned(), hint: None };
        let mirror = found.ok_or_else(|| fault("it isn't here"))?;
        let commit = Repository::at(&mirror).resolve(reference).ok_or_else(|| fault("there is no such branch"))?;
        Ok(SourceHead { commit, mirror })
    }

    async fn tags(&self, repo: &str, _trust: &Trust) -> Result<Vec<(String, String)>, SourceFault> {
        let found = self.0.lock().unwrap().get(repo).cloned();
        let fault = || SourceFault { code: "SourceFailing", message: "it isn't here".to_owned(), hint: None };
        let mirror = found.ok_or_else(fault)?;
        Ok(Repository::at(&mirror).tags())
    }
}

/// A packer with a branch, an application's repository and a database of its own.
pub struct World {
    pub folder: tempfile::TempDir,
    pub store: Store,
    pub packer: Packer,
    pub shelves: Arc<Shelves>,
    pub platform: Repository,
    pub app: Repository,
}

pub const APP: &str = "https://git.example.com/hello";

impl World {
    pub async fn new() -> World {
        World::with(Path::new("/nowhere/kustomize")).await
    }

    pub async fn with(kustomize: &Path) -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        let app = Repository::new(&folder.path().join("app.git"));
        let platform = Repository::new(&folder.path().join("platform.git"));
        let shelves = Arc::new(Shelves(Mutex::new(BTreeMap::from([(APP.to_owned(), app.path.clone())]))));
        let packer = packer(folder.path(), &store, &shelves, kustomize, None);
        World { folder, store, packer, shelves, platform, app }
    }

    /// The same hub after a restart.
    pub fn restart(&mut self) {
        self.packer = packer(self.folder.path(), &self.store, &self.shelves, Path::new("/nowhere/kustomize"), None);
    }

    /// The same hub with a renderer beside it.
    pub fn use_renderer(&mut self, socket: &Path) {
        let (nothing, socket) = (Path::new("/nowhere/kustomize"), Some(socket.to_owned()));
        self.packer = packer(self.folder.path(), &self.store, &self.shelves, nothing, socket);
    }

    pub fn head(&self, commit: String) -> Head {
        Head {
            repo: "https://git.example.com/gitops".to_owned(),
            branch: "dev".to_owned(),
            commit,
            path: self.platform.path.clone(),
        }
    }

    pub async fn pack(&self, files: &[(String, String)]) -> Packed {
        let items: Vec<(&str, Item<'_>)> = files.iter().map(|(path, text)| (path.as_str(), Item::File(text))).collect();
        let commit = self.platform.commit("dev", &items);
        self.packer.pack("dev", &self.head(commit)).await.unwrap()
    }

    /// The files of a package.
    pub fn unpack(&self, digest: &kedge_model::wire::Digest) -> BTreeMap<String, String> {
        let bytes = self.packer.blobs().read(digest, 100 << 20).unwrap();
        let tar = zstd::stream::decode_all(bytes.as_slice()).unwrap();
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(tar.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut text = String::new();
            std::io::Read::read_to_string(&mut entry, &mut text).unwrap();
            files.insert(path, text);
        }
        files
    }
}

fn packer(folder: &Path, store: &Store, shelves: &Arc<Shelves>, kustomize: &Path, renderer: Option<PathBuf>) -> Packer {
    let config = config::Packages {
        folder: None,
        keep: Duration::from_secs(30 * 24 * 60 * 60),
        hosts: Vec::new(),
        kustomize: kustomize.to_owned(),
        helm: PathBuf::from("/nowhere/helm"),
        renderer,
    };
    let blobs = Blobs::open(&folder.join("packages")).unwrap();
    Packer::new(store.clone(), blobs, Arc::clone(shelves) as Arc<dyn Sources>, &config, folder.join("scratch"))
}

pub fn readme(cluster_type: &str) -> (String, String) {
    (format!("{cluster_type}/README.md"), kedge_scheduler::README_TEXT.to_owned())
}

/// The files of an assignment that Kedge delivers to Kubernetes.
pub fn kubernetes(cluster_type: &str, name: &str, path: &str, config: &str) -> Vec<(String, String)> {
    let delivery = format!(
        "apiVersion: kedge.dev/v1alpha1\nkind: Delivery\nmetadata:\n  name: {name}\nspec:\n  source:\n    repo: {APP}\n    ref:\n      branch: dev\n    path: {path}\n  to: kubernetes\n  namespace: dev-{cluster_type}-{name}\n"
    );
    files(cluster_type, name, &delivery, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n", config)
}

pub fn host(cluster_type: &str, name: &str, path: &str, config: (&str, &str)) -> Vec<(String, String)> {
    let delivery = format!(
        "apiVersion: kedge.dev/v1alpha1\nkind: Delivery\nmetadata:\n  name: {name}\nspec:\n  source:\n    repo: {APP}\n    ref:\n      branch: dev\n    path: {path}\n  to: host\n"
    );
    let namespace = "apiVersion: kedge.dev/v1alpha1\nkind: HostNamespace\nmetadata:\n  name: x\nspec: {}\n";
    let mut files = files(cluster_type, name, &delivery, namespace, "");
    files.pop();
    files.push((format!("{cluster_type}/{name}/{}", config.0), config.1.to_owned()));
    files
}

pub fn flux(cluster_type: &str, name: &str) -> Vec<(String, String)> {
    let reconciler = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata:\n  name: {name}\n  namespace: flux-system\nspec:\n  url: {APP}\n  ref:\n    branch: dev\n"
    );
    files(cluster_type, name, &reconciler, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n", "")
}

fn files(cluster_type: &str, name: &str, reconciler: &str, namespace: &str, config: &str) -> Vec<(String, String)> {
    let file = |file: &str, text: &str| (format!("{cluster_type}/{name}/{file}"), text.to_owned());
    vec![
        file("reconciler.yaml", reconciler),
        file("namespace.yaml", namespace),
        file(
            "platform-config.yaml",
            &format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform-config\ndata:\n  A: \"{config}\"\n"),
        ),
    ]
}

pub const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: hello\n";
pub const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: hello\n";

pub fn apply<'a>(packed: &'a Packed, cluster_type: &str, name: &str) -> &'a Packages {
    match &packed.types[cluster_type][name] {
        PackedEntry::Apply(packages) => packages,
        other => panic!("{other:?}: {:#?}", packed.problems),
    }
}

pub fn codes(packed: &Packed) -> Vec<&'static str> {
    packed.problems.iter().map(|problem| problem.code).collect()
}
