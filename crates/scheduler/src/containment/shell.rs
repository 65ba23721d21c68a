//! Files that aren't YAML: their structure is what is left when ordinary characters are taken out. Nobody reads a shell's
//! language for certain, so only the simplest lines of it are read: assignments, in a file without anything that could
//! make other lines of them. Everywhere else a text is a word or it counts.

use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

/// Begins a line that was read as assignments; no file holds it.
const ASSIGNMENTS: char = '\u{0}';

/// Whether a shell takes the text for a part of a word wherever it stands, except for a line that ends a here-document.
pub fn is_word(text: &str) -> bool {
    !text.starts_with('-') && text.chars().all(|c| is_ordinary(c) && c != '=')
}

fn is_ordinary(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | ':' | '@' | '%' | '+' | ',' | '=' | '-')
}

/// Why the quotes of a line don't tell what a shell reads, and which line it is.
pub fn doubt(text: &str) -> Option<String> {
    text.split('\n')
        .enumerate()
        .find_map(|(index, line)| doubt_of(line).map(|what| format!("line {} has {what}", index + 1)))
}

fn doubt_of(line: &str) -> Option<&'static str> {
    let mut quotes = Quotes::None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let behind = chars.as_str();
        match (quotes, c) {
            (Quotes::Single, '\'') | (Quotes::Double, '"') => quotes = Quotes::None,
            (Quotes::Single, _) => {}
            (_, '\\') if chars.next().is_none() => return Some("a backslash at its end"),
            (_, '`') => return Some("a backtick"),
            (_, '$') if behind.starts_with(['(', '[']) => return Some("a command or a calculation within a word"),
            (_, '$') if behind.starts_with('{') && parameter(behind).is_none() => {
                return Some("more than a name in `${}`");
            }
            (Quotes::None, '$') if behind.starts_with(['\'', '"']) => return Some("a `$` before quotes"),
            (Quotes::None, '<') if behind.starts_with('<') => return Some("a here-document"),
            (Quotes::None, '(') if behind.starts_with('(') => return Some("a calculation"),
            (Quotes::None, '\'') => quotes = Quotes::Single,
            (Quotes::None, '"') => quotes = Quotes::Double,
            _ => {}
        }
    }
    (quotes != Quotes::None).then_some("a quote that isn't closed on it")
}

/// What follows `{NAME}`.
fn parameter(text: &str) -> Option<&str> {
    let (name, behind) = text.strip_prefix('{')?.split_once('}')?;
    (!name.is_empty() && name.chars().all(is_name)).then_some(behind)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Lines, words, quotes and what a shell would act on. Quotes mean something only where they are certain.
pub fn shell_skeleton(text: &str, is_certain: bool) -> String {
    let mut skeleton = Skeleton::default();
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            skeleton.push('\n');
        }
        match assignments(line).filter(|_| is_certain) {
            Some(read) => {
                skeleton.push(ASSIGNMENTS);
                skeleton.text.push_str(&read.text);
            }
            None => skeleton.words(line),
        }
    }
    skeleton.text
}

/// Reads `export NAME="value" OTHER='value' # why`, and nothing else.
fn assignments(line: &str) -> Option<Skeleton> {
    let mut skeleton = Skeleton::default();
    let mut quotes = Quotes::None;
    let (mut in_word, mut is_first) = (false, true);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if quotes == Quotes::None && !in_word && !matches!(c, ' ' | '\t') {
            let command = ["export ", "readonly "].into_iter().find_map(|command| rest.strip_prefix(command));
            if let Some(behind) = command.filter(|_| std::mem::take(&mut is_first)) {
                skeleton.ordinary();
                skeleton.push(' ');
                rest = behind;
            } else if c == '#' {
                skeleton.words(rest);
                return Some(skeleton);
            } else {
                let (name, behind) = rest.split_once('=')?;
                let is_variable = !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_name);
                if name.is_empty() || !is_variable {
                    return None;
                }
                skeleton.ordinary();
                skeleton.push('=');
                (in_word, is_first) = (true, false);
                rest = behind;
            }
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match (quotes, c) {
            (Quotes::Single, '\'') | (Quotes::Double, '"') => {
                skeleton.push(c);
                quotes = Quotes::None;
            }
            (Quotes::Single, _) => skeleton.ordinary(),
            (_, '\\') => {
                skeleton.push(c);
                skeleton.ordinary();
                rest = &rest[rest.chars().next()?.len_utf8()..];
            }
            (_, '$') => {
                skeleton.push(c);
                if rest.starts_with('{') {
                    skeleton.push('{');
                    rest = parameter(rest)?;
                } else if rest.starts_with(['(', '[', '\'']) || (quotes == Quotes::None && rest.starts_with('"')) {
                    return None;
                }
            }
            (Quotes::Double, '`' | '!') => skeleton.push(c),
            (Quotes::Double, _) => skeleton.ordinary(),
            (Quotes::None, '\'' | '"') => {
                skeleton.push(c);
                quotes = if c == '"' { Quotes::Double } else { Quotes::Single };
            }
            (Quotes::None, ' ' | '\t') => {
                skeleton.push(c);
                in_word = false;
            }
            (Quotes::None, '-') if !skeleton.is_in_run() => skeleton.push(c),
            (Quotes::None, c) if is_ordinary(c) => skeleton.ordinary(),
            (Quotes::None, _) => return None,
        }
    }
    (quotes == Quotes::None).then_some(skeleton)
}

