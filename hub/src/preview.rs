//! What a change would do before anybody merges it: a revision of the control plane, or pasted files, in one environment, with
//! the hub's own inputs. Asked by the API; reads Git and the database, and writes nothing. One at a time per caller.

mod difference;
mod revision;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kedge_api::plans::{PlanDetail, PlanSide};
use kedge_hub_types::platform::Environment;
use kedge_model::Platform;
use kedge_platform::tree::clean_path;
use tokio::sync::Semaphore;

use crate::platform::preview::{Looked, Part, Preview};
use crate::platform::{PlatformReader, ReadError};
use crate::store::catalog::Visible;
use crate::store::{Store, StoreError};
use difference::Difference;
use revision::Chosen;

/// Plans changes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Previews {
    reader: PlatformReader,
    store: Store,
    /// Tokens whose plan is under way.
    busy: Arc<Mutex<BTreeSet<String>>>,
    turns: Arc<Semaphore>,
}

/// What is to be tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub environment: String,
    /// A branch, a tag or a commit of the control plane.
    pub revision: Option<String>,
    /// What the revision or the files are a part of, where somebody says so.
    pub part: Option<Part>,
    /// Text by path; none: the file goes.
    pub files: BTreeMap<String, Option<String>>,
}

/// Who asks, and what they may see.
#[derive(Clone, Debug)]
pub struct Audience {
    pub token: String,
    pub with_secrets: bool,
    pub visible: Visible,
}

/// Typed by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    #[error("there is no environment {0}")]
    NoEnvironment(String),
    #[error("this hub has no control plane")]
    NoControlPlane,
    #[error("{message}")]
    Revision { message: String, hint: Option<String> },
    #[error("`{path}` can't be a path: {why}")]
    Path { path: String, why: String },
    #[error("{limit}")]
    TooMuch { limit: String },
    #[error("environment {environment} can't be read with it: {problem}")]
    Unusable { environment: String, problem: String, hint: Option<String> },
    /// Wait for the one that runs.
    #[error("a plan of this token is under way already")]
    Busy,
    #[error("the plan took too long")]
    TooSlow,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("planning was interrupted")]
    Interrupted,
}

/// Below the time of a request.
const TIME: Duration = Duration::from_secs(25);
/// Each may take a core and the memory of an environment.
const AT_ONCE: usize = 2;
/// A change that a person looks at before it is committed.
const MAX_FILES: usize = 50;
pub const MAX_TEXT: usize = 1 << 20;

/// While it lives its token's next plan is refused.
#[derive(Debug)]
struct Turn {
    token: String,
    busy: Arc<Mutex<BTreeSet<String>>>,
}

impl Previews {
    pub fn new(reader: PlatformReader, store: Store) -> Previews {
        Previews { reader, store, busy: Arc::default(), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    pub async fn plan(&self, wish: Wish, audience: Audience) -> Result<PlanDetail, PreviewError> {
        let turn = Arc::new(self.turn(&audience.token)?);
        match tokio::time::timeout(TIME, self.plan_in_turn(wish, audience, turn)).await {
            Ok(planned) => planned,
            Err(_) => Err(PreviewError::TooSlow),
        }
    }

    fn turn(&self, token: &str) -> Result<Turn, PreviewError> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        match busy.insert(token.to_owned()) {
            true => Ok(Turn { token: token.to_owned(), busy: Arc::clone(&self.busy) }),
            false => Err(PreviewError::Busy),
        }
    }

    async fn plan_in_turn(&self, wish: Wish, audience: Audience, turn: Arc<Turn>) -> Result<PlanDetail, PreviewError> {
        let files = checked(&wish.files)?;
        if self.reader.control_plane().is_none() {
            return Err(PreviewError::NoControlPlane);
        }
        let permit = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| PreviewError::Interrupted)?;
        let known = self.store.good_environments().await?;
        let environment =
            known.get(&wish.environment).ok_or_else(|| PreviewError::NoEnvironment(wish.environment.clone()))?;
        // What is described on main itself has no other part.
        let part = if self.is_on_main(environment) { Some(Part::Environment) } else { wish.part };
        let before = self.in_force(environment).await?;
        let chosen = match &wish.revision {
            Some(revision) => Some(self.choose(environment, revision, part).await?),
            None => None,
        };
        let revision = chosen.as_ref().map(|chosen| (chosen.part, chosen.commit.clone()));
        let mut preview = Preview { revision, ..Preview::default() };
        let pasted = self.place(environment, &before, &mut preview, files, part).await?;
        let after = self.reader.look(environment, &preview).await.map_err(|error| unread(environment, error))?;
        let sides = (side(&before, None), side(&after, chosen.as_ref()));
        let environment = environment.name.clone();
        let work = move || {
            // Held as long as the work lasts, whoever still waits for it.
            let _held = (turn, permit);
            Difference::of(before.platform, after.platform)
        };
        let difference = tokio::task::spawn_blocking(work).await.map_err(|_| PreviewError::Interrupted)?;
        let facts = self.facts(&environment, &difference).await?;
        let (from, to) = sides;
        let is_whole = audience.visible == Visible::All;
        let view = move || difference.view(&environment, &audience, &facts);
        let view = tokio::task::spawn_blocking(view).await.map_err(|_| PreviewError::Interrupted)?;
        let (from, to) = match is_whole {
            true => (from, to),
            // Commits and authors are the platform team's.
            false => {
                let PlanSide { revision, of, why, .. } = to;
                (PlanSide::default(), PlanSide { revision, of, why, ..PlanSide::default() })
            }
        };
        Ok(PlanDetail { from, to, pasted, ..view })
    }

