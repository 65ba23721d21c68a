//! A step on the way of a change: a ring of an environment with its gate, readable like checks: what holds, what it waits for.

use askama::Template;
use askama::filters::HtmlSafe;

use super::{Bar, Tone, When};

/// One ring.
#[derive(Clone, Debug, Template)]
#[template(path = "part/step.html")]
pub struct Step {
    /// The same on two versions of a page.
    pub key: String,
    pub name: String,
    /// None: it waits, or went back; that is neither good nor bad.
    pub tone: Option<Tone>,
    /// `passed`, `rolling`, `soaks`
    pub word: String,
    pub when: Option<When>,
    pub bar: Option<Bar>,
    pub checks: Vec<Check>,
}

/// One rule of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// None: its turn hasn't come.
    pub holds: Option<bool>,
    pub text: String,
}

impl HtmlSafe for Step {}

impl Step {
    fn class(&self) -> &'static str {
        self.tone.map_or("", Tone::class)
    }
}

impl Check {
    pub fn new(holds: Option<bool>, text: impl Into<String>) -> Check {
        Check { holds, text: text.into() }
    }

    fn class(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "waits",
            None => "later",
        }
    }

    /// For those who don't see the sign.
    fn word(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "waits",
            None => "not yet",
        }
    }
}
