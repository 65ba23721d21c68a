//! `kustomize` and `helm`, run on other people's text: in a private copy of the repository, with an empty environment,
//! without network, and with limits on time, output, memory and files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use gix::ObjectId;
use kedge_goyaml::{Limits, Node, NodeValue, node};
use kedge_model::{Origin, Problem};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::{Place, kustomization};
use crate::pack::archive::{Contents, MAX_FILES};
use crate::pack::fault::Fault;
use crate::pack::objects::ItemKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Kustomize,
    Helm,
}

/// What to run, and on what.
#[derive(Debug)]
pub struct Job {
    pub program: Program,
    pub root: ObjectId,
    /// The folder, from the repository's root.
    pub path: String,
    pub origin: Origin,
    files: Contents,
}

/// The programs of this hub.
#[derive(Debug)]
pub struct Programs {
    kustomize: PathBuf,
    helm: PathBuf,
    /// Copies are made here, each in a folder of its own.
    folder: PathBuf,
    isolation: OnceCell<Isolation>,
}

/// How a program is kept from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A network namespace of its own, as root.
    Namespace,
    /// The same, in a user namespace of its own.
    UserNamespace,
    /// Neither is allowed here: proxies that lead nowhere. A program that ignores them could reach out.
    Proxies,
}

/// What a copy's folder begins with.
const COPY: &str = "render-";
/// A chart that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds of CPU, for a program that outlives its killing.
const CPU_SECONDS: u32 = 60;
/// Go reserves addresses generously; this is far above what a rendering uses.
const MEMORY_KIB: u64 = 4 << 20;
/// Megabytes that it may write into one file.
const FILE_BLOCKS: u64 = 64 << 10;
const MAX_OUTPUT: usize = 16 << 20;
/// Enough of its complaint to understand it.
const MAX_COMPLAINT: usize = 4 << 10;

/// The repository at the commit, as files for a program.
pub(in crate::pack) fn job(place: &Place<'_>, program: Program) -> Result<Job, Fault> {
    let mut files = Contents::default();
    // A chart stands alone; a kustomization may lead to folders beside it.
    let (folder, base) = match program {
        Program::Helm => (place.folder, place.path),
        Program::Kustomize => (place.root, ""),
    };
    copy(place, folder, base, 0, &mut files)?;
    if program == Program::Kustomize {
        check_paths(&files, place.origin)?;
    }
    Ok(Job { program, root: place.root, path: place.path.to_owned(), origin: place.origin.clone(), files })
}

const MAX_DEPTH: usize = 30;

fn copy(place: &Place<'_>, folder: ObjectId, path: &str, depth: usize, files: &mut Contents) -> Result<(), Fault> {
    if depth > MAX_DEPTH || files.files().len() > MAX_FILES {
        let message = "the repository has too many files or folders to be rendered";
        return Err(Fault::of(Problem::error("PackageTooLarge", message).at(place.origin.clone())));
    }
    for item in place.objects.list(folder, path)? {
        let here = if path.is_empty() { item.name.clone() } else { format!("{path}/{}", item.name) };
        match item.kind {
            ItemKind::Folder => copy(place, item.id, &here, depth + 1, files)?,
            ItemKind::File | ItemKind::Executable => {
                let bytes = place.objects.read(item.id, &here, crate::pack::archive::MAX_BYTES)?;
                files.add(&here, bytes, item.kind == ItemKind::Executable)?;
            }
            // Left out: the program says what it misses, and a link leads nowhere.
            ItemKind::Symlink | ItemKind::Submodule | ItemKind::BadName => {}
        }
    }
    Ok(())
}

/// No kustomization may name a path outside of the copy.
fn check_paths(files: &Contents, origin: &Origin) -> Result<(), Fault> {
    for (path, file) in files.files() {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !kustomization::NAMES.contains(&name) {
            continue;
        }
        let Ok(documents) = node::parse_bytes(&file.bytes, &Limits::default()) else { continue };
        if let Some(text) = documents.iter().find_map(|document| escaping(document, folder)) {
            let message = format!("`{}` leads out of the repository", text.escape_debug());
            let origin = Origin { file: path.as_str().into(), ..origin.clone() };
            return Err(Fault::of(Problem::error("PathInvalid", message).at(origin)));
        }
    }
    Ok(())
}

