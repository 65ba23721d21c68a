//! A bare repository of a test. Commits need no work tree and no configuration.

use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use kedge_model::kinds::SourceRef;

/// What a commit holds at a path.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    File(&'a str),
    Bytes(&'a [u8]),
    Program(&'a str),
    Link(&'a str),
    Submodule,
}

pub struct Repository {
    pub path: PathBuf,
    repo: gix::Repository,
}

impl Repository {
    pub fn new(path: &Path) -> Repository {
        let made = gix::ThreadSafeRepository::init_opts(
            path,
            gix::create::Kind::Bare,
            gix::create::Options::default(),
            gix::open::Options::isolated(),
        );
        Repository { path: path.to_owned(), repo: made.unwrap().to_thread_local() }
    }

    pub fn at(path: &Path) -> Repository {
        let repo = gix::open::Options::isolated().open(path).unwrap();
        Repository { path: path.to_owned(), repo: repo.to_thread_local() }
    }

    /// A commit on a branch that holds exactly these.
    pub fn commit(&self, branch: &str, items: &[(&str, Item<'_>)]) -> String {
        let mut editor = self.repo.edit_tree(ObjectId::empty_tree(gix::hash::Kind::Sha1)).unwrap();
        for (path, item) in items {
            let blob = |bytes: &[u8]| self.repo.write_blob(bytes).unwrap().detach();
            let (kind, id) = match item {
                Item::File(text) => (EntryKind::Blob, blob(text.as_bytes())),
                Item::Bytes(bytes) => (EntryKind::Blob, blob(bytes)),
                Item::Program(text) => (EntryKind::BlobExecutable, blob(text.as_bytes())),
                Item::Link(target) => (EntryKind::Link, blob(target.as_bytes())),
                Item::Submodule => (EntryKind::Commit, ObjectId::from_hex(&[b'1'; 40]).unwrap()),
            };
            editor.upsert(*path, kind, id).unwrap();
        }
        let tree = editor.write().unwrap().detach();
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

    pub fn tags(&self) -> Vec<(String, String)> {
        let references = self.repo.references().unwrap();
        let read =
            |mut tag: gix::Reference<'_>| (tag.name().shorten().to_string(), tag.peel_to_id().unwrap().to_string());
        references.tags().unwrap().flatten().map(read).collect()
    }

    pub fn resolve(&self, reference: &SourceRef) -> Option<String> {
        let name = match reference {
            SourceRef::Branch(name) => format!("refs/heads/{name}"),
            SourceRef::Tag(name) => format!("refs/tags/{name}"),
            SourceRef::Commit(commit) => {
                let id = ObjectId::from_hex(commit.as_bytes()).ok()?;
                return self.repo.find_commit(id).ok().map(|found| found.id.to_string());
            }
        };
        let mut found = self.repo.try_find_reference(name.as_str()).ok()??;
        Some(found.peel_to_id().ok()?.to_string())
    }
}
