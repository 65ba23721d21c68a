//! Which files dpkg was told not to unpack (`path-exclude` in its configuration, as small images have for documentation): that such a
//! file is missing says nothing. The repacking asks it.

use std::fs;
use std::path::Path;

/// Patterns in the order of the configuration, the last that matches decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excluded {
    patterns: Vec<(bool, String)>,
}

/// More patterns than anybody writes.
const MAX_PATTERNS: usize = 4096;

impl Excluded {
    pub fn read(root: &Path) -> Excluded {
        let dpkg = root.join("etc/dpkg");
        let mut files: Vec<_> =
            fs::read_dir(dpkg.join("dpkg.cfg.d")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        files.push(dpkg.join("dpkg.cfg"));
        let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
        Excluded::parse(&texts.collect::<Vec<_>>().join("\n"))
    }

    fn parse(text: &str) -> Excluded {
        let pattern = |line: &str| {
            let (word, value) = line.trim().split_once(['=', ' '])?;
            let value = value.trim().trim_matches('"').to_owned();
            match word.trim() {
                "path-exclude" => Some((true, value)),
                "path-include" => Some((false, value)),
                _ => None,
            }
        };
        Excluded { patterns: text.lines().filter_map(pattern).take(MAX_PATTERNS).collect() }
    }

    pub fn covers(&self, path: &str) -> bool {
        let last = self.patterns.iter().rev().find(|(_, pattern)| matches(pattern.as_bytes(), path.as_bytes()));
        last.is_some_and(|(exclude, _)| *exclude)
    }
}

/// A shell pattern, in which `*` and `?` match slashes too. Goes back to the last star only, so that it is quick on any input.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut done, mut star) = (0, 0, None);
    while done < text.len() {
        let one = pattern.get(at).and_then(|_| one(&pattern[at..], text[done]));
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, done));
            at += 1;
        } else if let Some(used) = one {
            at += used;
            done += 1;
        } else if let Some((star_at, star_done)) = star {
            star = Some((star_at, star_done + 1));
            (at, done) = (star_at + 1, star_done + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Whether the pattern's first element matches a byte, and how long the element is.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] if rest.len() > 1 && rest[1..].contains(&b']') => {
            let close = 1 + rest[1..].iter().position(|byte| *byte == b']')?;
            let set = &rest[..close];
            let (not, set) = match set {
                [b'!' | b'^', set @ ..] => (true, set),
                set => (false, set),
            };
            let ranged = set.windows(3).any(|range| range[1] == b'-' && (range[0]..=range[2]).contains(&byte));
            ((set.contains(&byte) || ranged) != not).then_some(close + 2)
        }
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_pattern_decides() {
        let excluded = Excluded::parse(
            "# small\npath-exclude=/usr/share/doc/*\npath-include=/usr/share/doc/*/copyright\nno-debsig\n",
        );
        assert!(excluded.covers("/usr/share/doc/app/changelog.gz"));
        assert!(!excluded.covers("/usr/share/doc/app/copyright"));
        assert!(!excluded.covers("/usr/bin/app"));
        let locales = Excluded::parse("path-exclude /usr/share/locale/[a-df-z]*/?*.mo\n");
        assert!(locales.covers("/usr/share/locale/de/LC/app.mo"));
        assert!(!locales.covers("/usr/share/locale/en/LC/app.mo"));
    }

    proptest! {
        #[test]
        fn any_pattern_ends(pattern in "[*?a\\[\\]!-]{0,12}", text in "[a/-]{0,40}") {
            _ = matches(pattern.as_bytes(), text.as_bytes());
            prop_assert!(matches(b"*", text.as_bytes()));
            prop_assert!(matches(text.as_bytes(), text.as_bytes()));
        }
    }
}
