//! The PromotionPolicy against the environments it names, and Pins against what they name. Asked for each environment.

use jiff::Timestamp;
use kedge_model::{Platform, Problem, Source};
use kedge_platform::{
    Environments, FolderTree, GitRepository, check_chain, check_environment, check_pins, environments, is_main_branch,
};

use crate::control_plane::Place;

/// What main says: of a checkout of main its files as they are now, else its last commit. A folder that isn't of Git is
/// main when it lists environments.
pub(super) fn of_place(place: &Place) -> Environments {
    let branch = || GitRepository::open(&place.path).and_then(|repo| repo.head()).ok()?.name;
    let is_main = match (place.is_checkout(), place.is_git()) {
        (true, _) => branch().is_some_and(|name| is_main_branch(&name)),
        (false, true) => false,
        (false, false) => place.path.join(".environments").is_dir(),
    };
    let found = match is_main && place.revision.is_none() {
        true => {
            let source = Source { repo: place.path.display().to_string(), revision: None };
            Environments::in_tree(&FolderTree::new(&place.path, source), None).ok()
        }
        false if place.is_git() => environments(&place.path).ok(),
        false => None,
    };
    found.unwrap_or_default()
}

pub(super) fn check(known: &Environments, platform: &Platform) -> Vec<Problem> {
    let mut problems: Vec<Problem> =
        known.policy.problems.iter().filter(|found| !is_said(platform, found)).cloned().collect();
    let mut here = None;
    if let Some((object, policy)) = known.policy.get() {
        problems.extend(check_chain(object, policy, &known.names()));
        here = policy.environment(&platform.environment);
        problems.extend(here.into_iter().flat_map(|here| check_environment(object, here, platform)));
    }
    problems.extend(check_pins(platform, here, Timestamp::now()));
    problems
}

/// The environment reads main too, at its own commit: the same words about the same line are said once.
fn is_said(platform: &Platform, problem: &Problem) -> bool {
    let place = |problem: &Problem| problem.origin.as_ref().map(|origin| (origin.file.clone(), origin.line));
    platform.problems.iter().any(|said| said.message == problem.message && place(said) == place(problem))
}
