//! Where `kustomize` and `helm` run: bubblewrap gives them namespaces of their own for files, network, users and
//! processes. They see themselves, the system's libraries and the source, read-only; there is no network, no hub's data and
//! no other process. Where that can't be had they don't run. Used by `program`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Debian's package of the same name.
const BUBBLEWRAP: &str = "bwrap";

/// Where the source is inside.
pub(super) const SOURCE: &str = "/source";
/// All that can be written, gone afterwards.
const SCRATCH: &str = "/tmp";
const SCRATCH_BYTES: &str = "67108864";
/// Where the program is inside.
const PROGRAM: &str = "/program";

/// Programs and libraries of the system: what a wrapper or a dynamic program needs. Never `/etc`, `/usr/local`, `/opt`.
const SYSTEM: [&str; 4] = ["/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64"];
/// On today's systems these are links into `/usr`.
const MERGED: [&str; 4] = ["/bin", "/lib", "/lib32", "/lib64"];

/// Seconds of CPU, for a program that outlives its killing.
const CPU_SECONDS: &str = "60";
/// Go reserves addresses generously; this is far above what a rendering uses.
const MEMORY_BYTES: &str = "4294967296";
/// Into one file.
const FILE_BYTES: &str = "67108864";
/// Processes and threads; on older kernels those of the hub itself count too.
const PROCESSES: &str = "2048";
const OPEN_FILES: &str = "4096";

/// Bubblewrap doesn't take this long to say no.
const PATIENCE: Duration = Duration::from_secs(10);

/// A sandbox that was tried and works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    bubblewrap: PathBuf,
}

/// Why there is none, as a person reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSandbox {
    #[error("bubblewrap (`{BUBBLEWRAP}`) isn't installed")]
    Missing,
    #[error("bubblewrap can't make namespaces here ({0})")]
    Refused(String),
}

impl NoSandbox {
    pub fn hint(&self) -> &'static str {
        match self {
            NoSandbox::Missing => "install bubblewrap on the hub's machine; or commit rendered manifests",
            NoSandbox::Refused(_) => {
                "let the hub's user make user namespaces (docs/hub.md), or run the hub outside of a container; or commit rendered manifests"
            }
        }
    }
}

impl Sandbox {
    /// Tries it with a program that does nothing.
    pub async fn find() -> Result<Sandbox, NoSandbox> {
        let bubblewrap = super::program::find(Path::new(BUBBLEWRAP)).ok_or(NoSandbox::Missing)?;
        let sandbox = Sandbox { bubblewrap };
        let nothing = Path::new("/usr/bin/true");
        let mut trial = sandbox.command(nothing, &[], Path::new("/usr/lib"));
        trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let ended = tokio::time::timeout(PATIENCE, trial.output()).await;
        match ended {
            Ok(Ok(output)) if output.status.success() => Ok(sandbox),
            Ok(Ok(output)) => {
                let said = String::from_utf8_lossy(&output.stderr).trim().chars().take(300).collect::<String>();
                Err(NoSandbox::Refused(if said.is_empty() { output.status.to_string() } else { said }))
            }
            Ok(Err(error)) => Err(NoSandbox::Refused(error.to_string())),
            Err(_) => Err(NoSandbox::Refused("it doesn't answer".to_owned())),
        }
    }

    /// A program with the content of a folder as its source.
    pub fn command(&self, program: &Path, arguments: &[&OsStr], source: &Path) -> Command {
        let mut command = Command::new(&self.bubblewrap);
        command.args(words(program, source)).args(arguments).env_clear();
        command
    }
}

fn words(program: &Path, source: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |more: &[&OsStr]| words.extend(more.iter().map(|word| (*word).to_owned()));
    let word = OsStr::new;
    // By name: `--unshare-all` alone leaves the users when it can't have them.
    for namespace in ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"] {
        add(&[word(namespace)]);
    }
    add(&[word("--uid"), word("65534"), word("--gid"), word("65534")]);
    add(&[word("--die-with-parent"), word("--new-session"), word("--cap-drop"), word("ALL"), word("--clearenv")]);
    for name in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        add(&[word("--setenv"), word(name), word(SCRATCH)]);
    }
    add(&[word("--setenv"), word("PATH"), word("/usr/bin:/bin"), word("--setenv"), word("LC_ALL"), word("C.UTF-8")]);
    for folder in SYSTEM.into_iter().filter(|folder| Path::new(folder).is_dir()) {
        add(&[word("--ro-bind"), word(folder), word(folder)]);
    }
    for folder in MERGED {
        match fs::read_link(folder) {
            Ok(target) => add(&[word("--symlink"), target.as_os_str(), word(folder)]),
            Err(_) if Path::new(folder).is_dir() => add(&[word("--ro-bind"), word(folder), word(folder)]),
            Err(_) => {}
        }
    }
    let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let inside = Path::new(PROGRAM).join(program.file_name().unwrap_or(word("program")));
    add(&[word("--ro-bind"), real.as_os_str(), inside.as_os_str(), word("--dev"), word("/dev")]);
    add(&[word("--size"), word(SCRATCH_BYTES), word("--tmpfs"), word(SCRATCH)]);
    add(&[word("--ro-bind"), source.as_os_str(), word(SOURCE)]);
    add(&[word("--remount-ro"), word("/dev"), word("--remount-ro"), word("/")]);
    add(&[word("--chdir"), word(SOURCE), word("--"), word("/usr/bin/prlimit"), word("--core=0")]);
    for (name, most) in [
        ("as", MEMORY_BYTES),
        ("cpu", CPU_SECONDS),
        ("fsize", FILE_BYTES),
        ("nproc", PROCESSES),
        ("nofile", OPEN_FILES),
    ] {
        add(&[word(&format!("--{name}={most}"))]);
    }
    add(&[word("--"), inside.as_os_str()]);
    words
}
