//! Folders and Git repositories for tests, made with gix so that nothing but the crate itself is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use gix::prelude::Write as _;
use tempfile::TempDir;

use crate::repositories::{RepoError, Repositories, Request};
use crate::tree::Tree;

/// No repository is ever found.
#[derive(Debug)]
pub struct Nowhere;

impl Repositories for Nowhere {
    fn open(&self, request: &Request) -> Result<Box<dyn Tree>, RepoError> {
        Err(RepoError::Refused { reason: format!("{request} is out of reach"), hint: "wait".to_owned() })
    }
}

/// What a commit holds at a path.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    File(&'a str),
    Link(&'a str),
    Submodule,
}

pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let root = TempDir::new().unwrap();
    write(root.path(), files);
    root
}

pub fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A bare repository. Commits need no work tree and no configuration.
#[derive(Debug)]
pub struct TestRepo {
    pub path: PathBuf,
    repo: gix::Repository,
}

impl TestRepo {
    pub fn new(path: impl Into<PathBuf>) -> TestRepo {
        let path = path.into();
        let repo = gix::ThreadSafeRepository::init_opts(
            &path,
            gix::create::Kind::Bare,
            gix::create::Options::default(),
            gix::open::Options::isolated(),
        );
        TestRepo { path, repo: repo.unwrap().to_thread_local() }
    }

    /// A commit on a branch that holds exactly these files.
    pub fn commit(&self, branch: &str, files: &[(&str, &str)]) -> String {
        let items: Vec<(&str, Item<'_>)> = files.iter().map(|(path, text)| (*path, Item::File(text))).collect();
        self.commit_items(branch, &items)
    }

    pub fn commit_items(&self, branch: &str, items: &[(&str, Item<'_>)]) -> String {
        let mut editor = self.repo.edit_tree(ObjectId::empty_tree(gix::hash::Kind::Sha1)).unwrap();
        for (path, item) in items {
            let (kind, id) = match item {
                Item::File(text) => (EntryKind::Blob, self.repo.write_blob(text).unwrap().detach()),
                Item::Link(target) => (EntryKind::Link, self.repo.write_blob(target).unwrap().detach()),
                Item::Submodule => (EntryKind::Commit, ObjectId::from_hex(&[b'1'; 40]).unwrap()),
            };
            editor.upsert(*path, kind, id).unwrap();
        }
        let tree = editor.write().unwrap().detach();
        self.commit_tree(branch, tree)
    }

    /// A commit with any names, also twice: a file each, or a folder with one file.
    pub fn commit_hostile(&self, branch: &str, items: &[(&str, Option<&str>)]) -> String {
        let entry = |mode: &str, name: &str, id: ObjectId| {
            [mode.as_bytes(), b" ", name.as_bytes(), b"\0", id.as_slice()].concat()
        };
        let mut root = Vec::new();
        for (name, inner) in items {
            let text = if inner.is_some() { "inside" } else { "outside" };
            let blob = self.repo.write_blob(text).unwrap().detach();
            root.extend(match inner {
                None => entry("100644", name, blob),
                Some(file) => {
                    let folder = self.repo.write_buf(gix::objs::Kind::Tree, &entry("100644", file, blob)).unwrap();
                    entry("40000", name, folder)
                }
            });
        }
        let tree = self.repo.write_buf(gix::objs::Kind::Tree, &root).unwrap();
        self.commit_tree(branch, tree)
    }

    fn commit_tree(&self, branch: &str, tree: ObjectId) -> String {
        let name = format!("refs/heads/{branch}");
        let parents: Vec<ObjectId> = self
            .repo
            .try_find_reference(name.as_str())
            .unwrap()
            .map(|mut found| found.peel_to_id().unwrap().detach())
            .into_iter()
            .collect();
        let who = gix::actor::SignatureRef {
            name: "test".into(),
            email: "test@example.com".into(),
            time: "1700000000 +0000",
        };
        self.repo.commit_as(who, who, name.as_str(), "change", tree, parents).unwrap().to_string()
    }

    pub fn tag(&self, name: &str, commit: &str) {
        let id = ObjectId::from_hex(commit.as_bytes()).unwrap();
        self.repo.reference(format!("refs/tags/{name}"), id, gix::refs::transaction::PreviousValue::Any, "").unwrap();
    }

    pub fn config(&self, text: &str) {
        let file = self.path.join("config");
        let old = fs::read_to_string(&file).unwrap();
        fs::write(file, format!("{old}\n{text}\n")).unwrap();
    }
}

/// Runs the git program, for what gix doesn't make itself. False where there is none, which is said.
pub fn git(folder: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "safe.directory=*", "-c", "user.name=t", "-c", "user.email=t@example.com"]);
    let Ok(output) = command.args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null").output() else {
        println!("KEDGE-SKIP {}: there is no git program", thread::current().name().unwrap_or("git"));
        return false;
    };
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    true
}
