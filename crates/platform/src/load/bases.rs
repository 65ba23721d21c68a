//! The BaseRepos of an environment, level by level: each is read once, a ring of them is refused, and what they hold
//! goes below what is nearer.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::kinds::BaseRepo;
use kedge_model::{Broken, EmptyInput, Kind, Object, Origin, Platform, Problem, Spec};

use super::layers::Layers;
use super::{fail, note_empty};
use crate::cache::Cache;
use crate::ignore::Ignore;
use crate::read::Batch;
use crate::repositories::{RepoError, RepoKey, Repositories, Request};
use crate::tree::{Tree, TreeError, chain, clean_path};

/// A platform has a handful; more come from a mistake.
const BASE_LIMIT: usize = 100;

/// Repositories that were opened, so that each is asked for once.
pub(super) struct Trees<'r> {
    repositories: &'r dyn Repositories,
    /// By request, with the address in its one form.
    open: BTreeMap<Request, Box<dyn Tree>>,
}

/// One step of the way from the environment to a BaseRepo.
#[derive(Clone, Debug)]
pub(super) struct Step {
    shown: String,
    repo: RepoKey,
    revision: String,
    path: String,
}

pub(super) struct Bases<'a, 'r> {
    pub trees: &'a mut Trees<'r>,
    pub platform: &'a mut Platform,
    pub layers: &'a mut Layers,
}

/// A batch of objects and the way that led to it.
struct Found {
    batch: Batch,
    way: Vec<Step>,
}

/// A BaseRepo that is to be read at the next level.
struct Next {
    object: Arc<Object>,
    way: Vec<Step>,
}

impl Bases<'_, '_> {
    pub fn load(mut self, own: Batch, start: Option<Step>) {
        let mut level = vec![Found { batch: own, way: start.into_iter().collect() }];
        let mut read: BTreeSet<(RepoKey, String, String)> = BTreeSet::new();
        while !level.is_empty() {
            let mut found = Vec::new();
            for next in self.settle(level) {
                let Spec::BaseRepo(base) = &next.object.spec else { continue };
                let step = match Step::base(&next.object.meta.name, base) {
                    Ok(step) => step,
                    Err(error) => {
                        self.refuse(&next.object, &error, error.hint(), "PathInvalid");
                        continue;
                    }
                };
                if read.contains(&step.key()) {
                    continue;
                }
                if read.len() >= BASE_LIMIT {
                    let message =
                        format!("there are more than {BASE_LIMIT} BaseRepos; {} isn't read", next.object.id());
                    let problem = Problem::error("TooManyBaseRepos", message).at(next.object.origin.clone());
                    self.miss(&next.object, problem);
                    // What was read until here counts all the same.
                    break;
                }
                read.insert(step.key());
                let mut way = next.way;
                way.push(step);
                if let Some(batch) = self.read(&next.object, base) {
                    found.push(Found { batch, way });
                }
            }
            level = found;
        }
    }

    /// Puts a level below those before it, and says which BaseRepos came into force with it.
    fn settle(&mut self, level: Vec<Found>) -> Vec<Next> {
        let (mut objects, mut broken) = (Vec::new(), Vec::new());
        let mut ways: BTreeMap<Origin, Vec<Step>> = BTreeMap::new();
        for Found { mut batch, way } in level {
            self.platform.problems.append(&mut batch.problems);
            fail(self.platform, None, batch.failures);
            for object in batch.objects {
                if let Spec::BaseRepo(base) = &object.spec {
                    if let Some(problem) = ring(&object, base, &way) {
                        self.fail(problem);
                        continue;
                    }
                    ways.insert(object.origin.clone(), way.clone());
                }
                objects.push(object);
            }
            broken.append(&mut batch.broken);
        }
        let mut next = Vec::new();
        for id in self.layers.add(objects, broken) {
            if id.kind != Kind::BaseRepo {
                continue;
            }
            if let Some(object) = self.layers.objects.get(&id) {
                let way = ways.get(&object.origin).cloned().unwrap_or_default();
                next.push(Next { object: Arc::clone(object), way });
            }
        }
        next
    }

