//! From the file's text to a `Config`, key by key: what is asked for is known, what is left over is refused. Where something is wrong
//! the default stays and reading goes on.

use std::ops::Range;
use std::time::Duration;

use kedge_model::quantity::{parse_bytes, parse_duration};
use kedge_model::wire::Profile;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::nearest;
use super::{Config, Endpoint, LONGEST_LOOK, Level, MAX_NAME, Problem, SHORTEST_LOOK};

/// Every key of the file, beside the tables.
pub(super) const KEYS: [&str; 8] =
    ["name", "hub", "traffic", "look_interval", "disk_reserve", "metrics", "log", "kubernetes"];
const TRAFFIC: [(&str, Profile); 2] = [("normal", Profile::Normal), ("low", Profile::Low)];
const LEVELS: [(&str, Level); 4] =
    [("error", Level::Error), ("warn", Level::Warn), ("info", Level::Info), ("debug", Level::Debug)];

pub(super) struct Reader<'t> {
    entries: Vec<(Spanned<String>, Spanned<DeValue<'t>>)>,
    problems: Vec<Problem>,
}

/// A text and where it stands.
pub(super) struct Text {
    pub value: String,
    pub span: Range<usize>,
}

pub(super) fn read(text: &str) -> (Config, Vec<Problem>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { entries: Vec::new(), problems: Vec::new() };
    for error in errors {
        reader.wrong(error.span().unwrap_or(0..0), error.message(), "");
    }
    reader.entries = entries(table.into_inner());
    let mut config = Config::default();
    config.name = reader.name().or(config.name);
    config.hub = reader.hub().or(config.hub);
    config.traffic = reader.choice("traffic", &TRAFFIC).unwrap_or(config.traffic);
    config.look_interval =
        reader.duration("look_interval", SHORTEST_LOOK, LONGEST_LOOK).unwrap_or(config.look_interval);
    config.disk_reserve = reader.size("disk_reserve").unwrap_or(config.disk_reserve);
    config.metrics = reader.endpoint().or(config.metrics);
    config.log = reader.choice("log", &LEVELS).unwrap_or(config.log);
    config.kubernetes = reader.flag("kubernetes").unwrap_or(config.kubernetes);
    config.peers = reader.peers();
    reader.refuse_the_rest(&KEYS);
    (config, reader.problems)
}

fn entries<'t>(table: DeTable<'t>) -> Vec<(Spanned<String>, Spanned<DeValue<'t>>)> {
    let owned = |key: Spanned<std::borrow::Cow<'t, str>>| Spanned::new(key.span(), key.into_inner().into_owned());
    table.into_iter().map(|(key, value)| (owned(key), value)).collect()
}

impl<'t> Reader<'t> {
    pub(super) fn wrong(&mut self, span: Range<usize>, message: impl Into<String>, hint: impl Into<String>) {
        self.problems.push(Problem { span, message: message.into(), hint: hint.into() });
    }