fn escaping<'a>(node: &'a Node, folder: &str) -> Option<&'a str> {
    match &node.value {
        NodeValue::Scalar { text, .. } => leaves(text, folder).then_some(text.as_str()),
        NodeValue::List(items) => items.iter().find_map(|item| escaping(item, folder)),
        NodeValue::Map(entries) => entries.iter().find_map(|(_, value)| escaping(value, folder)),
    }
}

/// Whether a text, taken as a path from a folder, climbs above the root.
fn leaves(text: &str, folder: &str) -> bool {
    // `key=../file` of a generator is a path too.
    let path = text.rsplit_once('=').map_or(text, |(_, path)| path);
    let mut depth = folder.split('/').filter(|part| !part.is_empty()).count();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

impl Programs {
    /// Copies that a killed hub left in the folder go.
    pub fn new(kustomize: &Path, helm: &Path, folder: PathBuf) -> Programs {
        for left in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if left.file_name().to_string_lossy().starts_with(COPY) {
                let _ = fs::remove_dir_all(left.path());
            }
        }
        Programs { kustomize: kustomize.to_owned(), helm: helm.to_owned(), folder, isolation: OnceCell::new() }
    }

    /// Renders a folder. `release` and `namespace` are what a chart is told.
    pub async fn render(&self, job: Job, release: &str, namespace: &str) -> Result<Vec<u8>, Fault> {
        let Some(program) = find(self.path(job.program)) else { return Err(self.not_installed(&job)) };
        let isolation = *self.isolation.get_or_init(probe).await;
        let (folder, origin, kind) = (self.folder.clone(), job.origin.clone(), job.program);
        let here = job.path.clone();
        let copy = tokio::task::spawn_blocking(move || Copy::make(&folder, &job.files)).await;
        let copy = copy.map_err(|_| Fault::Failed(crate::pack::PackError::Interrupted))?;
        let copy = copy.map_err(|error| {
            let folder = self.folder.display().to_string();
            Fault::Failed(crate::pack::PackError::Blobs(crate::pack::BlobError::Io { folder, source: error }))
        })?;
        let target = copy.0.join("repo").join(&here);
        let arguments: Vec<&std::ffi::OsStr> = match kind {
            Program::Kustomize => vec!["build".as_ref(), target.as_os_str()],
            Program::Helm => vec![
                "template".as_ref(),
                release.as_ref(),
                target.as_os_str(),
                "--namespace".as_ref(),
                namespace.as_ref(),
                "--include-crds".as_ref(),
                // Pods that people start to try a release.
                "--skip-tests".as_ref(),
            ],
        };
        let outcome = run(&program, &arguments, &copy.0, isolation).await;
        match outcome {
            Ok(output) => Ok(output),
            Err(why) => {
                // The copy's place is nobody's business.
                let why = why.replace(&*copy.0.to_string_lossy(), "").chars().take(2000).collect::<String>();
                let message = format!("{} failed: {}", kind.name(), why.trim());
                Err(Fault::of(Problem::error("RenderingFailed", message).at(origin).hint(
                    "run it on a checkout without network: charts need their dependencies and kustomizations their bases in the repository",
                )))
            }
        }
    }

    fn path(&self, program: Program) -> &Path {
        match program {
            Program::Kustomize => &self.kustomize,
            Program::Helm => &self.helm,
        }
    }

    fn not_installed(&self, job: &Job) -> Fault {
        let (name, wants) = match job.program {
            Program::Kustomize => ("kustomize", "its kustomization.yaml does more than list resources"),
            Program::Helm => ("helm", "it is a Helm chart"),
        };
        let path = self.path(job.program).display();
        let message = format!("`{}` needs {name} ({wants}), and the hub has no `{path}`", shown(&job.path));
        Fault::of(Problem::error("ProgramMissing", message).at(job.origin.clone()).hint(format!(
            "install {name} on the hub or name it as `packages.{name}` in hub.toml; or commit rendered manifests"
        )))
    }
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Kustomize => "kustomize",
            Program::Helm => "helm",
        }
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

/// A private folder that goes when it is dropped.
struct Copy(PathBuf);