    fn read(&mut self, object: &Object, base: &BaseRepo) -> Option<Batch> {
        let request = Request::new(&base.repo.repo, &base.repo.branch, base.commit.as_deref());
        let cache = self.trees.cache();
        let tree = match self.trees.open(&request) {
            Ok(tree) => tree,
            Err(error) => {
                self.refuse(object, &error, error.hint(), "RepositoryFailed");
                return None;
            }
        };
        let path = clean_path(&base.repo.path);
        match path.and_then(|path| Batch::read(tree, &path, Ignore::environment(), None, cache)) {
            Ok(batch) => {
                if batch.is_empty() {
                    let message = format!("{} has no YAML object: {}", object.id(), tree.source());
                    let problem = Problem::warning("NothingFound", message).at(object.origin.clone());
                    let problem = problem.hint("if it should have some, correct its `branch` and `path`");
                    note_empty(self.platform, EmptyInput::BaseRepo(object.meta.name.clone()), problem);
                }
                Some(batch)
            }
            Err(error) => {
                self.refuse(object, &error, error.hint(), error.code());
                None
            }
        }
    }

    fn refuse(&mut self, object: &Object, error: &dyn std::error::Error, hint: Option<String>, code: &'static str) {
        self.miss(object, failure(object, error, hint, code));
    }

    /// What a BaseRepo holds is missing, and nobody knows what that would have been: it counts as broken, so that no
    /// assignment is made without its templates and values.
    fn miss(&mut self, object: &Object, problem: Problem) {
        self.layers.broken.push(Broken {
            kind: Some(Kind::BaseRepo),
            name: Some(object.meta.name.clone()),
            owner: None,
            labels: None,
            problem: problem.clone(),
        });
        self.fail(problem);
    }

    /// Something of the platform isn't read.
    fn fail(&mut self, problem: Problem) {
        self.platform.problems.push(problem.clone());
        fail(self.platform, None, vec![problem]);
    }
}

/// An object whose repository can't be used.
pub(super) fn failure(
    object: &Object,
    error: &dyn std::error::Error,
    hint: Option<String>,
    code: &'static str,
) -> Problem {
    let mut problem = Problem::error(code, format!("{} can't be loaded: {}", object.id(), chain(error)));
    problem.origin = Some(object.origin.clone());
    problem.hint = hint;
    problem
}

/// A BaseRepo that leads back to where it was reached from.
fn ring(object: &Object, base: &BaseRepo, way: &[Step]) -> Option<Problem> {
    let step = Step::base(&object.meta.name, base).ok()?;
    let start = way.iter().position(|before| before.key() == step.key())?;
    let steps = way[start..].iter().chain([&step]);
    let shown: Vec<&str> = steps.map(|step| step.shown.as_str()).collect();
    let message = format!("{} closes a ring: {}", object.id(), shown.join(" → "));
    let problem = Problem::error("BaseRepoCycle", message).at(object.origin.clone());
    Some(problem.hint("delete this BaseRepo, or point it to something that isn't read yet"))
}

impl Step {
    pub fn environment(name: &str, repo: RepoKey, revision: &str, path: &str) -> Step {
        let shown = format!("environment {name} ({repo}@{revision})");
        Step { shown, repo, revision: revision.to_owned(), path: path.to_owned() }
    }

    fn base(name: &str, base: &BaseRepo) -> Result<Step, TreeError> {
        let request = Request::new(&base.repo.repo, &base.repo.branch, base.commit.as_deref());
        let revision = request.commit.or(request.branch).unwrap_or_default();
        let path = clean_path(&base.repo.path)?;
        let repo = RepoKey::new(&request.repo);
        let at = if revision.is_empty() { String::new() } else { format!("@{revision}") };
        Ok(Step { shown: format!("{name} ({repo}{at})"), repo, revision, path })
    }

    fn key(&self) -> (RepoKey, String, String) {
        (self.repo.clone(), self.revision.clone(), self.path.clone())
    }
}

impl<'r> Trees<'r> {
    pub fn new(repositories: &'r dyn Repositories) -> Trees<'r> {
        Trees { repositories, open: BTreeMap::new() }
    }

    pub fn cache(&self) -> Option<&'r Cache> {
        self.repositories.cache()
    }

    pub fn open(&mut self, request: &Request) -> Result<&dyn Tree, RepoError> {
        let key = Request { repo: RepoKey::new(&request.repo).to_string(), ..request.clone() };
        match self.open.entry(key) {
            Entry::Occupied(known) => Ok(&**known.into_mut()),
            Entry::Vacant(place) => Ok(&**place.insert(self.repositories.open(request)?)),
        }
    }
}
