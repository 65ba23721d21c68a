//! What an object's own status comes to, in a few words: kept in place of the object. Made by the judges of Flux, Argo CD and standard
//! conditions; read by `whole` and `platform`.

use kedge_model::wire::Timestamp;
use serde_json::Value;

use super::name::{Kind, Name};
use super::{argo, conditions, flux};

/// The parts of an object that a judge reads.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub namespace: Option<&'a str>,
    pub generation: Option<i64>,
    pub deleting: bool,
    pub spec: &'a Value,
    pub status: &'a Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    pub standing: Standing,
    /// The controller's own word and sentence.
    pub reason: String,
    pub message: String,
    /// What runs or was fetched, as the controller calls it.
    pub revision: Option<String>,
    /// Of the revision, those that name a commit.
    pub commits: Vec<String>,
    /// What was tried last.
    pub attempted: Option<String>,
    pub since: Option<Timestamp>,
    pub suspended: bool,
    /// It waits for others, whose own words say more.
    pub waits: bool,
    /// Where it reads from: objects beside it.
    pub sources: Vec<Name>,
    /// Which repository it reads, if it does so itself.
    pub reads: Option<Reads>,
    /// The folder of its source that it applies.
    pub path: Option<String>,
    pub generation: Option<i64>,
    /// It is at it again, since then, and was settled before.
    pub again: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    Ready,
    #[default]
    Progressing,
    Failed,
}

/// A branch of a repository, as the object spells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    pub repo: String,
    /// None: whichever is the server's default.
    pub branch: Option<String>,
}

/// Flux's reason and Argo CD's health while they work.
const PROGRESSING: &str = "Progressing";
/// A controller's message may hold a whole log; the report shows a sentence.
const MAX_MESSAGE: usize = 1_024;
const MAX_WORD: usize = 64;
const MAX_REVISION: usize = 256;
/// Conditions and sources of one object are a handful.
pub const MAX_ITEMS: usize = 32;

/// The judgement of one object. Pure, and total: any JSON has one.
pub fn judge(kind: &Kind, subject: &Subject<'_>) -> Judged {
    let mut judged = match kind {
        kind if kind.is_flux() => flux::judge(kind, subject),
        kind if kind.is_argo() => argo::judge(kind, subject),
        _ => conditions::judge(subject),
    };
    judged.generation = subject.generation;
    if subject.deleting {
        (judged.standing, judged.message) = (Standing::Progressing, "it is being deleted".to_owned());
    }
    judged
}

impl Judged {
    /// A controller looks again every few seconds or minutes at what it has settled, and says "in progress" meanwhile: that is no news
    /// as long as what it settled is the same.
    pub fn after(mut self, before: Option<&Judged>) -> Judged {
        let same = |before: &&Judged| {
            before.standing != Standing::Progressing
                && before.generation == self.generation
                && before.revision == self.revision
                && before.attempted == self.attempted
        };
        if self.standing != Standing::Progressing || self.waits {
            return self;
        }
        if let Some(before) = before.filter(same) {
            let again = before.again.or(self.since);
            (self.standing, self.reason, self.message) =
                (before.standing, before.reason.clone(), before.message.clone());
            (self.since, self.again) = (before.since, again);
        }
        self
    }

    /// It works on something new, as it should, and hasn't been at it before.
    pub fn is_at_work(&self) -> bool {
        (self.reason == PROGRESSING || self.message.is_empty()) && !self.waits && self.again.is_none()
    }

    pub fn say(&mut self, reason: &str, message: &str) {
        let letters = reason.chars().filter(char::is_ascii_alphanumeric).take(MAX_WORD);
        self.reason = letters.collect();
        self.message = sentence(message);
    }
}

/// Bounded, on one line, and nothing that moves a terminal's cursor.
pub fn sentence(message: &str) -> String {
    let plain = message.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut text = String::new();
    for letter in plain {
        if text.len() >= MAX_MESSAGE {
            text.push('…');
            break;
        }
        if !(letter == ' ' && text.ends_with(' ')) {
            text.push(letter);
        }
    }
    text
}

/// A text at a path of keys, if there is one and it isn't empty.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(value, |value, key| value.get(key))?.as_str().filter(|text| !text.is_empty())
}

pub fn revision(value: &Value, path: &[&str]) -> Option<String> {
    let found = text(value, path)?;
    (found.len() <= MAX_REVISION && !found.chars().any(char::is_control)).then(|| found.to_owned())
}

pub fn time(value: &Value, path: &[&str]) -> Option<Timestamp> {
    let at: jiff::Timestamp = text(value, path)?.parse().ok()?;
    Some(Timestamp(at.as_millisecond()))
}

/// `main@sha1:…`, the older `main/…`, or the bare commit; not `latest@sha256:…`, which names an image.
pub fn is_commit(revision: &str) -> bool {
    let commit = revision.rsplit([':', '/', '@']).next().unwrap_or(revision);
    commit.len() == 40 && commit.bytes().all(|letter| letter.is_ascii_hexdigit())
}
