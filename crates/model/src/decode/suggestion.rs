//! "Did you mean": the known word that is nearest to one that isn't.

/// The nearest of the known words, when it is near enough to be a slip.
pub(super) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // A long word is no slip of a short one, and the distance of long texts costs.
    if word.chars().count() > 64 {
        return None;
    }
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` or `c`, for hints.
pub(super) fn choices<'k>(words: impl IntoIterator<Item = &'k str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// How many characters must be added, removed, replaced or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut before_last = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i; right.len() + 1];
        for j in 1..=right.len() {
            let replaced = last[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word() {
        let known = ["reconciler", "namespaceService", "configType"];
        assert_eq!(nearest("reconcilier", known), Some("reconciler"));
        assert_eq!(nearest("namespaceservice", known), Some("namespaceService"));
        assert_eq!(nearest("cofnigType", known), Some("configType"));
        assert_eq!(nearest("description", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }

    #[test]
    fn choices_read_as_a_sentence() {
        assert_eq!(choices(["a"]), "`a`");
        assert_eq!(choices(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
