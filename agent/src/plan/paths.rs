//! Files, folders and links of a plan: what is put, what returns to how it was, and the same for the way back.

use std::collections::{BTreeMap, BTreeSet};

use super::subjects::named;
use super::{Question, link_target};
use crate::goal::{Goal, Owner, Part};
use crate::observed::PathState;
use crate::paths::above;
use crate::record::{Failure, Original};
use crate::step::Step;

#[derive(Debug, Default)]
pub(super) struct Paths {
    pub folders: Vec<Step>,
    pub platform: Vec<Step>,
    pub workload: Vec<Step>,
    pub given_back: Vec<Step>,
    /// Files once more, where a deb may have overwritten them.
    pub again: Vec<Step>,
    pub links: Vec<Step>,
    pub emptied: Vec<Step>,
    pub back_folders: Vec<Step>,
    pub back: Vec<Step>,
    pub back_emptied: Vec<Step>,
    /// Files and links that change, come or go.
    pub changed: BTreeSet<String>,
    pub original: BTreeMap<String, PathState>,
}

/// How a path should be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Is(PathState, Option<Part>),
    /// A folder above something of ours: whatever it is, it only has to be there.
    Above(Owner),
}

/// Where only Kedge and systemd put things: no deb overwrites them.
const OURS: [&str; 2] = ["/etc/kedge/", "/etc/systemd/system/"];

pub(super) fn plan(question: &Question<'_>) -> Result<Paths, Failure> {
    let Question { observed, others, .. } = question;
    let mut paths = Paths::default();
    let targets = question.goal.map(|goal| targets(goal, question)).unwrap_or_default();
    let empty = Original::default();
    let before = &question.running.map_or(&empty, |running| &running.original).paths;
    let now = |path: &str| observed.paths.get(path).cloned().unwrap_or(PathState::Absent);
    for (path, target) in &targets {
        let state = now(path);
        let original = before.get(path).or_else(|| others.originals.paths.get(path));
        paths.original.insert(path.clone(), original.unwrap_or(&state).clone());
        match target {
            Target::Above(owner) => match state {
                PathState::Absent => {
                    paths.put(path, &state, &PathState::Folder { owner: owner.clone(), mode: 0o755 }, None)
                }
                PathState::Folder { .. } | PathState::Link { .. } => {}
                PathState::File { .. } | PathState::Other => return Err(in_the_way(path, &state)),
            },
            Target::Is(wanted, part) => {
                if !is(&state, wanted) {
                    fits(path, &state, wanted)?;
                    paths.put(path, &state, wanted, *part);
                }
            }
        }
    }
    for (path, original) in before.iter().filter(|(path, _)| !targets.contains_key(*path)) {
        if others.originals.paths.contains_key(path) {
            continue;
        }
        let state = now(path);
        if is(&state, original) || matches!(state, PathState::Other) || matches!(original, PathState::Other) {
            continue;
        }
        if !matches!(original, PathState::Absent) {
            fits(path, &state, original)?;
        }
        paths.give_back(path, &state, original);
    }
    paths.repeat(question, &targets);
    // A folder goes after what is in it.
    paths.emptied.reverse();
    paths.back_emptied.reverse();
    Ok(paths)
}

/// Files of the host whose content the way back or the removal needs: kept as objects before anything changes.
pub fn to_keep(question: &Question<'_>) -> Result<BTreeSet<String>, Failure> {
    let changed = plan(question)?.changed;
    let is_file = |path: &String| matches!(question.observed.paths.get(path), Some(PathState::File { .. }));
    Ok(changed.into_iter().filter(is_file).collect())
}

impl Paths {
    fn put(&mut self, path: &str, now: &PathState, wanted: &PathState, part: Option<Part>) {
        let step = step_to(path, wanted);
        if matches!(wanted, PathState::Folder { .. }) {
            self.folders.extend(step);
            match now {
                PathState::Absent => self.back_emptied.push(Step::RemoveFolder { path: path.to_owned() }),
                _ => self.back_folders.extend(step_to(path, now)),
            }
            return;
        }
        match part {
            Some(Part::Platform) => self.platform.extend(step),
            Some(Part::Workload) => self.workload.extend(step),
            None => self.links.extend(step),
        }
        self.back.extend(step_to(path, now));
        self.changed.insert(path.to_owned());
    }

    fn give_back(&mut self, path: &str, now: &PathState, original: &PathState) {
        match (now, original) {
            (PathState::Folder { .. }, PathState::Absent) => {
                self.emptied.push(Step::RemoveFolder { path: path.to_owned() });
                self.back_folders.extend(step_to(path, now));
            }
            (_, PathState::Folder { .. }) => {
                self.folders.extend(step_to(path, original));
                match now {
                    PathState::Absent => self.back_emptied.push(Step::RemoveFolder { path: path.to_owned() }),
                    _ => self.back_folders.extend(step_to(path, now)),
                }
            }
            _ => {
                self.given_back.extend(step_to(path, original));
                self.back.extend(step_to(path, now));
                self.changed.insert(path.to_owned());
            }
        }
    }

