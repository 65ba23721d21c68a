//! What a PromotionPolicy enforces when an environment is read: files of main come from the commit that was let in, whatever
//! its branch names, and people see why. Called by the environment's reading.

use kedge_hub_types::platform::Environment;
use kedge_model::command::Command;
use std::sync::Arc;

use kedge_model::kinds::BaseRepo;
use kedge_model::{Kind, Object, ObjectId, Platform, Problem, Spec};
use kedge_platform::{RepoError, RepoKey, Request};
use kedge_rollout::chain::Named;

use super::PlatformReader;
use crate::git::Mirrors;
use crate::platform::base;
use crate::store::StoreError;
use crate::store::promotion::{Policies, PromotionRow};

/// Of one environment that the policy in force names.
#[derive(Clone, Debug)]
pub(super) struct Enforced {
    environment: String,
    control_plane: RepoKey,
    /// Main's name.
    main: String,
    row: PromotionRow,
    policies: Policies,
}

/// As people read it.
const SHORT: usize = 12;

impl PlatformReader {
    /// None: the environment isn't governed.
    pub(super) async fn enforced(&self, environment: &Environment) -> Result<Option<Enforced>, StoreError> {
        let Some(repo) = &self.control_plane else { return Ok(None) };
        // What is described on main itself has no commit of its own to be read at.
        if environment.control_plane.branch.trim() == self.branch {
            return Ok(None);
        }
        let Some(row) = self.store.promotion(&environment.name).await? else { return Ok(None) };
        Ok(Some(Enforced {
            environment: environment.name.clone(),
            control_plane: self.mirrors.key(repo),
            main: self.branch.clone(),
            row,
            policies: self.store.policies().await?,
        }))
    }
}

impl Enforced {
    /// The request as it is answered: main is read at the commit that was let in.
    pub fn redirect(&self, mirrors: &Mirrors, request: &Request) -> Result<Option<Request>, RepoError> {
        let of_main =
            request.branch.as_deref() == Some(self.main.as_str()) || self.is_promoted(request.commit.as_deref());
        if !of_main || mirrors.key(&request.repo) != self.control_plane {
            return Ok(None);
        }
        match (&self.row.in_force, &self.row.standing.refused) {
            (Some(commit), _) => {
                let branch = Some(self.main.clone());
                Ok(Some(Request { branch, commit: Some(commit.clone()), ..request.clone() }))
            }
            (None, Some(refused)) => {
                Err(RepoError::Refused { reason: self.refusal(refused), hint: self.way_out(refused) })
            }
            // Nothing was ever let in, and nothing that it names was refused: it begins.
            (None, None) => Ok(None),
        }
    }

    /// Whether a commit is one that promotions know, though it is named behind another branch.
    fn is_promoted(&self, commit: Option<&str>) -> bool {
        let Some(commit) = commit.map(str::to_ascii_lowercase) else { return false };
        let refused = self.row.standing.refused.as_ref().map(|named| &named.commit);
        refused == Some(&commit) || self.row.standing.promotion(&commit).is_some()
    }

    /// The platform says which commit it was read at, and what people should know.
    pub fn apply(&self, mirrors: &Mirrors, platform: &mut Platform) {
        let id = ObjectId { kind: Kind::BaseRepo, owner: None, name: base::NAME.to_owned() };
        let found = platform.objects.get(&id).cloned();
        let ours = found.filter(|object| match &object.spec {
            Spec::BaseRepo(base) => mirrors.key(&base.repo.repo) == self.control_plane,
            _ => false,
        });
        if let Some(object) = &ours
            && let Spec::BaseRepo(written) = &object.spec
        {
            platform.problems.extend(self.refused(object, written));
            if let Some(commit) = self.row.in_force.as_ref().filter(|commit| written.commit.as_ref() != Some(commit)) {
                let base = BaseRepo { commit: Some(commit.clone()), ..written.clone() };
                let read = Object { spec: Spec::BaseRepo(base), ..Object::clone(object) };
                platform.objects.insert(id, Arc::new(read));
            }
        }
        platform.problems.extend(self.strays(mirrors, platform));
        platform.problems.extend(self.troubles());
    }

