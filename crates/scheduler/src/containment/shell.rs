//! Files that aren't YAML: their structure is what is left when ordinary characters are taken out.

/// Characters that a shell gives a meaning to outside of quotes.
const SPECIAL: &str = "$`\\!;&|<>(){}[]*?~#=";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// Lines, words, quotes and what a shell would act on.
pub fn shell_skeleton(text: &str) -> String {
    let mut skeleton = Skeleton::default();
    let mut quotes = Quotes::None;
    let mut escaped = false;
    for c in text.chars() {
        if std::mem::take(&mut escaped) && c != '\n' {
            skeleton.ordinary();
            continue;
        }
        match (quotes, c) {
            (_, '\n') => skeleton.push(c),
            (Quotes::Single, '\'') | (Quotes::Double, '"') => {
                skeleton.push(c);
                quotes = Quotes::None;
            }
            (Quotes::Single, _) => skeleton.ordinary(),
            (Quotes::None, '\'' | '"') => {
                skeleton.push(c);
                quotes = if c == '"' { Quotes::Double } else { Quotes::Single };
            }
            (_, '\\') => {
                skeleton.push(c);
                escaped = true;
            }
            (Quotes::Double, '$' | '`' | '!') => skeleton.push(c),
            (Quotes::None, c) if c.is_whitespace() || SPECIAL.contains(c) => skeleton.push(c),
            _ => skeleton.ordinary(),
        }
    }
    skeleton.text
}

/// For a text of which nobody knows the language: everything but letters, digits and the separators of paths counts.
pub fn plain_skeleton(text: &str) -> String {
    let mut skeleton = Skeleton::default();
    for c in text.chars() {
        match c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@' | '+') {
            true => skeleton.ordinary(),
            false => skeleton.push(c),
        }
    }
    skeleton.text
}

/// The first line in which two skeletons differ, from 1.
pub fn first_difference(one: &str, other: &str) -> Option<u32> {
    if one == other {
        return None;
    }
    let same = one.split('\n').zip(other.split('\n')).take_while(|(one, other)| one == other).count();
    Some(u32::try_from(same).unwrap_or(u32::MAX).saturating_add(1))
}

#[derive(Default)]
struct Skeleton {
    text: String,
}

impl Skeleton {
    fn push(&mut self, c: char) {
        self.text.push(c);
    }

    /// A run of ordinary characters is one.
    fn ordinary(&mut self) {
        if !self.text.ends_with('w') {
            self.text.push('w');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_act_on_changes_the_skeleton() {
        let skeleton = |value: &str| shell_skeleton(&format!("export A=\"{value}\"\nexport B='{value}'\n"));
        for value in ["x", "a/b.c", "a-b_c"] {
            assert_eq!(skeleton(value), skeleton("harmless"), "{value}");
        }
        for value in ["$(reboot)", "`x`", "\"; reboot; \"", "'", "\\", "a\nb", "$HOME", "!x"] {
            assert_ne!(skeleton(value), skeleton("harmless"), "{value}");
        }
        let bare = |value: &str| shell_skeleton(&format!("export A={value}\n"));
        for value in ["a b", "a;b", "a|b", "a>b", "*", "~", "#a", "a&b", "(a)", "{a,b}"] {
            assert_ne!(bare(value), bare("harmless"), "{value}");
        }
    }

    #[test]
    fn the_line_of_a_difference_is_told() {
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a", "a"), None);
    }
}
