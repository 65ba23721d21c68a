//! `kustomize` and `helm`, run on other people's text: in a private copy of the repository, in a sandbox, and with limits on
//! time, output, memory, files and processes; on this machine, or by a renderer beside the hub.

use std::path::PathBuf;

use gix::ObjectId;
use kedge_model::{Origin, Problem};

use super::installed::Installed;
use super::local::Local;
use super::renderer::Renderer;
pub use super::request::Program;
use super::request::{RenderError, Request};
use super::sandbox::NoSandbox;
use super::{Place, loads};
use crate::config;
use crate::pack::archive::{Contents, MAX_FILES};
use crate::pack::fault::{Fault, PackError};
use crate::pack::objects::ItemKind;

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

/// Where this hub's renderings are made.
#[derive(Debug)]
pub enum Programs {
    Here(Local),
    /// With a renderer the hub runs none itself.
    Beside(Renderer),
}

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
    /// `scratch` is for the files that a program of this machine reads.
    pub fn new(config: &config::Packages, scratch: PathBuf) -> Programs {
        match &config.renderer {
            Some(socket) => Programs::Beside(Renderer::at(socket.clone())),
            None => {
                let installed = Installed { kustomize: config.kustomize.clone(), helm: config.helm.clone() };
                Programs::Here(Local::in_namespaces(installed, scratch))
            }
        }
    }

    /// Renders a folder. `release` and `namespace` are what a chart is told.
    pub async fn render(&self, job: Job, release: &str, namespace: &str) -> Result<Vec<u8>, Fault> {
        let Job { program, path, origin, files, .. } = job;
        let (release, namespace) = (release.to_owned(), namespace.to_owned());
        let request = Request { program, path: path.clone(), release, namespace, files };
        let outcome = match self {
            Programs::Here(local) => local.render(request).await,
            Programs::Beside(renderer) => renderer.render(&request).await,
        };
        outcome.map_err(|error| self.fault(error, program, shown(&path), origin))
    }

    fn fault(&self, error: RenderError, program: Program, path: &str, origin: Origin) -> Fault {
        let name = program.name();
        let (code, message, hint) = match error {
            RenderError::Folder { folder, source } => {
                let folder = folder.display().to_string();
                return Fault::Failed(PackError::Blobs(crate::pack::BlobError::Io { folder, source }));
            }
            RenderError::Interrupted => return Fault::Failed(PackError::Interrupted),
            RenderError::Missing(missing) => self.missing(program, path, &missing.display().to_string()),
            RenderError::NoSandbox(lack) => no_sandbox(name, path, &lack),
            RenderError::Away(why) => away(name, path, &why),
            RenderError::Refused(why) | RenderError::Failed(why) => {
                let why = why.chars().take(MAX_COMPLAINT).collect::<String>();
                let hint = "run it on a checkout without network: charts need their dependencies and kustomizations their bases in the repository";
                ("RenderingFailed", format!("{name} failed: {}", why.trim()), hint.to_owned())
            }
        };
        Fault::of(Problem::error(code, message).at(origin).hint(hint))
    }

    fn missing(&self, program: Program, path: &str, missing: &str) -> Said {
        let name = program.name();
        let wants = match program {
            Program::Kustomize => "its kustomization.yaml does more than list resources",
            Program::Helm => "it is a Helm chart",
        };
        let (whose, way) = match self {
            Programs::Here(_) => {
                ("the hub", format!("install {name} on the hub or name it as `packages.{name}` in hub.toml"))
            }
            Programs::Beside(_) => {
                ("the renderer", format!("put {name} into the renderer's image or name it with its option `--{name}`"))
            }
        };
        let message = format!("`{path}` needs {name} ({wants}), and {whose} has no `{missing}`");
        ("ProgramMissing", message, format!("{way}; or commit rendered manifests"))
    }
}

/// Code, message and hint.
type Said = (&'static str, String, String);

/// The code of what a renderer will render once it is back.
pub(in crate::pack) const RENDERER_AWAY: &str = "RendererAway";
/// Characters of a complaint that are passed on.
const MAX_COMPLAINT: usize = 2000;

fn no_sandbox(name: &str, path: &str, lack: &NoSandbox) -> Said {
    let message = format!("`{path}` needs {name}, which runs only where it can be shut off from the hub: {lack}");
    tracing::warn!(%lack, "kustomize and helm can't be run here");
    ("SandboxMissing", message, lack.hint().to_owned())
}

/// Nothing is wrong with the assignment: the hub asks again at its next look.
fn away(name: &str, path: &str, why: &str) -> Said {
    tracing::warn!(why, "the renderer is away; it is asked again");
    (RENDERER_AWAY, format!("`{path}` needs {name}, and {why}"), Renderer::HINT.to_owned())
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}

#[cfg(test)]
mod tests;
