//! Configuration values with their origins, as stored: whole, beside what others than the platform team may see.

use kedge_api::assignments::{ValueCandidate, ValueSummary};
use kedge_api::source::SourceLocation;
use kedge_goyaml::Value;
use kedge_scheduler::json::value_to_json;
use kedge_scheduler::{CandidateEffect, ConfigExplanation, REDACTED, Redaction};
use serde::{Deserialize, Serialize};

/// A value as it is stored. Who may see what is decided when it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredValue {
    #[serde(flatten)]
    view: ValueSummary,
    /// The value without its secrets, when it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<serde_json::Value>,
    /// Candidates whose text is hidden, by their place in the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<usize>,
}

pub fn of(explanation: &ConfigExplanation, redaction: &Redaction) -> Vec<StoredValue> {
    let stored = explanation.keys.iter().map(|(key, known)| {
        let value = known.value.as_deref().cloned().unwrap_or(Value::Null);
        let shown = redaction.hides(key, &value).then(|| value_to_json(&redaction.value(key, &value)));
        let candidates: Vec<ValueCandidate> = known
            .candidates
            .iter()
            .map(|candidate| ValueCandidate {
                config_map: candidate.config_map.to_string(),
                text: candidate.text.to_string(),
                effect: match candidate.effect {
                    CandidateEffect::Wins => "wins",
                    CandidateEffect::Merged => "merged",
                    CandidateEffect::Overridden => "overridden",
                }
                .to_owned(),
                origin: SourceLocation::from(&candidate.origin),
            })
            .collect();
        let hidden: Vec<usize> = candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| hides_text(redaction, key, &candidate.text))
            .map(|(index, _)| index)
            .collect();
        let secret = shown.is_some() || !hidden.is_empty();
        let view = ValueSummary { key: key.to_string(), value: value_to_json(&value), secret, candidates };
        StoredValue { view, shown, hidden }
    });
    stored.collect()
}

impl StoredValue {
    pub fn key(&self) -> &str {
        &self.view.key
    }

    /// The value as it is, and without its secrets.
    pub fn both(&self) -> (&serde_json::Value, &serde_json::Value) {
        (&self.view.value, self.shown.as_ref().unwrap_or(&self.view.value))
    }

    pub fn is_secret(&self) -> bool {
        self.view.secret
    }

    /// As a caller may see it.
    pub fn view(self, with_secrets: bool) -> ValueSummary {
        let StoredValue { mut view, shown, hidden } = self;
        if with_secrets {
            return view;
        }
        if let Some(shown) = shown {
            view.value = shown;
        }
        for index in hidden {
            if let Some(candidate) = view.candidates.get_mut(index) {
                candidate.text = REDACTED.to_owned();
            }
        }
        view
    }
}

/// A candidate is text; when it reads as a structure, its parts count too.
fn hides_text(redaction: &Redaction, key: &str, text: &str) -> bool {
    redaction.hides(key, &Value::from(text))
        || (text.contains([':', '-', '{', '['])
            && kedge_goyaml::decode(text).is_ok_and(|value| redaction.hides(key, &value)))
}
