//! The environment branch's tree, by object ids: what is there of our layout, and a new tree with some files changed.
//! Only folders whose id is new are read, and only objects that are new are written. Called by `direct` and `request`;
//! writes to the bare mirror's objects and to nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use kedge_scheduler::{Existing, Files, PROMOTED_COMMIT, README, README_TEXT};

use super::plan::Change;

/// A tree object with more bytes than this isn't one that people or we made.
const TREE_LIMIT: u64 = 64 * 1024 * 1024;

/// A file of ours that has to be read back is smaller.
const FILE_LIMIT: u64 = 16 * 1024 * 1024;

/// How far back the author of a change is looked for.
const HISTORY: usize = 500;

/// Files of our layout on the branch. Kept from publish to publish, so that only what moved is read again.
#[derive(Debug, Default)]
pub struct Listing {
    /// The tree that it shows; none: an empty branch.
    root: Option<ObjectId>,
    wanted: BTreeSet<Arc<str>>,
    places: BTreeMap<String, Place>,
    /// As `plan_output` asks for it.
    pub existing: BTreeMap<String, Existing>,
    pub files: HashMap<String, There>,
}

/// A file that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct There {
    pub id: ObjectId,
    /// An ordinary file, 100644; anything else is never equal to ours.
    pub plain: bool,
}

/// A top-level folder: a cluster type's, or somebody else's.
#[derive(Debug)]
struct Place {
    id: ObjectId,
    /// A cluster type of the schedule has this name.
    wanted: bool,
    targets: BTreeMap<String, ObjectId>,
}

/// Who changed a file last, as far as the mirror's history goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorship {
    pub commit: String,
    pub author: String,
}

/// Name and address of a commit's author, and its time.
#[derive(Clone, Debug)]
pub struct Author {
    pub name: String,
    pub email: String,
    pub seconds: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("the mirror {path} can't be opened")]
    Mirror { path: String, source: Box<gix::Error> },
    #[error("{what} can't be read from the mirror")]
    Read { what: String, source: Box<gix::Error> },
    #[error("{what} is too large")]
    TooLarge { what: String },
    /// A full disk, or one that can't be written.
    #[error("{what} can't be written to the mirror")]
    Write { what: String, source: Box<gix::Error> },
    #[error("`{0}` is not a commit id")]
    NotAnId(String),
}

/// The id of a text as a file.
pub fn blob_id(text: &str) -> Result<ObjectId, TreeError> {
    gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, text.as_bytes())
        .map_err(|error| TreeError::Write { what: "a file".to_owned(), source: Box::new(error) })
}

pub fn open(mirror: &Path) -> Result<gix::Repository, TreeError> {
    let opened = gix::open::Options::isolated().open(mirror).map(gix::Repository::from);
    let mut repo =
        opened.map_err(|error| TreeError::Mirror { path: mirror.display().to_string(), source: Box::new(error) })?;
    repo.object_cache_size_if_unset(4 * 1024 * 1024);
    Ok(repo)
}

pub fn commit_id(text: &str) -> Result<ObjectId, TreeError> {
    ObjectId::from_hex(text.as_bytes()).map_err(|_| TreeError::NotAnId(text.chars().take(60).collect()))
}

pub fn tree_of(repo: &gix::Repository, commit: ObjectId) -> Result<ObjectId, TreeError> {
    let tree = repo.find_commit(commit).and_then(|commit| Ok(commit.tree_id()?.detach()));
    tree.map_err(|error| TreeError::Read { what: format!("commit {commit}"), source: Box::new(error) })
}

impl Listing {
    /// Brings it up to another tree. `wanted` are cluster types whose folders are ours with or without a README.
    pub fn refresh(
        &mut self,
        repo: &gix::Repository,
        root: Option<ObjectId>,
        wanted: &BTreeSet<Arc<str>>,
    ) -> Result<(), TreeError> {
        if self.root == root && self.wanted == *wanted && (root.is_some() || self.files.is_empty()) {
            return Ok(());
        }
        let before = std::mem::take(self);
        match self.follow(before, repo, root, wanted) {
            Ok(()) => Ok(()),
            Err(error) => {
                // Half of it may be from another tree.
                *self = Listing::default();
                Err(error)
            }
        }
    }

