//! Reads one table of the file, key by key: what is asked for is known, what is left over is refused. Every problem is
//! kept with its place, and reading goes on with the default.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use kedge_model::quantity::{parse_bytes, parse_duration};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{ConfigProblem, nearest};

/// What reading a file comes to beside its values.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub problems: Vec<ConfigProblem>,
    /// Files that must be there when the hub starts.
    pub files: Vec<NamedFile>,
    /// Every key that was asked for, with dots: what the annotated example must explain.
    pub known: BTreeSet<String>,
    /// Relative paths begin here: the file's own folder.
    pub base: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedFile {
    pub path: PathBuf,
    pub span: Range<usize>,
    /// Others must not be able to read it.
    pub secret: bool,
}

/// A table that is being read.
pub(super) struct Section<'n, 't> {
    notes: &'n mut Notes,
    /// `git.credentials`; empty for the whole file.
    name: String,
    span: Range<usize>,
    entries: Vec<(Spanned<String>, Option<Spanned<DeValue<'t>>>)>,
    asked: Vec<&'static str>,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub value: T,
    pub span: Range<usize>,
}

impl Notes {
    pub(super) fn error(&mut self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(ConfigProblem { span, message: message.into(), hint: hint.into(), warning: false });
    }

    pub(super) fn warning(&mut self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(ConfigProblem { span, message: message.into(), hint: hint.into(), warning: true });
    }
}

impl<'n, 't> Section<'n, 't> {
    pub(super) fn new(notes: &'n mut Notes, name: &str, span: Range<usize>, table: DeTable<'t>) -> Section<'n, 't> {
        let entries = table
            .into_iter()
            .map(|(key, value)| (Spanned::new(key.span(), key.into_inner().into_owned()), Some(value)))
            .collect();
        Section { notes, name: name.to_owned(), span, entries, asked: Vec::new() }
    }

    pub(super) fn notes(&mut self) -> &mut Notes {
        self.notes
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// What is left over is nothing that we know.
    pub(super) fn finish(self) {
        for (key, value) in &self.entries {
            if value.is_none() {
                continue;
            }
            let place = if self.name.is_empty() { "the file".to_owned() } else { format!("[{}]", self.name) };
            let hint = match nearest(key.get_ref(), self.asked.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("{place} knows {}", list(&self.asked)),
            };
            self.notes.error(key.span(), format!("unknown key `{}` in {place}", key.get_ref()), hint);
        }
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Spanned<DeValue<'t>>> {
        self.asked.push(key);
        self.notes.known.insert(self.dotted(key));
        let entry = self.entries.iter_mut().find(|(name, _)| name.get_ref() == key)?;
        entry.1.take()
    }

    /// A table below this one.
    pub(super) fn section(&mut self, key: &'static str) -> Option<Section<'_, 't>> {
        let value = self.take(key)?;
        let name = self.dotted(key);
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Section::new(self.notes, &name, span, table)),
            other => {
                self.notes.error(span, format!("`{name}` is {}, not a table", kind(&other)), format!("write [{name}]"));
                None
            }
        }
    }

