//! What has to be done so that the host is as an assignment wants it, and the way back to exactly what was there. Pure: no clock, no
//! I/O, no choice left to who executes. The engine calls it for a change, a repair and a removal alike.

pub mod back;
pub mod debs;
pub mod difference;
mod foreign;
mod objects;
pub mod others;
pub mod paths;
pub mod subjects;
mod units;

use std::path::Path;

use kedge_model::wire::Digest;

use crate::apply::DebPlan;
use crate::goal::Goal;
use crate::observed::Observed;
use crate::record::{Failure, Original, Running};
use crate::step::{DebsStep, Step};
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
    foreign::check(question)?;
    let paths = paths::plan(question)?;
    let units = units::plan(question, &paths.changed)?;
    let users = plan_users(question);
    let objects = objects::plan(question);
    let debs = |step: &DebsStep| (*step != DebsStep::default()).then(|| Step::Debs(step.clone())).into_iter();
    let reload = units.reload.then_some(Step::ReloadUnits);

    let mut forward: Vec<Step> = users.add.iter().map(|name| Step::AddUser { name: name.clone() }).collect();
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
    back.extend(users.remove.into_iter().map(|name| Step::AddUser { name }));
    back.extend(paths.back_folders);
    back.extend(debs(&question.debs.back));
    back.extend(paths.back);
    back.extend(reload);
    back.extend(units.back_late);
    back.extend(paths.back_emptied);
    back.extend(users.add.into_iter().map(|name| Step::RemoveUser { name }));

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

struct Users {
    add: Vec<String>,
    remove: Vec<String>,
    /// Those of the goal that Kedge made.
    made: Vec<String>,
}

fn plan_users(question: &Question<'_>) -> Users {
    let Question { observed, others, .. } = question;
    let wanted = question.goal.and_then(|goal| goal.user.as_ref());
    let before: &[String] = question.running.map_or(&[], |running| &running.original.users);
    let there = |name: &String| observed.users.get(name).copied().unwrap_or(false);
    let ours = |name: &String| before.contains(name) || others.originals.users.contains(name) || !there(name);
    let leaves = |name: &&String| Some(*name) != wanted && !others.users.contains(*name) && there(name);
    Users {
        add: wanted.filter(|name| !there(name)).cloned().into_iter().collect(),
        remove: before.iter().filter(leaves).cloned().collect(),
        made: wanted.filter(|name| ours(name)).cloned().into_iter().collect(),
    }
}

/// What an artifact's link points to.
pub fn link_target(objects: &Path, content: &Digest) -> String {
    objects.join(content.to_string().replace(':', "-")).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
