//! The last good version of every object. `keep_…` put them in place of what is broken or can't be had, marked stale
//! since when: pure. `Memory` is what is remembered, in the database, so that a restart or another leader has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::platform::{Edits, SavedObject};
use kedge_model::decode::{self, Options};
use kedge_model::kinds::RepoRef;
use kedge_model::{Failing, Kind, Object, ObjectId, Origin, Platform, Problem, Source, Spec};
use kedge_platform::tree::{FILE_LIMIT, Tree as _};
use kedge_platform::{RepoKey, Revision};

use super::PlatformReader;
use super::emptied::brought_something;
use super::inputs::FailingInput;
use crate::git::Trust;
use crate::store::{StoreError, Term};

/// Objects that were good, and what of them the database has.
#[derive(Debug, Default)]
pub struct Memory {
    good: BTreeMap<ObjectId, Arc<Object>>,
    saved: BTreeMap<ObjectId, SavedObject>,
}

/// Keeps what the platform's own inputs lost. Gives back the objects that stay though their source can't be used.
pub fn keep_platform(fresh: &mut Platform, good: &BTreeMap<ObjectId, Arc<Object>>, now: &str) -> Vec<Arc<Object>> {
    let hidden = Hidden::of(fresh);
    let failing = fresh.failing.iter().any(|failing| failing.registration.is_none());
    let bases = lost_bases(fresh, good);
    let mut kept = Vec::new();
    for (id, object) in good.iter().filter(|(id, _)| id.owner.is_none()) {
        let keep = match fresh.objects.get(id) {
            Some(_) if bases.contains(id) => true,
            Some(here) => hidden.has_file(object) && !same_file(&here.origin, &object.origin),
            None => failing || hidden.has(id, object),
        };
        if keep {
            kept.push(keep_one(fresh, object, now));
        }
    }
    forget_broken(fresh, &kept, &bases);
    kept
}

/// Keeps the Workloads of applications that can't be read whole.
pub fn keep_applications(fresh: &mut Platform, good: &BTreeMap<ObjectId, Arc<Object>>, now: &str) {
    let hidden = Hidden::of(fresh);
    let failing: BTreeSet<String> = fresh.failing.iter().filter_map(|failing| failing.registration.clone()).collect();
    let mut kept = Vec::new();
    for (id, object) in good {
        let Some(owner) = &id.owner else { continue };
        let registration = ObjectId { kind: Kind::WorkloadRegistration, owner: None, name: owner.clone() };
        if !fresh.objects.contains_key(&registration) {
            continue;
        }
        let keep = match fresh.objects.get(id) {
            Some(here) => hidden.has_file(object) && !same_file(&here.origin, &object.origin),
            None => failing.contains(owner) || hidden.has(id, object),
        };
        if keep {
            kept.push(keep_one(fresh, object, now));
        }
    }
    forget_broken(fresh, &kept, &BTreeSet::new());
}

/// A repository is read at its last good commit only: what is from there is stale since it fails.
pub(super) fn mark_failing(platform: &mut Platform, input: &FailingInput) {
    let key = RepoKey::new(&input.repo);
    let branch = input.branch.as_deref().unwrap_or_default();
    let message = format!("{}: {}; the last good commit stays in force", input.repo, input.failure.error);
    let problem = Problem::warning("RepositoryFailing", message).hint(input.failure.hint.clone());
    let mut registrations: Vec<Option<String>> = Vec::new();
    for object in platform.of_kind(Kind::WorkloadRegistration) {
        if let Spec::WorkloadRegistration(registration) = &object.spec
            && names(&registration.workload, &key, branch)
        {
            registrations.push(Some(object.meta.name.clone()));
        }
    }
    if registrations.is_empty() {
        registrations.push(None);
    }
    let of = |registration| Failing { registration, problem: problem.clone() };
    platform.failing.extend(registrations.into_iter().map(of));
    platform.problems.push(problem.clone());
    let since = jiff::Timestamp::from_millisecond(input.failure.since.0).map(|time| time.to_string()).ok();
    for object in platform.objects.values_mut() {
        if object.stale_since.is_none() && is_from(&object.origin.source, &key, branch) {
            let stale = Object { stale_since: since.clone(), ..Object::clone(object) };
            *object = Arc::new(stale);
        }
    }
}

