//! Label selectors with the semantics of Kubernetes. Read by the scheduler, and by `explain` to say which label is
//! missing.

mod parse;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Labels;
pub use parse::SelectorError;

/// All of its parts must hold. The default, `{}`, selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    pub match_labels: Labels,
    pub match_expressions: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
    /// Of `In` and `NotIn`; empty for the others.
    #[serde(default)]
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// One part of a selector that some labels don't fulfil.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mismatch {
    pub key: String,
    /// The value the label has; none when it is missing.
    pub found: Option<String>,
    pub wanted: Wanted,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// One of these; a `matchLabels` pair has one.
    AnyOf(Vec<String>),
    NoneOf(Vec<String>),
    Present,
    Absent,
}

impl Selector {
    /// The selector of a single pair.
    pub fn label(key: impl Into<String>, value: impl Into<String>) -> Selector {
        Selector { match_labels: Labels::from([(key.into(), value.into())]), match_expressions: Vec::new() }
    }

    pub fn is_everything(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }

    /// Every part that fails, in the order they are written; empty when the labels match.
    pub fn mismatch(&self, labels: &Labels) -> Vec<Mismatch> {
        let pairs =
            self.match_labels.iter().filter(|(key, value)| labels.get(*key) != Some(*value)).map(|(key, value)| {
                Mismatch {
                    key: key.clone(),
                    found: labels.get(key).cloned(),
                    wanted: Wanted::AnyOf(vec![value.clone()]),
                }
            });
        pairs.chain(self.match_expressions.iter().filter_map(|requirement| requirement.mismatch(labels))).collect()
    }

    /// The label keys that the selector looks at: a change of any other can't change its answer.
    pub fn keys(&self) -> BTreeSet<&str> {
        let pairs = self.match_labels.keys().map(String::as_str);
        pairs.chain(self.match_expressions.iter().map(|requirement| requirement.key.as_str())).collect()
    }
}

impl Requirement {
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            // As in Kubernetes, a label that isn't there is not in any list.
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }

    pub fn mismatch(&self, labels: &Labels) -> Option<Mismatch> {
        if self.matches(labels) {
            return None;
        }
        let wanted = match self.operator {
            Operator::In => Wanted::AnyOf(self.values.clone()),
            Operator::NotIn => Wanted::NoneOf(self.values.clone()),
            Operator::Exists => Wanted::Present,
            Operator::DoesNotExist => Wanted::Absent,
        };
        Some(Mismatch { key: self.key.clone(), found: labels.get(&self.key).cloned(), wanted })
    }
}

impl Operator {
    pub const ALL: [Operator; 4] = [Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist];

    pub fn as_str(self) -> &'static str {
        match self {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
        }
    }

    pub fn parse(word: &str) -> Option<Operator> {
        Operator::ALL.into_iter().find(|operator| operator.as_str() == word)
    }

    pub fn takes_values(self) -> bool {
        matches!(self, Operator::In | Operator::NotIn)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As kubectl writes selectors: `region=west-us, size in (a,b), !edge`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_everything() {
            return f.write_str("everything");
        }
        let mut between = "";
        for (key, value) in &self.match_labels {
            write!(f, "{between}{key}={value}")?;
            between = ", ";
        }
        for requirement in &self.match_expressions {
            write!(f, "{between}{requirement}")?;
            between = ", ";
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            None => write!(f, "label `{}` is missing", self.key)?,
            Some(value) => write!(f, "label `{}` is `{value}`", self.key)?,
        }
        match &self.wanted {
            Wanted::AnyOf(values) => write!(f, ", wanted {}", list(values, "or")),
            Wanted::NoneOf(values) => write!(f, ", wanted anything but {}", list(values, "and")),
            Wanted::Present => Ok(()),
            Wanted::Absent => f.write_str(", wanted none"),
        }
    }
}

fn list(values: &[String], word: &str) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {word} {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement { key: key.into(), operator, values: values.iter().map(|value| (*value).to_owned()).collect() }
    }

    #[test]
    fn empty_selector_matches_everything() {
        assert!(Selector::default().matches(&Labels::new()));
        assert!(Selector::default().matches(&labels(&[("a", "b")])));
        assert_eq!(Selector::default().to_string(), "everything");
    }

    #[test]
    fn operators_behave_as_in_kubernetes() {
        let with = labels(&[("size", "a")]);
        let without = Labels::new();
        for (operator, values, has, has_not) in [
            (Operator::In, &["a", "b"][..], true, false),
            (Operator::In, &["b"], false, false),
            (Operator::NotIn, &["a", "b"], false, true),
            (Operator::NotIn, &["b"], true, true),
            (Operator::Exists, &[], true, false),
            (Operator::DoesNotExist, &[], false, true),
        ] {
            let one = requirement("size", operator, values);
            assert_eq!(one.matches(&with), has, "{one} with the label");
            assert_eq!(one.matches(&without), has_not, "{one} without the label");
            assert_eq!(one.mismatch(&with).is_none(), has);
        }
    }

    #[test]
    fn every_part_must_hold() {
        let mut selector = Selector::label("region", "west-us");
        selector.match_expressions.push(requirement("size", Operator::In, &["a", "b"]));
        assert!(selector.matches(&labels(&[("region", "west-us"), ("size", "b"), ("x", "y")])));
        assert!(!selector.matches(&labels(&[("region", "west-us")])));
        assert!(!selector.matches(&labels(&[("region", "east-us"), ("size", "a")])));
        assert_eq!(selector.keys().into_iter().collect::<Vec<_>>(), ["region", "size"]);
    }

    #[test]
    fn selector_prints_like_kubectl() {
        let mut selector = Selector::label("region", "west-us");
        selector.match_expressions = vec![
            requirement("size", Operator::In, &["a", "b"]),
            requirement("tier", Operator::NotIn, &["x"]),
            requirement("gpu", Operator::Exists, &[]),
            requirement("edge", Operator::DoesNotExist, &[]),
        ];
        assert_eq!(selector.to_string(), "region=west-us, size in (a,b), tier notin (x), gpu, !edge");
    }

    #[test]
    fn mismatch_says_what_is_there_and_what_was_wanted() {
        let mut selector = Selector::label("region", "west-us");
        selector.match_expressions = vec![
            requirement("edge", Operator::Exists, &[]),
            requirement("size", Operator::In, &["a", "b", "c"]),
            requirement("tier", Operator::NotIn, &["x", "y"]),
            requirement("old", Operator::DoesNotExist, &[]),
        ];
        let found = labels(&[("region", "east-us"), ("tier", "x"), ("old", "1")]);
        let said: Vec<String> = selector.mismatch(&found).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "label `region` is `east-us`, wanted `west-us`",
                "label `edge` is missing",
                "label `size` is missing, wanted `a`, `b` or `c`",
                "label `tier` is `x`, wanted anything but `x` and `y`",
                "label `old` is `1`, wanted none",
            ]
        );
    }
}
