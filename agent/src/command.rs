//! Other programs (apt, dpkg, systemctl, useradd): started without a terminal and with a clean environment, with a time limit,
//! their output bounded. The host parts run everything through it.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How a program ended.
#[derive(Clone, Debug)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("`{program}` isn't there")]
    Missing { program: String },
    #[error("`{program}` can't be started")]
    Start { program: String, source: io::Error },
    #[error("`{program}` didn't end within {seconds} s and was stopped")]
    Slow { program: String, seconds: u64, output: String },
}

/// What a stream said so far, and the word that it has ended.
#[derive(Debug)]
struct Collected {
    kept: Arc<Mutex<Vec<u8>>>,
    over: mpsc::Receiver<()>,
}

/// How long a stream may stay open after its program has ended: a daemon that a maintainer script started may keep it for ever.
const REST: Duration = Duration::from_secs(2);
/// What is kept of each stream: its end.
const MAX_STREAM: usize = 256 * 1024;
/// What programs find in their environment, and nothing else.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("LC_ALL", "C.UTF-8"),
    ("HOME", "/root"),
    ("TERM", "dumb"),
];

impl Output {
    pub fn ok(&self) -> bool {
        self.status.success()
    }

    /// Both streams, as a person reads them.
    pub fn text(&self) -> String {
        let mut text = self.stdout.trim_end().to_owned();
        if !self.stderr.trim().is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            _ = write!(text, "{gap}{}", self.stderr.trim_end());
        }
        text
    }
}

/// Runs a program to its end. One that takes longer is killed with all that it started.
pub fn run(program: &str, arguments: &[&str], more: &[(&str, &str)], limit: Duration) -> Result<Output, CommandError> {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(ENVIRONMENT).envs(more.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => CommandError::Missing { program: program.to_owned() },
        _ => CommandError::Start { program: program.to_owned(), source },
    })?;
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    match wait(&mut child, limit) {
        Ok(Some(status)) => Ok(Output { status, stdout: text(stdout), stderr: text(stderr) }),
        Ok(None) => {
            let output = Output { status: ExitStatus::default(), stdout: text(stdout), stderr: text(stderr) }.text();
            Err(CommandError::Slow { program: program.to_owned(), seconds: limit.as_secs(), output })
        }
        Err(source) => Err(CommandError::Start { program: program.to_owned(), source }),
    }
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let (ended, over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let guard = scope.spawn(move || match over.recv_timeout(limit) {
            Err(mpsc::RecvTimeoutError::Timeout) => killpg(group, Signal::SIGKILL).is_ok(),
            _ => false,
        });
        let status = child.wait();
        drop(ended);
        let killed = guard.join().unwrap_or(false);
        status.map(|status| (!killed).then_some(status))
    })
}

fn collect(stream: Option<impl Read + Send + 'static>) -> Option<Collected> {
    let mut stream = stream?;
    let (end, over) = mpsc::channel::<()>();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let collected = Collected { kept: Arc::clone(&kept), over };
    thread::spawn(move || {
        let (_end, mut piece) = (end, [0; 8192]);
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            let Ok(mut kept) = kept.lock() else { return };
            kept.extend_from_slice(&piece[..read]);
            if kept.len() > 2 * MAX_STREAM {
                let more = kept.len() - MAX_STREAM;
                kept.drain(..more);
            }
        }
    });
    Some(collected)
}

fn text(collected: Option<Collected>) -> String {
    let Some(Collected { kept, over }) = collected else { return String::new() };
    // Either the stream has ended, or what comes later is another program's.
    _ = over.recv_timeout(REST);
    let bytes = kept.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_daemon_that_keeps_the_stream_open_keeps_nobody_waiting() {
        let began = Instant::now();
        let output =
            run("sh", &["-c", "sleep 60 & echo started; echo trouble >&2; exit 3"], &[], Duration::from_secs(30))
                .unwrap();
        assert_eq!((output.stdout.trim(), output.stderr.trim(), output.status.code()), ("started", "trouble", Some(3)));
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn one_that_takes_too_long_is_stopped_with_its_children() {
        let slow = run("sh", &["-c", "echo waiting; sleep 60"], &[], Duration::from_millis(300)).unwrap_err();
        assert!(matches!(slow, CommandError::Slow { output, .. } if output == "waiting"));
        assert!(matches!(run("no-such-program", &[], &[], REST), Err(CommandError::Missing { .. })));
    }
}
