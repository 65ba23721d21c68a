//! An explanation for the terminal.

use std::fmt::{self, Write as _};

use kedge_model::Origin;
use kedge_model::selector::Mismatch;
use kedge_scheduler::{CandidateEffect, KeyExplanation, LabelSource, PolicyVerdict};

use super::Explained;
use crate::output::{Table, value_in_line};

/// Longer texts are cut; `-o json` has them whole.
const TEXT_LIMIT: usize = 100;

impl Explained<'_> {
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, text: &mut String) -> fmt::Result {
        let explanation = &self.explanation;
        let chosen: Vec<&str> = explanation.policies.iter().filter(|p| p.chooses()).map(|p| p.name.as_str()).collect();
        match chosen.as_slice() {
            [] => writeln!(text, "{} in {}: not assigned", explanation.id, self.environment)?,
            [one] => writeln!(text, "{} in {}: assigned by policy {one}", explanation.id, self.environment)?,
            many => {
                writeln!(text, "{} in {}: assigned by policies {}", explanation.id, self.environment, many.join(", "))?
            }
        }
        if !self.quarantine.is_empty() {
            writeln!(text, "\nQuarantined, it keeps what is published")?;
            for reason in self.quarantine {
                let place =
                    reason.origin.as_ref().map(|origin| format!("  {}", self.place(origin))).unwrap_or_default();
                writeln!(text, "  {}{place}", reason.message)?;
            }
        }
        if let Some(key) = self.key {
            writeln!(text)?;
            if let Some(known) = explanation.config.keys.get(key) {
                self.write_key(text, key, known)?;
            }
            return Ok(());
        }
        self.write_policies(text)?;
        self.write_labels(text)?;
        writeln!(text, "\nConfiguration")?;
        let mut none = true;
        for (key, known) in explanation.config.keys.iter().filter(|(_, known)| !known.candidates.is_empty()) {
            none = false;
            self.write_key(text, key, known)?;
        }
        if none {
            writeln!(text, "  none")?;
        }
        Ok(())
    }

    fn write_policies(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "\nPolicies")?;
        if self.explanation.policies.is_empty() {
            writeln!(text, "  none")?;
        }
        for policy in &self.explanation.policies {
            let verdict = if policy.chooses() { "chose it" } else { "didn't choose it" };
            writeln!(text, "  {} {verdict}  {}", policy.name, self.place(&policy.origin))?;
            text.push_str(&sides(policy).to_text("    "));
        }
        Ok(())
    }

    fn write_labels(&self, text: &mut String) -> fmt::Result {
        let explanation = &self.explanation;
        writeln!(text, "\nLabels of cluster type {}", explanation.id.cluster_type)?;
        let mut table = Table::default();
        for (key, value) in &explanation.cluster_type_labels {
            table.row([key.clone(), value.clone()]);
        }
        text.push_str(&or_none(&table, explanation.cluster_type_labels.is_empty()));

        writeln!(text, "\nLabels of target {}", explanation.id.target)?;
        let mut table = Table::default();
        for label in &explanation.target_labels {
            let from = match &label.source {
                LabelSource::Target(origin) => format!("the target, {}", self.place(origin)),
                LabelSource::Workload(origin) => format!("the workload, {}", self.place(origin)),
                LabelSource::Registration(origin) => format!("the registration, {}", self.place(origin)),
                LabelSource::Capability { map, origin } => format!("CapabilityMap {map}, {}", self.place(origin)),
                LabelSource::Kedge => "every target has it".to_owned(),
            };
            table.row([label.key.clone(), label.value.clone(), from]);
        }
        text.push_str(&or_none(&table, explanation.target_labels.is_empty()));
        Ok(())
    }

    fn write_key(&self, text: &mut String, key: &str, known: &KeyExplanation) -> fmt::Result {
        match &known.value {
            Some(value) => writeln!(text, "  {key} = {}", value_in_line(value))?,
            None => writeln!(text, "  {key} has no value: no ConfigMap with it applies")?,
        }
        let mut table = Table::default();
        for (index, candidate) in known.candidates.iter().enumerate() {
            let effect = match candidate.effect {
                CandidateEffect::Wins => "wins",
                CandidateEffect::Merged => "merged",
                CandidateEffect::Overridden => "overridden",
            };
            table.row([
                format!("{}.", index + 1),
                effect.to_owned(),
                quoted(&candidate.text),
                candidate.config_map.to_string(),
                self.place(&candidate.origin),
            ]);
        }
        if self.key.is_some() {
            for skipped in &known.skipped {
                table.row([
                    "-".to_owned(),
                    "doesn't apply".to_owned(),
                    quoted(&skipped.text),
                    skipped.config_map.to_string(),
                    format!("{}, because {}", self.place(&skipped.origin), skipped.reasons.join("; ")),
                ]);
            }
        }
        text.push_str(&table.to_text("    "));
        Ok(())
    }

    /// `file:line`, and the repository when it isn't the control plane itself.
    fn place(&self, origin: &Origin) -> String {
        if origin.source.repo == self.home {
            return origin.to_string();
        }
        format!("{origin} of {}", origin.source.short())
    }
}

/// A table, or the word that there is nothing in it.
fn or_none(table: &Table, empty: bool) -> String {
    if empty { "  none\n".to_owned() } else { table.to_text("  ") }
}

/// What a policy asks of each side, and what is missing there.
fn sides(policy: &PolicyVerdict) -> Table {
    let mut table = Table::default();
    let missing = |mismatches: &[Mismatch]| match mismatches {
        [] => "matches".to_owned(),
        some => some.iter().map(Mismatch::to_string).collect::<Vec<_>>().join("; "),
    };
    table.row([
        "cluster type".to_owned(),
        policy.cluster_type_selector.clone(),
        missing(&policy.cluster_type_mismatches),
    ]);
    table.row(["target".to_owned(), policy.target_selector.clone(), missing(&policy.target_mismatches)]);
    if let Some((wanted, found)) = &policy.workspace {
        table.row(["workspace".to_owned(), wanted.clone(), format!("the target's is `{found}`")]);
    }
    table
}

fn quoted(text: &str) -> String {
    let cut: String = match text.char_indices().nth(TEXT_LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    serde_json::Value::String(cut).to_string()
}