    fn follow(
        &mut self,
        mut before: Listing,
        repo: &gix::Repository,
        root: Option<ObjectId>,
        wanted: &BTreeSet<Arc<str>>,
    ) -> Result<(), TreeError> {
        let readme = blob_id(README_TEXT)?;
        (self.existing, self.files) = (std::mem::take(&mut before.existing), std::mem::take(&mut before.files));
        let entries = match root {
            Some(root) => entries(repo, root, "the branch")?,
            None => Vec::new(),
        };
        self.track(repo, &entries)?;
        for (name, id, kind) in entries {
            if kind != EntryKind::Tree || name == ".github" {
                continue;
            }
            let wanted = wanted.contains(name.as_str());
            let place = match before.places.remove(&name) {
                Some(old) if old.id == id && old.wanted == wanted => old,
                old => self.enter(repo, &name, id, readme, wanted, old)?,
            };
            self.places.insert(name, place);
        }
        for (name, place) in before.places {
            self.forget(&name, place);
        }
        (self.root, self.wanted) = (root, wanted.clone());
        Ok(())
    }

    /// One top-level folder that is new or has changed.
    fn enter(
        &mut self,
        repo: &gix::Repository,
        name: &str,
        id: ObjectId,
        readme: ObjectId,
        wanted: bool,
        old: Option<Place>,
    ) -> Result<Place, TreeError> {
        let inside = entries(repo, id, name)?;
        let marked = inside.iter().find(|(file, _, kind)| file == README && *kind != EntryKind::Tree);
        let text = marked.map(|(_, blob, kind)| (There::of(*blob, *kind), *blob == readme));
        let ours = wanted || text.is_some_and(|(_, ours)| ours);
        let mut before = old.map(|old| old.targets).unwrap_or_default();
        let path = format!("{name}/{README}");
        match text {
            Some((there, ours)) => {
                // Another text isn't ours, whatever it says.
                let text = if ours { README_TEXT.to_owned() } else { String::new() };
                self.existing.insert(path.clone(), Existing::Readme(text));
                self.files.insert(path, there);
            }
            None => self.drop_file(&path),
        }
        let mut targets = BTreeMap::new();
        for (target, id, _) in inside.into_iter().filter(|(_, _, kind)| ours && *kind == EntryKind::Tree) {
            let known = before.remove(&target);
            if known != Some(id) {
                if known.is_some() {
                    self.drop_target(name, &target);
                }
                for (file, id, kind) in entries(repo, id, &target)? {
                    if Files::NAMES.contains(&file.as_str()) {
                        let path = format!("{name}/{target}/{file}");
                        self.existing.insert(path.clone(), Existing::Other);
                        self.files.insert(path, There::of(id, kind));
                    }
                }
            }
            targets.insert(target, id);
        }
        before.keys().for_each(|target| self.drop_target(name, target));
        Ok(Place { id, wanted, targets })
    }

    /// The file that says which commit was promoted.
    fn track(&mut self, repo: &gix::Repository, root: &[(String, ObjectId, EntryKind)]) -> Result<(), TreeError> {
        self.drop_file(PROMOTED_COMMIT);
        let mut here = root.iter().find(|(name, _, _)| name == ".github").cloned();
        for part in PROMOTED_COMMIT.split('/').skip(1) {
            here = match here {
                Some((name, id, EntryKind::Tree)) => entries(repo, id, &name)?.into_iter().find(|(n, _, _)| n == part),
                _ => None,
            };
        }
        if let Some((_, id, kind)) = here {
            self.existing.insert(PROMOTED_COMMIT.to_owned(), Existing::Other);
            self.files.insert(PROMOTED_COMMIT.to_owned(), There::of(id, kind));
        }
        Ok(())
    }

    fn forget(&mut self, name: &str, place: Place) {
        self.drop_file(&format!("{name}/{README}"));
        place.targets.keys().for_each(|target| self.drop_target(name, target));
    }

    fn drop_target(&mut self, place: &str, target: &str) {
        Files::NAMES.iter().for_each(|file| self.drop_file(&format!("{place}/{target}/{file}")));
    }

    fn drop_file(&mut self, path: &str) {
        self.existing.remove(path);
        self.files.remove(path);
    }

    /// The tree that it shows.
    pub fn tree(&self) -> Option<ObjectId> {
        self.root
    }

    /// The text of a file that is there.
    pub fn read(&self, repo: &gix::Repository, path: &str) -> Option<String> {
        let there = self.files.get(path)?;
        if repo.find_header(there.id).ok()?.size() > FILE_LIMIT {
            return None;
        }
        String::from_utf8(repo.find_blob(there.id).ok()?.take_data()).ok()
    }
}

