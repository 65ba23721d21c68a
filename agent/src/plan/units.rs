//! Units of a plan: which are enabled, started, stopped or restarted, and how each returns to what it was.

use std::collections::{BTreeMap, BTreeSet};

use super::Question;
use crate::goal::{Goal, UnitGoal};
use crate::observed::UnitState;
use crate::record::Failure;
use crate::step::Step;

#[derive(Debug, Default)]
pub(super) struct Units {
    /// Units that go: stopped before their files go.
    pub early: Vec<Step>,
    pub late: Vec<Step>,
    pub reload: bool,
    pub back_early: Vec<Step>,
    pub back_late: Vec<Step>,
    pub original: BTreeMap<String, UnitState>,
}

/// Where systemd reads unit files and drop-ins.
const FOLDERS: [&str; 4] =
    ["/etc/systemd/system/", "/usr/lib/systemd/system/", "/lib/systemd/system/", "/usr/local/lib/systemd/system/"];

pub(super) fn plan(question: &Question<'_>, changed: &BTreeSet<String>) -> Result<Units, Failure> {
    let Question { observed, others, .. } = question;
    let debs = &question.debs.forward;
    // Maintainer scripts enable and start what they like: then every unit is set, not only one that differs now.
    let unsure = !debs.install.is_empty() || !debs.remove.is_empty();
    let mut units = Units { reload: reloads(question, changed, unsure), ..Units::default() };
    let before = question.running.map(|running| &running.original.units);
    let now = |name: &str| observed.units.get(name).cloned().unwrap_or_default();
    for unit in question.goal.iter().flat_map(|goal| &goal.units) {
        let state = now(&unit.name);
        check(question, unit, &state, unsure)?;
        let original =
            before.and_then(|before| before.get(&unit.name)).or_else(|| others.originals.units.get(&unit.name));
        units.original.insert(unit.name.clone(), original.unwrap_or(&state).clone());
        units.set(question, unit, &state, changed, unsure);
    }
    let wanted = |name: &str| question.goal.is_some_and(|goal| goal.units.iter().any(|unit| unit.name == name));
    for (name, original) in before.into_iter().flatten() {
        if !wanted(name) && !others.originals.units.contains_key(name) {
            let touched = unsure || changed.iter().any(|path| is_file_of(path, name));
            units.give_back(name, &now(name), original, touched);
            if unsure {
                units.insist(name, &now(name), original);
            }
        }
    }
    Ok(units)
}

impl Units {
    fn set(
        &mut self,
        question: &Question<'_>,
        unit: &UnitGoal,
        now: &UnitState,
        changed: &BTreeSet<String>,
        unsure: bool,
    ) {
        let named = |make: fn(String) -> Step| make(unit.name.clone());
        let enabled = now.enabled || (now.is_static && now.known);
        if unit.enabled && (!enabled || (unsure && !now.is_static)) {
            self.late.push(named(enable));
        }
        if !unit.enabled && (now.enabled || unsure) {
            self.late.push(named(disable));
        }
        if unit.enabled != now.enabled || unsure {
            if now.enabled {
                self.back_late.push(named(enable));
            } else if !now.is_static {
                self.back_early.push(named(disable));
            }
        }
        if unsure {
            self.insist(&unit.name, now, &UnitState::default());
        }
        let goal = question.goal;
        let touched = goal.is_some_and(|goal| is_touched(question, goal, unit, changed));
        let stays = !unit.running && (!is_up(now) || goal.is_some_and(|goal| is_triggered(goal, &unit.name)));
        if unit.running && (touched || question.restart) {
            self.late.push(named(restart));
        } else if unit.running && (!is_up(now) || unsure) {
            self.late.push(named(start));
        } else if !unit.running && (!stays || (unsure && !goal.is_some_and(|goal| is_triggered(goal, &unit.name)))) {
            self.late.push(named(stop));
        } else {
            return;
        }
        match is_up(now) {
            true if touched => self.back_late.push(named(restart)),
            true => self.back_late.push(named(start)),
            // First of all, while its files are still there.
            false => self.back_early.insert(0, named(stop)),
        }
    }

    /// Maintainer scripts run again in both directions: what was off is put off after them.
    fn insist(&mut self, name: &str, now: &UnitState, original: &UnitState) {
        for (state, steps) in [(original, &mut self.late), (now, &mut self.back_late)] {
            if state.known && !state.enabled && !state.is_static {
                steps.push(disable(name.to_owned()));
            }
            if state.known && !is_up(state) {
                steps.push(stop(name.to_owned()));
            }
        }
    }

