//! An error with its causes on one line, for messages and logs. Used by every module that tells of an error of another.

/// What a cause only repeats is left out.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let line = next.to_string();
        if !text.contains(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{says}")]
    struct Layer {
        says: &'static str,
        #[source]
        below: Option<Box<Layer>>,
    }

    #[test]
    fn causes_stand_behind_and_are_not_repeated() {
        let deepest = Layer { says: "refused", below: None };
        let middle = Layer { says: "no answer: refused", below: Some(Box::new(deepest)) };
        let top = Layer { says: "can't fetch", below: Some(Box::new(middle)) };
        assert_eq!(chain(&top), "can't fetch: no answer: refused");
    }
}
