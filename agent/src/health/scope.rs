//! A check's program in a scope of its own, inside the namespace's slice: the slice's limits are for it too, and with the scope ends
//! everything that it forked. Called for `exec` checks.

use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::command::{self, CommandError, Output};

/// Numbers the scopes of this process.
static COUNTER: AtomicU64 = AtomicU64::new(0);
/// Is there where systemd is what was booted.
const SYSTEMD: &str = "/run/systemd/system";
/// How much longer than its check a scope may live if the agent itself is gone by then.
const MORE: Duration = Duration::from_secs(5);
/// Killing takes milliseconds.
const STOP: Duration = Duration::from_secs(20);
const ENVIRONMENT: [(&str, &str); 1] = [("HOME", "/")];

/// Not in a chroot or a container without systemd.
pub fn is_possible() -> bool {
    Path::new(SYSTEMD).is_dir()
}

/// Nothing of it runs any more when this returns.
pub fn run(line: &[String], slice: &str, limit: Duration) -> Result<Output, CommandError> {
    let unit = format!("kedge-check-{}-{}.scope", process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let (named, within) = (format!("--unit={unit}"), format!("--slice={slice}"));
    let lives = format!("--property=RuntimeMaxSec={}s", (limit + MORE).as_secs());
    let mut arguments = vec!["--scope", "--quiet", "--collect", &named, &within, &lives];
    arguments.extend(["--property=KillSignal=SIGKILL", "--property=SendSIGHUP=no", "--"]);
    arguments.extend(line.iter().map(String::as_str));
    // It becomes the program, so how that ends is how this ends.
    let ran = command::run("systemd-run", &arguments, &ENVIRONMENT, limit);
    // Gone already when nothing was left.
    let _ = command::run("systemctl", &["stop", "--quiet", "--", &unit], &[], STOP);
    ran
}

/// As a child of the agent.
pub fn run_here(line: &[String], limit: Duration) -> Result<Output, CommandError> {
    let (program, arguments) = line.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
    command::run(program, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), &ENVIRONMENT, limit)
}
