//! Gates of a PromotionPolicy: what must hold before a change goes on, whom it waits for, and what failures do. Each part
//! is read on top of what stands above it, so that a ring writes only what is different there.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value as Json;

use super::delivery::{duration, word};
use super::each;
use crate::decode::fields::Value;
use crate::decode::node::{self, Shape, short};
use crate::decode::notes::Notes;
use crate::kinds::{Amount, Approval, ApproverRole, Check, Empty, Failure, Gate, Probe, Then};
use crate::quantity::{parse_amount, parse_share};

/// Asking more often would only be a load.
const MIN_EVERY: Duration = Duration::from_secs(1);
const DEFAULT_EVERY: Duration = Duration::from_secs(30);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn gate(value: &Value<'_>, above: &Gate, notes: &mut Notes<'_>) -> Option<Gate> {
    let mut fields = value.fields(notes)?;
    let converged = fields.take("converged").map_or(Some(above.converged), |value| value.amount(notes, parse_share));
    let reached = fields.take("reached").map_or(Some(above.reached), |value| value.amount(notes, parse_amount));
    let failed = fields.take("failed").map_or(Some(above.failed), |value| value.amount(notes, parse_amount));
    let empty = word(fields.take("empty"), &[("wait", Empty::Wait), ("pass", Empty::Pass)], notes);
    let checks = match fields.take("checks") {
        Some(value) => checks(&value, notes),
        None => Some(above.checks.clone()),
    };
    fields.finish_strictly(notes);
    Some(Gate {
        converged: converged?,
        reached: reached?,
        failed: failed?,
        empty: empty?.unwrap_or(above.empty),
        checks: checks?,
    })
}

