//! Where things are on this host. With `--root DIR` everything, the agent's own state and what it applies, is below that folder.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    root: PathBuf,
}

/// The file of the inbox that the daemon listens to.
pub const NEWS: &str = "news.json";

impl Paths {
    pub fn host() -> Paths {
        Paths { root: PathBuf::from("/") }
    }

    /// Below a folder, for a user without root.
    pub fn below(root: &Path) -> Paths {
        Paths { root: root.to_owned() }
    }

    /// Whether this is the host itself: only there are debs, units and users.
    pub fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path that a workload names, as it is here.
    pub fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// What the agent remembers: identity, ledgers, objects.
    pub fn state(&self) -> PathBuf {
        self.root.join("var/lib/kedge-agent")
    }

    /// Content by digest: packages, files, debs, artifacts.
    pub fn objects(&self) -> PathBuf {
        self.state().join("objects")
    }

    /// What can be made again.
    pub fn cache(&self) -> PathBuf {
        self.state().join("cache")
    }

    /// One ledger per assignment.
    pub fn records(&self) -> PathBuf {
        self.state().join("records")
    }

    /// What files brought, until the daemon has taken it.
    pub fn inbox(&self) -> PathBuf {
        self.state().join("inbox")
    }

    /// `agent.toml`, `join-token`.
    pub fn settings(&self) -> PathBuf {
        self.root.join("etc/kedge")
    }
}

/// The folders that a path is in, without `/`.
pub fn above(path: &str) -> impl Iterator<Item = &str> {
    path.char_indices().filter(|(at, letter)| *letter == '/' && *at > 0).map(|(at, _)| &path[..at])
}
