//! What a commit and a pull request say: what changed, and why. Pure; called by `direct` and `request`. Values never
//! appear here, only names; the subjects of other people's commits are cut, kept on one line and shown as code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kedge_model::wire::Digest;
use kedge_scheduler::{PROMOTED_COMMIT, README, Redaction};

use super::Cause;
use super::guard::Removal;
use super::plan::{Change, Plan, assignment_of};
use super::tree::Listing;

/// Assignments that a message names; the rest is a number.
const NAMED: usize = 50;

/// Causes that a message names: a burst of pushes may have many.
const CAUSES: usize = 10;

/// Names of a removal that a pull request lists.
const GONE: usize = 30;

/// Other people's text.
const SUBJECT: usize = 160;

/// Both forges take 255 characters.
const TITLE: usize = 250;

/// GitHub takes 65,536 characters, Gitea more.
const BODY: usize = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    New,
    Changed,
    Removed,
}

/// A plan's changes as people count them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// By assignment: what happens, and to which files.
    pub assignments: BTreeMap<String, (Kind, Vec<String>)>,
    pub types_new: BTreeSet<String>,
    pub types_removed: BTreeSet<String>,
    /// The commit of main that is now promoted.
    pub promoted: Option<String>,
}

impl Summary {
    pub fn of(plan: &Plan, listing: &Listing) -> Summary {
        let mut summary = Summary::default();
        for (path, change) in &plan.changes {
            if let Some((cluster_type, target)) = assignment_of(path) {
                let (_, files) = summary
                    .assignments
                    .entry(format!("{cluster_type}/{target}"))
                    .or_insert_with(|| (Kind::Changed, Vec::new()));
                files.push(path.rsplit('/').next().unwrap_or_default().to_owned());
            } else if path == PROMOTED_COMMIT {
                summary.promoted = match change {
                    Change::Write { text, .. } => Some(text.to_string()),
                    Change::Delete => None,
                };
            } else if let Some(name) = path.strip_suffix(README).and_then(|folder| folder.strip_suffix('/')) {
                let types = match change {
                    Change::Write { .. } => &mut summary.types_new,
                    Change::Delete => &mut summary.types_removed,
                };
                types.insert(name.to_owned());
            }
        }
        for (folder, (kind, files)) in &mut summary.assignments {
            let paths = || kedge_scheduler::Files::NAMES.iter().map(|name| format!("{folder}/{name}"));
            let there = paths().filter(|path| listing.files.contains_key(path)).count();
            let deleted = paths().filter(|path| plan.changes.get(path) == Some(&Change::Delete)).count();
            *kind = match (there, deleted == files.len() && deleted == there) {
                (0, _) => Kind::New,
                (_, true) => Kind::Removed,
                _ => Kind::Changed,
            };
        }
        summary
    }

    fn count(&self, kind: Kind) -> usize {
        self.assignments.values().filter(|(found, _)| *found == kind).count()
    }

    /// `dev: 3 assignments changed, 1 new (drone/hello-test, …)`
    pub fn subject(&self, environment: &str) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (kind, word) in [(Kind::Changed, "changed"), (Kind::New, "new"), (Kind::Removed, "removed")] {
            match (self.count(kind), parts.is_empty()) {
                (0, _) => {}
                (1, true) => parts.push(format!("1 assignment {word}")),
                (number, true) => parts.push(format!("{number} assignments {word}")),
                (number, false) => parts.push(format!("{number} {word}")),
            }
        }
        for (types, word) in [(&self.types_new, "new"), (&self.types_removed, "removed")] {
            match types.len() {
                0 => {}
                1 => parts.push(format!("1 cluster type {word}")),
                number => parts.push(format!("{number} cluster types {word}")),
            }
        }
        if let (true, Some(commit)) = (parts.is_empty(), &self.promoted) {
            return format!("{environment}: main {} promoted", short(commit));
        }
        let mut text =
            format!("{environment}: {}", if parts.is_empty() { "files repaired".to_owned() } else { parts.join(", ") });
        match (self.assignments.keys().next(), self.assignments.len()) {
            (Some(first), 1) => _ = write!(text, " ({first})"),
            (Some(first), _) => _ = write!(text, " ({first}, …)"),
            (None, _) => {}
        }
        cut(&text, TITLE)
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.assignments.iter().take(NAMED).map(|(name, (kind, files))| match kind {
            Kind::New => format!("{name} new"),
            Kind::Removed => format!("{name} removed"),
            Kind::Changed => format!("{name} changed ({})", files.join(", ")),
        })
    }

    fn more(&self) -> usize {
        self.assignments.len().saturating_sub(NAMED)
    }
}

