//! Which assignment a person means: names that are near to what was typed. Used by the error for an unknown one.

/// More edits than this aren't the same word mistyped.
const NEAR: usize = 3;
/// A list that is longer isn't read.
const LISTED: usize = 12;

/// What to type instead.
pub fn hint(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return "nothing is assigned to this host yet; kedge-agent status shows the last answer of the hub".to_owned();
    }
    let near: Vec<&str> = nearest(name, known);
    if let [first, rest @ ..] = &near[..] {
        let or: String = rest.iter().map(|name| format!(" or `{name}`")).collect();
        return format!("did you mean `{first}`{or}? Here are: {}", list(known));
    }
    format!("here are: {}", list(known))
}

fn list(known: &[String]) -> String {
    let more = known.len().saturating_sub(LISTED);
    let shown = known.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// The best first. A part of a name is near too: people type `camera` for `camera-line-uat`.
fn nearest<'k>(name: &str, known: &'k [String]) -> Vec<&'k str> {
    let mut ranked: Vec<(usize, &str)> = known
        .iter()
        .filter_map(|candidate| {
            let edits = distance(name, candidate);
            let part = name.len() >= NEAR && (candidate.contains(name) || name.contains(candidate.as_str()));
            (edits <= NEAR.min(name.len() / 2) || part).then_some((edits, candidate.as_str()))
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().take(2).map(|(_, name)| name).collect()
}

/// How many letters must be added, left out or changed.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_and_shortened_names_are_recognised() {
        let known = ["camera-line", "hello-uat", "hello-prod"].map(str::to_owned);
        assert_eq!(nearest("camrea-line", &known), ["camera-line"]);
        assert_eq!(nearest("hello", &known), ["hello-uat", "hello-prod"]);
        assert_eq!(nearest("drone/camera-line", &known), ["camera-line"]);
        assert!(nearest("x", &known).is_empty());
        assert_eq!(hint("zzz", &known), "here are: camera-line, hello-uat, hello-prod");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
