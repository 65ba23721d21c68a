//! Which part of an environment a revision is meant for, and where pasted files belong: main, or the environment's branch.

use std::collections::BTreeMap;

use kedge_api::plans::PastedFile;
use kedge_hub_types::platform::Environment;
use kedge_platform::tree::{EntryKind, Tree as _};
use kedge_platform::{GitRepository, Revision};

use super::{PreviewError, Previews};
use crate::git::{Mirrors, Trust};
use crate::platform::preview::{Looked, Part, Preview};

/// A revision that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// As it was asked for.
    pub revision: String,
    pub part: Part,
    pub commit: String,
    /// Why it is that part's.
    pub why: String,
    pub subject: Option<String>,
    pub author: Option<String>,
}

/// Only main declares environments.
const ENVIRONMENTS: &str = ".environments";

impl Previews {
    pub(super) async fn choose(
        &self,
        environment: &Environment,
        revision: &str,
        wanted: Option<Part>,
    ) -> Result<Chosen, PreviewError> {
        let mirrors = self.reader.mirrors();
        let at = &environment.control_plane;
        let (control_plane, main_branch) = self.reader.control_plane().ok_or(PreviewError::NoControlPlane)?;
        let apart = mirrors.key(control_plane) != mirrors.key(&at.repo);
        let own = match wanted {
            Some(Part::Main) if apart => None,
            _ => Some(mirrors.find(&at.repo, revision, Trust::Platform).await),
        };
        let (head, part) = match own {
            Some(Ok(head)) if apart => (head, Some((Part::Environment, "it is in the environment's repository"))),
            Some(Ok(head)) => (head, None),
            Some(Err(error)) if !apart => return Err(unfound(&error)),
            Some(Err(_)) | None => {
                let head =
                    mirrors.find(control_plane, revision, Trust::Platform).await.map_err(|error| unfound(&error))?;
                (head, Some((Part::Main, "it is in the control plane's repository")))
            }
        };
        let (own_branch, name) = (at.branch.trim(), revision.trim());
        let part = match wanted {
            Some(part) => Some((part, "that was asked for")),
            None if name == own_branch => Some((Part::Environment, "it is the environment's branch")),
            None if name == main_branch => Some((Part::Main, "it is main")),
            None => part,
        };
        let (part, why) = match part {
            Some(found) => found,
            None => {
                let heads = (
                    mirrors.head(&at.repo, own_branch, Trust::Platform).await.ok().map(|head| head.commit),
                    mirrors.head(control_plane, main_branch, Trust::Platform).await.ok().map(|head| head.commit),
                );
                let (mirrors, repo, commit) = (mirrors.clone(), at.repo.clone(), head.commit.clone());
                let work = move || nearer(&mirrors, &repo, &commit, heads);
                tokio::task::spawn_blocking(work).await.map_err(|_| PreviewError::Interrupted)?
            }
        };
        let note = mirrors.open(&head.repo, Trust::Platform).and_then(|repo| repo.describe(&head.commit));
        Ok(Chosen {
            revision: revision.to_owned(),
            part,
            commit: head.commit,
            why: why.to_owned(),
            subject: note.as_ref().map(|note| note.subject.clone()),
            author: note.map(|note| note.author),
        })
    }

    /// Puts each file where its path is: on the environment's branch, or on main when only that has it.
    pub(super) async fn place(
        &self,
        environment: &Environment,
        before: &Looked,
        preview: &mut Preview,
        files: BTreeMap<String, Option<String>>,
        wanted: Option<Part>,
    ) -> Result<Vec<PastedFile>, PreviewError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let commit = |part: Part, in_force: &Option<String>| match &preview.revision {
            Some((of, commit)) if *of == part => Some(commit.clone()),
            _ => in_force.clone(),
        };
        let own = Place {
            repo: environment.control_plane.repo.clone(),
            commit: commit(Part::Environment, &before.environment),
        };
        let repo = self.reader.control_plane().map(|(repo, _)| repo.to_owned()).unwrap_or_default();
        let main = Place { repo, commit: commit(Part::Main, &before.main) };
        let mirrors = self.reader.mirrors().clone();
        let work = move || {
            let placed = files.into_iter().map(|(path, text)| {
                let (here, there) = (own.has(&mirrors, &path), main.has(&mirrors, &path));
                let part = wanted.unwrap_or(if !here && there { Part::Main } else { Part::Environment });
                let known = if part == Part::Main { there } else { here };
                (part, path, text, known)
            });
            placed.collect::<Vec<_>>()
        };
        let placed = tokio::task::spawn_blocking(work).await.map_err(|_| PreviewError::Interrupted)?;
        let mut shown = Vec::new();
        for (part, path, text, known) in placed {
            let change = match (&text, known) {
                (None, true) => "removed",
                (None, false) => {
                    let message = format!("there is no file `{path}` to delete");
                    return Err(PreviewError::Revision { message, hint: None });
                }
                (Some(_), true) => "replaced",
                (Some(_), false) => "added",
            };
            let of = part.as_str().to_owned();
            shown.push(PastedFile { path: path.clone(), of, change: change.to_owned() });
            preview.files.entry(part).or_default().insert(path, text);
        }
        Ok(shown)
    }
}

/// A commit whose files are looked at.
struct Place {
    repo: String,
    commit: Option<String>,
}

impl Place {
    fn has(&self, mirrors: &Mirrors, path: &str) -> bool {
        let found = || {
            let repo = mirrors.open(&self.repo, Trust::Platform)?;
            let tree = repo.tree(&repo.commit(self.commit.as_deref()?).ok()?, &self.repo).ok()?;
            tree.entry(path).ok()
        };
        found() == Some(EntryKind::File)
    }
}

/// The part that a commit has the newer history with; where that says nothing, main is what declares environments.
fn nearer(
    mirrors: &Mirrors,
    repo: &str,
    commit: &str,
    (own, main): (Option<String>, Option<String>),
) -> (Part, &'static str) {
    let by_files = |repo: &GitRepository, revision: &Revision, name: &str| {
        let tree = repo.tree(revision, name).ok();
        match tree.is_some_and(|tree| tree.entry(ENVIRONMENTS).is_ok_and(|kind| kind == EntryKind::Folder)) {
            true => (Part::Main, "it declares environments, as main does"),
            false => (Part::Environment, "it declares no environments, so it isn't main"),
        }
    };
    let unknown = (Part::Environment, "nothing else is known of it");
    let Some(opened) = mirrors.open(repo, Trust::Platform) else { return unknown };
    let Ok(revision) = opened.commit(commit) else { return unknown };
    let base = |head: Option<String>| {
        let head = opened.commit(&head?).ok()?.commit;
        opened.merge_base(revision.commit, head)
    };
    match (base(own), base(main)) {
        (Some(_), None) => (Part::Environment, "it shares its history with the environment's branch"),
        (None, Some(_)) => (Part::Main, "it shares its history with main"),
        (Some(own), Some(main)) if own != main && opened.is_behind(own, main) => (Part::Main, "it is nearer to main"),
        (Some(own), Some(main)) if own != main => (Part::Environment, "it is nearer to the environment's branch"),
        _ => by_files(&opened, &revision, repo),
    }
}

fn unfound(error: &crate::git::MirrorError) -> PreviewError {
    PreviewError::Revision { message: error.to_string(), hint: error.hint() }
}
