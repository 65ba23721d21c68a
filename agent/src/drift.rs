//! What somebody changed by hand is noticed at once: which things of the host say so, and for whom. `watch` listens to them; `run`
//! then asks the engine to look, which decides whether anything really differs.

pub mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::goal::{Goal, OnDrift};
use crate::paths::{NEWS, Paths};

pub use watch::{Noticed, Watch};

/// Whom a change concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Something that this assignment has on the host.
    Assignment(String),
    /// A technician's holds.
    Holds,
    /// What another reconciler reported.
    External,
    /// The identity, or a token that would buy one.
    Identity,
    /// News that a file brought.
    Inbox,
}

/// What is listened to. A thing itself says when it is changed, moved or gone; a folder says so of its entries, for things that come
/// and go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub things: BTreeMap<PathBuf, BTreeSet<Subject>>,
    pub entries: BTreeMap<(PathBuf, OsString), BTreeSet<Subject>>,
}

/// systemd keeps a link `invocation:NAME` here while a unit with processes is active, and takes it away when it stops or crashes.
const UNITS: &str = "/run/systemd/units";
/// Where `systemctl enable` puts its links for most units.
const WANTS: [&str; 2] = ["/etc/systemd/system/multi-user.target.wants", "/etc/systemd/system/timers.target.wants"];
/// Where somebody may make a unit that is called like one of ours.
const UNIT_FOLDERS: [&str; 4] =
    ["/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"];
/// dpkg replaces its file `status` at the end of whatever it does.
const DPKG: &str = "/var/lib/dpkg";

impl Places {
    /// The agent's own doors: where commands leave what the daemon should hear of.
    pub fn doors(paths: &Paths) -> Places {
        let mut places = Places::default();
        let state = paths.state();
        for (name, subject) in
            [("holds", Subject::Holds), ("external", Subject::External), ("identity", Subject::Identity)]
        {
            places.add_entry(&state, format!("{name}.a"), subject.clone());
            places.add_entry(&state, format!("{name}.b"), subject);
        }
        places.add_entry(&paths.settings(), "join-token", Subject::Identity);
        places.add_entry(&paths.inbox(), NEWS, Subject::Inbox);
        places
    }

    /// Everything that a goal put on the host.
    pub fn add_goal(&mut self, assignment: &str, goal: &Goal, paths: &Paths) {
        if goal.bounds.drift == OnDrift::Ignore {
            return;
        }
        let subject = Subject::Assignment(assignment.to_owned());
        let files = goal.files.iter().map(|file| &file.path);
        let links = goal.artifacts.iter().map(|artifact| &artifact.path);
        for path in files.chain(links).chain(goal.folders.iter().map(|folder| &folder.path)) {
            let path = paths.place(path);
            if let Some(parent) = path.parent() {
                self.add_thing(parent, subject.clone());
            }
            self.add_thing(&path, subject.clone());
        }
        if !paths.is_host() {
            return;
        }
        for unit in &goal.units {
            self.add_entry(Path::new(UNITS), format!("invocation:{}", unit.name), subject.clone());
            if unit.enabled {
                WANTS.iter().for_each(|wants| self.add_entry(Path::new(wants), &unit.name, subject.clone()));
            }
        }
        for unit in &goal.own_units {
            // An instance is read from its template's file.
            let template =
                unit.split_once('@').and_then(|(stem, rest)| Some(format!("{stem}@.{}", rest.rsplit_once('.')?.1)));
            for name in template.iter().chain([unit]) {
                UNIT_FOLDERS.iter().for_each(|folder| self.add_entry(Path::new(folder), name, subject.clone()));
            }
        }
        if !goal.debs.is_empty() {
            self.add_entry(Path::new(DPKG), "status", subject);
        }
    }

    fn add_thing(&mut self, path: &Path, subject: Subject) {
        self.things.entry(path.to_owned()).or_default().insert(subject);
    }

    fn add_entry(&mut self, folder: &Path, name: impl Into<OsString>, subject: Subject) {
        self.entries.entry((folder.to_owned(), name.into())).or_default().insert(subject);
    }
}
