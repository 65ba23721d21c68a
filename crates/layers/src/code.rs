//! A source file without what is no code: comments and the insides of texts become spaces, and items of tests go. Lines stay where they
//! are. Not a parser: as much of Rust's grammar as it takes to find paths.

/// The code of a file.
pub fn of(text: &str) -> String {
    without_tests(&blank(text))
}

fn blank(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = |index: usize| letters.get(index).copied().unwrap_or('\0');
    let mut out = String::with_capacity(text.len());
    let mut index = 0;
    let skip = |out: &mut String, from: usize, to: usize| {
        out.extend((from..to.min(letters.len())).map(|index| if at(index) == '\n' { '\n' } else { ' ' }));
    };
    while index < letters.len() {
        let before = index.checked_sub(1).map_or('\0', at);
        let in_word = before.is_alphanumeric() || before == '_';
        let end = match at(index) {
            '/' if at(index + 1) == '/' => {
                (index..letters.len()).find(|at| letters[*at] == '\n').unwrap_or(letters.len())
            }
            '/' if at(index + 1) == '*' => end_of_comment(&letters, index),
            '"' => end_of_text(&letters, index),
            'r' if !in_word || before == 'b' => match raw_text(&letters, index) {
                Some(end) => end,
                None => index,
            },
            '\'' => end_of_letter(&letters, index),
            _ => index,
        };
        if end == index {
            out.push(at(index));
            index += 1;
        } else {
            skip(&mut out, index, end);
            index = end;
        }
    }
    out
}

fn end_of_comment(letters: &[char], start: usize) -> usize {
    let (mut depth, mut index) = (0_usize, start);
    while index + 1 < letters.len() {
        match (letters[index], letters[index + 1]) {
            ('/', '*') => (depth, index) = (depth + 1, index + 2),
            ('*', '/') => (depth, index) = (depth - 1, index + 2),
            _ => index += 1,
        }
        if depth == 0 {
            return index;
        }
    }
    letters.len()
}

fn end_of_text(letters: &[char], start: usize) -> usize {
    let mut index = start + 1;
    while index < letters.len() {
        match letters[index] {
            '\\' => index += 2,
            '"' => return index + 1,
            _ => index += 1,
        }
    }
    letters.len()
}

/// `r"…"`, `r#"…"#`; none: it is a word that begins with r.
fn raw_text(letters: &[char], start: usize) -> Option<usize> {
    let hashes = letters[start + 1..].iter().take_while(|letter| **letter == '#').count();
    let open = start + 1 + hashes;
    if letters.get(open) != Some(&'"') {
        return None;
    }
    let closes = |at: usize| {
        letters[at] == '"' && letters[at + 1..].iter().take(hashes).filter(|letter| **letter == '#').count() == hashes
    };
    Some((open + 1..letters.len()).find(|at| closes(*at)).map_or(letters.len(), |at| at + 1 + hashes))
}

/// A letter in quotes; a lifetime stays.
fn end_of_letter(letters: &[char], start: usize) -> usize {
    match (letters.get(start + 1), letters.get(start + 2)) {
        (Some('\\'), _) => {
            let end = (start + 3..letters.len()).find(|at| letters[*at] == '\'');
            end.map_or(letters.len(), |at| at + 1)
        }
        (Some(_), Some('\'')) => start + 3,
        _ => start,
    }
}

/// Takes out every item behind `#[cfg(test)]`.
fn without_tests(text: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        let item = &rest[at..];
        let end = MARK.len() + end_of_item(&item[MARK.len()..]);
        out.extend(item[..end].chars().filter(|letter| *letter == '\n'));
        rest = &item[end..];
    }
    out.push_str(rest);
    out
}

/// Behind its `;`, or behind the brace that closes it; a `use` with braces ends with its `;`.
fn end_of_item(text: &str) -> usize {
    let mut depth = 0_usize;
    let words = text.trim_start().trim_start_matches("pub").trim_start();
    let is_use = words.starts_with("use ");
    for (at, letter) in text.char_indices() {
        match letter {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && letter == '}' && !is_use {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_no_code() {
        let text = "a // crate::x\nb /* crate::y /* in */ */ c \"crate::z \\\" q\" d r#\"crate::\"v\"# e '\"' f<'g>('\\'', 'h')";
        let code = of(text);
        assert!(!code.contains("crate"), "{code}");
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f<'g>(", ",", ")"]);
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn items_of_tests_go_and_lines_stay() {
        let code = of("a\n#[cfg(test)]\nmod tests {\n  fn x() {}\n}\nb\n#[cfg(test)]\npub use z::{y};\nc\n");
        let lines: Vec<&str> = code.lines().map(str::trim).collect();
        assert_eq!((lines[0], lines[5], lines[8]), ("a", "b", "c"));
        assert!(!code.contains('x') && !code.contains('y'), "{code}");
    }
}
