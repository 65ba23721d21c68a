//! An environment as it would be with another revision of the control plane, or with files that nobody committed. Reads as
//! the reconciler does, with last good objects and published names, and writes nothing. Asked by the module `preview`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_hub_types::platform::Environment;
use kedge_model::kinds::BaseRepo;
use kedge_model::{Kind, Object, ObjectId, Platform, Problem, Spec};
use kedge_platform::{OverlayTree, RepoError, RepoKey, Request, Tree};

use super::{Input, PlatformReader, ReadError};
use crate::git::{Mirrors, Trust};
use crate::platform::base;

/// A part of an environment that a person may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The control plane's main branch, as far as the environment reads it.
    Main,
    /// The environment's own branch.
    Environment,
}

/// What is different from what is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// A commit in place of the one that a part is read at.
    pub revision: Option<(Part, String)>,
    /// Files by their clean paths; none: the file goes.
    pub files: BTreeMap<Part, BTreeMap<String, Option<String>>>,
}

/// An environment that was read.
#[derive(Debug)]
pub struct Looked {
    pub platform: Platform,
    /// The commits of the two parts. No main: the environment doesn't read it.
    pub environment: Option<String>,
    pub main: Option<String>,
}

/// How one load of a preview answers.
#[derive(Clone, Debug)]
pub(super) struct Overlay {
    preview: Preview,
    /// Where each part is.
    main: Option<Input>,
    environment: Input,
    /// Branches that nobody follows, looked up for this preview.
    found: BTreeMap<(RepoKey, String), String>,
}

impl Part {
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Main => "main",
            Part::Environment => "environment",
        }
    }
}

impl PlatformReader {
    /// The control plane's address and the name of its main branch.
    pub fn control_plane(&self) -> Option<(&str, &str)> {
        Some((self.control_plane.as_deref()?, &self.branch))
    }

    /// The environment with a preview over it; with an empty one as it is now.
    pub async fn look(&self, environment: &Environment, preview: &Preview) -> Result<Looked, ReadError> {
        let at = &environment.control_plane;
        let here = Input { repo: self.mirrors().key(&at.repo), branch: Some(at.branch.trim().to_owned()) };
        let overlay = Overlay {
            preview: preview.clone(),
            main: self.main().filter(|main| *main != here),
            environment: here.clone(),
            found: BTreeMap::new(),
        };
        let reader = self.environment(environment.clone()).await?;
        let enforced = self.enforced(environment).await?.map(Arc::new);
        let (mut platform, seen) = reader.load(enforced.as_ref(), Some(&overlay)).await?;
        let main = overlay.main.as_ref().and_then(|main| seen.commits.get(main)).cloned();
        match (&preview.revision, &enforced) {
            (Some((Part::Main, commit)), _) => overlay.name_main(self.mirrors(), &mut platform, commit),
            (_, Some(enforced)) => {
                platform.problems.extend(overlay.not_yet(self.mirrors(), &platform, main.as_deref()));
                enforced.apply(self.mirrors(), &mut platform);
            }
            (_, None) => {}
        }
        platform.published.clone_from(&reader.published);
        Ok(Looked { platform, environment: seen.commits.get(&here).cloned(), main })
    }
}

impl Overlay {
    /// The request as it is answered, and which part it is. `enforced` says how promotions would answer it.
    pub fn redirect(
        &self,
        mirrors: &Mirrors,
        request: &Request,
        enforced: Result<Option<Request>, RepoError>,
    ) -> Result<(Request, Option<Part>), RepoError> {
        let input = Input { repo: mirrors.key(&request.repo), branch: request.branch.clone() };
        if input == self.environment && request.commit.is_none() {
            let commit = self.revision(Part::Environment).map(str::to_owned);
            return Ok((Request { commit, ..request.clone() }, Some(Part::Environment)));
        }
        let of_main = self.main.as_ref() == Some(&input) || !matches!(enforced, Ok(None));
        if of_main && let (Some(commit), Some(main)) = (self.revision(Part::Main), &self.main) {
            let (branch, commit) = (main.branch.clone(), Some(commit.to_owned()));
            return Ok((Request { branch, commit, ..request.clone() }, Some(Part::Main)));
        }
        let request = enforced?.unwrap_or_else(|| request.clone());
        let looked_up = match (&request.commit, &request.branch) {
            (None, Some(branch)) => self.found.get(&(mirrors.key(&request.repo), branch.clone())).cloned(),
            _ => None,
        };
        let commit = request.commit.clone().or(looked_up);
        Ok((Request { commit, ..request }, of_main.then_some(Part::Main)))
    }