/// For a text of which nobody knows the language: everything but letters, digits and the separators of paths counts. So does
/// a `-` that begins an option or a comment.
pub fn plain_skeleton(text: &str) -> String {
    let mut skeleton = Skeleton::default();
    let mut before = '\n';
    for c in text.chars() {
        match c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@' | '+') {
            true if c == '-' && (before == '-' || !skeleton.is_in_run()) => skeleton.push(c),
            true => skeleton.ordinary(),
            false => skeleton.push(c),
        }
        before = c;
    }
    skeleton.text
}

/// The first line, from 1, that could end a here-document in one of two texts alone.
pub fn moved_end(one: &str, other: &str) -> Option<u32> {
    let (ends, others) = (ends(one), ends(other));
    ends.symmetric_difference(&others).next().map(|line| u32::try_from(line + 1).unwrap_or(u32::MAX))
}

/// The lines, from 0, that could end a here-document, whether or not one is open there.
fn ends(text: &str) -> BTreeSet<usize> {
    let words: BTreeSet<String> = text.match_indices("<<").filter_map(|(at, _)| end_word(&text[at..])).collect();
    if words.is_empty() {
        return BTreeSet::new();
    }
    let is_end = |line: &str| words.contains(line.trim_matches(|c: char| c.is_whitespace() || c == ')'));
    text.split('\n').enumerate().filter(|(_, line)| is_end(line)).map(|(index, _)| index).collect()
}

