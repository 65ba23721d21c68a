//! Programs that run on this machine, behind a wall: bubblewrap's namespaces in a hub, Landlock and seccomp in a renderer.
//! Called by `program` and by the renderer; owns the folder with one private folder for each rendering.

use std::ffi::OsString;
use std::future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::OnceCell;

use super::folder::{self, JobFolder};
use super::installed::Installed;
use super::process;
use super::renderer::enclosed;
use super::request::{Program, RenderError, Request};
use super::sandbox::{SCRATCH_BYTES, SOURCE, Sandbox};
use crate::pack::archive::Contents;

/// This machine's programs.
#[derive(Debug)]
pub struct Local {
    installed: Installed,
    folder: PathBuf,
    wall: Wall,
}

/// What keeps a program from everything but its source.
#[derive(Debug)]
enum Wall {
    /// Once there is one.
    Bubblewrap(OnceCell<Sandbox>),
    /// The program shuts itself off before it begins, and is watched.
    Enclosed,
}

/// A rendering writes nothing at all, usually.
const SCRATCH_ENTRIES: usize = 10_000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

impl Local {
    /// In bubblewrap. What a killed process left in the folder goes.
    pub fn in_namespaces(installed: Installed, folder: PathBuf) -> Local {
        folder::clear(&folder);
        Local { installed, folder, wall: Wall::Bubblewrap(OnceCell::new()) }
    }

    /// In processes that shut themselves off. What a killed process left in the folder goes.
    pub(super) fn enclosed(installed: Installed, folder: PathBuf) -> Local {
        folder::clear(&folder);
        Local { installed, folder, wall: Wall::Enclosed }
    }

    pub async fn render(&self, request: Request) -> Result<Vec<u8>, RenderError> {
        self.render_until(request, future::pending()).await
    }

    /// `stop` ends it with a reason of its own.
    pub(super) async fn render_until(
        &self,
        mut request: Request,
        stop: impl Future<Output = String>,
    ) -> Result<Vec<u8>, RenderError> {
        request.check()?;
        let files = std::mem::take(&mut request.files);
        self.run(request.program, files, |source| request.arguments(source), stop).await
    }

    /// As the program itself says it, on one line.
    pub(super) async fn version(&self, program: Program) -> Result<String, RenderError> {
        let arguments = match program {
            Program::Kustomize => vec!["version".into()],
            Program::Helm => vec!["version".into(), "--short".into()],
        };
        let output = self.run(program, Contents::default(), |_| arguments, future::pending()).await?;
        let said = String::from_utf8_lossy(&output);
        Ok(said.trim().lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(100).collect())
    }

    async fn run(
        &self,
        program: Program,
        files: Contents,
        arguments: impl FnOnce(&Path) -> Vec<OsString>,
        stop: impl Future<Output = String>,
    ) -> Result<Vec<u8>, RenderError> {
        let Some(found) = self.installed.find(program) else {
            return Err(RenderError::Missing(self.installed.path(program).to_owned()));
        };
        match &self.wall {
            Wall::Bubblewrap(sandbox) => {
                let sandbox = sandbox.get_or_try_init(Sandbox::find).await?;
                let folder = job_folder(&self.folder, files).await?;
                let command = sandbox.command(&found, &arguments(Path::new(SOURCE)), &folder.source());
                process::run(command, stop).await.map_err(RenderError::Failed)
            }
            Wall::Enclosed => {
                let folder = job_folder(&self.folder, files).await?;
                let arguments = arguments(&folder.source());
                run_watched(enclosed::command(&folder, Some((found.as_path(), arguments.as_slice()))), &folder, stop)
                    .await
            }
        }
    }
}

pub(super) async fn job_folder(above: &Path, files: Contents) -> Result<JobFolder, RenderError> {
    let here = above.to_owned();
    let made = tokio::task::spawn_blocking(move || JobFolder::make(&here, &files)).await;
    let made = made.map_err(|_| RenderError::Interrupted)?;
    made.map_err(|source| RenderError::Folder { folder: above.to_owned(), source })
}

/// A program whose scratch folder is a plain one: it is ended when it fills it.
pub(super) async fn run_watched(
    command: Command,
    folder: &JobFolder,
    stop: impl Future<Output = String>,
) -> Result<Vec<u8>, RenderError> {
    let stop = async {
        tokio::select! {
            why = stop => why,
            why = watch(folder.scratch()) => why,
        }
    };
    let source = folder.source().display().to_string();
    let outcome = process::run(command, stop).await;
    // As in bubblewrap, so that the same fault reads the same each time.
    outcome.map_err(|why| RenderError::Failed(why.replace(&source, SOURCE)))
}

async fn watch(scratch: PathBuf) -> String {
    loop {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        let here = scratch.clone();
        let full = tokio::task::spawn_blocking(move || folder::exceeds(&here, SCRATCH_BYTES, SCRATCH_ENTRIES)).await;
        if full.unwrap_or(true) {
            return format!(
                "it wrote more than {} MiB or {SCRATCH_ENTRIES} files to its scratch space",
                SCRATCH_BYTES >> 20
            );
        }
    }
}
