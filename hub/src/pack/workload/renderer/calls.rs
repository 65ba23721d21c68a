//! What a program that was shut off may ask of the kernel: memory, files (which Landlock guards), threads, children, time. All
//! other calls don't exist for it: sockets of any kind, signals to others, tracing, other processes' memory, namespaces,
//! mounts, keys, `io_uring`, and whatever a newer kernel brings. Used by `enclosed`.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod allowed;

use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

#[derive(Debug, thiserror::Error)]
pub enum CallsError {
    #[error("there is no seccomp filter for this machine ({})", std::env::consts::ARCH)]
    Filter(#[from] seccompiler::BackendError),
    #[error("seccomp can't be had here")]
    Refused(#[from] seccompiler::Error),
}

/// Whose calls nobody listed has none.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod allowed {
    use std::collections::BTreeMap;

    pub fn rules() -> Result<BTreeMap<i64, Vec<seccompiler::SeccompRule>>, super::CallsError> {
        Ok(BTreeMap::new())
    }
}

/// For the calling thread, for good.
pub(super) fn restrict() -> Result<(), CallsError> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let filter = SeccompFilter::new(allowed::rules()?, missing, SeccompAction::Allow, architecture)?;
    Ok(seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?)
}
