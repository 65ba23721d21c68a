//! The four conditions as shape and word; colour only helps.

use askama::Template;
use askama::filters::HtmlSafe;

/// What is true of an assignment on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mood {
    Converged,
    Converging,
    Failed,
    Unknown,
}

/// The shape alone; the word stands beside it.
#[derive(Clone, Copy, Debug, Template)]
#[template(
    ext = "html",
    source = r##"<svg class="shape {{ mood.class() }}{% if mood == Mood::Converging %} moves{% endif %}" aria-hidden="true"><use href="#shape-{{ mood.class() }}"/></svg>"##
)]
pub struct Shape {
    pub mood: Mood,
}

/// Shape and word, with the reason or version behind it.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<span class="state {{ mood.class() }}">{{ mood.shape() }} {{ mood.word() }}</span>{% if !text.is_empty() %} <span>{{ text }}</span>{% endif %}"#
)]
pub struct State {
    pub mood: Mood,
    pub text: String,
}

impl HtmlSafe for Shape {}
impl HtmlSafe for State {}

impl Mood {
    pub const ALL: [Mood; 4] = [Mood::Converged, Mood::Converging, Mood::Failed, Mood::Unknown];

    /// Of a condition's word; one that we don't know is Unknown, never good.
    pub fn of(word: &str) -> Mood {
        Mood::ALL.into_iter().find(|mood| mood.word() == word).unwrap_or(Mood::Unknown)
    }

    pub fn word(self) -> &'static str {
        match self {
            Mood::Converged => "Converged",
            Mood::Converging => "Converging",
            Mood::Failed => "Failed",
            Mood::Unknown => "Unknown",
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Mood::Converged => "converged",
            Mood::Converging => "converging",
            Mood::Failed => "failed",
            Mood::Unknown => "unknown",
        }
    }

    pub fn shape(self) -> Shape {
        Shape { mood: self }
    }

    /// Shape and word.
    pub fn state(self, text: impl Into<String>) -> State {
        State { mood: self, text: text.into() }
    }
}
