//! How a part is started so that it can't outlive us: `kedge` itself, which asks the kernel to be killed with its parent and then
//! becomes the program. Called in the child.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::error::Exit;

/// Returns only when that can't be.
pub(super) fn become_program(words: &[OsString]) -> Result<Exit> {
    let [parent, program, arguments @ ..] = words else { return Ok(Exit::Invalid) };
    prctl::set_pdeathsig(Signal::SIGKILL).context("the kernel won't end this program with its parent")?;
    // It may have died before the kernel was asked.
    if getppid().to_string() != parent.to_string_lossy() {
        return Ok(Exit::Invalid);
    }
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("`{}` can't be started", program.display()))
}
