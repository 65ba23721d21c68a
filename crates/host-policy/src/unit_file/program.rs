//! The value of an `Exec…=` setting: one command, or several that ` ; ` separates. systemd takes quotes and escapes away before it
//! reads the prefixes of a program, so `\x2b/bin/sh` is `+/bin/sh`: a program is taken only where it is written plainly.

const BLANK: [char; 2] = [' ', '\t'];
/// Prefixes that change nothing about whose power a program has.
const HARMLESS: [char; 3] = ['@', '-', ':'];

/// Why a value isn't taken; none: every program in it runs as the unit's user. An empty value takes back what stood before.
pub fn problem(value: &str) -> Option<&'static str> {
    let mut rest = value.trim_start_matches(BLANK);
    while !rest.is_empty() {
        let Some(end) = end_of_word(rest) else { return Some(UNBALANCED) };
        if let Some(problem) = problem_of_program(&rest[..end]) {
            return Some(problem);
        }
        rest = rest[end..].trim_start_matches(BLANK);
        loop {
            if let Some(next) = rest.strip_prefix(';').filter(|next| next.is_empty() || next.starts_with(BLANK)) {
                rest = next.trim_start_matches(BLANK);
                break;
            }
            let Some(end) = end_of_word(rest) else { return Some(UNBALANCED) };
            if end == 0 {
                break;
            }
            rest = rest[end..].trim_start_matches(BLANK);
        }
    }
    None
}

const UNBALANCED: &str = "has a quote that doesn't end";
const POWER: &str = "with `+` or `!` would run with root's power";
const PLAIN: &str = "must name each program plainly: an absolute path or a bare name without quotes and backslashes, and before it nothing \
    but `@`, `-` and `:`";

fn problem_of_program(word: &str) -> Option<&'static str> {
    let program = word.trim_start_matches(HARMLESS);
    if program.starts_with(['+', '!']) {
        return Some(POWER);
    }
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\\' | '"' | '\'');
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let fits = match program.starts_with('/') {
        true => program.chars().all(is_plain),
        false => program.starts_with(|c: char| c.is_ascii_alphanumeric()) && program.chars().all(in_name),
    };
    (!fits).then_some(PLAIN)
}

/// Where the first word ends; none: within quotes. A backslash takes the letter behind it along, also a blank or a quote.
fn end_of_word(text: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, _) if BLANK.contains(&letter) => return Some(at),
            (None, _) => {}
        }
    }
    quote.is_none().then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_programs_are_taken() {
        for value in [
            "",
            "  ",
            "/bin/true",
            "-/bin/true",
            "@/bin/sh sh -c x",
            ":-@/bin/sh sh",
            "sleep infinity",
            "/srv/app/run --port 8080 ${MORE} $WORDS",
            "/srv/app/%i/run %h",
            "/bin/sh -c 'while true ; do sleep 1 ; done'",
            "/bin/sh -c \"a ; +b\"",
            "/bin/a ; -/bin/b x ; c",
            "/bin/a ;",
            "/bin/a \\; +x",
            "/bin/a x;+y ;z",
            "/bin/a \\x2b \"\\x2b\" +x",
            "/bin/a\u{a0}b +",
        ] {
            assert_eq!(problem(value), None, "{value:?}");
        }
    }

    #[test]
    fn every_spelling_of_roots_power_is_refused() {
        for value in [
            "+/bin/sh",
            "!/bin/sh",
            "!!/bin/sh",
            "-+/bin/sh",
            "@:-+/bin/sh sh",
            "|/bin/sh",
            "\\x2b/bin/sh",
            "\\053/bin/sh",
            "\\u002b/bin/sh",
            "\\U0000002b/bin/sh",
            "-\\x2b/bin/sh",
            "\"+/bin/sh\"",
            "'+'/bin/sh",
            "\"\"+/bin/sh",
            "''\\x2b/bin/sh",
            "\"\\x2b/bin/sh\"",
            "/bin/a ; +/bin/sh",
            "/bin/a\t;\t\\x2b/bin/sh",
            "/bin/a \"x\" ; '+/bin/sh'",
            "/bin/a x\\ ; y ; +/bin/sh",
            "/bin/a '\\'' ; +/bin/sh",
            "; +/bin/sh",
            "\\x3b +/bin/sh",
            "/bin/a ; ; +/bin/sh",
            "-",
            "- /bin/sh",
            "/bin/a 'x ; +/bin/sh",
            "%h/x",
            "$SHELL",
            "${X}",
            "bin/sh",
            "\u{feff}+/bin/sh",
            "\u{a0}+/bin/sh",
        ] {
            assert!(problem(value).is_some(), "{value:?}");
        }
    }

    /// systemd's own reading of words, as it is written: what it takes for the programs of a value.
    fn programs(value: &str) -> Vec<String> {
        let (letters, mut at, mut found) = (value.chars().collect::<Vec<_>>(), 0, Vec::new());
        let blank = |c: &char| BLANK.contains(c);
        let mut begins = true;
        loop {
            while letters.get(at).is_some_and(blank) {
                at += 1;
            }
            if at >= letters.len() {
                return found;
            }
            if !begins && letters[at] == ';' && letters.get(at + 1).is_none_or(blank) {
                (begins, at) = (true, at + 1);
                continue;
            }
            let (mut word, mut quote) = (String::new(), None);
            while let Some(&c) = letters.get(at).filter(|c| quote.is_some() || !blank(c)) {
                at += 1;
                if c == '\\' {
                    let code = |from: usize, digits: usize, radix: u32| {
                        let text: String = letters.get(from..from + digits)?.iter().collect();
                        Some((char::from_u32(u32::from_str_radix(&text, radix).ok()?)?, digits))
                    };
                    let coded = match letters.get(at) {
                        Some('x') => code(at + 1, 2, 16).map(|(c, digits)| (c, digits + 1)),
                        Some('u') => code(at + 1, 4, 16).map(|(c, digits)| (c, digits + 1)),
                        Some('0'..='7') => code(at, 3, 8),
                        Some(other) => Some((*other, 1)),
                        None => return found,
                    };
                    let (letter, used) = coded.unwrap_or(('\\', 1));
                    word.push(letter);
                    at += used;
                } else if Some(c) == quote {
                    quote = None;
                } else if quote.is_none() && matches!(c, '"' | '\'') {
                    quote = Some(c);
                } else {
                    word.push(c);
                }
            }
            if quote.is_some() {
                return found;
            }
            if begins && word != ";" {
                found.push(word);
                begins = false;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn what_is_taken_has_no_program_with_power(
            value in "([+!@:|;/a \t\"'\\\\-]|\\\\x2b|\\\\053|\\\\u002b|\\\\x3b|/bin/a| ; |\\+){0,12}"
        ) {
            if problem(&value).is_none() {
                for program in programs(&value) {
                    let name = program.trim_start_matches(HARMLESS);
                    prop_assert!(!name.is_empty() && !name.starts_with(['+', '!', '|']), "{:?}: {:?}", value, program);
                }
            }
        }

        #[test]
        fn no_value_panics(value in any::<String>()) {
            let _ = problem(&value);
        }
    }
}
