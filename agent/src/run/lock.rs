//! One agent at a time owns the state folder: it holds a lock on the file `lock` in it for as long as it runs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::paths::Paths;

/// Given up when it is dropped, also by a crash.
#[derive(Debug)]
pub struct Lock {
    _file: Flock<File>,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{0} can't be locked")]
    Io(PathBuf, #[source] io::Error),
    #[error("another kedge-agent runs here")]
    Taken,
}

impl Lock {
    pub fn take(paths: &Paths) -> Result<Lock, LockError> {
        let path = paths.state().join("lock");
        let failed = |source| LockError::Io(path.clone(), source);
        make_folder(paths).map_err(failed)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Lock { _file: file }),
            Err((_, Errno::EWOULDBLOCK)) => Err(LockError::Taken),
            Err((_, errno)) => Err(failed(errno.into())),
        }
    }
}

/// Tenants reach their artifacts through it; they can't list it, and everything else in it is the agent's alone.
fn make_folder(paths: &Paths) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let state = paths.state();
    fs::create_dir_all(&state)?;
    fs::set_permissions(&state, fs::Permissions::from_mode(0o711))?;
    for private in ["cache", "inbox", "partial", "records"].map(|name| state.join(name)) {
        fs::create_dir_all(&private)?;
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_second_agent_is_refused_until_the_first_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let first = Lock::take(&paths).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(paths.state()), mode(paths.records())), (0o711, 0o700));
        assert!(matches!(Lock::take(&paths), Err(LockError::Taken)));
        drop(first);
        assert!(Lock::take(&paths).is_ok());
    }
}