impl There {
    fn of(id: ObjectId, kind: EntryKind) -> There {
        There { id, plain: kind == EntryKind::Blob }
    }
}

/// Names that aren't UTF-8 are nobody's that we know.
fn entries(repo: &gix::Repository, id: ObjectId, what: &str) -> Result<Vec<(String, ObjectId, EntryKind)>, TreeError> {
    let unreadable = |error| TreeError::Read { what: format!("folder {what}"), source: Box::new(error) };
    if repo.find_header(id).map_err(unreadable)?.size() > TREE_LIMIT {
        return Err(TreeError::TooLarge { what: format!("folder {what}") });
    }
    let tree = repo.find_tree(id).map_err(unreadable)?;
    let decoded = tree.decode().map_err(unreadable)?;
    let named = decoded.entries.iter().filter_map(|entry| {
        let name = std::str::from_utf8(entry.filename).ok()?;
        Some((name.to_owned(), entry.oid.to_owned(), entry.mode.kind()))
    });
    Ok(named.collect())
}

/// The tree with these files written and deleted. A folder that becomes empty goes.
pub fn build(
    repo: &gix::Repository,
    root: Option<ObjectId>,
    changes: &BTreeMap<String, Change>,
) -> Result<ObjectId, TreeError> {
    let unwritten = |what: &str| {
        let what = what.to_owned();
        move |error: gix::Error| TreeError::Write { what, source: Box::new(error) }
    };
    let start = match root {
        Some(id) => {
            let read = repo.find_tree(id).and_then(|tree| Ok(tree.decode()?.into()));
            read.map_err(|error| TreeError::Read { what: "the branch".to_owned(), source: Box::new(error) })?
        }
        None => gix::objs::Tree::empty(),
    };
    let mut editor = gix::objs::tree::Editor::new(start, &repo.objects, repo.object_hash());
    for (path, change) in changes {
        let parts = path.split('/').map(gix::bstr::BStr::new);
        match change {
            Change::Write { text, .. } => {
                let id = repo.write_blob(text.as_bytes()).map_err(unwritten(path))?.detach();
                editor.upsert(parts, EntryKind::Blob, id).map_err(unwritten(path))?;
            }
            Change::Delete => {
                editor.remove(parts).map_err(unwritten(path))?;
            }
        }
    }
    editor.write(|tree| repo.write_object(tree).map(|id| id.detach())).map_err(unwritten("the tree"))
}

/// A commit object; no branch is moved.
pub fn commit(
    repo: &gix::Repository,
    tree: ObjectId,
    parent: Option<ObjectId>,
    message: &str,
    author: &Author,
) -> Result<ObjectId, TreeError> {
    let signature = gix::actor::Signature {
        name: author.name.as_str().into(),
        email: author.email.as_str().into(),
        time: gix::date::Time { seconds: author.seconds, offset: 0 },
    };
    let mut buffer = gix::date::parse::TimeBuf::default();
    let signature = signature.to_ref(&mut buffer);
    let made = repo.new_commit_as(signature, signature, message, tree, parent);
    made.map(|commit| commit.id)
        .map_err(|error| TreeError::Write { what: "the commit".to_owned(), source: Box::new(error) })
}

/// The commit that brought a file to where it is (None: that deleted it), walking back from `head`.
pub fn authorship(repo: &gix::Repository, head: ObjectId, path: &str) -> Option<Authorship> {
    let at = |commit: &gix::Commit<'_>| -> Option<Option<ObjectId>> {
        Some(commit.tree().ok()?.lookup_entry_by_path(path).ok()?.map(|entry| entry.object_id()))
    };
    let mut here = repo.find_commit(head).ok()?;
    let wanted = at(&here)?;
    for _ in 0..HISTORY {
        // A mirror needn't have the parents; then the change is at least no younger than this.
        let parents: Vec<_> = here.parent_ids().filter_map(|id| repo.find_commit(id.detach()).ok()).collect();
        match parents.into_iter().find(|parent| at(parent) == Some(wanted)) {
            Some(parent) => here = parent,
            None => break,
        }
    }
    author(repo, here.id)
}

/// A commit's author, as much of the name as one shows.
pub fn author(repo: &gix::Repository, commit: ObjectId) -> Option<Authorship> {
    let found = repo.find_commit(commit).ok()?;
    let author = found.author().ok()?.name.to_string().chars().filter(|c| !c.is_control()).take(100).collect();
    Some(Authorship { commit: commit.to_string(), author })
}
