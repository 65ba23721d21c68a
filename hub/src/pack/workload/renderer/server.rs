//! The renderer: serves a hub on a Unix socket, a rendering each connection, each in a process that shuts itself off. One bad
//! request concerns itself only. Called by the command `renderer`; owns the socket and the folder for renderings.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kedge_hub_types::causes::chain;
use nix::sys::prctl;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::proof::{self, NotEnclosed};
use super::wire::{self, Answer, MAX_TAR, Question};
use crate::pack::archive::Contents;
use crate::pack::workload::installed::Installed;
use crate::pack::workload::local::Local;
use crate::pack::workload::request::{Program, RenderError, Request};
use crate::private;

/// What a renderer is told.
#[derive(Clone, Debug)]
pub struct Options {
    pub socket: PathBuf,
    pub installed: Installed,
    /// Below it is the folder for the files of renderings.
    pub folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    NotEnclosed(#[from] NotEnclosed),
    #[error("the renderer can't hide itself from what it runs")]
    Hide(#[source] nix::errno::Errno),
    #[error("`{}` can't be the renderer's folder", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("another renderer serves on `{}`", .0.display())]
    Served(PathBuf),
    #[error("`{}` can't be the renderer's socket", socket.display())]
    Socket { socket: PathBuf, source: io::Error },
}

/// For this user alone, also where others write beside it.
const FOLDER: &str = "kedge-renderer";
/// The hub may be another user of the same group; nobody else asks.
const SOCKET_MODE: u32 = 0o660;
/// Each takes a core.
const RENDERS_AT_ONCE: usize = 2;
/// A bound for memory; further ones wait unaccepted.
const CONNECTIONS: usize = 4;
/// A request or an answer is 100 MB at most and comes from the same machine.
const PASSING: Duration = Duration::from_secs(10);
/// Characters of a complaint.
const MAX_WHY: usize = 4000;

/// Serves until told to stop, once it is proved that a program can be shut off here.
pub async fn serve(options: Options, mut stopped: watch::Receiver<bool>) -> Result<(), ServerError> {
    if nix::unistd::geteuid().is_root() {
        tracing::warn!("the renderer runs as root: give it a user of its own");
    }
    let Options { socket, installed, folder } = options;
    free(&socket).await?;
    let folder = folder.join(FOLDER);
    private::folder(&folder).map_err(|source| ServerError::Folder { folder: folder.clone(), source })?;
    let local = Arc::new(Local::enclosed(installed, folder.clone()));
    proof::prove(&folder).await?;
    // No process of the same user looks into this one, and what loses its parent is ours to end.
    prctl::set_dumpable(false).and_then(|()| prctl::set_child_subreaper(true)).map_err(ServerError::Hide)?;
    let listener = listen(&socket)?;
    let served = socket.display();
    tracing::info!(socket = %served, "the renderer serves its user and group (mode 0660); what it runs is shut off");
    tokio::spawn(look(Arc::clone(&local)));
    let (connections, renders) = (Arc::new(Semaphore::new(CONNECTIONS)), Arc::new(Semaphore::new(RENDERS_AT_ONCE)));
    loop {
        let next = async {
            let slot = Arc::clone(&connections).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, stream) = tokio::select! {
            next = next => next,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let (local, renders) = (Arc::clone(&local), Arc::clone(&renders));
        match stream {
            Ok((stream, _)) => {
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &local, &renders).await {
                        tracing::warn!(%error, "a hub went without its answer");
                    }
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection can't be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    let _ = fs::remove_file(&socket);
    Ok(())
}

/// Says which programs there are, for the log.
async fn look(local: Arc<Local>) {
    for program in Program::ALL {
        match local.version(program).await {
            Ok(version) => tracing::info!(program = program.name(), version, "found"),
            Err(error) => tracing::warn!(program = program.name(), error = chain(&error), "can't be run"),
        }
    }
}

/// What a killed renderer left is removed; one that serves isn't, nor is anything but a socket.
async fn free(socket: &Path) -> Result<(), ServerError> {
    let failed = |source| ServerError::Socket { socket: socket.to_owned(), source };
    match fs::symlink_metadata(socket) {
        Ok(found) if !found.file_type().is_socket() => Err(failed(io::Error::other("there is a file of that name"))),
        Ok(_) if UnixStream::connect(socket).await.is_ok() => Err(ServerError::Served(socket.to_owned())),
        Ok(_) => fs::remove_file(socket).map_err(failed),
        Err(_) => Ok(()),
    }
}

/// The process' mask leaves it to its user alone until its mode is set.
fn listen(socket: &Path) -> Result<UnixListener, ServerError> {
    let listener = UnixListener::bind(socket);
    let listener = listener.and_then(|listener| {
        fs::set_permissions(socket, fs::Permissions::from_mode(SOCKET_MODE))?;
        Ok(listener)
    });
    listener.map_err(|source| ServerError::Socket { socket: socket.to_owned(), source })
}

async fn answer(mut stream: UnixStream, local: &Local, renders: &Semaphore) -> io::Result<()> {
    let (answer, output) = match timeout(PASSING, question(&mut stream)).await {
        Ok(Ok(Asked::Render(request))) => rendered(*request, &mut stream, local, renders).await,
        Ok(Ok(Asked::Programs)) => (programs(local).await, Vec::new()),
        Ok(Err(why)) => (Answer::Refused { why: short(&why) }, Vec::new()),
        Err(_) => {
            let why = format!("the request didn't arrive within {} s", PASSING.as_secs());
            (Answer::Refused { why }, Vec::new())
        }
    };
    if let Answer::Refused { why } = &answer {
        tracing::warn!(why, "a request is refused");
    }
    let sent = timeout(PASSING, wire::send(&mut stream, &answer, &output)).await;
    sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

enum Asked {
    Render(Box<Request>),
    Programs,
}

async fn question(from: &mut UnixStream) -> Result<Asked, String> {
    let asked: Question = wire::head(from).await.map_err(|error| error.to_string())?;
    let Question::Render { program, path, release, namespace, bytes } = asked else { return Ok(Asked::Programs) };
    let tar = wire::body(from, bytes, MAX_TAR).await.map_err(|error| error.to_string())?;
    let files = tokio::task::spawn_blocking(move || Contents::of_tar(&tar)).await;
    let files = files.map_err(|_| "it was interrupted".to_owned())?.map_err(|error| chain(&error))?;
    let request = Request { program, path, release, namespace, files };
    request.check().map_err(|bad| bad.to_string())?;
    Ok(Asked::Render(Box::new(request)))
}

async fn rendered(request: Request, stream: &mut UnixStream, local: &Local, renders: &Semaphore) -> (Answer, Vec<u8>) {
    let gone = gone(stream);
    tokio::pin!(gone);
    let slot = tokio::select! {
        slot = renders.acquire() => slot,
        why = &mut gone => return (Answer::Refused { why }, Vec::new()),
    };
    let (name, path) = (request.program.name(), request.path.clone());
    let outcome = local.render_until(request, gone).await;
    drop(slot);
    let error = match outcome {
        Ok(output) => return (Answer::Rendered { bytes: output.len() as u64 }, output),
        Err(error) => error,
    };
    tracing::info!(program = name, path, why = short(&chain(&error)), "nothing is rendered");
    let answer = match error {
        RenderError::Missing(path) => Answer::Missing { path: path.display().to_string() },
        RenderError::Failed(why) => Answer::Failed { why: short(&why) },
        RenderError::Refused(why) => Answer::Refused { why: short(&why) },
        other => Answer::Faulty { why: short(&chain(&other)) },
    };
    (answer, Vec::new())
}

/// A hub says nothing more once it asked.
async fn gone(stream: &mut (impl AsyncRead + Unpin)) -> String {
    match stream.read_u8().await {
        Ok(_) => "there is more than the request",
        Err(_) => "the hub hung up",
    }
    .to_owned()
}

async fn programs(local: &Local) -> Answer {
    let of = async |program| local.version(program).await.unwrap_or_else(|error| short(&chain(&error)));
    Answer::Programs { kustomize: of(Program::Kustomize).await, helm: of(Program::Helm).await }
}

fn short(why: &str) -> String {
    why.chars().take(MAX_WHY).collect()
}
