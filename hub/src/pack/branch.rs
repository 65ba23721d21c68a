//! The environment's branch as a list of assignments, read by tree ids: what didn't change since last time costs a
//! comparison. Called by the packer.

use std::collections::BTreeMap;
use std::sync::Arc;

use gix::ObjectId;
use kedge_model::Problem;
use kedge_model::name::{check_cluster_type_name, check_path_name};

use super::Origin;
use super::fault::PackError;
use super::memory::Remembered;
use super::objects::{Item, ItemKind, Objects, ObjectsError};
use super::platform;
use super::platform::{RECONCILER, in_folder, origin};
use super::reconciler::{self, Purpose, SourceName};
use crate::git::Head;

/// Every assignment of a branch.
#[derive(Debug)]
pub(super) struct Listed {
    pub types: BTreeMap<String, ListedType>,
}

#[derive(Clone, Debug)]
pub(super) struct ListedType {
    pub tree: ObjectId,
    pub folders: Arc<BTreeMap<String, Folder>>,
    pub origins: Arc<BTreeMap<String, Origin>>,
}

/// An assignment's folder, and what its `reconciler.yaml` asks for.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub tree: ObjectId,
    pub purpose: Result<Arc<Purpose>, Arc<Vec<Problem>>>,
}

const README: &str = "README.md";
const MAX_FILE: u64 = kedge_model::decode::MAX_FILE_BYTES as u64;

pub(super) async fn read(head: &Head, remembered: &Remembered) -> Result<Listed, PackError> {
    let (head, known) = (head.clone(), remembered.listed());
    let reading = tokio::task::spawn_blocking(move || {
        let objects = Objects::open(&head.path).map_err(|source| unreadable(&head, source))?;
        list(&objects, &head, &known)
    });
    reading.await.map_err(|_| PackError::Interrupted)?
}

fn list(objects: &Objects, head: &Head, known: &BTreeMap<String, ListedType>) -> Result<Listed, PackError> {
    let failed = |source| unreadable(head, source);
    let root = objects.root(&head.commit).map_err(failed)?;
    let items = objects.list(root, "").map_err(failed)?;
    if items.is_empty() {
        let (repo, branch, commit) = (head.repo.clone(), head.branch.clone(), head.commit.clone());
        return Err(PackError::Emptied { repo, branch, commit });
    }
    let mut types = BTreeMap::new();
    for item in items {
        if item.kind != ItemKind::Folder || check_cluster_type_name(&item.name).is_err() {
            continue;
        }
        let before = known.get(&item.name);
        let listed = match before.filter(|before| before.tree == item.id) {
            Some(same) => Some(same.clone()),
            None => list_type(objects, head, &item, before).map_err(failed)?,
        };
        if let Some(listed) = listed {
            types.insert(item.name, listed);
        }
    }
    Ok(Listed { types })
}

/// None for a folder that is somebody else's: no README of ours, and no assignment in it.
fn list_type(
    objects: &Objects,
    head: &Head,
    item: &Item,
    before: Option<&ListedType>,
) -> Result<Option<ListedType>, ObjectsError> {
    let mut folders = BTreeMap::new();
    let mut ours = false;
    for inner in objects.list(item.id, &item.name)? {
        ours |= inner.name == README && inner.kind.is_file();
        if inner.kind != ItemKind::Folder || check_path_name(&inner.name).is_err() {
            continue;
        }
        let same = before.and_then(|before| before.folders.get(&inner.name)).filter(|same| same.tree == inner.id);
        let folder = match same {
            Some(same) => Some(same.clone()),
            None => read_folder(objects, head, &format!("{}/{}", item.name, inner.name), inner.id)?,
        };
        if let Some(folder) = folder {
            folders.insert(inner.name, folder);
        }
    }
    if !ours && folders.is_empty() {
        return Ok(None);
    }
    let source = |folder: &Folder| folder.purpose.as_deref().ok()?.source().map(Origin::from);
    let origins = folders.iter().filter_map(|(name, folder)| Some((name.clone(), source(folder)?))).collect();
    Ok(Some(ListedType { tree: item.id, folders: Arc::new(folders), origins: Arc::new(origins) }))
}

fn read_folder(objects: &Objects, head: &Head, path: &str, tree: ObjectId) -> Result<Option<Folder>, ObjectsError> {
    let items = objects.list(tree, path)?;
    let Some(item) = items.iter().find(|item| item.name == RECONCILER) else { return Ok(None) };
    let folder = platform::origin(&head.repo, &head.branch, &head.commit, path);
    let file = in_folder(&folder, RECONCILER);
    let read = match item.kind.is_file() {
        true => objects.read(item.id, &file.file, MAX_FILE),
        false => {
            Err(ObjectsError::WrongKind { path: file.file.to_string(), found: item.kind.describe(), wanted: "a file" })
        }
    };
    let purpose = match read {
        Ok(bytes) => reconciler::read(&bytes, &file),
        Err(error @ (ObjectsError::WrongKind { .. } | ObjectsError::TooLarge { .. })) => {
            Err(vec![Problem::error("NotAFile", error.to_string()).at(file)])
        }
        Err(error) => return Err(error),
    };
    Ok(Some(Folder { tree, purpose: purpose.map(Arc::new).map_err(Arc::new) }))
}

fn unreadable(head: &Head, source: ObjectsError) -> PackError {
    PackError::Branch { repo: head.repo.clone(), branch: head.branch.clone(), source }
}

impl Listed {
    /// With the assignment's name.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &SourceName)> {
        let folders = self.types.values().flat_map(|listed| listed.folders.iter());
        folders.filter_map(|(name, folder)| Some((name.as_str(), folder.purpose.as_deref().ok()?.source()?)))
    }
}

impl Purpose {
    pub fn source(&self) -> Option<&SourceName> {
        match self {
            Purpose::Deliver { source, .. } => Some(source),
            Purpose::Observe { source, .. } => source.as_ref(),
        }
    }
}

/// An assignment's folder, for problems.
pub(super) fn folder_origin(head: &Head, cluster_type: &str, assignment: &str) -> kedge_model::Origin {
    origin(&head.repo, &head.branch, &head.commit, &format!("{cluster_type}/{assignment}"))
}