/// What is written but can't be used now.
struct Hidden {
    ids: BTreeSet<ObjectId>,
    /// Files of which nobody knows what they hold, by repository and path.
    files: BTreeSet<(String, String)>,
}

impl Hidden {
    fn of(platform: &Platform) -> Hidden {
        let mut hidden = Hidden { ids: BTreeSet::new(), files: BTreeSet::new() };
        for broken in &platform.broken {
            match (broken.kind, &broken.name, &broken.problem.origin) {
                (Some(kind), Some(name), _) => {
                    hidden.ids.insert(ObjectId { kind, owner: broken.owner.clone(), name: name.clone() });
                }
                (_, _, Some(origin)) => {
                    hidden.files.insert((origin.source.repo.clone(), origin.file.to_string()));
                }
                _ => {}
            }
        }
        hidden
    }

    fn has(&self, id: &ObjectId, object: &Object) -> bool {
        self.ids.contains(id) || self.has_file(object)
    }

    fn has_file(&self, object: &Object) -> bool {
        let origin = &object.origin;
        // Few files are broken: no need to make a key.
        self.files.iter().any(|(repo, file)| *repo == origin.source.repo && **file == *origin.file)
    }
}

/// BaseRepos that can't be read now though they could: they count as they were.
fn lost_bases(fresh: &Platform, good: &BTreeMap<ObjectId, Arc<Object>>) -> BTreeSet<ObjectId> {
    let lost = fresh.broken.iter().filter(|broken| broken.kind == Some(Kind::BaseRepo));
    let ids = lost.filter_map(|broken| {
        let id = ObjectId { kind: Kind::BaseRepo, owner: None, name: broken.name.clone()? };
        fresh.objects.contains_key(&id).then_some(id)
    });
    ids.filter(|id| good.get(id).is_some_and(|base| brought_something(base, good))).collect()
}

fn keep_one(fresh: &mut Platform, object: &Arc<Object>, now: &str) -> Arc<Object> {
    let stale = match &object.stale_since {
        Some(_) => Arc::clone(object),
        None => Arc::new(Object { stale_since: Some(now.to_owned()), ..Object::clone(object) }),
    };
    fresh.objects.insert(stale.id(), Arc::clone(&stale));
    stale
}

/// What has a last good version isn't broken; the problem is said all the same.
fn forget_broken(fresh: &mut Platform, kept: &[Arc<Object>], bases: &BTreeSet<ObjectId>) {
    let ids: BTreeSet<ObjectId> = kept.iter().map(|object| object.id()).collect();
    fresh.broken.retain(|broken| match (broken.kind, &broken.name) {
        (Some(kind), Some(name)) => {
            let id = ObjectId { kind, owner: broken.owner.clone(), name: name.clone() };
            !ids.contains(&id) && !bases.contains(&id)
        }
        _ => match &broken.problem.origin {
            Some(origin) => !kept.iter().any(|object| same_file(&object.origin, origin)),
            None => true,
        },
    });
}

fn same_file(one: &Origin, other: &Origin) -> bool {
    one.file == other.file && one.source.repo == other.source.repo
}

fn names(at: &RepoRef, key: &RepoKey, branch: &str) -> bool {
    at.branch.trim() == branch && RepoKey::new(&at.repo) == *key
}

pub(super) fn is_from(source: &Source, key: &RepoKey, branch: &str) -> bool {
    let name = source.revision.as_deref().and_then(|revision| revision.rsplit_once("@sha1:"));
    name.is_some_and(|(name, _)| name == branch) && RepoKey::new(&source.repo) == *key
}

