//! A plan for the terminal.

use std::fmt::{self, Write as _};

use kedge_scheduler::{AssignmentChange, FileChange, KeyChange, PlanChange};
use similar::TextDiff;

use super::Compared;
use crate::output::{Table, value_in_line};

impl Compared {
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "plan for {}: {} → {}", self.environment, self.sides.from.in_full(), self.sides.to.in_full())?;
        if let Some((old, new)) = &self.plan.promoted_commit {
            writeln!(text, "promoted commit: {} → {}", commit(old.as_deref()), commit(new.as_deref()))?;
        }
        for name in &self.plan.cluster_types_added {
            writeln!(text, "+ cluster type {name}")?;
        }
        for name in &self.plan.cluster_types_removed {
            writeln!(text, "- cluster type {name}")?;
        }
        for change in &self.plan.changes {
            writeln!(text, "{} {} {}", mark(&change.change), change.id, word(&change.change))?;
            if let PlanChange::Quarantined(reasons) = &change.change {
                for reason in reasons {
                    writeln!(text, "    {}", reason.message)?;
                }
            }
            text.push_str(&key_table(&change.keys));
            let names: Vec<&str> = change.files.iter().map(|file| file.name).collect();
            if !names.is_empty() {
                writeln!(text, "    files: {}", names.join(", "))?;
            }
            if self.with_diff {
                for file in &change.files {
                    text.push_str(&unified(change, file));
                }
            }
        }
        for kept in &self.plan.kept {
            writeln!(text, "= {} kept: {}", kept.folder, kept.reason)?;
        }
        writeln!(text, "{}", self.plan.summary())
    }
}

fn key_table(keys: &[KeyChange]) -> String {
    let mut table = Table::default();
    for key in keys {
        let line = match (&key.old, &key.new) {
            (Some(old), Some(new)) => format!("{} → {}", value_in_line(old), value_in_line(new)),
            (None, Some(new)) => format!("+ {}", value_in_line(new)),
            (Some(old), None) => format!("- {}", value_in_line(old)),
            (None, None) => continue,
        };
        table.row([key.key.to_string(), line]);
    }
    table.to_text("    ")
}

pub(super) fn mark(change: &PlanChange) -> char {
    match change {
        PlanChange::Added => '+',
        PlanChange::Changed | PlanChange::Released => '~',
        PlanChange::Removed => '-',
        PlanChange::Quarantined(_) => '!',
    }
}

pub(super) fn word(change: &PlanChange) -> &'static str {
    match change {
        PlanChange::Added => "added",
        PlanChange::Changed => "changed",
        PlanChange::Removed => "removed",
        PlanChange::Quarantined(_) => "quarantined",
        PlanChange::Released => "released from quarantine",
    }
}

pub(super) fn commit(commit: Option<&str>) -> &str {
    commit.unwrap_or("none")
}

/// As `git diff` shows it.
pub(super) fn unified(change: &AssignmentChange, file: &FileChange) -> String {
    let path = format!("{}/{}", change.id, file.name);
    let header = |side: &str, text: Option<&str>| text.map_or("/dev/null".to_owned(), |_| format!("{side}/{path}"));
    let (old, new) = (file.old.as_deref(), file.new.as_deref());
    let (from, to) = (header("a", old), header("b", new));
    let diff = TextDiff::from_lines(old.unwrap_or_default(), new.unwrap_or_default());
    let mut text = diff.unified_diff().context_radius(3).header(&from, &to).to_string();
    if !text.ends_with('\n') && !text.is_empty() {
        text.push('\n');
    }
    text
}
