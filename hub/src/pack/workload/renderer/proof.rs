//! The proof that a program can be shut off here, at a renderer's start: a process that shut itself off tries what it must not be
//! able to do. Without the proof nothing is served.

use std::fs::{self, OpenOptions};
use std::future;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};

use kedge_hub_types::causes::chain;

use nix::libc;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, getppid, setpgid, truncate};

use super::enclosed::{self, Enclosure};
use crate::pack::archive::Contents;
use crate::pack::workload::local;
use crate::pack::workload::request::RenderError;

/// Why nothing is run here.
#[derive(Debug, thiserror::Error)]
pub enum NotEnclosed {
    #[error("kustomize and helm can't be shut off here: {0}")]
    Open(String),
    #[error("nothing can be tried here")]
    Untried(#[from] RenderError),
}

impl NotEnclosed {
    pub fn hint(&self) -> Option<&'static str> {
        matches!(self, NotEnclosed::Open(_)).then_some(HINT)
    }
}

const HINT: &str = "the renderer needs Landlock (Linux 5.13 or newer, with `landlock` in /sys/kernel/security/lsm) and seccomp, and a container runtime that lets their calls through; or commit rendered manifests";

/// In the source of the process that tries: its value is the path of a file that isn't its own.
const OUTSIDE: &str = "outside";
const SECRET: &str = "of another rendering";
const SHUT_OFF: &str = "shut off";

/// Lets such a process try.
pub(super) async fn prove(folder: &Path) -> Result<(), NotEnclosed> {
    let job = async |name: &str, text: &str| {
        let mut files = Contents::default();
        let added = files.add(name, text.as_bytes().to_vec(), false);
        added.map_err(|error| RenderError::Refused(error.to_string()))?;
        local::job_folder(folder, files).await
    };
    let other = job("file", SECRET).await?;
    let outside = other.source().join("file");
    let own = job(OUTSIDE, &outside.to_string_lossy()).await?;
    let tried = local::run_watched(enclosed::command(&own, None), &own, future::pending()).await;
    let said = tried.map_err(|error| NotEnclosed::Open(error.to_string()))?;
    let said = String::from_utf8_lossy(&said);
    if said.trim() != SHUT_OFF || fs::read_to_string(&outside).ok().as_deref() != Some(SECRET) {
        return Err(NotEnclosed::Open(said.trim().to_owned()));
    }
    Ok(())
}

/// What such a process tries, and what came of it: that it could do what it needs and nothing else, or why not.
pub fn try_everything(own: &Enclosure) -> String {
    tried(own).map_or_else(|why| why, |()| SHUT_OFF.to_owned())
}

fn tried(own: &Enclosure) -> Result<(), String> {
    let parent = getppid();
    own.shut_off(None).map_err(|error| chain(&error))?;
    let outside = fs::read_to_string(own.source.join(OUTSIDE));
    let outside = PathBuf::from(outside.map_err(|error| format!("its source can't be read: {error}"))?);
    let written = fs::write(own.scratch.join("file"), "x");
    written.map_err(|error| format!("its scratch space can't be written: {error}"))?;
    let empties = OpenOptions::new().read(true).custom_flags(libc::O_TRUNC).open(&outside);
    let tried = [
        ("read what isn't its own", fs::read(&outside).is_ok()),
        ("look at what isn't its own", outside.parent().is_some_and(|folder| fs::read_dir(folder).is_ok())),
        ("write what isn't its own", OpenOptions::new().append(true).open(&outside).is_ok()),
        ("empty what isn't its own", empties.is_ok() || truncate(&outside, 0).is_ok()),
        ("write its source", fs::write(own.source.join("file"), "x").is_ok()),
        ("remove its source", fs::remove_file(own.source.join(OUTSIDE)).is_ok()),
        ("look at processes", fs::read_dir("/proc").is_ok() || fs::read("/proc/self/environ").is_ok()),
        ("open a network socket", TcpListener::bind("127.0.0.1:0").is_ok() || UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("open a Unix socket", UnixStream::pair().is_ok() || UnixDatagram::unbound().is_ok()),
        ("send signals", kill(parent, None::<Signal>).is_ok() || killpg(getpgrp(), None::<Signal>).is_ok()),
        ("change its group", setpgid(Pid::from_raw(0), Pid::from_raw(0)).is_ok()),
    ];
    match tried.iter().find(|(_, succeeded)| *succeeded) {
        Some((what, _)) => Err(format!("a program could {what}")),
        None => Ok(()),
    }
}
