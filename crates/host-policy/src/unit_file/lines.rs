//! The lines of a unit file, as systemd's own reader takes them: ends of lines, comments, continuations, sections, settings.

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
/// systemd takes it away from the first line that begins with it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Every line that counts, with the number of its first part.
pub fn read(text: &str) -> Vec<(usize, Line)> {
    let mut found = Vec::new();
    let mut whole: Option<(usize, String)> = None;
    let mut marked = false;
    for (at, part) in physical(text).into_iter().enumerate() {
        if part.trim_start_matches(BLANK).starts_with(['#', ';']) {
            continue;
        }
        let part = match part.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if !marked => {
                marked = true;
                rest
            }
            _ => part,
        };
        let (first, mut line) = whole.take().unwrap_or((at + 1, String::new()));
        let goes_on = part.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
        if goes_on {
            line.push_str(&part[..part.len() - 1]);
            line.push(' ');
            whole = Some((first, line));
        } else {
            line.push_str(part);
            found.extend(one(&line).map(|line| (first, line)));
        }
    }
    found.extend(whole.and_then(|(first, line)| Some((first, one(&line)?))));
    found
}

/// A line ends at a line feed, a carriage return, or one of each in either order.
fn physical(text: &str) -> Vec<&str> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let behind = &rest.as_bytes()[end..];
        let ending = match behind {
            [b'\n', b'\r', ..] | [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        lines.push(&rest[..end]);
        rest = &rest[end + ending..];
    }
    lines
}

fn one(line: &str) -> Option<Line> {
    let line = line.trim_matches(BLANK);
    if line.is_empty() {
        return None;
    }
    if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Some(Line::Section(name.to_owned()));
    }
    // An unfinished section's name ends systemd's reading of the file, whatever it holds.
    let setting = line.split_once('=').filter(|_| !line.starts_with('['));
    Some(match setting {
        Some((key, value)) => {
            Line::Setting { key: key.trim_end_matches(BLANK).to_owned(), value: value.trim_matches(BLANK).to_owned() }
        }
        None => Line::Other(line.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn setting(key: &str, value: &str) -> Line {
        Line::Setting { key: key.to_owned(), value: value.to_owned() }
    }

    fn lines(text: &str) -> Vec<Line> {
        read(text).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn lines_are_read_as_systemd_reads_them() {
        let text = "# c\n[Service]\n  ExecStart = /bin/a \\\n# in between\n  b\\\\\n;x\nUser=u\rGroup=g\nword\nA=1\\";
        assert_eq!(
            lines(text),
            [
                Line::Section("Service".to_owned()),
                setting("ExecStart", "/bin/a    b\\\\"),
                setting("User", "u"),
                setting("Group", "g"),
                Line::Other("word".to_owned()),
                setting("A", "1"),
            ]
        );
        assert_eq!(read(text)[1].0, 3);
    }

    #[test]
    fn a_line_goes_on_behind_either_end_of_a_line() {
        for end in ["\n", "\r", "\r\n", "\n\r"] {
            let text = format!("A=1\\{end}B=2{end}{end}C=3");
            assert_eq!(lines(&text), [setting("A", "1 B=2"), setting("C", "3")], "{end:?}");
        }
        // The second of two equal ends is an empty line, which ends what went on.
        assert_eq!(lines("A=1\\\n\nB=2"), [setting("A", "1"), setting("B", "2")]);
        assert_eq!(lines("A=1\\ \nB=2"), [setting("A", "1\\"), setting("B", "2")]);
    }

    #[test]
    fn a_byte_order_mark_is_taken_away_once_wherever_a_line_begins_with_it() {
        let [first, second] = ["\u{feff}[Service]", "A=\\\n\u{feff}+x"];
        assert_eq!(lines(first), [Line::Section("Service".to_owned())]);
        assert_eq!(lines(second), [setting("A", "+x")]);
        assert_eq!(lines(&format!("{first}\n{second}"))[1], setting("A", "\u{feff}+x"));
    }

    #[test]
    fn an_unfinished_section_is_no_setting() {
        assert_eq!(lines("[Service\nA=1"), [Line::Other("[Service".to_owned()), setting("A", "1")]);
        assert_eq!(lines("[X-a=1"), [Line::Other("[X-a=1".to_owned())]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), more in "[=\\\\\n\r\\[\\]# a]{0,60}") {
            let _ = read(&text);
            let _ = read(&more);
        }
    }
}
