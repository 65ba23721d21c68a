//! Label selectors as written: `matchLabels` and `matchExpressions`, checked as Kubernetes checks them.

use super::fields::Value;
use super::metadata;
use super::notes::Notes;
use crate::{Labels, Operator, Requirement, Selector};

/// Whether a field that isn't known is let pass, as Kalypso does, or refused. In a selector it matters: what isn't
/// read doesn't narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Warn,
    Refuse,
}

const OPERATORS: [(&str, Operator); 4] = [
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("Exists", Operator::Exists),
    ("DoesNotExist", Operator::DoesNotExist),
];

pub(super) fn read(value: &Value<'_>, unknown: Unknown, notes: &mut Notes<'_>) -> Option<Selector> {
    let mut fields = value.fields(notes)?;
    let match_labels = match fields.take("matchLabels") {
        Some(value) => metadata::texts(&value, notes),
        None => Some(Labels::new()),
    };
    let match_expressions = match fields.take("matchExpressions") {
        Some(value) => requirements(&value, notes),
        None => Some(Vec::new()),
    };
    match unknown {
        Unknown::Warn => fields.finish(notes),
        Unknown::Refuse => fields.finish_strictly(notes),
    }
    Some(Selector { match_labels: match_labels?, match_expressions: match_expressions? })
}

fn requirements(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Vec<Requirement>> {
    let read: Vec<Option<Requirement>> = value.items(notes)?.iter().map(|item| requirement(item, notes)).collect();
    read.into_iter().collect()
}

fn requirement(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<Requirement> {
    let mut fields = value.fields(notes)?;
    let key = fields.need("key", notes, "name the label: `key: region`").and_then(|value| value.word(notes));
    let operator = fields
        .need("operator", notes, "write `In`, `NotIn`, `Exists` or `DoesNotExist`")
        .and_then(|value| value.choice(notes, &OPERATORS));
    let written = fields.take("values");
    let values = match &written {
        Some(values) => values.texts(notes),
        None => Some(Vec::new()),
    };
    fields.finish(notes);
    let (key, operator, values) = (key?, operator?, values?);
    if operator.takes_values() && values.is_empty() {
        let hint = "list at least one value, or use `Exists` or `DoesNotExist`";
        value.refuse(notes, "InvalidValue", &format!("has the operator `{operator}` but no `values`"), Some(hint));
        return None;
    }
    if let (Some(written), false, false) = (&written, operator.takes_values(), values.is_empty()) {
        let why = format!("can't be there, because the operator `{operator}` takes none");
        written.refuse(notes, "InvalidValue", &why, Some("remove `values`, or use `In` or `NotIn`"));
        return None;
    }
    Some(Requirement { key, operator, values })
}
