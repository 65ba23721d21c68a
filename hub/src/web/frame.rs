//! What every page has around it: title, way through the sections, search, who is logged in.

use std::fmt;

use super::Viewer;
use super::assets::{ICON_PATH, SCRIPT_PATH, STYLE_PATH};

/// Handed to `frame.html` by every page.
#[derive(Clone, Debug)]
pub struct Frame {
    pub title: String,
    pub section: Section,
    pub who: Option<Who>,
    /// Stands in every form that changes something.
    pub csrf: String,
    /// What is in the search field.
    pub query: String,
    /// How many problems there are; none: it isn't known just now.
    pub problems: Option<u64>,
}

/// Who is logged in.
#[derive(Clone, Debug)]
pub struct Who {
    pub name: String,
    pub role: &'static str,
}

/// Where a page belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    None,
    Fleet,
    Workloads,
    Clusters,
    Rollouts,
    Problems,
    Drift,
    History,
    Compare,
    Plan,
}

/// The sections with their addresses and the key that goes there after `g`.
pub const SECTIONS: [(Section, &str, &str, char); 9] = [
    (Section::Fleet, "Fleet", "/", 'f'),
    (Section::Workloads, "Workloads", "/workloads", 'w'),
    (Section::Clusters, "Clusters", "/clusters", 'c'),
    (Section::Rollouts, "Rollouts", "/rollouts", 'r'),
    (Section::Problems, "Problems", "/problems", 'p'),
    (Section::Drift, "Drift", "/drift", 'd'),
    (Section::History, "History", "/history", 'h'),
    (Section::Compare, "Compare", "/compare", 'm'),
    (Section::Plan, "Plan", "/plan", 'l'),
];

impl Frame {
    /// Of a page that nobody needs to be logged in for.
    pub fn bare(title: impl Into<String>, section: Section) -> Frame {
        Frame { title: title.into(), section, who: None, csrf: String::new(), query: String::new(), problems: None }
    }

    pub fn of(viewer: &Viewer, title: impl Into<String>, section: Section) -> Frame {
        let who = Who { name: viewer.caller.name.clone(), role: viewer.caller.role.as_str() };
        let problems = viewer.problems;
        Frame { who: Some(who), csrf: viewer.csrf.clone(), problems, ..Frame::bare(title, section) }
    }

    /// What stands beside a section.
    pub fn counted(&self, section: &Section) -> Option<u64> {
        self.needs().filter(|_| *section == Section::Problems)
    }

    /// How many problems there are, where there are any.
    pub fn needs(&self) -> Option<u64> {
        self.problems.filter(|count| *count > 0)
    }

    pub fn style(&self) -> &'static str {
        &STYLE_PATH
    }

    pub fn script(&self) -> &'static str {
        &SCRIPT_PATH
    }

    pub fn icon(&self) -> &'static str {
        &ICON_PATH
    }

    pub fn sections(&self) -> &'static [(Section, &'static str, &'static str, char)] {
        &SECTIONS
    }

    /// For the script: the key after `g`, and where it goes.
    pub fn keys(&self) -> String {
        let keys = SECTIONS.iter().map(|(_, _, path, key)| format!("\"{key}\":\"{path}\""));
        format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
    }

    pub fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = SECTIONS.iter().find(|(section, ..)| section == self);
        f.write_str(found.map_or("", |(_, name, ..)| name))
    }
}