/// The word behind `<<`, `<<-` or `<<~`, without its quotes.
fn end_word(text: &str) -> Option<String> {
    let (mut end, mut quote, mut is_quoted) = (String::new(), None, false);
    let mut chars = text.trim_start_matches(['<', '-', '~', ' ', '\t']).chars();
    while let Some(c) = chars.next().filter(|c| *c != '\n') {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => end.push(c),
            (None, '\'' | '"') => (quote, is_quoted) = (Some(c), true),
            (None, '\\') => end.extend(chars.next()),
            (None, c) if c.is_whitespace() || ";&|<>()".contains(c) => break,
            (None, c) => end.push(c),
        }
    }
    (is_quoted || !end.is_empty()).then(|| end.trim().to_owned())
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
        if !self.is_in_run() {
            self.text.push('w');
        }
    }

    fn is_in_run(&self) -> bool {
        self.text.ends_with('w')
    }

    /// Of which each may be anything to a shell. A `-` that begins an option counts, and a `=` behind what could be a name.
    fn words(&mut self, text: &str) {
        let mut may_be_name = true;
        for c in text.chars() {
            let counts = match c {
                '=' => std::mem::take(&mut may_be_name),
                '-' => !self.is_in_run(),
                c => !is_ordinary(c),
            };
            if counts {
                may_be_name = c != '=';
                self.push(c);
            } else {
                may_be_name &= is_name(c) || c == '+';
                self.ordinary();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether text in the place of `@` is no more than a harmless text there.
    fn is_value(file: &str, value: &str) -> bool {
        let (actual, harmless) = (file.replace('@', value), file.replace('@', "ghjghj"));
        let is_certain = doubt(&harmless).is_none();
        shell_skeleton(&actual, is_certain) == shell_skeleton(&harmless, is_certain)
            && moved_end(&actual, &harmless).is_none()
    }

    const WORDS: [&str; 7] = ["x", "a/b.c", "a-b_c", "v1.2+3", "https://h:8080/x@y", "a,b%c", "1234"];

    #[test]
    fn between_quotes_of_an_assignment_text_may_be_anything_that_stays_there() {
        for file in ["A=\"@\"", "export A=\"x @\" # it's it's", "readonly A='b' B=\"$C${D}@\"", "  A=\"\\\"@\""] {
            for value in WORDS.into_iter().chain(["two words", "R&D; team", "it's", "# x", "(a) {b} *", "ä", "-x"]) {
                assert!(is_value(&format!("{file}\nexport B=1\n"), value), "{file} {value}");
            }
            for value in ["$(reboot)", "`x`", "\"; reboot; \"", "\"", "\\", "a\nb", "$HOME", "!x", "$"] {
                assert!(!is_value(&format!("{file}\nexport B=1\n"), value), "{file} {value}");
            }
        }
        for value in WORDS.into_iter().chain(["two words", "$(reboot) `x` \\ $HOME !", "\"x\"", "-x"]) {
            assert!(is_value("export A='@'\n", value), "{value}");
        }
        for value in ["'", "'; reboot; '", "''", "a\nb"] {
            assert!(!is_value("export A='@'\n", value), "{value}");
        }
        // What the template's `$` begins isn't certain.
        assert!(!is_value("A=\"$@\"", "(reboot)"));
        assert!(!is_value("A=\"${@}\"", "x@P"));
        assert!(!is_value("A=\"${@}\"", "B:=c"));
    }

    #[test]
    fn everywhere_else_it_is_a_word() {
        for file in [
            "A=@",
            "echo \"@\"",
            "sh -c \"deploy @\"",
            "if [ '@' = x ]; then",
            "export '@'",
            "A=1 run '@'",
            "run A=\"@\"",
            "# don't\nA=\"@\"",
            "A=\"$(echo x)\"\nB=\"@\"",
            "A=`x`\nB=\"@\"",
            "A=$((1<<20))\nB=\"@\"",
            "((\nB='@'\n))",
            "A=\"${B:-\"x\"}\"\nB=\"@\"",
            "A=$'it\\'s'\nB='@'",
            "sh -c \\\nB='@'",
            "cat <<EOF\nB='@'\nEOF",
            "A=\"\nB='@'\n\"",
        ] {
            for value in WORDS {
                assert!(is_value(file, value), "{file} {value}");
            }
            for value in ["a b", "a;b", "a|b", "a>b", "*", "~", "#a", "a&b", "(a)", "{a", "$a", "`a`", "'a'", "\"a\""] {
                assert!(!is_value(file, value), "{file} {value}");
            }
        }
        assert!(!is_value("run @", "-x") && !is_value("A=@", "-x"), "an option");
        assert!(!is_value("export @", "PATH=x") && !is_value("export @", "PATH+=:x"), "another variable");
        assert!(is_value("A=@", "B=x"));
    }

    #[test]
    fn nothing_ends_a_here_document_but_its_end() {
        let document = "cat > motd <<EOF\nteam: @\n@\nEOF\nexport A=1\n";
        for value in WORDS {
            assert!(is_value(document, value), "{value}");
        }
        for value in ["$(touch PWNED)", "'$(x)'", "`x`", "$HOME", "EOF", "\\", "a b"] {
            assert!(!is_value(document, value), "{value}");
        }
        for document in ["cat <<-'E'OF\n\t@\n\tEOF\n", "cat << \\EOF\n@\nEOF\n", "x=$(cat <<EOF\na\n@)\nEOF\n)"] {
            assert!(is_value(document, "x"), "{document}");
            assert!(!is_value(document, "EOF"), "{document}");
        }
        assert!(!is_value("cat <<@\nrm\n@\n", "rm"), "the application chose where it ends");
    }

    #[test]
    fn a_word_is_one_wherever_it_stands() {
        for word in WORDS {
            assert!(is_word(word), "{word}");
        }
        for text in ["-x", "A=b", "a b", "$a", "~", "'a'", "ä"] {
            assert!(!is_word(text), "{text}");
        }
    }

    #[test]
    fn the_line_of_a_difference_and_of_a_doubt_is_told() {
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a", "a"), None);
        assert_eq!(doubt("A=1\n# don't\n").as_deref(), Some("line 2 has a quote that isn't closed on it"));
        assert_eq!(doubt("A=\"it's\" B='\"$(x)`' # \"x\"\necho ${A} \\$\\( | cat < x > y\n"), None);
    }
}