fn checks(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Vec<Check>> {
    let mut names = BTreeSet::new();
    each(Some(value.clone()), notes, |value, notes| {
        let check = check(value, notes)?;
        if names.insert(check.name.clone()) {
            return Some(check);
        }
        let why = format!("has the name `{}`, which another check of this gate has", short(&check.name));
        value.refuse(notes, "DuplicateName", &why, Some("give each check a name of its own"));
        None
    })
}

fn check(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Check> {
    let mut fields = value.fields(notes)?;
    let name = fields
        .need("name", notes, "name the check, for those who wait for it: `name: smoke-test`")
        .and_then(|value| value.word(notes));
    let mut probes = Vec::new();
    if let Some(value) = fields.take("http") {
        probes.push(http(&value, notes));
    }
    if let Some(value) = fields.take("prometheus") {
        probes.push(prometheus(&value, notes));
    }
    if let Some(value) = fields.take("commitStatus") {
        probes.push(commit_status(&value, notes));
    }
    let asked = fields.take("every");
    let every = duration(asked.clone(), notes);
    let waited = fields.take("timeout");
    let timeout = duration(waited.clone(), notes);
    fields.finish_strictly(notes);
    if probes.len() != 1 {
        value.refuse(notes, "InvalidValue", "must have one of `http`, `prometheus` and `commitStatus`", None);
        return None;
    }
    let (name, probe) = (name?, probes.pop()??);
    let (every, timeout) = (every?.unwrap_or(DEFAULT_EVERY), timeout?.unwrap_or(DEFAULT_TIMEOUT));
    if let Some(value) = asked.filter(|_| every < MIN_EVERY) {
        value.refuse(notes, "InvalidValue", "is less than a second", Some("for example `every: 30s`"));
        return None;
    }
    if let Some(value) = waited.filter(|_| timeout.is_zero()) {
        value.refuse(notes, "InvalidValue", "leaves no time for an answer", Some("for example `timeout: 10s`"));
        return None;
    }
    Some(Check { name, probe, every, timeout })
}

fn http(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Probe> {
    let mut fields = value.fields(notes)?;
    let url = fields.need("url", notes, "add `url:`").and_then(|value| web_address(&value, notes));
    let pointer = fields.take("pointer").map_or(Some(String::new()), |value| pointer(&value, notes));
    let hint = "write the value that the answer must have there: `equals: ok`";
    let equals = match fields.written("equals") {
        Some(value) => json(value.node).map(|json| json.to_string()).or_else(|| {
            value.refuse(notes, "InvalidValue", "can't be written as JSON", None);
            None
        }),
        None => fields.need("equals", notes, hint).and(None),
    };
    fields.finish_strictly(notes);
    Some(Probe::Http { url: url?, pointer: pointer?, equals: equals? })
}

fn prometheus(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Probe> {
    let mut fields = value.fields(notes)?;
    let url =
        fields.need("url", notes, "add `url:`, the Prometheus server").and_then(|value| web_address(&value, notes));
    let query = fields
        .need("query", notes, "add `query:`, whose answer must not be empty or zero")
        .and_then(|value| value.word(notes));
    fields.finish_strictly(notes);
    Some(Probe::Prometheus { url: url?, query: query? })
}

fn commit_status(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Probe> {
    let mut fields = value.fields(notes)?;
    let context = fields
        .need("context", notes, "add `context:`, the name of the status: `context: ci/smoke-test`")
        .and_then(|value| value.word(notes));
    fields.finish_strictly(notes);
    Some(Probe::CommitStatus { context: context? })
}

fn web_address(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let url = value.word(notes)?;
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    if host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
        && !url.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return Some(url);
    }
    value.refuse(notes, "InvalidValue", "must be a URL that begins with `https://` or `http://`", None);
    None
}

fn pointer(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let text = value.text(notes)?;
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if (text.is_empty() || text.starts_with('/')) && escapes {
        return Some(text);
    }
    let hint = "for example `/status` or `/checks/0/ok`; the whole answer is `\"\"`";
    value.refuse(notes, "InvalidValue", "isn't a JSON Pointer", Some(hint));
    None
}

/// What YAML wrote as JSON; none when JSON has no such number.
fn json(node: &kedge_goyaml::Node) -> Option<Json> {
    match node::shape(node) {
        Shape::Null => Some(Json::Null),
        Shape::Text(text) => Some(Json::String(text.to_owned())),
        Shape::Bool(value, _) => Some(Json::Bool(value)),
        Shape::Number(_) => match node.resolve()? {
            kedge_goyaml::Value::Int(number) => Some(number.into()),
            kedge_goyaml::Value::Uint(number) => Some(number.into()),
            kedge_goyaml::Value::Float(number) => serde_json::Number::from_f64(number).map(Json::Number),
            _ => None,
        },
        Shape::List(items) => items.iter().map(json).collect(),
        Shape::Map(_) => node::entries(node).map(|(key, _, value)| Some((key.to_owned(), json(value)?))).collect(),
    }
}

/// The outer None is an error; the inner one is nobody to ask.
pub(super) fn approval(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Option<Approval>> {
    let mut fields = value.fields(notes)?;
    let asked = fields.take("people");
    let people = asked.as_ref().map_or(Some(1), |value| value.count(notes));
    let role = [("platform", ApproverRole::Platform), ("application", ApproverRole::Application)];
    let role = word(fields.take("role"), &role, notes);
    let not_author = fields.take("notAuthor").map_or(Some(true), |value| value.flag(notes));
    fields.finish_strictly(notes);
    let (people, role, not_author) = (people?, role?.unwrap_or_default(), not_author?);
    let Ok(people) = u32::try_from(people) else {
        asked.as_ref().unwrap_or(value).refuse(notes, "InvalidValue", "is more people than there are", None);
        return None;
    };
    Some((people > 0).then_some(Approval { people, role, not_author }))
}

/// How many persons must say that a gate counts as passed.
pub(super) fn override_people(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<u32> {
    let mut fields = value.fields(notes)?;
    let asked = fields.take("people");
    let people = asked.as_ref().map_or(Some(1), |value| value.count(notes));
    fields.finish_strictly(notes);
    match u32::try_from(people?) {
        Ok(people) if people > 0 => Some(people),
        Ok(_) => {
            let hint = "`people: 1` is the least; an override always has somebody's name and reason";
            asked.as_ref().unwrap_or(value).refuse(notes, "InvalidValue", "is nobody", Some(hint));
            None
        }
        Err(_) => {
            asked.as_ref().unwrap_or(value).refuse(notes, "InvalidValue", "is more people than there are", None);
            None
        }
    }
}

pub(super) fn failure(value: &Value<'_>, above: Failure, notes: &mut Notes<'_>) -> Option<Failure> {
    let mut fields = value.fields(notes)?;
    let budget = fields.take("budget").map_or(Some(above.budget), |value| value.amount(notes, parse_amount));
    let then = word(fields.take("then"), &[("pause", Then::Pause), ("rollback", Then::Rollback)], notes);
    fields.finish_strictly(notes);
    Some(Failure { budget: budget?, then: then?.unwrap_or(above.then) })
}

/// At least one at a time, else nothing would ever move.
pub(super) fn max_unavailable(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Amount> {
    let amount = value.amount(notes, parse_amount)?;
    if matches!(amount, Amount::Number(0) | Amount::Share(0)) {
        value.refuse(notes, "InvalidValue", "is none, so that nothing would ever change", Some("`1` is the least"));
        return None;
    }
    Some(amount)
}
