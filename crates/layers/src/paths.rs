//! The top-level modules that a file names: behind `crate::`, and behind as many `super::` as lead to the root.

/// Each with its line, from 1. `depth` is how many modules the file is below the root.
pub fn named(text: &str, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::").filter(|(at, _)| is_begin(text, *at)) {
        heads(text, at + "crate::".len(), &mut found);
    }
    let to_root = "super::".repeat(depth);
    if depth > 0 {
        for (at, _) in text.match_indices(&to_root).filter(|(at, _)| is_begin(text, *at)) {
            heads(text, at + to_root.len(), &mut found);
        }
    }
    let mut named: Vec<(usize, String)> =
        found.into_iter().map(|(at, name)| (text[..at].matches('\n').count() + 1, name)).collect();
    named.sort();
    named.dedup();
    named
}

/// Not the end of a longer word or path, such as `$crate::` or `my_crate::`.
fn is_begin(text: &str, at: usize) -> bool {
    !text[..at].ends_with(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':' | '$'))
}

/// The first word of the path that begins here, or of each in its braces.
fn heads(text: &str, at: usize, found: &mut Vec<(usize, String)>) {
    let rest = &text[at..];
    let Some(group) = rest.strip_prefix('{') else {
        let name = word(rest);
        // A further `super` leads nowhere, and `self` to the root itself.
        if !name.is_empty() && name != "super" && name != "self" {
            found.push((at, name.to_owned()));
        }
        return;
    };
    let (mut depth, mut begins) = (0_usize, true);
    for (index, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            letter if begins && !letter.is_whitespace() => {
                begins = false;
                heads(text, at + 1 + index, found);
            }
            _ => {}
        }
    }
}

fn word(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_to_the_root_are_found_however_they_are_written() {
        let text =
            "use crate::a::b;\nuse crate::{c::{d, e}, f};\nlet g = super::super::h::i();\nmy_crate::j; super::k;\n";
        let found = named(text, 2);
        let names: Vec<(usize, &str)> = found.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(names, [(1, "a"), (2, "c"), (2, "f"), (3, "h")]);
    }

    #[test]
    fn a_file_at_the_top_reaches_the_root_with_one_step() {
        assert_eq!(named("use super::a;\nuse super::super::b;\n", 1), [(1, "a".to_owned())]);
    }
}
