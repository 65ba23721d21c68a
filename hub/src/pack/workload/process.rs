//! One run of a program that isn't trusted: bounded in time and output, and nothing that it started stays. Called by
//! `local`, for a program in bubblewrap and for one that shut itself off.

use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

/// A chart that takes longer is stuck.
const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const MAX_OUTPUT: usize = 16 << 20;
/// Enough of its complaint to understand it.
const MAX_COMPLAINT: usize = 4 << 10;
/// What was killed goes at once, unless it hangs in the kernel.
const REAPING: Duration = Duration::from_secs(5);

/// The output of a program that ended well, or what it complained of. `stop` ends it with a reason of its own.
pub(super) async fn run(command: Command, stop: impl Future<Output = String>) -> Result<Vec<u8>, String> {
    run_for(PATIENCE, command, stop).await
}

async fn run_for(
    patience: Duration,
    mut command: Command,
    stop: impl Future<Output = String>,
) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    let outcome = tokio::select! {
        finished = tokio::time::timeout(patience, output(&mut child)) => {
            finished.unwrap_or_else(|_| Err(format!("it took longer than {} s", patience.as_secs())))
        }
        why = stop => Err(why),
    };
    group.end(child).await;
    outcome
}

async fn output(child: &mut Child) -> Result<Vec<u8>, String> {
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("its output can't be read".to_owned());
    };
    let too_much = || format!("it wrote more than {} MiB", MAX_OUTPUT >> 20);
    let (output, complaint) =
        tokio::try_join!(async { bounded(stdout, MAX_OUTPUT).await.ok_or_else(too_much) }, async {
            Ok(bounded(stderr, MAX_COMPLAINT).await)
        })?;
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(output);
    }
    let complaint = complaint.unwrap_or_else(|| b"it complains without end".to_vec());
    Err(format!("{status}: {}", String::from_utf8_lossy(&complaint)))
}

/// Everything that a program started goes with it.
struct Group(Option<Pid>);

impl Group {
    /// Kills it and waits until nothing of it is left, as far as its processes are ours to wait for.
    async fn end(self, mut child: Child) {
        let id = self.0;
        drop(self);
        let reaped = tokio::time::timeout(REAPING, async {
            let _ = child.wait().await;
            let Some(id) = id else { return };
            let _ = tokio::task::spawn_blocking(move || reap(id)).await;
        });
        if reaped.await.is_err() {
            tracing::warn!("a killed program doesn't go");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            let _ = killpg(id, Signal::SIGKILL);
        }
    }
}

/// Takes the ends of a killed group's processes, until none is a child of ours.
fn reap(group: Pid) {
    loop {
        match waitpid(Pid::from_raw(-group.as_raw()), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
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
mod tests {
    use std::future;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    /// What was killed is somebody else's to wait for once its parent is gone.
    async fn ends(word: &str) {
        let began = std::time::Instant::now();
        while runs(word) {
            assert!(began.elapsed() < Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whether a process has this among its words.
    fn runs(word: &str) -> bool {
        let of = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let lines = std::fs::read_dir("/proc").unwrap().flatten().map(of);
        lines.into_iter().any(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()))
    }

    #[tokio::test]
    async fn a_program_that_runs_forever_is_ended_with_its_children() {
        let script = shell("sleep 3131.25 & sleep 3131.25; true");
        let outcome = run_for(Duration::from_secs(1), script, future::pending()).await;
        assert_eq!(outcome, Err("it took longer than 1 s".to_owned()));
        ends("3131.25").await;
    }

    #[tokio::test]
    async fn what_a_program_started_goes_with_it_and_a_reason_of_ours_ends_it() {
        let script = shell("sleep 3131.5 >/dev/null 2>&1 & echo done");
        assert_eq!(run(script, future::pending()).await, Ok(b"done\n".to_vec()));
        ends("3131.5").await;
        let outcome = run(shell("sleep 3131.75; true"), future::ready("enough".to_owned())).await;
        assert_eq!(outcome, Err("enough".to_owned()));
        ends("3131.75").await;
    }
}
