//! A program that is shut off without namespaces: a process of our own gives up its rights and then becomes the program. It
//! reads its source and the system's libraries, writes its scratch folder, and has no sockets, no signals for others and no
//! other process' memory. Landlock and seccomp both hold, or the program isn't run. The command `renderer-exec` is that
//! process; the renderer starts it.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, PathFdError,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;

use super::calls::{self, CallsError};
use crate::pack::workload::folder::JobFolder;
use crate::pack::workload::sandbox::{ENVIRONMENT, HOMES, LIMITS, MERGED, SYSTEM};

/// The folders of one rendering.
#[derive(Clone, Debug)]
pub struct Enclosure {
    pub source: PathBuf,
    pub scratch: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum EnclosureError {
    #[error("the renderer's rights can't be given up")]
    Process(#[source] Errno),
    #[error("the limit `{limit}` can't be set")]
    Limit { limit: &'static str, source: Errno },
    #[error("`{}` can't be opened", path.display())]
    Path { path: PathBuf, source: PathFdError },
    #[error("Landlock can't be had here")]
    Landlock(#[from] RulesetError),
    #[error("Landlock isn't in force here")]
    NotEnforced,
    #[error(transparent)]
    Calls(#[from] CallsError),
    #[error("`{}` can't be started", program.display())]
    Start { program: PathBuf, source: io::Error },
}

/// The name of the command that is this process.
pub const COMMAND: &str = "renderer-exec";
/// This very program, also once its file was replaced.
const SELF: &str = "/proc/self/exe";
/// Required: the rights of the first Landlock. Newer rights are taken where the kernel has them; what an older one lets
/// through, `calls` refuses.
const REQUIRED: ABI = ABI::V1;
const NEWEST: ABI = ABI::V6;
const NULL: &str = "/dev/null";
/// As in bubblewrap.
const DEVICES: [&str; 4] = ["/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The process that becomes a program; without one it tries what it must not be able to do.
pub(in crate::pack::workload) fn command(
    folder: &JobFolder,
    program: Option<(&Path, &[OsString])>,
) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(SELF);
    command.env_clear().current_dir(folder.source()).arg(COMMAND);
    command.arg("--source").arg(folder.source()).arg("--scratch").arg(folder.scratch());
    if let Some((program, arguments)) = program {
        command.arg("--").arg(program).args(arguments);
    }
    command
}

impl Enclosure {
    /// Shuts this process off, and makes it the program.
    pub fn run(&self, program: &Path, arguments: &[OsString]) -> Result<Infallible, EnclosureError> {
        self.shut_off(Some(program))?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).env_clear().envs(ENVIRONMENT).envs(HOMES.map(|name| (name, &self.scratch)));
        Err(EnclosureError::Start { program: program.to_owned(), source: command.exec() })
    }

    /// The calling thread, for good, and whatever it becomes or starts.
    pub fn shut_off(&self, program: Option<&Path>) -> Result<(), EnclosureError> {
        prctl::set_pdeathsig(Signal::SIGKILL)
            .and_then(|()| prctl::set_no_new_privs())
            .map_err(EnclosureError::Process)?;
        for (limit, resource, most) in LIMITS {
            bound(resource, most).map_err(|source| EnclosureError::Limit { limit, source })?;
        }
        self.restrict_files(program)?;
        Ok(calls::restrict()?)
    }

    fn restrict_files(&self, program: Option<&Path>) -> Result<(), EnclosureError> {
        let look = AccessFs::ReadFile | AccessFs::ReadDir;
        let run = AccessFs::ReadFile | AccessFs::Execute;
        // Files and folders, but nothing else that has a name, and nothing to run.
        let work = AccessFs::from_all(NEWEST)
            & !(AccessFs::Execute
                | AccessFs::MakeChar
                | AccessFs::MakeBlock
                | AccessFs::MakeSock
                | AccessFs::MakeFifo
                | AccessFs::IoctlDev);
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(REQUIRED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        let mut allow = |path: &Path, access: BitFlags<AccessFs>| {
            let opened = PathFd::new(path);
            let opened = opened.map_err(|source| EnclosureError::Path { path: path.to_owned(), source })?;
            (&mut ruleset).add_rule(PathBeneath::new(opened, access))?;
            Ok::<(), EnclosureError>(())
        };
        allow(&self.source, look)?;
        allow(&self.scratch, work)?;
        if let Some(program) = program {
            allow(program, run)?;
        }
        allow(Path::new(NULL), AccessFs::ReadFile | AccessFs::WriteFile)?;
        for device in DEVICES.into_iter().map(Path::new).filter(|device| device.exists()) {
            allow(device, AccessFs::ReadFile.into())?;
        }
        for folder in SYSTEM.into_iter().chain(MERGED).map(Path::new).filter(|folder| folder.is_dir()) {
            allow(folder, run | look)?;
        }
        let status = ruleset.restrict_self()?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(EnclosureError::NotEnforced);
        }
        Ok(())
    }
}

/// Never more than this process has already.
fn bound(resource: Resource, most: u64) -> Result<(), Errno> {
    let (_, hard) = getrlimit(resource)?;
    let most = most.min(hard);
    setrlimit(resource, most, most)
}
