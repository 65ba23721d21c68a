//! How a string may be written, judged by its characters alone.

/// The styles that yaml.v3 allows for a string in block context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) multiline: bool,
    pub(super) plain: bool,
    pub(super) single_quoted: bool,
    pub(super) literal: bool,
}

pub(super) fn analyze(text: &str) -> Shape {
    if text.is_empty() {
        return Shape { multiline: false, plain: true, single_quoted: true, literal: false };
    }
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/".contains(&byte)) && !text.starts_with("...") {
        return Shape { multiline: false, plain: true, single_quoted: true, literal: true };
    }
    analyze_slowly(text)
}

fn analyze_slowly(text: &str) -> Shape {
    let mut indicators = text.starts_with("---") || text.starts_with("...");
    let mut breaks = false;
    let mut special = false;
    let mut tabs = false;
    let mut break_space = false;
    let mut space_break = false;
    let mut previous = None;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let before_space = chars.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
        match (char, previous) {
            ('#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`', None) => {
                indicators = true
            }
            ('?' | '-', None) | (':', _) if before_space => indicators = true,
            ('#', Some(before)) if is_space_like(before) => indicators = true,
            _ => {}
        }
        if char == '\t' {
            tabs = true;
        } else if !is_printable(char) {
            special = true;
        }
        if char == ' ' {
            break_space |= previous.is_some_and(is_break);
        } else if is_break(char) {
            breaks = true;
            space_break |= previous == Some(' ');
        }
        previous = Some(char);
    }
    let edge = |char: Option<char>| char.is_some_and(|char| char == ' ' || is_break(char));
    let edges = edge(text.chars().next()) || edge(previous);
    let quoted_only = space_break || special;
    Shape {
        multiline: breaks,
        plain: !(edges || break_space || quoted_only || tabs || breaks || indicators),
        single_quoted: !(break_space || quoted_only || tabs),
        literal: !(quoted_only || previous == Some(' ')),
    }
}

/// yaml.v3's notion: nothing beyond the Basic Multilingual Plane, so that an emoji is escaped.
pub(super) fn is_printable(char: char) -> bool {
    matches!(char, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}') && char != '\u{FEFF}'
}

pub(super) fn is_break(char: char) -> bool {
    matches!(char, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_space_like(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\0') || is_break(char)
}
