//! `[[events]]`: where events go. Read by `parse`.

use kedge_hub_types::events::EventKind;

use super::Destination;
use super::parse::holds_secret;
use super::problem::nearest;
use super::reader::Section;

/// A name is a label of metrics.
const MAX_NAME: usize = 63;

pub(super) fn read(mut section: Section<'_, '_>, before: &[Destination]) -> Option<Destination> {
    let name = name(&mut section, before);
    let url = url(&mut section);
    let secret_file = section.file("secret_file", true);
    if secret_file.is_none() {
        section
            .missing("secret_file", "name the file with the secret that events are signed with; openssl rand -hex 32");
    }
    let kinds = kinds(&mut section);
    let environments = section.texts("environments").unwrap_or_default();
    section.finish();
    Some(Destination {
        name: name?,
        url: url?,
        secret_file: secret_file?,
        kinds,
        environments: environments.into_iter().map(|text| text.value).collect(),
    })
}

fn name(section: &mut Section<'_, '_>, before: &[Destination]) -> Option<String> {
    let Some(name) = section.filled("name") else {
        section.missing("name", "give it a name: name = \"operations\"");
        return None;
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.value.len() > MAX_NAME || !name.value.chars().all(fits) {
        let hint = format!("write up to {MAX_NAME} letters, digits, `-`, `_` and `.`");
        section.notes().error(name.span, "`name` is no name of a destination", hint);
        return None;
    }
    if before.iter().any(|known| known.name == name.value) {
        let message = format!("there are two destinations `{}`", name.value);
        section.notes().error(name.span, message, "give each a name of its own");
        return None;
    }
    Some(name.value)
}

fn url(section: &mut Section<'_, '_>) -> Option<String> {
    let Some(url) = section.filled("url") else {
        section.missing("url", "write where events are sent: url = \"https://events.example.com/kedge\"");
        return None;
    };
    if holds_secret(&url.value) {
        let hint = "leave it out: the signature says who sends";
        section.notes().error(url.span, "`url` holds a password", hint);
        return None;
    }
    let parsed = url.value.parse::<http::Uri>().ok();
    let host = parsed.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
    let loopback = host == "localhost"
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let scheme = parsed.as_ref().and_then(|uri| uri.scheme_str());
    match scheme {
        Some("https") if !host.is_empty() => Some(url.value),
        Some("http") if loopback => Some(url.value),
        _ => {
            let hint = "write an https address; http is for this machine only, such as \"http://127.0.0.1:8080/\"";
            section.notes().error(url.span, "`url` is no address that events can be sent to", hint);
            None
        }
    }
}

fn kinds(section: &mut Section<'_, '_>) -> Vec<EventKind> {
    let Some(texts) = section.texts("kinds") else { return EventKind::DEFAULT.to_vec() };
    let mut kinds = Vec::new();
    for text in texts {
        let words = EventKind::ALL.iter().map(|(word, _)| *word);
        match EventKind::ALL.iter().find(|(word, _)| *word == text.value) {
            Some((_, kind)) => kinds.push(*kind),
            None => {
                let hint = match nearest(&text.value, words.clone()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("write some of {}", words.collect::<Vec<_>>().join(", ")),
                };
                section.notes().error(text.span, "`kinds` names no kind of event", hint);
            }
        }
    }
    kinds
}
