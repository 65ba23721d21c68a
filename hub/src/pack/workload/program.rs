//! `kustomize` and `helm`, run on other people's text: in a private copy of the repository, in a sandbox, and with limits on
//! time, output, memory, files and processes.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use gix::ObjectId;
use kedge_model::{Origin, Problem};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::OnceCell;

use super::sandbox::{NoSandbox, SOURCE, Sandbox};
use super::{Place, loads};
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
    /// Once there is one.
    sandbox: OnceCell<Sandbox>,
}

/// What a copy's folder begins with.
const COPY: &str = "render-";
/// A chart that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(60);
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
        loads::check(&files, place.path, place.origin)?;
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

impl Programs {
    /// Copies that a killed hub left in the folder go.
    pub fn new(kustomize: &Path, helm: &Path, folder: PathBuf) -> Programs {
        for left in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if left.file_name().to_string_lossy().starts_with(COPY) {
                let _ = fs::remove_dir_all(left.path());
            }
        }
        Programs { kustomize: kustomize.to_owned(), helm: helm.to_owned(), folder, sandbox: OnceCell::new() }
    }

    /// Renders a folder. `release` and `namespace` are what a chart is told.
    pub async fn render(&self, job: Job, release: &str, namespace: &str) -> Result<Vec<u8>, Fault> {
        let Some(program) = find(self.path(job.program)) else { return Err(self.not_installed(&job)) };
        let sandbox = match self.sandbox.get_or_try_init(Sandbox::find).await {
            Ok(sandbox) => sandbox,
            Err(lack) => return Err(no_sandbox(&job, &lack)),
        };
        let (folder, origin, kind) = (self.folder.clone(), job.origin.clone(), job.program);
        let here = job.path.clone();
        let copy = tokio::task::spawn_blocking(move || Copy::make(&folder, &job.files)).await;
        let copy = copy.map_err(|_| Fault::Failed(crate::pack::PackError::Interrupted))?;
        let copy = copy.map_err(|error| {
            let folder = self.folder.display().to_string();
            Fault::Failed(crate::pack::PackError::Blobs(crate::pack::BlobError::Io { folder, source: error }))
        })?;
        let target = Path::new(SOURCE).join(&here);
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
        let outcome = run(sandbox, &program, &arguments, &copy.0).await;
        match outcome {
            Ok(output) => Ok(output),
            Err(why) => {
                let why = why.chars().take(2000).collect::<String>();
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

fn no_sandbox(job: &Job, lack: &NoSandbox) -> Fault {
    let (name, path) = (job.program.name(), shown(&job.path));
    let message = format!("`{path}` needs {name}, which runs only where it can be shut off from the hub: {lack}");
    tracing::warn!(%lack, "kustomize and helm can't be run here");
    Fault::of(Problem::error("SandboxMissing", message).at(job.origin.clone()).hint(lack.hint()))
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
        for (path, file) in files.files() {
            let to = copy.0.join(path);
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
pub(super) fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|found| found.is_file())
}

/// The output of a program that ended well, or what it complained of.
async fn run(
    sandbox: &Sandbox,
    program: &Path,
    arguments: &[&std::ffi::OsStr],
    source: &Path,
) -> Result<Vec<u8>, String> {
    let mut command = sandbox.command(program, arguments, source);
    command
        .current_dir("/")
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

#[cfg(test)]
mod tests;
