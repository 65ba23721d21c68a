//! What has to be done so that the host is as an assignment wants it, and the way back to exactly what was there. Pure: no clock, no
//! I/O, no choice left to who executes. The engine calls it for a change, a repair and a removal alike.

pub mod back;
pub mod claimed;
pub mod debs;
pub mod difference;
mod foreign;
mod namespaces;
mod objects;
pub mod others;
pub mod owners;
pub mod paths;
pub mod subjects;
mod units;
mod users;

use std::path::Path;

use kedge_model::wire::Digest;

use crate::goal::Goal;
use crate::observed::Observed;
use crate::record::{Failure, Original, Running};
use crate::step::{DebsStep, Step};
use debs::DebPlan;
pub use others::Others;

/// Everything that a plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// None: the assignment goes, and everything returns to how it was before Kedge.
    pub goal: Option<&'a Goal>,
    pub running: Option<&'a Running>,
    /// The restart counter was raised.
    pub restart: bool,
    pub observed: &'a Observed,
    pub debs: &'a DebPlan,
    pub others: &'a Others,
    /// Where objects are: artifacts are links into it.
    pub objects: &'a Path,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    pub forward: Vec<Step>,
    pub back: Vec<Step>,
    /// How everything that is ours from now on was before Kedge had it.
    pub original: Original,
}

/// User, folders, the platform's files; then the workload: files, debs, links, units. What is no longer ours goes in between, its
/// folders and its user last. So a platform part that fails leaves the workload untouched.
pub fn plan(question: &Question<'_>) -> Result<Planned, Failure> {
    namespaces::check(question)?;
    users::check(question)?;
    foreign::check(question)?;
    let paths = paths::plan(question)?;
    let units = units::plan(question, &paths.changed)?;
    let users = users::plan(question);
    let objects = objects::plan(question);
    let debs = |step: &DebsStep| (*step != DebsStep::default()).then(|| Step::Debs(step.clone())).into_iter();
    let reload = units.reload.then_some(Step::ReloadUnits);

    let mut forward = users.add;
    forward.extend(paths.folders);
    forward.extend(paths.platform);
    forward.extend(units.early);
    forward.extend(paths.workload);
    forward.extend(paths.given_back);
    forward.extend(debs(&question.debs.forward));
    forward.extend(paths.again);
    forward.extend(paths.links);
    forward.extend(reload.clone());
    forward.extend(units.late);
    forward.extend(paths.emptied);
    forward.extend(users.remove.iter().map(|name| Step::RemoveUser { name: name.clone() }));

    let mut back = units.back_early;
    back.extend(users.again);
    back.extend(paths.back_folders);
    back.extend(debs(&question.debs.back));
    back.extend(paths.back);
    back.extend(reload);
    back.extend(units.back_late);
    back.extend(paths.back_emptied);
    back.extend(users.new.into_iter().map(|name| Step::RemoveUser { name }));

    forward.extend(objects.forward);
    back.extend(objects.back);

    let original = Original {
        paths: paths.original,
        units: units.original,
        debs: debs::original(question),
        users: users.made,
        objects: Vec::new(),
    };
    Ok(Planned { forward, back, original })
}

/// What an artifact's link points to.
pub fn link_target(objects: &Path, content: &Digest) -> String {
    objects.join(content.to_string().replace(':', "-")).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
