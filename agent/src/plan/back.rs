//! Which steps of the way back are needed when only a part of the way forward has begun: what wasn't touched stays untouched, so a
//! platform file that can't be written restarts nobody.

use std::collections::BTreeSet;

use super::objects;
use crate::goal::ObjectGoal;
use crate::step::Step;

/// `begun` are the forward steps that began, whether they succeeded or not.
pub fn needed(back: &[Step], begun: &[Step]) -> Vec<Step> {
    let debs = begun.iter().any(|step| matches!(step, Step::Debs(_)));
    let touched: BTreeSet<(Kind, &str)> = begun.iter().filter_map(subject).collect();
    let reloads = debs || begun.iter().any(|step| matches!(step, Step::ReloadUnits) || is_unit_path(step));
    let is_needed = |step: &&Step| match (step, subject(step)) {
        (Step::ReloadUnits, _) => reloads,
        (_, Some((Kind::User, name))) => touched.contains(&(Kind::User, name)),
        // Maintainer scripts may have touched files and units.
        (_, Some(subject)) => debs || touched.contains(&subject),
        (_, None) => debs,
    };
    let needed = |step: &Step| match step {
        Step::PutObjects { objects } => {
            some(objects::needed(objects, begun)).map(|objects| Step::PutObjects { objects })
        }
        Step::RemoveObjects { objects } => {
            some(objects::needed(objects, begun)).map(|objects| Step::RemoveObjects { objects })
        }
        step => Some(step).filter(is_needed).cloned(),
    };
    back.iter().filter_map(needed).collect()
}

fn some(objects: Vec<ObjectGoal>) -> Option<Vec<ObjectGoal>> {
    (!objects.is_empty()).then_some(objects)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    User,
    Path,
    Enabled,
    Running,
}

fn subject(step: &Step) -> Option<(Kind, &str)> {
    match step {
        Step::AddUser { name, .. } | Step::RemoveUser { name } => Some((Kind::User, name)),
        Step::MakeFolder { path, .. }
        | Step::RemoveFolder { path }
        | Step::PutFile { path, .. }
        | Step::PutLink { path, .. }
        | Step::RemovePath { path } => Some((Kind::Path, path)),
        Step::EnableUnit { name } | Step::DisableUnit { name } => Some((Kind::Enabled, name)),
        Step::StartUnit { name } | Step::StopUnit { name } | Step::RestartUnit { name } => Some((Kind::Running, name)),
        Step::Debs(_) | Step::ReloadUnits | Step::PutObjects { .. } | Step::RemoveObjects { .. } => None,
    }
}

fn is_unit_path(step: &Step) -> bool {
    matches!(subject(step), Some((Kind::Path, path)) if path.contains("/systemd/system/"))
}
