//! Which inputs without objects were emptied: those that brought something before. They count as failing, so that what
//! they brought stays in force; one that never held anything is only empty. Pure; called while a load settles.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::{BaseRepo, RepoRef};
use kedge_model::{Broken, Empty, EmptyInput, Failing, Kind, Object, ObjectId, Platform, Problem, Severity, Spec};
use kedge_platform::RepoKey;
use kedge_platform::tree::clean_path;

use super::good::is_from;

/// Objects that were good, by id.
type Good = BTreeMap<ObjectId, Arc<Object>>;

/// The environment's own branch holds nothing now, and did before: there is no platform to speak of.
pub fn environment(fresh: Platform, good: &Good) -> Result<Platform, Box<Problem>> {
    match fresh.empty.iter().find(|empty| empty.input == EmptyInput::Environment) {
        Some(empty) if !good.is_empty() => Err(Box::new(emptied(&empty.problem))),
        _ => Ok(fresh),
    }
}

/// BaseRepos that brought something and hold nothing now are broken, as those that can't be read.
pub fn bases(fresh: &mut Platform, good: &Good) {
    for Empty { input, problem } in fresh.empty.clone() {
        let EmptyInput::BaseRepo(name) = input else { continue };
        let id = ObjectId { kind: Kind::BaseRepo, owner: None, name };
        if !good.get(&id).is_some_and(|base| brought_something(base, good)) {
            continue;
        }
        let problem = replace(fresh, &problem);
        let (kind, name) = (Some(Kind::BaseRepo), Some(id.name));
        fresh.broken.push(Broken { kind, name, owner: None, labels: None, problem: problem.clone() });
        fresh.failing.push(Failing { registration: None, problem });
    }
}

/// Applications that had a Workload and have none now are failing.
pub fn applications(fresh: &mut Platform, good: &Good) {
    for Empty { input, problem } in fresh.empty.clone() {
        let EmptyInput::Registration(name) = input else { continue };
        let had = good.keys().any(|id| id.owner.as_deref() == Some(name.as_str()));
        let known = fresh.failing.iter().any(|failing| failing.registration.as_deref() == Some(name.as_str()));
        if had && !known {
            let problem = replace(fresh, &problem);
            fresh.failing.push(Failing { registration: Some(name), problem });
        }
    }
}

/// Whether something in force came through this BaseRepo.
pub fn brought_something(base: &Object, good: &Good) -> bool {
    let Spec::BaseRepo(BaseRepo { repo: RepoRef { repo, branch, path }, .. }) = &base.spec else { return false };
    let (key, branch) = (RepoKey::new(repo), branch.trim());
    let Ok(folder) = clean_path(path) else { return false };
    good.values().any(|object| {
        let below = || object.origin.file.strip_prefix(folder.as_str());
        object.owner.is_none()
            && is_from(&object.origin.source, &key, branch)
            && (folder.is_empty() || below().is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    })
}

/// The warning becomes an error that says what stays.
fn replace(fresh: &mut Platform, warning: &Problem) -> Problem {
    let problem = emptied(warning);
    match fresh.problems.iter_mut().find(|known| *known == warning) {
        Some(known) => known.clone_from(&problem),
        None => fresh.problems.push(problem.clone()),
    }
    problem
}

fn emptied(warning: &Problem) -> Problem {
    let mut problem = warning.clone();
    problem.severity = Severity::Error;
    problem.code = "Emptied";
    problem.message.push_str("; it was emptied, and what it held stays in force");
    problem.hint("push the files again; to give up what it held, delete the object that names it")
}