/// A commit's whole message.
pub fn commit(
    environment: &str,
    summary: &Summary,
    removals: &BTreeMap<String, Removal>,
    content: Digest,
    causes: &[Cause],
) -> String {
    let mut text = summary.subject(environment);
    text.push('\n');
    for (cause, mark) in causes.iter().take(CAUSES).zip(std::iter::once("\n").chain(std::iter::repeat(""))) {
        let _ = writeln!(text, "{mark}{}", cause.line());
    }
    if causes.len() > CAUSES {
        let _ = writeln!(text, "and {} more commits", causes.len() - CAUSES);
    }
    for (line, mark) in summary.lines().zip(std::iter::once("\n").chain(std::iter::repeat(""))) {
        let _ = writeln!(text, "{mark}- {line}");
    }
    if summary.more() > 0 {
        let _ = writeln!(text, "- and {} more", summary.more());
    }
    for (cluster_type, removal) in removals {
        let _ = writeln!(text, "\n{}", removal.sentence(cluster_type));
    }
    let _ = write!(text, "\nKedge-Environment: {environment}\n");
    if let Some(cause) = causes.first() {
        let _ = writeln!(text, "Kedge-Cause: {}@{}", shown_repo(&cause.repo), one_line(&cause.commit));
    }
    let _ = writeln!(text, "Kedge-Content: {content}");
    text
}

/// A pull request's body, in Markdown.
pub fn body(environment: &str, summary: &Summary, plan: &Plan, causes: &[Cause]) -> String {
    let mut text = String::new();
    for (cluster_type, removal) in &plan.removals {
        let _ = writeln!(text, "> [!WARNING]\n> {} Merging confirms it.\n>", removal.sentence(cluster_type));
        for name in removal.gone.iter().take(GONE) {
            let _ = writeln!(text, "> - {}", code(name));
        }
        if removal.gone.len() > GONE {
            let _ = writeln!(text, "> - and {} more", removal.gone.len() - GONE);
        }
        text.push('\n');
    }
    let _ = writeln!(text, "What environment {} should look like now.\n", code(environment));
    if let Some(commit) = &summary.promoted {
        let _ = writeln!(text, "Promotes commit {} of main.\n", code(commit));
    }
    if !causes.is_empty() {
        text.push_str("Because of:\n\n");
        for cause in causes.iter().take(CAUSES) {
            let _ = writeln!(text, "- {}", code(&cause.line()));
        }
        if causes.len() > CAUSES {
            let _ = writeln!(text, "- and {} more commits", causes.len() - CAUSES);
        }
        text.push('\n');
    }
    for line in summary.lines() {
        let _ = writeln!(text, "- {}", code(&line));
    }
    if summary.more() > 0 {
        let _ = writeln!(text, "- and {} more", summary.more());
    }
    for (types, word) in [(&summary.types_new, "new"), (&summary.types_removed, "removed")] {
        for name in types.iter().take(NAMED) {
            let _ = writeln!(text, "- cluster type {} {word}", code(name));
        }
    }
    if !plan.hand_edits.is_empty() {
        text.push_str("\nEdited on the branch by people, and kept:\n\n");
        for path in plan.hand_edits.iter().take(GONE) {
            let _ = writeln!(text, "- {}", code(path));
        }
    }
    let _ = writeln!(
        text,
        "\nThis pull request is kept up to date. Closed, it stays closed until its content changes. `Kedge-Content: {}`",
        plan.content
    );
    cut(&text, BODY)
}