    fn repeat(&mut self, question: &Question<'_>, targets: &BTreeMap<String, Target>) {
        if question.debs.forward.install.is_empty() && question.debs.forward.remove.is_empty() {
            return;
        }
        let folders: Vec<String> =
            question.goal.iter().flat_map(|goal| &goal.folders).map(|folder| format!("{}/", folder.path)).collect();
        let safe = |path: &str| {
            OURS.iter().any(|ours| path.starts_with(ours)) || folders.iter().any(|ours| path.starts_with(ours.as_str()))
        };
        for (path, target) in targets {
            if let (Target::Is(wanted @ PathState::File { .. }, _), false) = (target, safe(path)) {
                self.again.extend(step_to(path, wanted));
                // Debs may also touch a file that is right now: it returns as well.
                if self.changed.insert(path.clone()) {
                    let now = question.observed.paths.get(path).cloned().unwrap_or(PathState::Absent);
                    self.back.extend(step_to(path, &now));
                }
            }
        }
    }
}

fn targets(goal: &Goal, question: &Question<'_>) -> BTreeMap<String, Target> {
    let mut targets = BTreeMap::new();
    // Without a user of its own (`--root`) everything belongs to who runs the agent.
    let owner = if goal.user.is_some() { Owner::root() } else { Owner::default() };
    for path in named(goal).flat_map(above) {
        targets.insert(path.to_owned(), Target::Above(owner.clone()));
    }
    for folder in &goal.folders {
        let state = PathState::Folder { owner: folder.owner.clone(), mode: folder.mode };
        targets.insert(folder.path.clone(), Target::Is(state, None));
    }
    for artifact in &goal.artifacts {
        let target = link_target(question.objects, &artifact.content);
        let state = PathState::Link { target, owner: owner.clone() };
        targets.insert(artifact.path.clone(), Target::Is(state, None));
    }
    for file in &goal.files {
        let state =
            PathState::File { content: file.content, size: file.size, owner: file.owner.clone(), mode: file.mode };
        targets.insert(file.path.clone(), Target::Is(state, Some(file.part)));
    }
    targets
}

/// Whether a path is as it should be. Nobody is as good as anybody where owners aren't ours to set.
pub(super) fn is(now: &PathState, wanted: &PathState) -> bool {
    let owned = |now: &Owner, wanted: &Owner| *wanted == Owner::default() || now == wanted;
    match (now, wanted) {
        (PathState::Absent, PathState::Absent) => true,
        (
            PathState::File { content: a, owner: b, mode: c, .. },
            PathState::File { content: x, owner: y, mode: z, .. },
        ) => a == x && owned(b, y) && c == z,
        (PathState::Link { target: a, .. }, PathState::Link { target: x, .. }) => a == x,
        (PathState::Folder { owner: a, mode: b }, PathState::Folder { owner: x, mode: y }) => owned(a, x) && b == y,
        _ => false,
    }
}

/// The step after which a path is so, whatever it was.
fn step_to(path: &str, state: &PathState) -> Option<Step> {
    let path = path.to_owned();
    match state {
        PathState::Absent => Some(Step::RemovePath { path }),
        PathState::File { content, owner, mode, .. } => {
            Some(Step::PutFile { path, content: *content, owner: owner.clone(), mode: *mode })
        }
        PathState::Link { target, owner } => Some(Step::PutLink { path, target: target.clone(), owner: owner.clone() }),
        PathState::Folder { owner, mode } => Some(Step::MakeFolder { path, owner: owner.clone(), mode: *mode }),
        PathState::Other => None,
    }
}

/// A folder never becomes a file nor a file a folder: what is inside, or what it was for, isn't ours to guess.
fn fits(path: &str, now: &PathState, wanted: &PathState) -> Result<(), Failure> {
    let folder = |state: &PathState| matches!(state, PathState::Folder { .. });
    match now {
        PathState::Absent => Ok(()),
        PathState::Other => Err(in_the_way(path, now)),
        _ if folder(now) != folder(wanted) => Err(in_the_way(path, now)),
        _ => Ok(()),
    }
}

fn in_the_way(path: &str, now: &PathState) -> Failure {
    let what = match now {
        PathState::Folder { .. } => "a folder",
        PathState::Link { .. } => "a symlink",
        PathState::File { .. } => "a file",
        PathState::Other | PathState::Absent => "a device, a socket, a pipe, or behind a symlink that isn't root's",
    };
    Failure::new(
        "ConflictingFile",
        format!("{path} is {what}, but the workload needs something else there; move it elsewhere first"),
    )
}
