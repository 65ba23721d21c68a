//! A configuration value and where it comes from: the ConfigMap that wins, and those that it won over.

use crate::catalog::view::{CandidateView, ValueView};
use crate::web::part::Place;

pub struct Value {
    pub key: String,
    pub text: String,
    /// It, or a part of it, is shown to the platform team only.
    pub secret: bool,
    /// Those that make it what it is.
    pub from: Vec<Candidate>,
    pub overridden: Vec<Candidate>,
}

/// A ConfigMap that sets the value.
pub struct Candidate {
    pub config_map: String,
    pub text: String,
    pub origin: Place,
}

impl Value {
    pub fn of(value: ValueView) -> Value {
        let (overridden, from): (Vec<CandidateView>, Vec<CandidateView>) =
            value.candidates.into_iter().partition(|candidate| candidate.effect == "overridden");
        Value {
            key: value.key,
            text: plain(&value.value),
            secret: value.secret,
            from: from.into_iter().map(Candidate::of).collect(),
            overridden: overridden.into_iter().map(Candidate::of).collect(),
        }
    }
}

impl Candidate {
    fn of(candidate: CandidateView) -> Candidate {
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