    fn give_back(&mut self, name: &str, now: &UnitState, original: &UnitState, touched: bool) {
        let named = |make: fn(String) -> Step| make(name.to_owned());
        match (is_up(now), is_up(original)) {
            (true, false) => {
                self.early.push(named(stop));
                self.back_late.push(named(start));
            }
            (false, true) => {
                self.late.push(named(start));
                self.back_early.insert(0, named(stop));
            }
            // Its file or deb may return to what it was.
            (true, true) if touched => {
                self.late.push(named(restart));
                self.back_late.push(named(restart));
            }
            _ => {}
        }
        if now.enabled && !original.enabled {
            self.early.push(named(disable));
            self.back_late.insert(0, named(enable));
        } else if !now.enabled && original.enabled {
            self.late.insert(0, named(enable));
            self.back_early.push(named(disable));
        }
    }
}

/// Enabling and starting must be possible before anything is changed.
fn check(question: &Question<'_>, unit: &UnitGoal, now: &UnitState, unsure: bool) -> Result<(), Failure> {
    let name = &unit.name;
    let needed = unit.enabled || unit.running;
    if now.masked && needed {
        let message = format!("unit {name} is masked; `systemctl unmask {name}` lets it run");
        return Err(Failure::new("UnitFailed", message));
    }
    let brought = question.goal.is_some_and(|goal| goal.files.iter().any(|file| is_file_of(&file.path, name)));
    if needed && !now.known && !brought && !unsure {
        let message =
            format!("systemd doesn't know unit {name}, and neither a file nor a deb of this workload brings it");
        return Err(Failure::new("UnitFailed", message));
    }
    Ok(())
}

/// What a unit runs with changed: what it asked for, its own file or drop-in, or the deb that it comes from.
fn is_touched(question: &Question<'_>, goal: &Goal, unit: &UnitGoal, changed: &BTreeSet<String>) -> bool {
    let installed = |name: &str| question.debs.forward.install.iter().any(|deb| deb.name == name);
    let asked = |what: &String| changed.contains(what) || installed(what) || below(what, changed);
    let own = |path: &String| is_file_of(path, &unit.name);
    let is_deb = |what: &String| goal.debs.iter().any(|deb| deb.name == *what);
    let from_deb = !goal.files.iter().any(|file| is_unit_file(&file.path, &unit.name));
    let debs = from_deb && !unit.restart_on.iter().any(is_deb) && goal.debs.iter().any(|deb| installed(&deb.name));
    unit.restart_on.iter().any(asked) || changed.iter().any(own) || debs
}

/// A folder that was asked for stands for all that is in it.
fn below(folder: &str, changed: &BTreeSet<String>) -> bool {
    let folder = format!("{}/", folder.trim_end_matches('/'));
    changed.range(folder.clone()..).next().is_some_and(|path| path.starts_with(&folder))
}

/// A timer, a socket or a path of the same name starts it: it comes and goes by itself.
pub(super) fn is_triggered(goal: &Goal, name: &str) -> bool {
    let stem = name.strip_suffix(".service");
    let triggers = |unit: &UnitGoal, stem: &str| {
        [".timer", ".socket", ".path"].iter().any(|kind| unit.name.strip_suffix(kind) == Some(stem))
    };
    stem.is_some_and(|stem| goal.units.iter().any(|unit| triggers(unit, stem)))
}

/// Running, or on its way to it.
pub(super) fn is_up(unit: &UnitState) -> bool {
    matches!(unit.active.as_str(), "active" | "activating" | "reloading" | "refreshing")
}

fn reloads(question: &Question<'_>, changed: &BTreeSet<String>, unsure: bool) -> bool {
    let units = question.goal.is_some_and(|goal| !goal.units.is_empty());
    changed.iter().any(|path| FOLDERS.iter().any(|folder| path.starts_with(folder))) || (unsure && units)
}

/// The unit's file or one of its drop-ins.
fn is_file_of(path: &str, unit: &str) -> bool {
    let names = |name: &str| {
        let dropped = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        is_unit_file(path, name) || FOLDERS.iter().any(|at| dropped == format!("{at}{name}.d"))
    };
    names(unit) || template(unit).is_some_and(|name| names(&name))
}

fn is_unit_file(path: &str, unit: &str) -> bool {
    let at = |name: &str| FOLDERS.iter().any(|folder| path.strip_prefix(folder) == Some(name));
    at(unit) || template(unit).is_some_and(|name| at(&name))
}

/// `app@one.service` comes from `app@.service`.
fn template(unit: &str) -> Option<String> {
    let (stem, rest) = unit.split_once('@')?;
    let (_, kind) = rest.rsplit_once('.')?;
    Some(format!("{stem}@.{kind}"))
}

fn enable(name: String) -> Step {
    Step::EnableUnit { name }
}

fn disable(name: String) -> Step {
    Step::DisableUnit { name }
}

fn start(name: String) -> Step {
    Step::StartUnit { name }
}

fn stop(name: String) -> Step {
    Step::StopUnit { name }
}

fn restart(name: String) -> Step {
    Step::RestartUnit { name }
}