    /// All tables of a list: `[[git.credentials]]`.
    pub(super) fn each(&mut self, key: &'static str, mut read: impl FnMut(Section<'_, 't>)) {
        let Some(value) = self.take(key) else { return };
        let name = self.dotted(key);
        let span = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            self.notes.error(span, format!("`{name}` is not a list of tables"), format!("write [[{name}]]"));
            return;
        };
        for item in items {
            let span = item.span();
            match item.into_inner() {
                DeValue::Table(table) => read(Section::new(self.notes, &name, span, table)),
                other => {
                    let message = format!("`{name}` holds {}, not a table", kind(&other));
                    self.notes.error(span, message, format!("write [[{name}]]"));
                }
            }
        }
    }

    /// All tables below one, by names that the writer chose: `[environments.dev]`.
    pub(super) fn named(&mut self, key: &'static str, mut read: impl FnMut(&str, Section<'_, 't>)) {
        let Some(value) = self.take(key) else { return };
        let name = self.dotted(key);
        let span = value.span();
        let DeValue::Table(tables) = value.into_inner() else {
            self.notes.error(span, format!("`{name}` is not a table"), format!("write [{name}.NAME]"));
            return;
        };
        for (chosen, value) in tables {
            let span = value.span();
            match value.into_inner() {
                DeValue::Table(table) => {
                    let section = Section::new(self.notes, &format!("{name}.NAME"), span, table);
                    read(chosen.get_ref(), section);
                }
                other => {
                    let message = format!("`{name}.{}` is {}, not a table", chosen.get_ref(), kind(&other));
                    self.notes.error(span, message, format!("write [{name}.{}]", chosen.get_ref()));
                }
            }
        }
    }

    /// Keys that the writer chose, each with a duration: `[git.poll_of]`.
    pub(super) fn durations(&mut self, key: &'static str, least: Duration) -> Vec<(String, Duration)> {
        let Some(value) = self.take(key) else { return Vec::new() };
        let name = self.dotted(key);
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            self.notes.error(span, format!("`{name}` is not a table"), format!("write [{name}]"));
            return Vec::new();
        };
        let mut read = Vec::new();
        for (chosen, value) in table {
            let span = value.span();
            if let Some(duration) = self.read_duration(chosen.get_ref(), value.get_ref(), span, least, "") {
                read.push((chosen.into_inner().into_owned(), duration));
            }
        }
        read
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<At<String>> {
        let value = self.take(key)?;
        let span = value.span();
        match value.into_inner() {
            DeValue::String(text) => Some(At { value: text.into_owned(), span }),
            other => {
                self.wrong(key, &other, span, "a text in quotes", "\"…\"");
                None
            }
        }
    }

    /// A text that isn't empty.
    pub(super) fn filled(&mut self, key: &'static str) -> Option<At<String>> {
        let text = self.text(key)?;
        if text.value.trim().is_empty() {
            self.notes.error(text.span, format!("`{key}` is empty"), "leave the key out, or give it a value");
            return None;
        }
        Some(text)
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<At<String>>> {
        let value = self.take(key)?;
        let span = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            self.notes.error(span, format!("`{key}` is not a list"), format!("write {key} = [\"…\", \"…\"]"));
            return None;
        };
        let mut read = Vec::new();
        for item in items {
            let span = item.span();
            match item.into_inner() {
                DeValue::String(text) => read.push(At { value: text.into_owned(), span }),
                other => self.wrong(key, &other, span, "a list of texts", "[\"…\", \"…\"]"),
            }
        }
        Some(read)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.take(key)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            other => {
                self.wrong(key, other, value.span(), "true or false", "true");
                None
            }
        }
    }

    pub(super) fn number(&mut self, key: &'static str, allowed: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let value = self.take(key)?;
        let DeValue::Integer(integer) = value.get_ref() else {
            self.wrong(key, value.get_ref(), value.span(), "a number", "100");
            return None;
        };
        let number = u32::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok();
        let number = number.filter(|number| allowed.contains(number));
        if number.is_none() {
            let message = format!("`{key}` is {}", integer.as_str());
            self.notes.error(
                value.span(),
                message,
                format!("write a number from {} to {}", allowed.start(), allowed.end()),
            );
        }
        number
    }

    pub(super) fn duration(&mut self, key: &'static str, least: Duration) -> Option<Duration> {
        self.duration_because(key, least, "")
    }

    /// The same; who writes less is told why it is too short.
    pub(super) fn duration_because(&mut self, key: &'static str, least: Duration, why: &str) -> Option<Duration> {
        let value = self.take(key)?;
        self.read_duration(key, value.get_ref(), value.span(), least, why)
    }

    /// `2GB`, `512MiB`.
    pub(super) fn bytes(&mut self, key: &'static str, least: u64) -> Option<u64> {
        let text = self.text(key)?;
        let name = self.dotted(key);
        match parse_bytes(text.value.strip_suffix('B').unwrap_or(&text.value)) {
            Ok(bytes) if bytes >= least => Some(bytes),
            Ok(_) => {
                let message = format!("`{name}` is too small");
                self.notes.error(text.span, message, format!("write at least \"{}\"", super::show::bytes(least)));
                None
            }
            Err(_) => {
                self.notes.error(text.span, format!("`{name}` is no size"), "write \"2GB\" or \"500MB\"");
                None
            }
        }
    }

    pub(super) fn address(&mut self, key: &'static str) -> Option<At<SocketAddr>> {
        let text = self.text(key)?;
        match text.value.parse() {
            Ok(value) => Some(At { value, span: text.span }),
            Err(_) => {
                let message = format!("`{key}` is no address and port");
                self.notes.error(
                    text.span,
                    message,
                    "write \"127.0.0.1:7480\" or \"[::]:7480\"; names are not looked up",
                );
                None
            }
        }
    }

    /// Relative to the file's folder.
    pub(super) fn path(&mut self, key: &'static str) -> Option<PathBuf> {
        let text = self.filled(key)?;
        Some(self.notes.base.join(text.value))
    }

    /// A file that must be there.
    pub(super) fn file(&mut self, key: &'static str, secret: bool) -> Option<PathBuf> {
        let text = self.filled(key)?;
        let path = self.notes.base.join(text.value);
        self.notes.files.push(NamedFile { path: path.clone(), span: text.span, secret });
        Some(path)
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(key)?;
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text.value) {
            return Some(*value);
        }
        let words: Vec<&'static str> = choices.iter().map(|(word, _)| *word).collect();
        let hint = match nearest(&text.value, words.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("write {}", list(&words)),
        };
        self.notes.error(text.span, format!("`{key}` can't be \"{}\"", short(&text.value)), hint);
        None
    }

    /// A key that can't be left out.
    pub(super) fn missing(&mut self, key: &str, hint: &str) {
        let message = format!("[{}] lacks `{key}`", self.name);
        self.notes.error(self.span.clone(), message, hint);
    }

    fn read_duration(
        &mut self,
        key: &str,
        value: &DeValue<'_>,
        span: Range<usize>,
        least: Duration,
        why: &str,
    ) -> Option<Duration> {
        let DeValue::String(text) = value else {
            self.wrong(key, value, span, "a duration in quotes", "\"30s\"");
            return None;
        };
        match parse_duration(text) {
            Ok(duration) if duration >= least => Some(duration),
            Ok(_) => {
                let gap = if why.is_empty() { "" } else { ": " };
                let message = format!("`{key}` is too short{gap}{why}");
                self.notes.error(span, message, format!("write \"{}\" or more", super::show::duration(least)));
                None
            }
            Err(_) => {
                let message = format!("`{key}` is no duration");
                self.notes.error(span, message, "write \"30s\", \"5m\" or \"1h30m\"");
                None
            }
        }
    }

    fn wrong(&mut self, key: &str, found: &DeValue<'_>, span: Range<usize>, expected: &str, example: &str) {
        let message = format!("`{key}` is {}, not {expected}", kind(found));
        self.notes.error(span, message, format!("write {key} = {example}"));
    }

    fn dotted(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}
