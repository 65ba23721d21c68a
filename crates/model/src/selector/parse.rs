//! A selector as people type it behind `-l`: `region=west, size in (a,b), tier!=x, gpu, !edge`. Read by the hub's API.

use std::str::FromStr;

use super::{Operator, Requirement, Selector};

/// Longer texts aren't typed by people.
const MAX_TEXT: usize = 4096;
/// Each part is asked of each object.
const MAX_PARTS: usize = 32;

/// Why a text isn't a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error("the selector is longer than {MAX_TEXT} bytes or has more than {MAX_PARTS} parts")]
    TooLong,
    #[error("`{0}` isn't a part of a selector such as `region=west`, `size in (a,b)`, `tier!=x`, `gpu` or `!edge`")]
    Part(String),
    #[error("a parenthesis of the selector isn't closed")]
    Unclosed,
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Selector, SelectorError> {
        if text.len() > MAX_TEXT {
            return Err(SelectorError::TooLong);
        }
        let mut selector = Selector::default();
        if text.trim().is_empty() {
            return Ok(selector);
        }
        for (index, part) in parts(text)?.into_iter().enumerate() {
            if index >= MAX_PARTS {
                return Err(SelectorError::TooLong);
            }
            take(&mut selector, part.trim()).ok_or_else(|| SelectorError::Part(part.trim().to_owned()))?;
        }
        Ok(selector)
    }
}

/// Split at commas, but not at those between parentheses.
fn parts(text: &str) -> Result<Vec<&str>, SelectorError> {
    let mut found = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(SelectorError::Unclosed);
    }
    found.push(&text[start..]);
    Ok(found)
}

fn take(selector: &mut Selector, part: &str) -> Option<()> {
    let requirement = if let Some((key, list)) = part.split_once('(') {
        let values: Vec<String> = list.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let mut words = key.split_whitespace();
        let (key, word) = (words.next()?, words.next()?);
        let operator = match word {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            _ => return None,
        };
        if words.next().is_some() || !values.iter().all(|value| is_value(value)) {
            return None;
        }
        Requirement { key: key.to_owned(), operator, values }
    } else if let Some((key, value)) = part.split_once("!=") {
        Requirement { key: key.trim().to_owned(), operator: Operator::NotIn, values: vec![value.trim().to_owned()] }
    } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        let (key, value) = (key.trim(), value.trim());
        if !is_key(key) || !is_value(value) {
            return None;
        }
        // A second wish for the same label can't be kept beside the first in a map.
        if let Some(before) = selector.match_labels.insert(key.to_owned(), value.to_owned()) {
            let values = vec![before];
            selector.match_expressions.push(Requirement { key: key.to_owned(), operator: Operator::In, values });
        }
        return Some(());
    } else if let Some(key) = part.strip_prefix('!') {
        Requirement { key: key.trim().to_owned(), operator: Operator::DoesNotExist, values: Vec::new() }
    } else {
        Requirement { key: part.to_owned(), operator: Operator::Exists, values: Vec::new() }
    };
    let values_fit = requirement.values.iter().all(|value| is_value(value));
    if !is_key(&requirement.key) || !values_fit {
        return None;
    }
    selector.match_expressions.push(requirement);
    Some(())
}

/// No more than what keeps the parts apart; labels are checked where they are written.
fn is_key(text: &str) -> bool {
    !text.is_empty() && is_value(text)
}

fn is_value(text: &str) -> bool {
    !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '(' | ')' | '=' | '!' | ','))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Labels;

    fn parse(text: &str) -> Selector {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_printed_is_read_again() {
        for text in
            ["region=west-us, size in (a,b), tier notin (x), gpu, !edge", "kedge.dev/site=harbour", "size in (a)", "a="]
        {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    #[test]
    fn other_spellings_mean_the_same() {
        assert_eq!(parse("a==b"), parse("a=b"));
        assert_eq!(parse(" a = b ,c in ( d , e ) "), parse("a=b,c in (d,e)"));
        assert_eq!(parse("a!=b").to_string(), "a notin (b)");
        assert!(parse("").is_everything());
        assert!(!parse("a=b,a=c").matches(&Labels::from([("a".to_owned(), "c".to_owned())])));
    }

    #[test]
    fn what_is_no_selector_is_named() {
        for text in ["a b", "=b", "a in b", "a on (b)", "a in (b) c", "a=b c", ",", "a,,b", "!", "!=x"] {
            assert!(matches!(text.parse::<Selector>(), Err(SelectorError::Part(_))), "{text}");
        }
        assert_eq!("a in (b".parse::<Selector>(), Err(SelectorError::Unclosed));
        assert_eq!("a,".repeat(40).parse::<Selector>(), Err(SelectorError::TooLong));
        assert_eq!("a".repeat(5000).parse::<Selector>(), Err(SelectorError::TooLong));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            if let Ok(selector) = text.parse::<Selector>() && !selector.is_everything() {
                let printed = selector.to_string();
                prop_assert_eq!(printed.parse::<Selector>(), Ok(selector));
            }
        }
    }
}
