//! Where the programs of a cluster are: tests/shell/programs.sh builds them, from modules whose checksums are in the repository.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lab::skip;

/// Folders and files of what was found.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    kubernetes: PathBuf,
    kwok: PathBuf,
    pub etcd: PathBuf,
}

impl Programs {
    pub fn api_server(&self) -> PathBuf {
        self.kubernetes.join("kube-apiserver")
    }

    pub fn controller_manager(&self) -> PathBuf {
        self.kubernetes.join("kube-controller-manager")
    }

    pub fn scheduler(&self) -> PathBuf {
        self.kubernetes.join("kube-scheduler")
    }

    pub fn kubectl(&self) -> PathBuf {
        self.kubernetes.join("kubectl")
    }

    pub fn kwok(&self) -> PathBuf {
        self.kwok.join("kwok")
    }
}

/// All of them, or the test is marked as skipped.
pub(super) fn find_or_skip() -> Option<Programs> {
    let found = find();
    if let Err(reason) = &found {
        skip(reason);
    }
    found.ok()
}

fn find() -> Result<Programs, String> {
    let missing = |what: &str| {
        let reason = format!("{what} isn't built (./tests/run kubernetes builds it)");
        env::var("KEDGE_NO_KUBERNETES").unwrap_or(reason)
    };
    let kubernetes = built("KEDGE_KUBERNETES", "kubernetes", "kube-apiserver").ok_or_else(|| missing("Kubernetes"))?;
    let kwok = built("KEDGE_KWOK", "kwok", "kwok").ok_or_else(|| missing("kwok"))?;
    let path = env::var_os("PATH").unwrap_or_default();
    let etcd = env::split_paths(&path).map(|folder| folder.join("etcd")).find(|file| file.is_file());
    let etcd = etcd.ok_or("etcd isn't here (Debian's package etcd-server)")?;
    Ok(Programs { kubernetes, kwok, etcd })
}

/// The folder that the variable names, or the newest of the cache whose name begins so.
pub(crate) fn built(variable: &str, module: &str, program: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).filter(|text| !text.is_empty()).map(PathBuf::from);
    named.or_else(|| newest(module)).filter(|folder| folder.join(program).is_file())
}

fn newest(module: &str) -> Option<PathBuf> {
    let home = |name: OsString| PathBuf::from(name).join(".cache/kedge");
    let cache = env::var_os("KEDGE_CACHE").map(PathBuf::from).or_else(|| env::var_os("HOME").map(home))?;
    let begins = format!("{module}-v");
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&begins) && path.join("complete").is_file()
    };
    let made = |path: &Path| fs::metadata(path.join("complete")).and_then(|file| file.modified()).ok();
    let all = fs::read_dir(cache.join("programs")).ok()?.flatten().map(|entry| entry.path());
    all.filter(fits).max_by_key(|path| made(path))
}