    /// The tree with the files of the preview over it.
    pub fn cover(&self, part: Option<Part>, tree: Box<dyn Tree>) -> Box<dyn Tree> {
        match part.and_then(|part| self.preview.files.get(&part)) {
            Some(files) if !files.is_empty() => Box::new(OverlayTree::new(tree, files.clone())),
            _ => tree,
        }
    }

    /// Fetches what isn't here, all at once, and follows none of it: what a preview names may never come to be.
    pub async fn look_up(&mut self, mirrors: &Mirrors, missing: &[Request]) {
        let mut lookups = tokio::task::JoinSet::new();
        for request in missing.iter().cloned() {
            let mirrors = mirrors.clone();
            lookups.spawn(async move {
                let (branch, repo) = (request.branch.as_deref(), request.repo.as_str());
                // The next look says what came of it.
                match (&request.commit, branch) {
                    (Some(commit), branch) => {
                        mirrors.commit(repo, branch, commit, Trust::Platform).await.ok();
                        None
                    }
                    (None, Some(branch)) => {
                        let head = mirrors.find(repo, branch, Trust::Platform).await.ok()?;
                        Some(((mirrors.key(repo), branch.to_owned()), head.commit))
                    }
                    (None, None) => None,
                }
            });
        }
        while let Some(found) = lookups.join_next().await {
            self.found.extend(found.ok().flatten());
        }
    }

    fn revision(&self, wanted: Part) -> Option<&str> {
        let (part, commit) = self.preview.revision.as_ref()?;
        (*part == wanted).then_some(commit.as_str())
    }

    /// The platform says which commit of main it was read at.
    fn name_main(&self, mirrors: &Mirrors, platform: &mut Platform, commit: &str) {
        if let Some((object, written)) = self.base(mirrors, platform) {
            let spec = Spec::BaseRepo(BaseRepo { commit: Some(commit.to_owned()), ..written });
            let read = Object { spec, ..Object::clone(&object) };
            platform.objects.insert(object.id(), Arc::new(read));
        }
    }

    /// Promotions decide at which commit main is read: naming another one on the branch does nothing by itself.
    fn not_yet(&self, mirrors: &Mirrors, platform: &Platform, main: Option<&str>) -> Option<Problem> {
        let (object, written) = self.base(mirrors, platform)?;
        let named = written.commit.as_deref().map(str::trim).filter(|named| !named.is_empty())?;
        let main = main.filter(|main| !named.eq_ignore_ascii_case(main))?;
        let message = format!("BaseRepo main names {named}, and main is read at {main} until a promotion lets it in");
        let hint = format!("plan that commit itself to see what its promotion would do: {named}");
        self.changes_base().then(|| Problem::warning("NotPromoted", message).at(object.origin.clone()).hint(hint))
    }

    fn changes_base(&self) -> bool {
        self.revision(Part::Environment).is_some() || self.preview.files.contains_key(&Part::Environment)
    }

    fn base(&self, mirrors: &Mirrors, platform: &Platform) -> Option<(Arc<Object>, BaseRepo)> {
        let main = self.main.as_ref()?;
        let id = ObjectId { kind: Kind::BaseRepo, owner: None, name: base::NAME.to_owned() };
        let object = platform.objects.get(&id)?;
        match &object.spec {
            Spec::BaseRepo(base) if mirrors.key(&base.repo.repo) == main.repo => {
                Some((Arc::clone(object), base.clone()))
            }
            _ => None,
        }
    }
}
