//! The four conditions as shape and word, the same as on the page: readable without colour. Used by `status`, `drift` and `get`.

use serde_json::Value;

/// Shape, word, and the field of a count.
pub const CONDITIONS: [(&str, &str, &str); 4] = [
    ("●", "Converged", "converged"),
    ("◐", "Converging", "converging"),
    ("▲", "Failed", "failed"),
    ("○", "Unknown", "unknown"),
];

/// `▲ Failed`; what nobody knows is Unknown, never good.
pub fn shaped(word: &str) -> String {
    let known = CONDITIONS.iter().find(|(_, known, _)| *known == word);
    let (shape, word, _) = known.unwrap_or(&CONDITIONS[3]);
    format!("{shape} {word}")
}

/// The cells of a row of counts, in the order of the words.
pub fn counts(value: &Value) -> [String; 4] {
    CONDITIONS.map(|(shape, _, field)| match value[field].as_u64().unwrap_or_default() {
        0 => "-".to_owned(),
        count => format!("{shape} {count}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_nobody_knows_is_never_good() {
        assert_eq!(shaped("Converged"), "● Converged");
        assert_eq!(shaped("Splendid"), "○ Unknown");
    }
}
