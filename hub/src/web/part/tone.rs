//! The four conditions as shape and word; colour only helps.

use askama::Template;
use askama::filters::HtmlSafe;

/// What is true of an assignment on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tone {
    Converged,
    Converging,
    Failed,
    Unknown,
}

/// The shape alone; the word stands beside it.
#[derive(Clone, Copy, Debug, Template)]
#[template(
    ext = "html",
    source = r##"<svg class="shape {{ tone.class() }}{% if tone == Tone::Converging %} moves{% endif %}" aria-hidden="true"><use href="#shape-{{ tone.class() }}"/></svg>"##
)]
pub struct Shape {
    pub tone: Tone,
}

/// Shape and word, with the reason or version behind it.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<span class="state {{ tone.class() }}">{{ tone.shape() }} {{ tone.word() }}</span>{% if !text.is_empty() %} <span>{{ text }}</span>{% endif %}"#
)]
pub struct State {
    pub tone: Tone,
    pub text: String,
}

impl HtmlSafe for Shape {}
impl HtmlSafe for State {}

impl Tone {
    pub const ALL: [Tone; 4] = [Tone::Converged, Tone::Converging, Tone::Failed, Tone::Unknown];

    /// Of a condition's word; one that we don't know is Unknown, never good.
    pub fn of(word: &str) -> Tone {
        Tone::ALL.into_iter().find(|tone| tone.word() == word).unwrap_or(Tone::Unknown)
    }

    pub fn word(self) -> &'static str {
        match self {
            Tone::Converged => "Converged",
            Tone::Converging => "Converging",
            Tone::Failed => "Failed",
            Tone::Unknown => "Unknown",
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Tone::Converged => "converged",
            Tone::Converging => "converging",
            Tone::Failed => "failed",
            Tone::Unknown => "unknown",
        }
    }

    pub fn shape(self) -> Shape {
        Shape { tone: self }
    }

    /// Shape and word.
    pub fn state(self, text: impl Into<String>) -> State {
        State { tone: self, text: text.into() }
    }
}