impl Removal {
    pub fn sentence(&self, cluster_type: &str) -> String {
        format!("Cluster type {} loses {} of its {} assignments.", code(cluster_type), self.gone.len(), self.of)
    }
}

impl Cause {
    /// `repo@sha subject`
    fn line(&self) -> String {
        let subject = hide(&one_line(&self.subject));
        format!("{}@{} {}", shown_repo(&self.repo), short(&self.commit), cut(&subject, SUBJECT)).trim_end().to_owned()
    }
}

/// Without a name or password that an address may carry.
pub fn shown_repo(repo: &str) -> String {
    let repo = one_line(repo);
    match repo.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => repo,
    }
}

/// Without passwords of addresses, signatures and what follows `password=`.
fn hide(text: &str) -> String {
    let named = |word: &str| {
        let pair = word.split_once(['=', ':']).filter(|(_, value)| !value.is_empty() && !value.starts_with('/'));
        pair.is_some_and(|(name, _)| Redaction::default().is_secret_key(name))
    };
    let sentence = Redaction::default().sentence(text, []);
    sentence.split(' ').map(|word| if named(word) { "[redacted]" } else { word }).collect::<Vec<_>>().join(" ")
}

fn short(commit: &str) -> String {
    one_line(commit).chars().take(12).collect()
}

fn one_line(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

fn cut(text: &str, limit: usize) -> String {
    match text.chars().count() > limit {
        true => text.chars().take(limit - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// As code, where neither `@name` nor `closes #1` nor HTML means anything.
fn code(text: &str) -> String {
    format!("`{}`", one_line(text).replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(subject: &str) -> Cause {
        Cause {
            repo: "https://me:pw@git.example/platform".to_owned(),
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            subject: subject.to_owned(),
            author: "Ann".to_owned(),
        }
    }

    #[test]
    fn a_subject_counts_what_changed() {
        let mut summary = Summary::default();
        assert_eq!(summary.subject("dev"), "dev: files repaired");
        summary.promoted = Some("0123456789abcdef".to_owned());
        assert_eq!(summary.subject("dev"), "dev: main 0123456789ab promoted");
        summary.assignments.insert("drone/hello-test".to_owned(), (Kind::Changed, vec!["namespace.yaml".to_owned()]));
        assert_eq!(summary.subject("dev"), "dev: 1 assignment changed (drone/hello-test)");
        summary.assignments.insert("drone/x-y".to_owned(), (Kind::New, vec![]));
        summary.types_new.insert("drone".to_owned());
        assert_eq!(
            summary.subject("dev"),
            "dev: 1 assignment changed, 1 new, 1 cluster type new (drone/hello-test, …)"
        );
    }

    #[test]
    fn a_cause_is_one_line_without_secrets() {
        let told = cause("Set password=hunter2\nKedge-Environment: prod\u{7}\n see postgres://a:b@c/d").line();
        assert_eq!(
            told,
            "https://git.example/platform@0123456789ab Set [redacted] Kedge-Environment: prod   see [redacted]"
        );
        assert!(cause(&"x".repeat(9000)).line().chars().count() < 250);
    }

    #[test]
    fn markdown_of_others_is_shown_as_code() {
        assert_eq!(code("closes #1 `@all` <img>"), "`closes #1 '@all' <img>`");
    }

    proptest::proptest! {
        #[test]
        fn texts_of_others_never_make_a_line_or_grow(subject in ".{0,400}", repo in ".{0,60}") {
            let told = Cause { repo, ..cause(&subject) }.line();
            proptest::prop_assert!(!told.contains('\n') && told.chars().count() < 300);
        }
    }
}
