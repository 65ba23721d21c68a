//! What a plan or a look has to know of the host: everything that the goal or the inventory names, and the folders above it.

use crate::goal::Goal;
use crate::observed::Subjects;
use crate::paths::above;
use crate::record::Original;

/// Of both, so that what is no longer wanted is seen as well.
pub fn of(goal: Option<&Goal>, original: Option<&Original>) -> Subjects {
    let mut subjects = Subjects::default();
    if let Some(goal) = goal {
        add_goal(goal, &mut subjects);
    }
    if let Some(original) = original {
        subjects.paths.extend(original.paths.keys().cloned());
        subjects.debs.extend(original.debs.keys().cloned());
        subjects.units.extend(original.units.keys().cloned());
        subjects.users.extend(original.users.iter().cloned());
    }
    subjects
}

fn add_goal(goal: &Goal, subjects: &mut Subjects) {
    for path in named(goal) {
        subjects.paths.insert(path.to_owned());
        subjects.paths.extend(above(path).map(str::to_owned));
    }
    subjects.paths.extend(goal.claimed.iter().cloned());
    subjects.debs.extend(goal.debs.iter().map(|deb| deb.name.clone()));
    subjects.units.extend(goal.units.iter().map(|unit| unit.name.clone()));
    subjects.own_units.extend(goal.own_units.iter().cloned());
    subjects.users.extend(goal.user.clone());
    subjects.objects.extend(goal.objects.iter().map(|object| (object.id.clone(), object.clone())));
}

/// All paths that the goal names.
pub fn named(goal: &Goal) -> impl Iterator<Item = &str> {
    let folders = goal.folders.iter().map(|folder| folder.path.as_str());
    let files = goal.files.iter().map(|file| file.path.as_str());
    folders.chain(files).chain(goal.artifacts.iter().map(|artifact| artifact.path.as_str()))
}
