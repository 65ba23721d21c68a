//! What Git says about promotions: the commits of main, and which of them each environment's branch names, by whom. Read
//! from the mirrors as they are; blocking. Called by the promotion controller.

use kedge_hub_types::platform::Environment;
use kedge_model::Spec;
use kedge_model::kinds::BaseRepo;
use kedge_model::wire::Timestamp;
use kedge_platform::ignore::Ignore;
use kedge_platform::read::Batch;
use kedge_platform::tree::{Tree as _, clean_path};
use kedge_platform::{Cache, GitRepository, RepoKey, Revision};
use kedge_rollout::chain::{MainCommit, Named};

use super::policy::Source;
use crate::git::{Head, Mirrors};
use crate::platform::base;

/// So many commits of main are looked at: who is further behind is promoted to one of these all the same.
pub const MAIN_LOG: usize = 200;

/// How far back whoever wrote a line is looked for.
const HISTORY: usize = 500;

/// Of a subject or a name.
const TEXT: usize = 200;

/// A file with a BaseRepo is small.
const FILE_LIMIT: u64 = 1024 * 1024;

/// What an environment's branch says.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// The branch's head.
    pub head: String,
    pub base: Base,
}

/// The BaseRepo `main` of an environment's branch.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// Nobody wrote one.
    Missing,
    /// It leads to another repository than the control plane's: none of ours.
    Elsewhere {
        repo: String,
    },
    /// It can't be read, or there are two.
    Unclear {
        why: String,
    },
    Here(Written),
}

/// Where the BaseRepo is written, what it names and who wrote that.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub file: String,
    pub base: BaseRepo,
    pub by: String,
    pub at: Timestamp,
}

impl Written {
    /// The full commit that it names, in lower case.
    pub fn commit(&self) -> Option<String> {
        self.base.commit.as_deref().map(|commit| commit.trim().to_ascii_lowercase()).filter(|commit| !commit.is_empty())
    }

    pub fn named(&self, commit: &str) -> Named {
        Named { commit: commit.to_owned(), by: self.by.clone(), at: self.at, why: String::new() }
    }
}

/// First parents from the head, the newest first.
pub fn main_log(head: &Head) -> Vec<MainCommit> {
    let Some(repo) = open(head) else { return Vec::new() };
    let mut next = gix::ObjectId::from_hex(head.commit.as_bytes()).ok();
    let mut log = Vec::new();
    while let Some(commit) = next.and_then(|id| repo.find_commit(id).ok()) {
        let Some(note) = describe(&commit) else { break };
        next = commit.parent_ids().next().map(|id| id.detach());
        log.push(MainCommit { commit: commit.id.to_string(), subject: note.subject, author: note.author });
        if log.len() >= MAIN_LOG {
            break;
        }
    }
    log
}

/// A commit of main, and the author of a file there; without one, of the commit.
pub fn source(head: &Head, file: Option<&str>) -> Source {
    let commit = head.commit.clone();
    let found = open(head).and_then(|repo| {
        let id = gix::ObjectId::from_hex(commit.as_bytes()).ok()?;
        describe(&repo.find_commit(id).ok()?)
    });
    let Some(note) = found else { return Source { commit, ..Source::default() } };
    let wrote = file.and_then(|file| who_wrote(head, file));
    Source { commit, subject: note.subject, author: wrote.map_or(note.author, |(author, _)| author) }
}

/// What the branch of an environment says of main.
pub fn branch(
    mirrors: &Mirrors,
    cache: &Cache,
    head: &Head,
    environment: &Environment,
    control_plane: &RepoKey,
) -> Branch {
    let base = match find(mirrors, cache, head, environment) {
        Err(why) => Base::Unclear { why },
        Ok(None) => Base::Missing,
        Ok(Some((_, base))) if mirrors.key(&base.repo.repo) != *control_plane => {
            Base::Elsewhere { repo: base.repo.repo }
        }
        Ok(Some((file, base))) => {
            let (by, at) = who_wrote(head, &file).unwrap_or_default();
            Base::Here(Written { file, base, by, at: Timestamp(at) })
        }
    };
    Branch { head: head.commit.clone(), base }
}

