//! The `git` program, for what gix doesn't do: ssh, copying from a path, and pushing. Each run reads no configuration
//! but ours, asks nobody, and ends when its time is over. Used by `transfer` and `push`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// Of what a program says, so much is read.
const OUTPUT_LIMIT: u64 = 4 << 20;

/// A server that doesn't answer by then won't.
const CONNECT_SECONDS: u32 = 10;

/// A run that is being put together. Secrets are in its environment, never among its arguments.
#[derive(Debug)]
pub struct Program {
    command: Command,
    settings: Vec<(String, String)>,
}

/// What a run that ended said.
#[derive(Debug)]
pub struct Said {
    pub success: bool,
    pub out: String,
    pub error: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("the `git` program can't be started")]
    Missing(#[source] std::io::Error),
    #[error("`git` was ended after {} seconds", .0.as_secs())]
    TooLong(Duration),
    #[error("`git` said more than {OUTPUT_LIMIT} bytes")]
    TooMuch,
    #[error("the `git` program was lost")]
    Lost(#[source] std::io::Error),
}

impl Program {
    /// `git` in a bare repository.
    pub fn new(repository: &Path) -> Program {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(repository);
        // Only what we set: a variable of the hub's own environment could name another repository or a program.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "true")
            .env("SSH_ASKPASS", "true")
            .env("GIT_ALLOW_PROTOCOL", "https:http:ssh:file")
            .env("GIT_PROTOCOL_FROM_USER", "0")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let settings = [
            ("credential.helper", ""),
            ("http.followRedirects", "false"),
            ("http.lowSpeedLimit", "1"),
            ("http.lowSpeedTime", "30"),
            ("safe.directory", "*"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("core.hooksPath", "/dev/null"),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        Program { command, settings }
    }

    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Program {
        self.command.args(arguments);
        self
    }

    /// A header for one address only.
    #[must_use]
    pub fn authorization(mut self, url: &str, value: &str) -> Program {
        self.settings.push((format!("http.{url}.extraHeader"), format!("Authorization: {value}")));
        self
    }

    /// ssh asks nobody, and only talks to hosts that it knows.
    #[must_use]
    pub fn ssh(mut self, key: Option<&Path>) -> Program {
        let mut ssh = format!(
            "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout={CONNECT_SECONDS} -o ForwardAgent=no"
        );
        if let Some(key) = key {
            ssh.push_str(&format!(" -o IdentitiesOnly=yes -i {}", quoted(key)));
        }
        self.command.env("GIT_SSH_COMMAND", ssh).env("GIT_SSH_VARIANT", "ssh");
        self
    }

    pub async fn run(mut self, patience: Duration) -> Result<Said, ProgramError> {
        let mut variables = BTreeMap::from([("GIT_CONFIG_COUNT".to_owned(), self.settings.len().to_string())]);
        for (index, (key, value)) in self.settings.into_iter().enumerate() {
            variables.insert(format!("GIT_CONFIG_KEY_{index}"), key);
            variables.insert(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        let mut child = self.command.envs(variables).spawn().map_err(ProgramError::Missing)?;
        let (out, error) = (child.stdout.take(), child.stderr.take());
        let talk = async {
            let (out, error) = tokio::try_join!(read(out), read(error))?;
            let status = child.wait().await.map_err(ProgramError::Lost)?;
            Ok(Said { success: status.success(), out, error })
        };
        // Dropped when it takes too long, and killed with that.
        tokio::time::timeout(patience, talk).await.unwrap_or(Err(ProgramError::TooLong(patience)))
    }
}

impl Said {
    /// The reason of a failure: the lines that are one, without the noise around them.
    pub fn reason(&self) -> String {
        let is_reason = |line: &&str| {
            ["fatal:", "error:", "remote:", "ssh:", "Host key", "!"].iter().any(|start| line.starts_with(start))
                || line.contains("denied")
        };
        let lines: Vec<&str> = self.error.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let reasons: Vec<&str> = lines.iter().copied().filter(is_reason).collect();
        let chosen = if reasons.is_empty() { lines } else { reasons };
        let text = chosen.join("; ");
        text.chars().filter(|c| !c.is_control()).take(1000).collect()
    }
}

async fn read(stream: Option<impl tokio::io::AsyncRead + Unpin>) -> Result<String, ProgramError> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(OUTPUT_LIMIT + 1).read_to_end(&mut bytes).await.map_err(ProgramError::Lost)?;
    }
    if bytes.len() as u64 > OUTPUT_LIMIT {
        return Err(ProgramError::TooMuch);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// For the shell that git starts ssh with.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_run_that_takes_too_long_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::new(folder.path()).args(["-c", "alias.wait=!sleep 60", "wait"]);
        let ended = program.run(Duration::from_millis(200)).await;
        assert!(matches!(ended, Err(ProgramError::TooLong(_))), "{ended:?}");
    }

    #[test]
    fn a_secret_is_not_among_the_arguments() {
        let program = Program::new(Path::new("/x")).args(["push"]).authorization("https://h/r", "Basic abc");
        let arguments: Vec<_> = program.command.as_std().get_args().collect();
        assert!(!format!("{arguments:?}").contains("Basic"));
    }

    #[test]
    fn a_reason_is_without_noise() {
        let error = "Cloning\nremote: no way\nfatal: unable to access\n".to_owned();
        let said = Said { success: false, out: String::new(), error };
        assert_eq!(said.reason(), "remote: no way; fatal: unable to access");
    }
}
