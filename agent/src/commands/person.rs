//! Who types, and in whose name the host signs what was typed. Used by the commands that change something.

use kedge_durable::{LedgerError, RealDisk};
use nix::unistd::{User, geteuid, getuid};

use super::error::CommandError;
use crate::alive::Standby;
use crate::daemon;
use crate::identity::{Identity, IdentityError};
use crate::paths::Paths;

/// The host's identity: its key signs holds and reports. Root alone reads it.
pub fn identity(paths: &Paths) -> Result<Identity, CommandError> {
    if paths.is_host() && !geteuid().is_root() {
        return Err(CommandError::NeedsRootToChange);
    }
    // What is typed at a node that stands by would be forgotten.
    if let Some(standby) = Standby::read(paths).filter(|_| daemon::holder(paths).is_some()) {
        let hint = standby.way("…");
        return Err(CommandError::refused("this agent stands by, another one works for the cluster", hint));
    }
    match Identity::read(&RealDisk, paths) {
        Ok(Some(identity)) => Ok(identity),
        Ok(None) => Err(CommandError::NotJoined),
        Err(IdentityError::Ledger(error @ LedgerError::Broken { .. })) => Err(error.into()),
        Err(error) => Err(CommandError::failed("this host's identity can't be read", error)),
    }
}

/// The person behind sudo, else the user.
pub fn name() -> String {
    let behind = std::env::var("SUDO_USER").ok().filter(|name| is_user(name) && name != "root");
    let own = || User::from_uid(getuid()).ok().flatten().map(|user| user.name);
    behind.or_else(own).unwrap_or_else(|| getuid().to_string())
}

/// What sudo sets is a user's name; anything else was set by hand.
fn is_user(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_alphanumeric() || "._-@$+".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_name_is_one_word() {
        assert!(is_user("anna") && is_user("anna.k@example.com") && is_user("müller"));
        assert!(!is_user("") && !is_user("a b") && !is_user("a\u{1b}[2J"));
    }
}