/// The BaseRepo `main` of a tree, and the file that holds it.
fn find(
    mirrors: &Mirrors,
    cache: &Cache,
    head: &Head,
    environment: &Environment,
) -> Result<Option<(String, BaseRepo)>, String> {
    let at = &environment.control_plane;
    let repo = mirrors.open(&at.repo, crate::git::Trust::Platform).ok_or("the mirror can't be opened")?;
    find_in(&repo, &head.commit, &at.repo, &at.path, Some(cache))
}

/// The BaseRepo `main` below a path of a commit, and the file that holds it.
pub fn find_in(
    repo: &GitRepository,
    commit: &str,
    name: &str,
    path: &str,
    cache: Option<&Cache>,
) -> Result<Option<(String, BaseRepo)>, String> {
    let revision = Revision { name: None, ..repo.commit(commit).map_err(|error| error.to_string())? };
    let tree = repo.tree(&revision, name).map_err(|error| error.to_string())?;
    let path = clean_path(path).map_err(|error| error.to_string())?;
    let batch = Batch::read(&tree, &path, Ignore::environment(), None, cache).map_err(|error| error.to_string())?;
    let mut found = batch.objects.iter().filter_map(|object| match &object.spec {
        Spec::BaseRepo(base) if object.meta.name == base::NAME => Some((object.origin.file.to_string(), base.clone())),
        _ => None,
    });
    match (found.next(), found.next()) {
        (Some(_), Some((file, _))) => Err(format!("BaseRepo main is written twice, also in {file}")),
        (Some(one), None) => Ok(Some(one)),
        (None, _) => {
            let broken = batch.broken.iter().find(|broken| {
                broken.kind == Some(kedge_model::Kind::BaseRepo)
                    && broken.name.as_deref().is_none_or(|name| name == base::NAME)
            });
            match broken {
                Some(broken) => Err(broken.problem.message.clone()),
                None => Ok(None),
            }
        }
    }
}

/// The text of a file of a commit.
pub fn text_of(repo: &GitRepository, commit: &str, file: &str) -> Option<String> {
    let revision = Revision { name: None, ..repo.commit(commit).ok()? };
    String::from_utf8(repo.tree(&revision, "").ok()?.read(file, FILE_LIMIT).ok()?).ok()
}

/// The author of the commit that last touched a file, and when.
fn who_wrote(head: &Head, file: &str) -> Option<(String, i64)> {
    let repo = open(head)?;
    let at = |commit: &gix::Commit<'_>| -> Option<Option<gix::ObjectId>> {
        Some(commit.tree().ok()?.lookup_entry_by_path(file).ok()?.map(|entry| entry.object_id()))
    };
    let mut here = repo.find_commit(gix::ObjectId::from_hex(head.commit.as_bytes()).ok()?).ok()?;
    let wanted = at(&here)?;
    for _ in 0..HISTORY {
        let parents: Vec<_> = here.parent_ids().filter_map(|id| repo.find_commit(id.detach()).ok()).collect();
        match parents.into_iter().find(|parent| at(parent) == Some(wanted)) {
            Some(parent) => here = parent,
            None => break,
        }
    }
    let note = describe(&here)?;
    Some((note.author, note.seconds.saturating_mul(1000)))
}

struct Note {
    subject: String,
    /// `Name <mail>`
    author: String,
    seconds: i64,
}

fn describe(commit: &gix::Commit<'_>) -> Option<Note> {
    let author = commit.author().ok()?;
    let author = match author.email.is_empty() {
        true => author.name.to_string(),
        false => format!("{} <{}>", author.name, author.email),
    };
    let subject = commit.message().ok()?.title.to_string();
    Some(Note { subject: line(&subject), author: line(&author), seconds: commit.time().ok()?.seconds })
}

/// Other people's text, on one line and not too long.
pub fn line(text: &str) -> String {
    text.trim().chars().filter(|c| !c.is_control()).take(TEXT).collect()
}

fn open(head: &Head) -> Option<gix::Repository> {
    let mut repo = gix::Repository::from(gix::open::Options::isolated().open(&head.path).ok()?);
    repo.object_cache_size_if_unset(4 * 1024 * 1024);
    Some(repo)
}
