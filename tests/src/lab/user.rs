//! The Unix user a part runs as: PostgreSQL and Gitea refuse to run as root. Without root, parts run as whoever runs the tests.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{self, Uid};

/// Whom a part runs as.
#[derive(Debug, Clone)]
pub enum User {
    /// Whoever runs the tests.
    Ourselves { name: String },
    /// Another one, which only root can start.
    Other { name: String, uid: unistd::Uid, gid: unistd::Gid },
}

impl User {
    /// Someone who isn't root: `name` when we are root (nobody there by that name is an error), else ourselves.
    pub fn unprivileged(name: &str) -> Result<User, String> {
        if Uid::effective().is_root() {
            return match unistd::User::from_name(name) {
                Ok(Some(user)) => Ok(User::Other { name: user.name, uid: user.uid, gid: user.gid }),
                _ => Err(format!("there is no Unix user {name}")),
            };
        }
        match unistd::User::from_uid(Uid::effective()) {
            Ok(Some(user)) => Ok(User::Ourselves { name: user.name }),
            _ => Err("whoever runs the tests has no name in the password file".to_owned()),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            User::Ourselves { name } | User::Other { name, .. } => name,
        }
    }

    /// Lets `command` run as this user.
    pub fn run<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        if let User::Other { uid, gid, .. } = self {
            command.uid(uid.as_raw()).gid(gid.as_raw());
        }
        command.env("USER", self.name()).env("LOGNAME", self.name())
    }

    /// Gives a file or folder to this user.
    pub fn own(&self, path: &Path) {
        if let User::Other { uid, gid, .. } = self {
            unistd::chown(path, Some(*uid), Some(*gid)).unwrap_or_else(|e| panic!("chown {}: {e}", path.display()));
        }
    }
}
