//! An assignment's configuration, key by key: what runs, ring by ring, and what Git says, with the ConfigMap that wins there and those
//! that it won over.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::assignments::{RunningAssignment, RunningConfiguration, ValueCandidate, ValueSummary};

use super::named;
use crate::web::part::Place;

#[derive(Default)]
pub struct Values {
    /// What differs from Git, and what can't be shown.
    pub notes: Vec<String>,
    pub caption: &'static str,
    /// Of the column with the values.
    pub heading: &'static str,
    pub rows: Vec<Value>,
}

pub struct Value {
    pub key: String,
    /// What runs: one, or one for each ring that has another.
    pub runs: Vec<Run>,
    /// Some of what runs isn't what Git says.
    pub differs: bool,
    /// What Git says; none: nothing.
    pub git: Option<String>,
    /// It, or a part of it, is shown to the platform team only.
    pub secret: bool,
    /// Those that make it what Git says.
    pub from: Vec<Candidate>,
    pub overridden: Vec<Candidate>,
}

/// A value that runs somewhere.
pub struct Run {
    /// None: it isn't set.
    pub text: Option<String>,
    /// Which clusters; empty: all.
    pub on: String,
}

/// A ConfigMap that sets the value.
pub struct Candidate {
    pub config_map: String,
    pub text: String,
    pub origin: Place,
}

impl Values {
    pub fn of(
        git: Vec<ValueSummary>,
        configurations: &[RunningConfiguration],
        running: &[RunningAssignment],
    ) -> Values {
        let used = used(configurations, running);
        let shown: Vec<(&RunningConfiguration, String)> =
            used.iter().filter(|(view, _)| view.unknown.is_none()).cloned().collect();
        let mut notes: Vec<String> = Vec::new();
        let differing: BTreeSet<&str> = shown
            .iter()
            .flat_map(|(view, _)| view.values.iter().filter(|value| value.differs).map(|value| value.key.as_str()))
            .collect();
        if !differing.is_empty() {
            let keys: Vec<&str> = differing.iter().copied().collect();
            let verb = if keys.len() == 1 { "differs" } else { "differ" };
            notes.push(format!("Git is ahead of what runs, or what runs was rolled back: {} {verb}.", keys.join(", ")));
        }
        notes.extend(used.iter().filter_map(|(view, on)| {
            let why = view.unknown.as_ref()?;
            Some(format!("What runs can't be shown ({}): {why}.", if on.is_empty() { "everywhere" } else { on }))
        }));
        notes.extend(running.iter().filter(|group| group.drifted).map(|group| {
            let names = named(group.count, &group.drifted_on);
            let names = if names.is_empty() { String::new() } else { format!(" ({names})") };
            format!("What runs was changed on {}{names}: the values there aren't known.", on(group))
        }));
        let strange = running
            .iter()
            .filter(|group| !group.packages.is_empty() && group.configuration.is_none() && !group.drifted);
        notes.extend(strange.map(|group| {
            format!("What runs can't be shown ({}): this hub doesn't know the packages that they report.", on(group))
        }));
        let mut own: BTreeMap<String, ValueSummary> = git.into_iter().map(|value| (value.key.clone(), value)).collect();
        let delivered = shown.iter().flat_map(|(view, _)| view.values.iter().map(|value| value.key.clone()));
        let keys: BTreeSet<String> = own.keys().cloned().chain(delivered).collect();
        let rows = keys.into_iter().map(|key| {
            let git = own.remove(&key);
            Value::of(key, git, &shown)
        });
        let runs = !shown.is_empty();
        Values {
            notes,
            caption: match runs {
                true => "Every value that runs, and the file and line that Git has it from",
                false if running.iter().any(|group| group.drifted) => {
                    "Git's values, with the file and line of each; the running values drifted"
                }
                false => "Git's values, with the file and line of each; no cluster has reported that they run",
            },
            heading: if runs { "Runs" } else { "Git says" },
            rows: rows.collect(),
        }
    }
}

/// The configurations that run, each with the clusters that run it; empty when all do.
fn used<'a>(
    configurations: &'a [RunningConfiguration],
    running: &[RunningAssignment],
) -> Vec<(&'a RunningConfiguration, String)> {
    let groups: Vec<&RunningAssignment> =
        running.iter().filter(|group| !group.packages.is_empty() || group.drifted).collect();
    let of = |view: &'a RunningConfiguration| {
        let own: Vec<&&RunningAssignment> =
            groups.iter().filter(|group| group.configuration.as_ref() == Some(&view.id)).collect();
        let all = own.len() == groups.len();
        let on: Vec<String> = own.iter().map(|group| on(group)).collect();
        (!own.is_empty()).then(|| (view, if all { String::new() } else { on.join("; ") }))
    };
    configurations.iter().filter_map(of).collect()
}

/// `canary: 2 clusters, 1 of them offline`
fn on(group: &RunningAssignment) -> String {
    let clusters = if group.count == 1 { "cluster" } else { "clusters" };
    let offline = match group.conditions.unknown {
        0 => String::new(),
        some if some == group.count => ", offline".to_owned(),
        some => format!(", {some} of them offline"),
    };
    format!("{}: {} {clusters}{offline}", group.ring, group.count)
}

impl Value {
    fn of(key: String, git: Option<ValueSummary>, shown: &[(&RunningConfiguration, String)]) -> Value {
        let mut secret = git.as_ref().is_some_and(|value| value.secret);
        let mut differs = false;
        // Equal texts of different places share a line.
        let mut texts: BTreeMap<Option<String>, Vec<&str>> = BTreeMap::new();
        for (view, on) in shown {
            let value = view.values.iter().find(|value| value.key == key);
            secret |= value.is_some_and(|value| value.secret);
            differs |= value.is_some_and(|value| value.differs);
            let text = value.and_then(|value| value.value.as_ref()).map(plain);
            texts.entry(text).or_default().push(on);
        }
        let text = git.as_ref().map(|value| plain(&value.value));
        if texts.is_empty() {
            texts.insert(text.clone(), Vec::new());
        }
        let alone = texts.len() == 1;
        let run = |(text, on): (Option<String>, Vec<&str>)| {
            let on = if alone { String::new() } else { on.join("; ") };
            Run { text, on }
        };
        let (overridden, from): (Vec<ValueCandidate>, Vec<ValueCandidate>) =
            git.into_iter().flat_map(|value| value.candidates).partition(|candidate| candidate.effect == "overridden");
        Value {
            runs: texts.into_iter().map(run).collect(),
            differs,
            git: text,
            secret,
            from: from.into_iter().map(Candidate::of).collect(),
            overridden: overridden.into_iter().map(Candidate::of).collect(),
            key,
        }
    }
}

impl Candidate {
    fn of(candidate: ValueCandidate) -> Candidate {
        Candidate { config_map: candidate.config_map, text: candidate.text, origin: Place::of(&candidate.origin) }
    }
}

/// A text as it is, everything else as JSON.
pub fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