impl Memory {
    /// Decodes what the database has. What this version can't read any more is forgotten.
    pub fn restore(rows: Vec<(SavedObject, Vec<u8>)>) -> Memory {
        let mut memory = Memory::default();
        for (row, text) in rows {
            let origin =
                Origin { source: Arc::new(row.source.clone()), file: row.file.as_str().into(), line: 0, column: 0 };
            let options = Options { application: row.id.owner.clone(), ..Options::default() };
            let decoded = decode::objects(&text, &origin, &options);
            let Some(object) = decoded.objects.into_iter().find(|object| object.id() == row.id) else {
                tracing::warn!(object = %row.id, file = row.file, "a last good object can't be read any more");
                continue;
            };
            let object = Object { stale_since: row.stale_since.clone(), ..object };
            memory.good.insert(row.id.clone(), Arc::new(object));
            memory.saved.insert(row.id.clone(), row);
        }
        memory
    }

    pub fn objects(&self) -> BTreeMap<ObjectId, Arc<Object>> {
        self.good.clone()
    }

    /// What is in force now is what was good.
    pub async fn remember(&mut self, term: Term, reader: &PlatformReader, now: &Platform) -> Result<(), StoreError> {
        let changed: Vec<Arc<Object>> = now
            .objects
            .iter()
            .filter(|(id, object)| self.is_new(id, object))
            .map(|(_, object)| Arc::clone(object))
            .collect();
        let removed: Vec<ObjectId> = self.saved.keys().filter(|id| !now.objects.contains_key(id)).cloned().collect();
        self.good.clone_from(&now.objects);
        if changed.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let (mirrors, saved) = (reader.mirrors.clone(), self.saved.clone());
        let collect = move || {
            let mut edits = Edits { removed, ..Edits::default() };
            let mut known: BTreeMap<(String, String), (String, Vec<u8>)> = BTreeMap::new();
            for object in changed {
                let source = Source::clone(&object.origin.source);
                let before = saved.get(&object.id());
                let row = |text_id: String| SavedObject {
                    id: object.id(),
                    source: source.clone(),
                    file: object.origin.file.to_string(),
                    text_id,
                    stale_since: object.stale_since.clone(),
                };
                if let Some(before) = before.filter(|row| row.source == source && *row.file == *object.origin.file) {
                    edits.saved.push(row(before.text_id.clone()));
                    continue;
                }
                let place = (source.to_string(), object.origin.file.to_string());
                let found = match known.get(&place) {
                    Some(found) => Some(found.clone()),
                    None => text_of(&mirrors, &object.origin),
                };
                // Without its text it can't be remembered; it will be with its next change.
                let Some((id, text)) = found else { continue };
                known.insert(place, (id.clone(), text.clone()));
                edits.texts.insert(id.clone(), text);
                edits.saved.push(row(id));
            }
            edits
        };
        let edits = tokio::task::spawn_blocking(collect).await.unwrap_or_default();
        reader.store.save_good_objects(term, &now.environment, &edits).await?;
        for id in &edits.removed {
            self.saved.remove(id);
        }
        self.saved.extend(edits.saved.into_iter().map(|row| (row.id.clone(), row)));
        Ok(())
    }

    fn is_new(&self, id: &ObjectId, object: &Object) -> bool {
        self.saved.get(id).is_none_or(|row| {
            row.stale_since != object.stale_since
                || *row.file != *object.origin.file
                || row.source != *object.origin.source
        })
    }
}

/// The file that an object was read from, at the commit that its place names.
fn text_of(mirrors: &crate::git::Mirrors, origin: &Origin) -> Option<(String, Vec<u8>)> {
    let (_, commit) = origin.source.revision.as_deref()?.rsplit_once("sha1:")?;
    let repo = mirrors.open(&origin.source.repo, Trust::Platform)?;
    let revision = Revision { name: None, ..repo.commit(commit).ok()? };
    let tree = repo.tree(&revision, &origin.source.repo).ok()?;
    Some((tree.content_id(&origin.file)?.to_string(), tree.read(&origin.file, FILE_LIMIT).ok()?))
}

#[cfg(test)]
mod tests;
