//! The environments that the control plane's main branch declares, with those that were good before when their files
//! can't be read. Asked by the reconciler, which starts and ends one task for each.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::platform::Environment;
use kedge_model::Problem;
use kedge_platform::repositories::Repositories as _;
use kedge_platform::{Environments, RepoKey, Request};

use super::inputs::Inputs;
use super::{Input, PlatformReader, ReadError, describe, rfc3339};
use crate::git::Trust;
use crate::store::Term;

/// All environments of a control plane.
#[derive(Debug)]
pub struct Declared {
    pub environments: BTreeMap<String, Environment>,
    /// Of those the last time, the ones that are gone for good: nothing is deleted, nothing is scheduled any more.
    pub removed: Vec<String>,
    pub problems: Vec<Problem>,
    pub input: Input,
}

impl PlatformReader {
    /// Reads `.environments/` on the control plane's main branch.
    pub async fn environments(&self, term: Term) -> Result<Declared, ReadError> {
        let before = self.store.good_environments().await?;
        let Some(repo) = self.control_plane.clone() else {
            let input = Input { repo: RepoKey::new(""), branch: None };
            return Ok(Declared { environments: before, removed: Vec::new(), problems: Vec::new(), input });
        };
        let input = Input { repo: self.mirrors.key(&repo), branch: Some(self.branch.clone()) };
        let found = match self.mirrors.head(&repo, &self.branch, Trust::Platform).await {
            Ok(_) => {
                let inputs = Inputs::new(self.mirrors.clone(), std::sync::Arc::clone(&self.cache));
                let request = Request::new(&repo, &self.branch, None);
                let work = move || {
                    let tree = inputs.open(&request).map_err(|error| error.to_string())?;
                    Environments::in_tree(tree.as_ref(), inputs.cache()).map_err(|error| error.to_string())
                };
                let found = tokio::task::spawn_blocking(work).await.map_err(|_| ReadError::Interrupted)?;
                found.map_err(|error| Problem::error("EnvironmentsFailed", error))
            }
            Err(error) => Err(describe(&error)),
        };
        let mut declared = settle(found, &before, &rfc3339(), input);
        if declared.environments.is_empty() && declared.problems.iter().all(|problem| !problem.is_error()) {
            let problem =
                Problem::warning("NoEnvironment", format!("{repo} declares no environment on {}", self.branch));
            declared
                .problems
                .push(problem.hint("an Environment object below `.environments/` names an environment's branch"));
        }
        if declared.environments != before {
            self.store.save_good_environments(term, &declared.environments).await?;
        }
        for name in &declared.removed {
            tracing::warn!(
                environment = name,
                "the environment was removed; its branch and what runs stay as they are, and are scheduled no more"
            );
        }
        Ok(declared)
    }
}

/// What is in force. Environments are only gone when their folder was read whole and still names one.
fn settle(
    found: Result<Environments, Problem>,
    before: &BTreeMap<String, Environment>,
    now: &str,
    input: Input,
) -> Declared {
    let (found, mut problems) = match found {
        Ok(found) => (Some(found.environments), found.problems),
        Err(problem) => (None, vec![problem]),
    };
    let mut environments: BTreeMap<String, Environment> = BTreeMap::new();
    for object in found.iter().flatten() {
        if let kedge_model::Spec::Environment(spec) = &object.spec {
            let name = object.meta.name.clone();
            let control_plane = spec.control_plane.clone();
            environments.insert(name.clone(), Environment { name, control_plane, stale_since: None });
        }
    }
    let emptied = environments.is_empty() && !before.is_empty();
    let whole = found.is_some() && !emptied && !problems.iter().any(Problem::is_error);
    if emptied && !problems.iter().any(Problem::is_error) {
        let problem = Problem::error("EnvironmentsEmptied", "`.environments/` declares no environment any more");
        problems.push(problem.hint("those of before stay in force; delete them one by one if they are to go"));
    }
    let gone: BTreeSet<&String> = before.keys().filter(|name| !environments.contains_key(*name)).collect();
    let mut removed = Vec::new();
    let mut kept = Vec::new();
    for name in gone {
        match whole {
            true => removed.push(name.clone()),
            false => kept.extend(before.get(name).cloned()),
        }
    }
    for environment in kept {
        let stale_since = environment.stale_since.clone().or_else(|| Some(now.to_owned()));
        environments.insert(environment.name.clone(), Environment { stale_since, ..environment });
    }
    Declared { environments, removed, problems, input }
}

#[cfg(test)]
mod tests {
    use kedge_model::kinds::RepoRef;

    use super::*;

    fn environment(name: &str) -> Environment {
        let control_plane = RepoRef { repo: "r".to_owned(), branch: name.to_owned(), path: ".".to_owned() };
        Environment { name: name.to_owned(), control_plane, stale_since: None }
    }

    fn before() -> BTreeMap<String, Environment> {
        ["dev", "qa"].map(|name| (name.to_owned(), environment(name))).into()
    }

    fn input() -> Input {
        Input { repo: RepoKey::new("r"), branch: None }
    }

    #[test]
    fn environments_that_cannot_be_read_stay() {
        let declared = settle(Err(Problem::error("X", "broken")), &before(), "now", input());
        assert_eq!(declared.environments["dev"].stale_since.as_deref(), Some("now"));
        assert_eq!(declared.environments.len(), 2);
        assert!(declared.removed.is_empty());
    }

    #[test]
    fn an_emptied_folder_removes_nothing() {
        let declared = settle(Ok(Environments::default()), &before(), "now", input());
        assert_eq!(declared.environments.len(), 2);
        assert!(declared.problems[0].is_error());
    }
}
