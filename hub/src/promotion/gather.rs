//! What is true now, for the whole chain: what main's head says about promotion, its newest commits, what each
//! environment's branch names, and what became of the commit in force there. Called by a pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_hub_types::platform::Environment;
use kedge_model::kinds::PromotionPolicy;
use kedge_platform::{Cache, Environments, PolicyState, Revision};
use kedge_rollout::chain::{EnvironmentFacts, MainCommit};
use kedge_rollout::{Chain, ChainFacts};

use super::facts::{self, Base, Branch};
use super::policy::{Found, Source};
use super::{PassError, PromotionController};
use crate::git::{Head, Mirrors, Trust};
use crate::store::promotion::PromotionRow;

impl PromotionController {
    pub(super) async fn read_policy(&self, head: &Head) -> Result<(Found, Source), PassError> {
        if let Some((commit, found, source)) = &self.remembered().policy
            && *commit == head.commit
        {
            return Ok((found.clone(), source.clone()));
        }
        let (mirrors, cache, repo, at) =
            (self.mirrors.clone(), Arc::clone(&self.cache), self.control_plane.clone(), head.clone());
        let work = move || read_policy(&mirrors, &cache, &repo, &at);
        let (found, source) = tokio::task::spawn_blocking(work).await.map_err(|_| PassError::Interrupted)?;
        self.remembered().policy = Some((head.commit.clone(), found.clone(), source.clone()));
        Ok((found, source))
    }

    pub(super) async fn read_main(&self, head: &Head) -> Result<Arc<[MainCommit]>, PassError> {
        if let Some((commit, log)) = &self.remembered().main
            && *commit == head.commit
        {
            return Ok(Arc::clone(log));
        }
        let at = head.clone();
        let log =
            tokio::task::spawn_blocking(move || facts::main_log(&at)).await.map_err(|_| PassError::Interrupted)?;
        let log: Arc<[MainCommit]> = log.into();
        self.remembered().main = Some((head.commit.clone(), Arc::clone(&log)));
        Ok(log)
    }

    /// What the branches of the policy's environments say. One that can't be had isn't there.
    pub(super) async fn read_branches(
        &self,
        environments: &BTreeMap<String, Environment>,
        policy: &PromotionPolicy,
    ) -> Result<BTreeMap<String, Branch>, PassError> {
        let mut found = BTreeMap::new();
        for rules in &policy.environments {
            let Some(environment) = environments.get(&rules.name) else { continue };
            let at = &environment.control_plane;
            // What is described on main itself is always at main's head.
            if at.branch.trim() == self.main {
                continue;
            }
            let Ok(head) = self.mirrors.head(&at.repo, at.branch.trim(), Trust::Platform).await else { continue };
            let known = self.remembered().branches.get(&rules.name).filter(|known| known.head == head.commit).cloned();
            let branch = match known {
                Some(known) => known,
                None => {
                    let (mirrors, cache, environment, key) =
                        (self.mirrors.clone(), Arc::clone(&self.cache), environment.clone(), self.key());
                    let work = move || facts::branch(&mirrors, &cache, &head, &environment, &key);
                    tokio::task::spawn_blocking(work).await.map_err(|_| PassError::Interrupted)?
                }
            };
            self.remembered().branches.insert(rules.name.clone(), branch.clone());
            found.insert(rules.name.clone(), branch);
        }
        Ok(found)
    }

    pub(super) async fn gather(
        &self,
        chain: &Chain,
        rows: &BTreeMap<String, PromotionRow>,
        branches: &BTreeMap<String, Branch>,
        main: Arc<[MainCommit]>,
    ) -> Result<ChainFacts, PassError> {
        let mut environments = BTreeMap::new();
        for (name, branch) in branches {
            let standing = chain.environments.get(name);
            let named = match &branch.base {
                // Nobody knows what it names: it stays as it is.
                Base::Unclear { .. } | Base::Elsewhere { .. } => continue,
                Base::Missing => None,
                Base::Here(written) => match written.commit() {
                    Some(commit) => Some(written.named(&commit)),
                    // It follows main's head: that is what it runs when the policy comes, and may have later on.
                    None => main
                        .first()
                        .filter(|head| standing.is_none() || chain.permits(name, &head.commit))
                        .map(|head| written.named(&head.commit)),
                },
            };
            let row = rows.get(name);
            let current = standing.and_then(|standing| standing.current.as_deref());
            // What isn't read yet has no outcome.
            let read = current.filter(|current| row.is_some_and(|row| row.in_force.as_deref() == Some(*current)));
            let outcome = match read {
                Some(commit) => self.outcomes.outcome(name, commit).await?,
                None => None,
            };
            environments.insert(name.clone(), EnvironmentFacts { named, outcome });
        }
        Ok(ChainFacts { main: main.to_vec(), environments })
    }
}

/// Main's head says this about promotion, and this is who wrote it.
fn read_policy(mirrors: &Mirrors, cache: &Cache, repo: &str, head: &Head) -> (Found, Source) {
    let mut source = facts::source(head, None);
    let opened = mirrors.open(repo, Trust::Platform).ok_or("the mirror can't be opened".to_owned());
    let tree = opened.and_then(|opened| {
        let revision = opened.commit(&head.commit).map_err(|error| error.to_string())?;
        opened.tree(&Revision { name: Some(head.branch.clone()), ..revision }, repo).map_err(|error| error.to_string())
    });
    let found = tree.and_then(|tree| Environments::in_tree(&tree, Some(cache)).map_err(|error| error.to_string()));
    let declared = match found {
        Ok(found) => found.policy,
        Err(error) => return (Found::Broken(vec![error]), source),
    };
    let found = match (&declared.state, declared.get()) {
        (PolicyState::Absent, _) => Found::Absent,
        (_, Some((object, policy))) => {
            source = facts::source(head, Some(&object.origin.file));
            Found::Policy(Arc::new(policy.clone()))
        }
        _ => {
            let errors = declared.problems.iter().filter(|problem| problem.is_error());
            let mut said: Vec<String> = errors.map(|problem| problem.message.clone()).collect();
            if said.is_empty() {
                said.push("main has files that can't be read, and one of them may be the policy".to_owned());
            }
            Found::Broken(said)
        }
    };
    (found, source)
}
