//! What may be a name. Names become folders and files, so the strict check refuses what a path can't carry or would
//! give another meaning; the softer one says what Kubernetes would think, for warnings.

use crate::shown::is_hidden;

/// Kubernetes' limit for names; file systems allow 255.
pub const MAX_NAME_BYTES: usize = 253;

/// Why a name can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name can't be empty")]
    Empty,
    #[error("`{0}` can't be a name, because it means a folder of its own in a path")]
    Dots(String),
    #[error("a name can't contain `/`, because it becomes part of a path")]
    Slash,
    #[error("a name can't contain the character {0:?}")]
    Control(char),
    #[error("the name has {bytes} bytes and at most {MAX_NAME_BYTES} are allowed")]
    TooLong { bytes: usize },
    #[error("a cluster type's name can't begin with `.`, because folders such as `.github` aren't cluster types")]
    LeadingDot,
    #[error("a cluster's name has letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit")]
    ClusterLetters,
    #[error("a cluster's name has at most {MAX_CLUSTER_NAME_BYTES} characters and this has {bytes}")]
    ClusterTooLong { bytes: usize },
    #[error("a cluster's name can't look like a cluster's id (32 hexadecimal digits)")]
    ClusterId,
    #[error("a name can't contain {0:?}, which can't be seen")]
    Hidden(char),
    #[error("a person's name has letters of one alphabet, and this mixes Latin ones with letters that look like them")]
    MixedScripts,
}

/// As long as a host's name can be on Linux.
pub const MAX_CLUSTER_NAME_BYTES: usize = 64;

/// Why Kubernetes would refuse a word that Kedge can use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxWarning {
    #[error(
        "Kubernetes names have lower case letters, digits, `-` and `.` only, and begin and end with a letter or digit"
    )]
    Subdomain,
    #[error("Kubernetes allows at most {limit} characters here and this has {bytes}")]
    TooLong { limit: usize, bytes: usize },
    #[error("a label's key is `name` or `domain/name` with letters, digits, `-`, `_` and `.` in the name")]
    LabelKey,
    #[error("a label's value has letters, digits, `-`, `_` and `.` only, and begins and ends with a letter or digit")]
    LabelValue,
}

/// Whether a name can be a part of a path.
pub fn check_path_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name == "." || name == ".." {
        return Err(NameError::Dots(name.to_owned()));
    }
    if name.contains('/') {
        return Err(NameError::Slash);
    }
    if let Some(c) = name.chars().find(|c| c.is_control()) {
        return Err(NameError::Control(c));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    Ok(())
}

/// As `check_path_name`; the folders of cluster types stand beside `.github`, so theirs can't begin with a dot.
pub fn check_cluster_type_name(name: &str) -> Result<(), NameError> {
    check_path_name(name)?;
    if name.starts_with('.') { Err(NameError::LeadingDot) } else { Ok(()) }
}

/// Whether a cluster that joins may be called this. People type these names into shells: nothing in them means anything there. A
/// cluster is found by its name or its id, so a name never looks like an id.
pub fn check_cluster_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_CLUSTER_NAME_BYTES {
        return Err(NameError::ClusterTooLong { bytes: name.len() });
    }
    if !is_label_word(name) {
        return Err(NameError::ClusterLetters);
    }
    let is_id = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Err(NameError::ClusterId) } else { Ok(()) }
}

/// Whether something that an agent names can be an assignment: `<workload>-<target>`, a part of a path, all of it to be seen.
pub fn check_assignment_name(name: &str) -> Result<(), NameError> {
    check_path_name(name)?;
    check_visible(name)
}

/// Whether a person may be called this: two people mustn't look the same.
pub fn check_person_name(name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Empty);
    }
    check_visible(name)?;
    // The alphabets whose letters look like Latin ones; full-width and mathematical letters are Latin ones in disguise.
    let mut latin = false;
    let mut others = 0;
    let groups: [fn(char) -> bool; 4] = [is_cyrillic, is_greek, is_disguised, is_cherokee_or_armenian];
    for is_of in groups {
        others += usize::from(name.chars().any(is_of));
    }
    for c in name.chars() {
        latin |= c.is_ascii_alphabetic()
            || (c.is_alphabetic() && matches!(c, '\u{aa}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}'));
    }
    match others + usize::from(latin) {
        0 | 1 => Ok(()),
        _ => Err(NameError::MixedScripts),
    }
}

fn check_visible(name: &str) -> Result<(), NameError> {
    match name.chars().find(|c| is_hidden(*c)) {
        Some(c) => Err(NameError::Hidden(c)),
        None => Ok(()),
    }
}

fn is_cyrillic(c: char) -> bool {
    matches!(c, '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}' | '\u{2de0}'..='\u{2dff}' | '\u{a640}'..='\u{a69f}')
}

fn is_greek(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}')
}

fn is_cherokee_or_armenian(c: char) -> bool {
    matches!(c, '\u{530}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}' | '\u{a4d0}'..='\u{a4ff}')
}

fn is_disguised(c: char) -> bool {
    matches!(c, '\u{250}'..='\u{2af}' | '\u{2100}'..='\u{214f}' | '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}')
}

