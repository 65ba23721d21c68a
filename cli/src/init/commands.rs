//! What to type next on a new sample: printed by `init`, and written to the sample's README.

use std::path::Path;

/// A question, and the command that answers it.
const COMMANDS: [(&str, &str); 5] = [
    ("Is everything right, in all environments?", "validate"),
    ("What are the GitOps files of dev?", "render --environment dev --out {}rendered/dev"),
    (
        "Where does a value come from, and which ones did it win over?",
        "explain drone/hello-functional-test DATABASE_URL --environment dev",
    ),
    ("Why does the acceptance test not run on drones?", "explain drone/hello-uat --environment stage"),
    ("What did the last commit to dev change?", "plan --environment dev"),
];

/// What every command is told. `{}` stands for the folder with its `/`, or for nothing inside it.
const PLACES: &str = "--control-plane {}control-plane.git --sources {}sources.yaml";

/// The commands, each under its question; for a reader in `folder`'s parent, or with none inside the folder.
pub(super) fn list(folder: Option<&Path>, indent: &str) -> String {
    let prefix = folder.map(prefix).unwrap_or_default();
    let mut text = String::new();
    for (question, command) in COMMANDS {
        let words: Vec<String> =
            command.split(' ').chain(PLACES.split(' ')).map(|word| quote(&word.replace("{}", &prefix))).collect();
        text.push_str(&format!("{indent}# {question}\n{indent}kedge {}\n", words.join(" ")));
    }
    text
}

fn prefix(folder: &Path) -> String {
    let mut text = folder.display().to_string();
    if text.starts_with('-') {
        // Not to be taken for an option.
        text.insert_str(0, "./");
    }
    if !text.ends_with('/') {
        text.push('/');
    }
    text
}

/// A word as a POSIX shell takes it.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+~".contains(c);
    if !word.is_empty() && !word.starts_with('~') && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_folder_is_not_quoted() {
        let text = list(Some(Path::new("demo/")), "");
        assert!(text.contains("\nkedge validate --control-plane demo/control-plane.git --sources demo/sources.yaml\n"));
    }

    #[test]
    fn a_folder_with_spaces_and_quotes_is_quoted_for_the_shell() {
        let text = list(Some(Path::new("it's mine")), "  ");
        assert!(text.contains(r"  kedge validate --control-plane 'it'\''s mine/control-plane.git'"), "{text}");
    }

    #[test]
    fn a_folder_that_looks_like_an_option_or_a_home_is_neither() {
        assert!(list(Some(Path::new("-x")), "").contains(" ./-x/control-plane.git"));
        assert!(list(Some(Path::new("~x")), "").contains(" '~x/control-plane.git'"));
    }
}
