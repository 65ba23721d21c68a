//! All problems of one environment or several, each once, as text, JSON and GitHub annotations. Used by every command
//! that reads a platform.

mod github;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use kedge_model::{AssignmentId, Origin, Problem};
use kedge_scheduler::Scheduler;
use serde_json::{Value, json};

use crate::output::{counted, harmless, origin_to_json, severity_style};
use kedge_scheduler::Redaction;

/// So many assignments are named in text; more would hide the problem.
const NAMED: usize = 4;

/// Problems by place, with what each of them stops and where it was met.
#[derive(Debug, Default)]
pub struct Problems {
    found: BTreeMap<(Option<Origin>, Problem), Met>,
    environments: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Met {
    assignments: BTreeSet<String>,
    environments: BTreeSet<String>,
}

impl Problems {
    /// What reading and scheduling found, with the values that it quotes: for who has the repository.
    pub fn of(scheduler: &Scheduler) -> Problems {
        let mut problems = Problems::default();
        problems.add(&scheduler.platform().environment, all(scheduler));
        problems
    }

    /// Without values that look secret: logs and annotations have many readers.
    pub fn redacted(scheduler: &Scheduler) -> Problems {
        let mut problems = Problems::default();
        problems.add_redacted(scheduler, all(scheduler));
        problems
    }

    /// Those of templates and schemas that nothing uses too, which change nothing that is rendered.
    pub fn add_all_redacted(&mut self, scheduler: &Scheduler) {
        self.add_redacted(scheduler, all(scheduler).chain(&scheduler.schedule().dormant));
    }

    /// Of one environment, without values that look secret.
    pub fn add_redacted<'a>(&mut self, scheduler: &Scheduler, found: impl Iterator<Item = &'a Problem>) {
        let mut found: Vec<Problem> = found.cloned().collect();
        if !found.is_empty() {
            let redaction = Redaction::of([scheduler]);
            found.iter_mut().for_each(|problem| redact(problem, scheduler, &redaction));
        }
        self.add(&scheduler.platform().environment, &found);
    }

    pub fn add<'a>(&mut self, environment: &str, problems: impl IntoIterator<Item = &'a Problem>) {
        self.environments.insert(environment.to_owned());
        for problem in problems {
            let mut problem = problem.clone();
            let assignment = problem.assignment.take();
            let met = self.found.entry((problem.origin.clone(), problem)).or_default();
            met.assignments.extend(assignment);
            met.environments.insert(environment.to_owned());
        }
    }

    pub fn errors(&self) -> usize {
        self.found.keys().filter(|(_, problem)| problem.is_error()).count()
    }

    pub fn warnings(&self) -> usize {
        self.found.len() - self.errors()
    }

    /// `2 errors and 1 warning`, or none when there is nothing.
    pub fn summary(&self) -> Option<String> {
        match (self.errors(), self.warnings()) {
            (0, 0) => None,
            (errors, 0) => Some(counted(errors, "error")),
            (0, warnings) => Some(counted(warnings, "warning")),
            (errors, warnings) => Some(format!("{} and {}", counted(errors, "error"), counted(warnings, "warning"))),
        }
    }

    /// To stderr, with an empty line after each. Nothing stops because nobody reads it.
    pub fn print(&self) {
        let _ = self.write_text(&mut anstream::stderr().lock());
    }

    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for ((_, problem), met) in &self.found {
            let mut shown = problem.clone();
            shown.assignment = listed(&met.assignments);
            let text = shown.to_text();
            let text = harmless(&text);
            let word = problem.severity.as_str();
            let style = severity_style(problem.severity);
            write!(out, "{style}{word}{style:#}{}", text.strip_prefix(word).unwrap_or(&text))?;
            // Worth saying only when it isn't true of all of them.
            if self.environments.len() > met.environments.len() {
                let names: Vec<&str> = met.environments.iter().map(String::as_str).collect();
                let line = problem.origin.as_ref().map_or(0, |origin| origin.line);
                let gutter = if line > 0 { line.to_string().len() } else { 0 };
                writeln!(out, "{:gutter$} = in: {}", "", names.join(", "))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    pub fn to_json(&self) -> Value {
        self.found.iter().map(|((_, problem), met)| to_json(problem, met)).collect()
    }
}

fn all(scheduler: &Scheduler) -> impl Iterator<Item = &Problem> {
    let platform = scheduler.platform();
    let failing = platform.failing.iter().map(|failing| &failing.problem);
    platform.problems.iter().chain(failing).chain(scheduler.schedule().all_problems())
}

fn redact(problem: &mut Problem, scheduler: &Scheduler, redaction: &Redaction) {
    let id = problem.assignment.as_deref().and_then(|name| name.split_once('/'));
    let id = id.map(|(cluster_type, target)| AssignmentId { cluster_type: cluster_type.into(), target: target.into() });
    let assignment = id.and_then(|id| scheduler.schedule().assignments.get(&id)).map(AsRef::as_ref);
    problem.message = redaction.sentence(&problem.message, assignment);
    problem.hint = problem.hint.take().map(|hint| redaction.sentence(&hint, assignment));
}

fn to_json(problem: &Problem, met: &Met) -> Value {
    json!({
        "severity": problem.severity.as_str(),
        "code": problem.code,
        "message": problem.message,
        "origin": problem.origin.as_ref().map(origin_to_json),
        "excerpt": problem.excerpt.as_ref().map(|excerpt| &excerpt.text),
        "related": problem.related.iter().map(origin_to_json).collect::<Vec<_>>(),
        "hint": problem.hint,
        "assignments": met.assignments,
        "environments": met.environments,
    })
}

/// The first of them by name, and how many more there are. None: there are none.
pub fn listed(assignments: &BTreeSet<String>) -> Option<String> {
    let first: Vec<&str> = assignments.iter().take(NAMED).map(String::as_str).collect();
    match assignments.len() {
        0 => None,
        count if count > NAMED => Some(format!("{} and {} more", first.join(", "), count - NAMED)),
        _ => Some(first.join(", ")),
    }
}