/// Whether Kubernetes would take it as `metadata.name` (RFC 1123 subdomain).
pub fn check_kubernetes_name(name: &str) -> Result<(), SyntaxWarning> {
    if name.len() > MAX_NAME_BYTES {
        return Err(SyntaxWarning::TooLong { limit: MAX_NAME_BYTES, bytes: name.len() });
    }
    if name.split('.').all(is_dns_label) { Ok(()) } else { Err(SyntaxWarning::Subdomain) }
}

pub fn check_label_key(key: &str) -> Result<(), SyntaxWarning> {
    let name = match key.split_once('/') {
        None => key,
        Some((domain, name)) => {
            if domain.is_empty() || check_kubernetes_name(domain).is_err() {
                return Err(SyntaxWarning::LabelKey);
            }
            name
        }
    };
    if name.len() > 63 {
        return Err(SyntaxWarning::TooLong { limit: 63, bytes: name.len() });
    }
    if is_label_word(name) { Ok(()) } else { Err(SyntaxWarning::LabelKey) }
}

pub fn check_label_value(value: &str) -> Result<(), SyntaxWarning> {
    if value.len() > 63 {
        return Err(SyntaxWarning::TooLong { limit: 63, bytes: value.len() });
    }
    if value.is_empty() || is_label_word(value) { Ok(()) } else { Err(SyntaxWarning::LabelValue) }
}

fn is_dns_label(part: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    edge(part.chars().next())
        && edge(part.chars().next_back())
        && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn is_label_word(word: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(word.chars().next())
        && edge(word.chars().next_back())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_pass() {
        for name in ["drone", "west-us", "a.b", ".hidden", "Grün", "a b", &"x".repeat(253)] {
            assert_eq!(check_path_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        assert_eq!(check_path_name(""), Err(NameError::Empty));
        assert_eq!(check_path_name("."), Err(NameError::Dots(".".into())));
        assert_eq!(check_path_name(".."), Err(NameError::Dots("..".into())));
        assert_eq!(check_path_name("a/b"), Err(NameError::Slash));
        assert_eq!(check_path_name("../../etc"), Err(NameError::Slash));
        assert_eq!(check_path_name("a\0b"), Err(NameError::Control('\0')));
        assert_eq!(check_path_name("a\nb"), Err(NameError::Control('\n')));
        assert_eq!(check_path_name("a\u{85}b"), Err(NameError::Control('\u{85}')));
        assert_eq!(check_path_name(&"x".repeat(254)), Err(NameError::TooLong { bytes: 254 }));
    }

    #[test]
    fn cluster_type_named_like_a_hidden_folder_is_refused() {
        assert_eq!(check_cluster_type_name(".github"), Err(NameError::LeadingDot));
        assert_eq!(check_cluster_type_name("drone"), Ok(()));
        assert!(NameError::LeadingDot.to_string().contains("`.github`"));
    }

    #[test]
    fn a_cluster_is_called_like_a_host() {
        let longest = "x".repeat(64);
        for name in ["stage-drone-1", "localhost", "Line-7.example.com", "a_b", "7", &longest] {
            assert_eq!(check_cluster_name(name), Ok(()), "{name}");
        }
        for name in
            ["", ".", "..", "-", "--help", "a b", "a;b", "$(id)", "a; touch PWNED #", "a/b", "ä", "a-", "a\u{200b}b"]
        {
            assert!(check_cluster_name(name).is_err(), "{name}");
        }
        assert_eq!(check_cluster_name(&"aB3".repeat(11)[..32]), Err(NameError::ClusterId));
        assert!(check_cluster_name(&"x".repeat(65)).is_err());
    }

    #[test]
    fn an_assignment_of_an_agent_is_a_part_of_a_path_that_can_be_seen() {
        assert_eq!(check_assignment_name("beacon-stage"), Ok(()));
        for name in ["", "..", "beacon-stage;touch${IFS}/tmp/PWNED", "a\u{202e}b", "a\u{1b}b"] {
            assert!(check_assignment_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn no_person_looks_like_another() {
        for name in [
            "platform team",
            "Anna Müller",
            "Łukasz",
            "Анна",
            "Ελένη",
            "李雷",
            "Li 李",
            "O'Brien (ops)",
            "anna@example.com",
        ] {
            assert_eq!(check_person_name(name), Ok(()), "{name}");
        }
        for name in ["", "pla\u{200b}to", "\u{202e}evil", "plat\u{43e}", "\u{3bf}ps", "a\u{e000}", "ｐlato"] {
            assert!(check_person_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn kubernetes_syntax_is_checked_apart() {
        assert_eq!(check_kubernetes_name("a-b.c1"), Ok(()));
        for name in ["", "A", "a_b", "-a", "a-", "a..b"] {
            assert_eq!(check_kubernetes_name(name), Err(SyntaxWarning::Subdomain), "{name}");
        }
        for key in ["region", "kedge.dev/ring", "a_b.c"] {
            assert_eq!(check_label_key(key), Ok(()), "{key}");
        }
        for key in ["", "/x", "a/", "a/b/c", "-a", "Ä"] {
            assert!(check_label_key(key).is_err(), "{key}");
        }
        for value in ["", "true", "east-us", "v1.2_3"] {
            assert_eq!(check_label_value(value), Ok(()), "{value}");
        }
        for value in ["a b", "-a", "a/b"] {
            assert_eq!(check_label_value(value), Err(SyntaxWarning::LabelValue), "{value}");
        }
        assert!(check_label_value(&"x".repeat(64)).is_err());
    }
}