    /// Other BaseRepos that lead to main are read at the same commit, whatever they name.
    fn strays(&self, mirrors: &Mirrors, platform: &Platform) -> Vec<Problem> {
        let Some(in_force) = self.row.in_force.as_deref() else { return Vec::new() };
        let others = platform.of_kind(Kind::BaseRepo).filter(|object| object.meta.name != base::NAME);
        let strays = others.filter(|object| match &object.spec {
            Spec::BaseRepo(base) => {
                let commit = base.commit.as_deref().map(str::trim);
                let of_main = base.repo.branch.trim() == self.main || self.is_promoted(commit);
                of_main && commit != Some(in_force) && mirrors.key(&base.repo.repo) == self.control_plane
            }
            _ => false,
        });
        let problem = |object: &Arc<Object>| {
            let (id, at) = (object.id(), short(in_force));
            let message =
                format!("{id} leads to main and is read at {at}, the last commit that was promoted, whatever it names");
            let problem = Problem::warning("NotPromoted", message).at(object.origin.clone());
            problem.hint("files of main come through BaseRepo main alone: delete this one")
        };
        strays.map(problem).collect()
    }

    /// The branch names something else than what is in force.
    fn refused(&self, object: &Object, written: &BaseRepo) -> Option<Problem> {
        let in_force = self.row.in_force.as_deref()?;
        let Some(named) = written.commit.as_deref().map(str::trim).filter(|commit| !commit.is_empty()) else {
            let message = format!(
                "BaseRepo main names no commit; environment {} is read at {}, the last commit of main that was promoted to it",
                self.environment,
                short(in_force)
            );
            let problem = Problem::warning("NotPromoted", message).at(object.origin.clone());
            return Some(problem.hint(format!("write `commit: {in_force}`")));
        };
        let refused =
            self.row.standing.refused.as_ref().filter(|refused| refused.commit.eq_ignore_ascii_case(named))?;
        let message = format!("{}; it stays on {}", self.refusal(refused), short(in_force));
        Some(Problem::error("NotPromoted", message).at(object.origin.clone()).hint(self.way_out(refused)))
    }

    fn refusal(&self, refused: &Named) -> String {
        let when = jiff::Timestamp::from_millisecond(refused.at.0).map(|time| time.to_string()).unwrap_or_default();
        format!(
            "environment {} names commit {} of main, which {} wrote at {when}, and it may not come in: {}",
            self.environment,
            short(&refused.commit),
            refused.by,
            refused.why
        )
    }

    fn way_out(&self, refused: &Named) -> String {
        format!(
            "wait until it has passed, name a commit that has, or override: `{}`",
            Command::new("kedge promote override --reason TEXT")
                .option("--commit", &refused.commit)
                .names(&[&self.environment])
        )
    }

    /// What holds promotions up, of this environment and of all.
    fn troubles(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(trouble) = &self.row.trouble {
            let message =
                format!("the branch of environment {} doesn't follow its promotion: {trouble}", self.environment);
            problems.push(Problem::warning("PromotionNotRecorded", message));
        }
        if let Some(waiting) = &self.policies.waiting {
            let message = format!(
                "the PromotionPolicy of commit {} by {} is looser than the one in force and waits for an approval: {}",
                short(&waiting.commit),
                waiting.author,
                waiting.reasons.join("; ")
            );
            problems.push(
                Problem::warning("PolicyLoosened", message)
                    .hint("approve it with `kedge policy --approve --reason …`, or fix the policy on main"),
            );
        }
        if let Some(broken) = &self.policies.broken {
            let message = format!(
                "the PromotionPolicy of commit {} can't be used, and the last good one stays in force: {}",
                short(&broken.commit),
                broken.reasons.join("; ")
            );
            problems.push(Problem::warning("PolicyBroken", message).hint("fix it on main"));
        }
        problems
    }
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}