impl Copy {
    fn make(folder: &Path, files: &Contents) -> io::Result<Copy> {
        let random: u64 = rand::random();
        let root = folder.join(format!("{COPY}{random:016x}"));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
        let copy = Copy(root);
        for part in ["repo", "home"] {
            fs::create_dir(copy.0.join(part))?;
        }
        for (path, file) in files.files() {
            let to = copy.0.join("repo").join(path);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&to, &file.bytes)?;
            if file.executable {
                fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program itself: a path, or a name that is looked for where programs are.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|found| found.is_file())
}

/// What this host lets us do. Said once, because the weakest of the three is worth knowing.
async fn probe() -> Isolation {
    for (isolation, arguments) in [(Isolation::Namespace, &["-n"][..]), (Isolation::UserNamespace, &["-r", "-n"][..])] {
        let mut trial = Command::new("unshare");
        trial.args(arguments).arg("true").stdin(Stdio::null()).stderr(Stdio::null());
        if trial.status().await.is_ok_and(|status| status.success()) {
            tracing::info!(?isolation, "kustomize and helm run in a network namespace of their own");
            return isolation;
        }
    }
    tracing::warn!(
        "kustomize and helm can't have a network namespace here (unshare -n fails); only proxies that lead nowhere keep them from the network"
    );
    Isolation::Proxies
}

/// The output of a program that ended well, or what it complained of.
async fn run(
    program: &Path,
    arguments: &[&std::ffi::OsStr],
    folder: &Path,
    isolation: Isolation,
) -> Result<Vec<u8>, String> {
    let limits = format!(
        "ulimit -v {MEMORY_KIB} && ulimit -t {CPU_SECONDS} && ulimit -f {FILE_BLOCKS} && ulimit -c 0 && exec \"$@\""
    );
    let mut words: Vec<&std::ffi::OsStr> = match isolation {
        Isolation::Namespace => vec!["unshare".as_ref(), "-n".as_ref(), "--".as_ref()],
        Isolation::UserNamespace => vec!["unshare".as_ref(), "-r".as_ref(), "-n".as_ref(), "--".as_ref()],
        Isolation::Proxies => Vec::new(),
    };
    words.push(program.as_os_str());
    words.extend(arguments);
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(&limits)
        .arg("kedge-render")
        .args(&words)
        .env_clear()
        .envs(environment(folder, isolation))
        .current_dir(folder.join("repo"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let group = Group(child.id());
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("its output can't be read".to_owned());
    };
    let finished = tokio::time::timeout(PATIENCE, async {
        let (output, complaint) = tokio::join!(bounded(stdout, MAX_OUTPUT), bounded(stderr, MAX_COMPLAINT));
        let Some(output) = output else {
            return Err(format!("it wrote more than {} MiB", MAX_OUTPUT >> 20));
        };
        let status = child.wait().await.map_err(|error| error.to_string())?;
        if status.success() {
            return Ok(output);
        }
        let complaint = complaint.unwrap_or_else(|| b"it complains without end".to_vec());
        Err(format!("{status}: {}", String::from_utf8_lossy(&complaint)))
    });
    let outcome = finished.await.unwrap_or_else(|_| Err(format!("it took longer than {} s", PATIENCE.as_secs())));
    drop(group);
    outcome
}

/// Everything that a program started goes with it.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0.and_then(|id| i32::try_from(id).ok()) {
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

/// All that was written; none when it is more than the limit.
async fn bounded(mut from: impl AsyncRead + Unpin, limit: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match from.read(&mut chunk).await {
            Ok(0) | Err(_) => return Some(bytes),
            Ok(read) => bytes.extend_from_slice(chunk.get(..read)?),
        }
        if bytes.len() > limit {
            return None;
        }
    }
}

fn environment(folder: &Path, isolation: Isolation) -> BTreeMap<&'static str, std::ffi::OsString> {
    let home = folder.join("home").into_os_string();
    let mut environment = BTreeMap::from([
        ("HOME", home.clone()),
        ("TMPDIR", home.clone()),
        ("XDG_CACHE_HOME", home.clone()),
        ("XDG_CONFIG_HOME", home.clone()),
        ("XDG_DATA_HOME", home),
        // For `unshare` alone; there is nothing else to start.
        ("PATH", "/usr/bin:/bin".into()),
        ("LC_ALL", "C.UTF-8".into()),
    ]);
    if isolation == Isolation::Proxies {
        // The discard port of this host: refused at once.
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            environment.insert(name, "http://127.0.0.1:9".into());
        }
        environment.insert("GIT_SSH_COMMAND", "false".into());
    }
    environment
}

#[cfg(test)]
mod tests;
