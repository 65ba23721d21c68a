//! The lines of a unit file, as systemd reads them: comments, continuations, sections, settings.

/// One line, continuations joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Section(String),
    Setting {
        key: String,
        value: String,
    },
    /// Neither: systemd would complain and go on.
    Other(String),
}

const BLANK: [char; 2] = [' ', '\t'];

/// Every line that counts, with the number of its first part.
pub fn read(text: &str) -> Vec<(usize, Line)> {
    let mut found = Vec::new();
    let mut whole: Option<(usize, String)> = None;
    // systemd ends a line at a carriage return too.
    for (number, part) in text.split(['\n', '\r']).enumerate() {
        let part = part.trim_start_matches(BLANK);
        if part.starts_with(['#', ';']) || (part.is_empty() && whole.is_none()) {
            continue;
        }
        let (first, mut line) = whole.take().unwrap_or((number + 1, String::new()));
        let goes_on = part.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
        line.push_str(if goes_on { &part[..part.len() - 1] } else { part });
        match goes_on {
            true => {
                line.push(' ');
                whole = Some((first, line));
            }
            false => found.push((first, one(&line))),
        }
    }
    found.extend(whole.map(|(first, line)| (first, one(&line))));
    found
}

fn one(line: &str) -> Line {
    let line = line.trim_matches(BLANK);
    if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Line::Section(name.to_owned());
    }
    match line.split_once('=') {
        Some((key, value)) => {
            Line::Setting { key: key.trim_end_matches(BLANK).to_owned(), value: value.trim_matches(BLANK).to_owned() }
        }
        None => Line::Other(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn setting(key: &str, value: &str) -> Line {
        Line::Setting { key: key.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn lines_are_read_as_systemd_reads_them() {
        let text = "# c\n[Service]\n  ExecStart = /bin/a \\\n# in between\n  b\\\\\n;x\nUser=u\rGroup=g\nword\nA=1\\";
        let lines: Vec<Line> = read(text).into_iter().map(|(_, line)| line).collect();
        assert_eq!(
            lines,
            [
                Line::Section("Service".to_owned()),
                setting("ExecStart", "/bin/a  b\\\\"),
                setting("User", "u"),
                setting("Group", "g"),
                Line::Other("word".to_owned()),
                setting("A", "1"),
            ]
        );
        assert_eq!(read(text)[1].0, 3);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), more in "[=\\\\\n\r\\[\\]# a]{0,60}") {
            let _ = read(&text);
            let _ = read(&more);
        }
    }
}
