//! Where `kustomize` and `helm` run: bubblewrap gives them namespaces of their own for files, network, users and
//! processes. They see themselves, the system's libraries and the source, read-only; there is no network, no hub's data and
//! no other process. Where that can't be had they don't run here. Used by `local`; the renderer keeps the same limits.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::resource::Resource;
use tokio::process::Command;

/// Debian's package of the same name.
const BUBBLEWRAP: &str = "bwrap";

/// Where the source is inside.
pub(super) const SOURCE: &str = "/source";
/// All that can be written, gone afterwards.
const SCRATCH: &str = "/tmp";
pub(super) const SCRATCH_BYTES: u64 = 64 << 20;
/// Where the program is inside.
const PROGRAM: &str = "/program";

/// Programs and libraries of the system: what a wrapper or a dynamic program needs. Never `/etc`, `/usr/local`, `/opt`.
pub(super) const SYSTEM: [&str; 4] = ["/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64"];
/// On today's systems these are links into `/usr`.
pub(super) const MERGED: [&str; 4] = ["/bin", "/lib", "/lib32", "/lib64"];

/// What a program finds in its environment, beside the folders in `HOMES`.
pub(super) const ENVIRONMENT: [(&str, &str); 2] = [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8")];
/// Variables that name its scratch folder.
pub(super) const HOMES: [&str; 5] = ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"];

/// By their names for `prlimit` and for the kernel.
pub(super) const LIMITS: [(&str, Resource, u64); 6] = [
    ("core", Resource::RLIMIT_CORE, 0),
    // Bytes. Go reserves addresses generously; this is far above what a rendering uses.
    ("as", Resource::RLIMIT_AS, 4 << 30),
    // Seconds, for a program that outlives its killing.
    ("cpu", Resource::RLIMIT_CPU, 60),
    // Bytes into one file.
    ("fsize", Resource::RLIMIT_FSIZE, SCRATCH_BYTES),
    // Processes and threads; on older kernels those of the hub itself count too.
    ("nproc", Resource::RLIMIT_NPROC, 2048),
    ("nofile", Resource::RLIMIT_NOFILE, 4096),
];

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
            NoSandbox::Missing => {
                "install bubblewrap on the hub's machine; in a pod run a renderer beside the hub and name its socket as `packages.renderer` in hub.toml (docs/hub.md); or commit rendered manifests"
            }
            NoSandbox::Refused(_) => {
                "let the hub's user make user namespaces, or, in a pod, run a renderer beside the hub and name its socket as `packages.renderer` in hub.toml (docs/hub.md); or commit rendered manifests"
            }
        }
    }
}

impl Sandbox {
    /// Tries it with a program that does nothing.
    pub async fn find() -> Result<Sandbox, NoSandbox> {
        let bubblewrap = super::installed::find(Path::new(BUBBLEWRAP)).ok_or(NoSandbox::Missing)?;
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
    pub fn command(&self, program: &Path, arguments: &[OsString], source: &Path) -> Command {
        let mut command = Command::new(&self.bubblewrap);
        command.args(words(program, source)).args(arguments).env_clear().current_dir("/");
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
    for (name, value) in HOMES.map(|name| (name, SCRATCH)).into_iter().chain(ENVIRONMENT) {
        add(&[word("--setenv"), word(name), word(value)]);
    }
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
    add(&[word("--size"), word(&SCRATCH_BYTES.to_string()), word("--tmpfs"), word(SCRATCH)]);
    add(&[word("--ro-bind"), source.as_os_str(), word(SOURCE)]);
    add(&[word("--remount-ro"), word("/dev"), word("--remount-ro"), word("/")]);
    add(&[word("--chdir"), word(SOURCE), word("--"), word("/usr/bin/prlimit")]);
    for (name, _, most) in LIMITS {
        add(&[word(&format!("--{name}={most}"))]);
    }
    add(&[word("--"), inside.as_os_str()]);
    words
}
