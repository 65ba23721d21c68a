//! Commands that people are shown to copy: the words of the program stand as they are, and every name in them is quoted, because
//! names come from agents and tenants. Every command with a name in it is made here.

use std::fmt;

use crate::shown::shown;

/// A command line for a POSIX shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(String);

impl Command {
    /// The words of the program: `kedge get clusters`.
    pub fn new(words: &'static str) -> Command {
        Command(words.to_owned())
    }

    /// More words of the program: `-o wide`.
    #[must_use]
    pub fn then(mut self, words: &'static str) -> Command {
        self.0.push(' ');
        self.0.push_str(words);
        self
    }

    /// An option with its value. One that looks like an option itself is tied to it.
    #[must_use]
    pub fn option(mut self, option: &'static str, value: &str) -> Command {
        let tie = if value.starts_with('-') { '=' } else { ' ' };
        self.0.push(' ');
        self.0.push_str(option);
        self.0.push(tie);
        self.0.push_str(&quote(value));
        self
    }

    /// Names, after all options. One that looks like an option is none.
    #[must_use]
    pub fn names(mut self, names: &[&str]) -> Command {
        if names.iter().any(|name| name.starts_with('-')) {
            self.0.push_str(" --");
        }
        for name in names {
            self.0.push(' ');
            self.0.push_str(&quote(name));
        }
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Command> for String {
    fn from(command: Command) -> String {
        command.0
    }
}

/// One word for a POSIX shell: in single quotes where it isn't plain. What can't be seen is replaced: the command then names nothing.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let word = shown(word).replace(['\n', '\t'], "\u{fffd}");
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stand_as_they_are() {
        let command = Command::new("kedge get clusters").option("-e", "dev").then("-o wide");
        assert_eq!(command.to_string(), "kedge get clusters -e dev -o wide");
        assert_eq!(Command::new("kedge unhold").names(&["a-1.b", "x_y"]).to_string(), "kedge unhold a-1.b x_y");
    }

    #[test]
    fn no_name_becomes_a_command_or_an_option() {
        for name in
            ["a;touch${IFS}/tmp/x", "$(id)", "`id`", "a b", "a'b'; id #", "*", "~", "a\nid", "", "!!", "a&b", "ä"]
        {
            let quoted = quote(name);
            let inside = quoted.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).expect("it is in quotes");
            assert!(!inside.replace("'\\''", "").contains('\'') && !inside.contains('\n'), "{quoted}");
        }
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(Command::new("kedge unhold").names(&["--help", "x"]).to_string(), "kedge unhold -- --help x");
        assert_eq!(Command::new("kedge get").option("-e", "-x;").to_string(), "kedge get -e='-x;'");
        assert_eq!(quote("\u{202e}a"), "'\u{fffd}a'");
    }
}
