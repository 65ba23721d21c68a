//! A plan as a comment on a pull request: values that look secret are redacted, and it fits what forges accept.

use std::fmt::Write as _;

use kedge_scheduler::{Assignment, AssignmentChange, KeyChange, PlanChange};

use super::Compared;
use super::text::{commit, mark, unified, word};
use crate::output::{counted, value_in_line};
use crate::problems::Problems;
use kedge_scheduler::Redaction;

/// GitHub takes 65,536 characters; others put a header above.
const LIMIT: usize = 60_000;

/// Room for the closing words.
const RESERVE: usize = 400;

/// More assignments than this are folded.
const OPEN: usize = 5;

/// Longer values are cut.
const VALUE_LIMIT: usize = 200;

impl Compared {
    pub(super) fn to_markdown(&self, problems: &Problems) -> String {
        let redaction = Redaction::of([&self.old, &self.new]);
        let plan = &self.plan;
        let mut text = format!("### Kedge plan for {}\n\n**{}**\n", code(&self.environment), plan.summary());
        let mut facts = Vec::new();
        if let Some((old, new)) = &plan.promoted_commit {
            facts.push(format!("promoted commit: {} → {}", code(commit(old.as_deref())), code(commit(new.as_deref()))));
        }
        facts.extend(plan.cluster_types_added.iter().map(|name| format!("cluster type {} is new", code(name))));
        facts.extend(plan.cluster_types_removed.iter().map(|name| format!("cluster type {} goes", code(name))));
        facts.extend(
            self.plan.kept.iter().map(|kept| {
                format!("{} is kept: {}", code(&kept.folder), escape(&redaction.sentence(&kept.reason, [])))
            }),
        );
        if problems.errors() > 0 {
            facts.push(format!("{}: `kedge validate` shows what is wrong", counted(problems.errors(), "error")));
        }
        if !facts.is_empty() {
            text.push('\n');
        }
        let mut left = list_facts(&mut text, &facts);

        let folded = plan.changes.len() > OPEN;
        if folded {
            let _ =
                write!(text, "\n<details>\n<summary>{}</summary>\n", counted(plan.changes.len(), "changed assignment"));
        }
        for (index, change) in plan.changes.iter().enumerate() {
            let sections = [
                self.section(change, &redaction, self.with_diff),
                self.section(change, &redaction, false),
                title(change),
            ];
            let room = LIMIT - RESERVE;
            match sections.into_iter().find(|section| length(&text) + length(section) < room) {
                Some(section) => text.push_str(&section),
                None => {
                    left += plan.changes.len() - index;
                    break;
                }
            }
        }
        if folded {
            text.push_str("\n</details>\n");
        }
        if left > 0 {
            let _ = write!(text, "\n*{} more didn't fit; `kedge plan` shows all of them.*\n", counted(left, "item"));
        }
        text
    }

    fn section(&self, change: &AssignmentChange, redaction: &Redaction, with_diff: bool) -> String {
        let mut text = title(change);
        if let PlanChange::Quarantined(reasons) = &change.change {
            text.push('\n');
            for reason in reasons {
                let _ = writeln!(text, "- {}", escape(&redaction.sentence(&reason.message, self.both(change))));
            }
        }
        if !change.keys.is_empty() {
            text.push_str("\n| key | old | new |\n|---|---|---|\n");
            for key in &change.keys {
                text.push_str(&key_row(key, redaction));
            }
        }
        let names: Vec<String> = change.files.iter().map(|file| code(file.name)).collect();
        if !names.is_empty() {
            let _ = write!(text, "\nFiles: {}\n", names.join(", "));
        }
        if with_diff && !change.files.is_empty() {
            // A template may have put a secret into any file, in any encoding.
            if self.has_secrets(change, redaction) {
                text.push_str("\nThe files aren't shown: values of this assignment look secret.\n");
            } else {
                change.files.iter().for_each(|file| text.push_str(&fenced(&unified(change, file))));
            }
        }
        text
    }

    fn has_secrets(&self, change: &AssignmentChange, redaction: &Redaction) -> bool {
        let mut values = self.both(change).flat_map(|assignment| &assignment.configuration.values);
        values.any(|(key, value)| redaction.hides(key, value))
    }

    /// The assignment as it was and as it would be.
    fn both(&self, change: &AssignmentChange) -> impl Iterator<Item = &Assignment> {
        [&self.old, &self.new]
            .into_iter()
            .filter_map(|side| side.schedule().assignments.get(&change.id))
            .map(AsRef::as_ref)
    }
}

/// Returns how many didn't fit.
fn list_facts(text: &mut String, facts: &[String]) -> usize {
    for (index, fact) in facts.iter().enumerate() {
        if length(text) + length(fact) + 3 > LIMIT / 4 {
            return facts.len() - index;
        }
        let _ = writeln!(text, "- {fact}");
    }
    0
}

fn title(change: &AssignmentChange) -> String {
    format!(
        "\n#### {} {} {}\n",
        code(&mark(&change.change).to_string()),
        code(&change.id.to_string()),
        word(&change.change)
    )
}

fn key_row(key: &KeyChange, redaction: &Redaction) -> String {
    let shown = |value: Option<&kedge_goyaml::Value>| {
        value.map(|value| code(&cut(&value_in_line(&redaction.value(&key.key, value))))).unwrap_or_default()
    };
    format!("| {} | {} | {} |\n", code(&cut(&key.key)), shown(key.old.as_deref()), shown(key.new.as_deref()))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// As HTML, so that no character of a value means anything to Markdown, and nobody is mentioned.
fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => escaped.push(' '),
            '&' | '<' | '>' | '|' | '`' | '*' | '_' | '[' | ']' | '@' | '#' | '\\' | '~' | '!' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// With a fence that is longer than any in the text.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}diff\n{text}{fence}\n")
}

fn length(text: &str) -> usize {
    text.chars().count()
}