    fn is_on_main(&self, environment: &Environment) -> bool {
        let (mirrors, at) = (self.reader.mirrors(), &environment.control_plane);
        self.reader
            .control_plane()
            .is_some_and(|(repo, branch)| at.branch.trim() == branch && mirrors.key(&at.repo) == mirrors.key(repo))
    }

    /// What can't be read and never could be has nothing in force.
    async fn in_force(&self, environment: &Environment) -> Result<Looked, PreviewError> {
        match self.reader.look(environment, &Preview::default()).await {
            Err(ReadError::Unusable { environment, .. }) => {
                let platform = Platform { environment, ..Platform::default() };
                Ok(Looked { platform, environment: None, main: None })
            }
            looked => looked.map_err(|error| unread(environment, error)),
        }
    }

    /// What the database knows of the types that change.
    async fn facts(&self, environment: &str, difference: &Difference) -> Result<difference::Facts, PreviewError> {
        let mut facts = difference::Facts::default();
        for members in self.store.population(environment).await? {
            facts.count(&members.stream.cluster_type, members.presence, members.count);
        }
        if difference.removes() {
            facts.confirmed = self.store.confirmed_sets(environment).await?;
            for path in self.store.published_files(environment).await?.into_keys() {
                if let Some((cluster_type, target)) = crate::publish::assignment_of(&path) {
                    facts.published.entry(cluster_type.to_owned()).or_default().insert(target.to_owned());
                }
            }
        }
        Ok(facts)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// Clean paths, within the limits.
fn checked(files: &BTreeMap<String, Option<String>>) -> Result<BTreeMap<String, Option<String>>, PreviewError> {
    if files.len() > MAX_FILES {
        return Err(PreviewError::TooMuch { limit: format!("a plan takes at most {MAX_FILES} files") });
    }
    let size: usize = files.values().flatten().map(String::len).sum();
    if size > MAX_TEXT {
        return Err(PreviewError::TooMuch { limit: format!("a plan takes at most {MAX_TEXT} bytes of text") });
    }
    let clean = |(path, text): (&String, &Option<String>)| {
        let wrong = |why: String| PreviewError::Path { path: path.chars().take(200).collect(), why };
        match clean_path(path) {
            Ok(clean) if clean.is_empty() => Err(wrong("it names no file".to_owned())),
            Ok(clean) => Ok((clean, text.clone())),
            Err(error) => Err(wrong(error.to_string())),
        }
    };
    files.iter().map(clean).collect()
}

fn side(looked: &Looked, chosen: Option<&Chosen>) -> PlanSide {
    PlanSide {
        environment: looked.environment.clone(),
        main: looked.main.clone(),
        revision: chosen.map(|chosen| chosen.revision.clone()),
        of: chosen.map(|chosen| chosen.part.as_str().to_owned()),
        why: chosen.map(|chosen| chosen.why.clone()),
        subject: chosen.and_then(|chosen| chosen.subject.clone()),
        author: chosen.and_then(|chosen| chosen.author.clone()),
    }
}

fn unread(environment: &Environment, error: ReadError) -> PreviewError {
    match error {
        ReadError::Unusable { problem, hint, .. } => {
            PreviewError::Unusable { environment: environment.name.clone(), problem, hint }
        }
        ReadError::Store(error) => PreviewError::Store(error),
        ReadError::Interrupted => PreviewError::Interrupted,
    }
}

#[cfg(test)]
mod tests;