    pub(super) fn text(&mut self, key: &str, what: &str, example: &str) -> Option<Text> {
        let at = self.entries.iter().position(|(name, _)| name.get_ref() == key)?;
        let (_, value) = self.entries.remove(at);
        let span = value.span();
        match value.into_inner() {
            DeValue::String(text) => Some(Text { value: text.into_owned(), span }),
            other => {
                let message = format!("`{key}` is {}, not {what} in quotes", kind(&other));
                self.wrong(span, message, format!("write {key} = \"{example}\""));
                None
            }
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let at = self.entries.iter().position(|(name, _)| name.get_ref() == key)?;
        let (_, value) = self.entries.remove(at);
        let span = value.span();
        match value.into_inner() {
            DeValue::Boolean(flag) => Some(flag),
            other => {
                let message = format!("`{key}` is {}, not true or false", kind(&other));
                self.wrong(span, message, format!("write {key} = true"));
                None
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        let text = self.text("name", "a text", "press-7")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.value.is_empty() || text.value.len() > MAX_NAME || !text.value.chars().all(fits) {
            let hint = format!("write up to {MAX_NAME} letters, digits, `-`, `_` and `.`");
            self.wrong(text.span, "`name` is no name of a cluster", hint);
            return None;
        }
        Some(text.value)
    }

    fn hub(&mut self) -> Option<String> {
        let text = self.text("hub", "an address", "https://hub.example.com:7443")?;
        let host = text.value.strip_prefix("https://").map(|rest| rest.trim_end_matches('/'));
        match host {
            Some(host) if !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']) => {
                Some(format!("https://{host}"))
            }
            _ => {
                self.wrong(text.span, "`hub` is no address of a hub", "write \"https://HOST:PORT\" without a path");
                None
            }
        }
    }

    fn endpoint(&mut self) -> Option<Endpoint> {
        let text = self.text("metrics", "an address", "127.0.0.1:7481")?;
        let endpoint = Endpoint::of(&text.value);
        if endpoint.is_none() {
            let hint = "write \"127.0.0.1:7481\" or \"unix:/run/kedge-agent/metrics.sock\"; other hosts can't connect";
            self.wrong(text.span, "`metrics` is no place on this host", hint);
        }
        endpoint
    }

    pub(super) fn choice<T: Copy>(&mut self, key: &str, choices: &[(&'static str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let text = self.text(key, "a text", words.first().unwrap_or(&""))?;
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text.value) {
            return Some(*value);
        }
        let hint = match nearest(&text.value, &words) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("write one of \"{}\"", words.join("\", \"")),
        };
        let shown: String = text.value.chars().take(60).collect();
        self.wrong(text.span, format!("`{key}` can't be \"{shown}\""), hint);
        None
    }

    fn duration(&mut self, key: &str, least: Duration, most: Duration) -> Option<Duration> {
        let text = self.text(key, "a duration", "5m")?;
        let (message, hint) = match parse_duration(&text.value) {
            Ok(duration) if duration < least => ("is too short", format!("write \"{}s\" or more", least.as_secs())),
            Ok(duration) if duration > most => ("is too long", format!("write \"{}m\" or less", most.as_secs() / 60)),
            Ok(duration) => return Some(duration),
            Err(_) => ("is no duration", "write \"30s\", \"5m\" or \"1h30m\"".to_owned()),
        };
        self.wrong(text.span, format!("`{key}` {message}"), hint);
        None
    }

    fn size(&mut self, key: &str) -> Option<u64> {
        let text = self.text(key, "a size", "256Mi")?;
        match parse_bytes(&text.value) {
            Ok(bytes) => Some(bytes),
            Err(_) => {
                self.wrong(text.span, format!("`{key}` is no size"), "write \"256Mi\" or \"1Gi\"");
                None
            }
        }
    }

    /// A value as it stands.
    pub(super) fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'t>>> {
        let at = self.entries.iter().position(|(name, _)| name.get_ref() == key)?;
        Some(self.entries.remove(at).1)
    }

    /// What is inside of a table, as a file of its own.
    pub(super) fn table(&mut self, key: &str) -> Option<Reader<'t>> {
        let value = self.take(key)?;
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Reader { entries: entries(table), problems: Vec::new() }),
            other => {
                let message = format!("`{key}` is {}, not a table", kind(&other));
                self.wrong(span, message, format!("write [{key}] on a line of its own and the settings below it"));
                None
            }
        }
    }

    pub(super) fn join(&mut self, inner: Reader<'t>) {
        self.problems.extend(inner.problems);
    }

    pub(super) fn refuse_the_rest(&mut self, keys: &[&str]) {
        for (key, _) in std::mem::take(&mut self.entries) {
            let hint = match nearest(key.get_ref(), keys) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the file knows `{}`", keys.join("`, `")),
            };
            let shown: String = key.get_ref().chars().take(60).collect();
            self.wrong(key.span(), format!("unknown key `{shown}`"), hint);
        }
    }
}

pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
