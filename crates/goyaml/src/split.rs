//! A stream cut into its documents, so that each can be read alone: whoever reads large files needs memory for one at a time.

/// The texts between `---` lines, with the number of lines before each. No content of a document has such a line at its beginning.
pub fn split(text: &str) -> Vec<(&str, u32)> {
    let is_separator = |line: &str| {
        line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    };
    let mut chunks = Vec::new();
    let (mut start, mut first_line, mut offset) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_separator(line) && offset > start {
            chunks.push((&text[start..offset], first_line));
            (start, first_line) = (offset, u32::try_from(number).unwrap_or(u32::MAX));
        }
        offset += line.len();
    }
    chunks.push((&text[start..], first_line));
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_has_the_number_of_lines_before_it() {
        assert_eq!(
            split("a: 1\n---\nb: 2\n--- # c\nc: |\n  ---\n"),
            [("a: 1\n", 0), ("---\nb: 2\n", 1), ("--- # c\nc: |\n  ---\n", 3)]
        );
        assert_eq!(split("---\na: 1"), [("---\na: 1", 0)]);
        assert_eq!(split("----\n"), [("----\n", 0)]);
        assert_eq!(split(""), [("", 0)]);
    }
}
