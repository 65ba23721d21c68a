//! The four conditions as shape and word, the same as on the page: readable without colour. Used by `status`, `drift` and `get`.

use kedge_api::counts::ConditionCounts;

/// Shape and word.
pub const CONDITIONS: [(&str, &str); 4] = [("●", "Converged"), ("◐", "Converging"), ("▲", "Failed"), ("○", "Unknown")];

/// `▲ Failed`; what nobody knows is Unknown, never good.
pub fn shaped(word: &str) -> String {
    let known = CONDITIONS.iter().find(|(_, known)| *known == word);
    let (shape, word) = known.unwrap_or(&CONDITIONS[3]);
    format!("{shape} {word}")
}

/// The cells of a row of counts, in the order of the words.
pub fn counts(counts: &ConditionCounts) -> [String; 4] {
    let all = [counts.converged, counts.converging, counts.failed, counts.unknown];
    std::array::from_fn(|at| match all[at] {
        0 => "-".to_owned(),
        count => format!("{} {count}", CONDITIONS[at].0),
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
