//! Paragraphs of `Field: value` lines, the form of dpkg's status file, apt's marks and a deb's control file. Read one at a time with
//! a bound on each, so that a look costs the memory of one paragraph; `status` and `archive` give them meaning.

use std::io::{self, BufRead, Read as _};

/// One paragraph; values are slices of its text.
#[derive(Clone, Copy, Debug)]
pub struct Stanza<'t> {
    text: &'t str,
}

/// The longest paragraph that is read: the longest of Debian (a kernel's or TeX's list of conffiles) has under 100 kB.
pub const MAX_STANZA: usize = 1024 * 1024;

impl<'t> Stanza<'t> {
    pub fn new(text: &'t str) -> Stanza<'t> {
        Stanza { text }
    }

    /// A field's value with its continuation lines; its name's case doesn't matter.
    pub fn field(&self, name: &str) -> Option<&'t str> {
        self.fields().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every field as it is written: name, and value with continuation lines.
    pub fn fields(&self) -> impl Iterator<Item = (&'t str, &'t str)> + use<'t> {
        let mut rest = self.text;
        std::iter::from_fn(move || {
            while !rest.is_empty() {
                let mut end = rest.find('\n').map_or(rest.len(), |at| at + 1);
                while rest[end..].starts_with([' ', '\t']) {
                    end += rest[end..].find('\n').map_or(rest.len() - end, |at| at + 1);
                }
                let (field, after) = rest.split_at(end);
                rest = after;
                if let Some((name, value)) = field.split_once(':')
                    && !name.is_empty()
                    && !name.contains([' ', '\t', '\n'])
                {
                    return Some((name, value.trim()));
                }
            }
            None
        })
    }
}

/// Calls `visit` with each paragraph of a file.
pub fn each_stanza(reader: &mut impl BufRead, mut visit: impl FnMut(Stanza<'_>)) -> io::Result<()> {
    let mut paragraph = Vec::new();
    loop {
        let before = paragraph.len();
        let room = u64::try_from(MAX_STANZA + 1 - before).unwrap_or(0);
        let read = reader.by_ref().take(room).read_until(b'\n', &mut paragraph)?;
        if paragraph.len() > MAX_STANZA {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a paragraph has more than {MAX_STANZA} bytes"),
            ));
        }
        let blank = paragraph[before..].iter().all(u8::is_ascii_whitespace);
        if blank && before > 0 {
            visit(Stanza::new(&String::from_utf8_lossy(&paragraph[..before])));
        }
        if blank {
            paragraph.clear();
        }
        if read == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8]) -> io::Result<Vec<Vec<(String, String)>>> {
        let mut all = Vec::new();
        each_stanza(&mut &text[..], |stanza| {
            all.push(stanza.fields().map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
        })?;
        Ok(all)
    }

    #[test]
    fn paragraphs_are_split_at_blank_lines() {
        let all = read(b"\n\nPackage: a\nVersion: 1\n \n\nPackage: b\n").unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], [("Package".to_owned(), "a".to_owned()), ("Version".to_owned(), "1".to_owned())]);
        assert_eq!(all[1], [("Package".to_owned(), "b".to_owned())]);
    }

    #[test]
    fn continuation_lines_belong_to_their_field() {
        let stanza = Stanza::new("Package: a\nConffiles:\n /etc/a 1\n /etc/b 2 obsolete\nVersion: 3");
        assert_eq!(stanza.field("conffiles"), Some("/etc/a 1\n /etc/b 2 obsolete"));
        assert_eq!(stanza.field("Version"), Some("3"));
        assert_eq!(stanza.field("Depends"), None);
    }

    #[test]
    fn an_endless_paragraph_is_refused() {
        let long = [b"Package: ".as_slice(), &vec![b'x'; MAX_STANZA]].concat();
        assert_eq!(read(&long).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            for fields in read(&bytes).unwrap() {
                prop_assert!(fields.len() <= bytes.len());
            }
        }

        #[test]
        fn fields_come_back_as_written(fields in prop::collection::vec(("[A-Z][a-z-]{0,8}", "[a-z0-9.:+~ ]{0,12}"), 1..8)) {
            let text: String = fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            let all = read(text.as_bytes()).unwrap();
            let wanted: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), value.trim().to_owned())).collect();
            prop_assert_eq!(&all[0], &wanted);
        }
    }
}
