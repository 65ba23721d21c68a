//! A harmless text in place of each of an application's: of the same length and shape, empty just when that is, and
//! without a character that means something anywhere.

use std::collections::BTreeMap;

use kedge_model::{AssignmentId, Labels};

use crate::target::Target;

/// Letters that a harmless text is made of.
pub type Letters = [u8; 3];

/// No version of YAML makes another type of these. No two have a letter in common, so that hardly a condition is true of texts of
/// each.
pub const LETTERS: [Letters; 3] = [*b"ghj", *b"kmp", *b"qvw"];

/// What stands in place of the texts.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Texts of the same length and shape.
    Alike(Letters),
    /// Texts of so many letters at least, without separators, and no two the same.
    Unlike(usize),
}

/// What a template asks of a text's length, its parts, or whether it equals another, is true of one of these and false of another.
pub const UNLIKE: [Form; 2] = [Form::Unlike(1), Form::Unlike(70)];

/// One text that the application chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Text<'a> {
    Workload,
    /// The target's own name; `.DeploymentTargetName` and `.Namespace` are made of both names.
    Target,
    Label(&'a str),
    Manifest(&'a str),
}

/// A target with harmless texts.
#[derive(Clone, Debug)]
pub struct Harmless {
    pub name: String,
    pub workload: String,
    pub namespace: String,
    pub labels: Labels,
    pub manifests: BTreeMap<String, String>,
}

impl Harmless {
    /// Replaces the texts that are chosen, and leaves the others as they are written.
    pub fn of(id: &AssignmentId, target: &Target, form: Form, chosen: impl Fn(Text<'_>) -> bool) -> Harmless {
        let numbers: BTreeMap<Text<'_>, usize> = match form {
            Form::Alike(_) => BTreeMap::new(),
            Form::Unlike(_) => texts(target).into_iter().zip(0..).map(|((text, _), number)| (text, number)).collect(),
        };
        let change = |which: Text<'_>, text: &str| match form {
            _ if !chosen(which) => text.to_owned(),
            Form::Alike(letters) => harmless(text, &letters),
            Form::Unlike(_) if text.is_empty() => String::new(),
            Form::Unlike(least) => unlike(numbers.get(&which).copied().unwrap_or_default(), least),
        };
        let workload = change(Text::Workload, &target.workload);
        let name = format!("{workload}-{}", change(Text::Target, &target.short_name));
        let label = |(key, text): (&String, &String)| {
            let text = match key.as_str() {
                "workload" => workload.clone(),
                key if target.platform_labels.contains(key) => text.clone(),
                key => change(Text::Label(key), text),
            };
            (key.clone(), text)
        };
        Harmless {
            namespace: format!("{}-{}-{name}", target.environment, id.cluster_type),
            labels: target.labels.iter().map(label).collect(),
            manifests: target
                .manifests
                .iter()
                .map(|(key, text)| (key.clone(), change(Text::Manifest(key), text)))
                .collect(),
            workload,
            name,
        }
    }
}

/// All texts of a target that an application chose.
pub fn texts(target: &Target) -> Vec<(Text<'_>, &str)> {
    let labels = target.labels.iter().filter(|(key, _)| *key != "workload" && !target.platform_labels.contains(*key));
    let labels = labels.map(|(key, text)| (Text::Label(key), text.as_str()));
    let manifests = target.manifests.iter().map(|(key, text)| (Text::Manifest(key), text.as_str()));
    let names = [(Text::Workload, &*target.workload), (Text::Target, target.short_name.as_str())];
    manifests.chain(labels).chain(names).collect()
}

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Text::Workload => f.write_str("Workload"),
            Text::Target => f.write_str("DeploymentTargetName"),
            Text::Label(key) => write!(f, "Labels.{key}"),
            Text::Manifest(key) => write!(f, "Manifests.{key}"),
        }
    }
}

/// Letters for letters and digits; separators stay where they stand between words, so that what is cut by them has as
/// many parts; anything else becomes a letter. The same text gives the same one.
pub fn harmless(text: &str, letters: &Letters) -> String {
    let seed = text.bytes().fold(0usize, |seed, byte| seed.wrapping_mul(31).wrapping_add(usize::from(byte)));
    let chars: Vec<char> = text.chars().collect();
    let is_word = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(|c| c.is_alphanumeric());
    let is_slash = |at: Option<usize>| at.and_then(|at| chars.get(at)) == Some(&'/');
    chars
        .iter()
        .enumerate()
        .map(|(at, c)| {
            let (before, after) = (at.checked_sub(1), Some(at + 1));
            let stays = match c {
                '/' | '_' => true,
                '.' => {
                    (is_word(before) || is_slash(before)) && is_word(after)
                        || is_slash(after) && (at == 0 || is_slash(before))
                }
                ':' => is_word(before) && (is_word(after) || is_slash(after)),
                '-' | '@' | '+' | '%' => is_word(before) && is_word(after),
                _ => false,
            };
            if stays { *c } else { letter(seed.wrapping_add(at.wrapping_mul(7)), letters, *c) }
        })
        .collect()
}

/// Another text for each number.
fn unlike(mut number: usize, least: usize) -> String {
    let letters: Vec<char> = LETTERS.iter().flatten().map(|letter| char::from(*letter)).collect();
    let mut text = String::new();
    loop {
        text.push(letters[number % letters.len()]);
        number /= letters.len();
        if number == 0 {
            break;
        }
    }
    while text.len() < least {
        text.push(letters[0]);
    }
    text
}

/// A letter other than the one that was there.
fn letter(seed: usize, letters: &Letters, not: char) -> char {
    let pick = |seed: usize| char::from(letters[seed % letters.len()]);
    let found = pick(seed);
    if found.eq_ignore_ascii_case(&not) { pick(seed.wrapping_add(1)) } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::containment::word::{is_word, reads_as_text};

    #[test]
    fn a_harmless_text_has_the_shape_of_the_other_and_none_of_its_letters() {
        for text in ["https://h/team/app.git", "./apps/hello", "main", "1.0", "true", "a b", "git@h:x/y"] {
            let other = harmless(text, &LETTERS[0]);
            assert_eq!(other.chars().count(), text.chars().count());
            assert!(!text.chars().zip(other.chars()).any(|(a, b)| a.is_alphanumeric() && a == b), "{text} {other}");
            assert!(reads_as_text(&other), "{other}");
            assert_eq!(text.matches('/').count(), other.matches('/').count());
        }
        assert_eq!(harmless("", &LETTERS[0]), "");
        assert_eq!(harmless("main", &LETTERS[1]), harmless("main", &LETTERS[1]));
        assert_ne!(harmless("main", &LETTERS[1]), harmless("main", &LETTERS[2]));
    }

    #[test]
    fn unlike_texts_differ_from_each_other() {
        for least in [1, 70] {
            let all: std::collections::BTreeSet<String> = (0..500).map(|number| unlike(number, least)).collect();
            assert!(all.len() == 500 && all.iter().all(|text| text.len() >= least && reads_as_text(text)));
        }
    }

    #[test]
    fn nothing_that_means_something_is_left() {
        for text in ["x, y: {a}", "---", "...", "- a", "a: b", "a #b", "&a", "*a", "!a", "\"'`", "$(x)", "{", " ", "a:"]
        {
            let other = harmless(text, &LETTERS[2]);
            assert!(is_word(&other), "{text}: {other}");
        }
    }
}
