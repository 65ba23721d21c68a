//! Manual pages and shell completions of our programs, made from their help texts. The commands `man` and `completions` of each
//! program call it.

use std::fs;
use std::io;
use std::path::Path;

use clap_complete::Shell;
use clap_mangen::Man;

/// Where a manual page belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// 1: what everybody types.
    Commands,
    /// 8: what administrators type.
    Administration,
}

/// Ends the examples in a help text.
const EXIT_CODES: &str = "\nExit codes: ";

impl Section {
    fn number(self) -> &'static str {
        match self {
            Section::Commands => "1",
            Section::Administration => "8",
        }
    }
}

/// The page of a program, which `command` is.
pub fn page(mut command: clap::Command, section: Section) -> io::Result<Vec<u8>> {
    command.build();
    page_of(command, section)
}

/// The program's page and, named after it, those of the commands below it. The folder is made.
pub fn write_pages(folder: &Path, mut command: clap::Command, section: Section) -> io::Result<()> {
    command.build();
    fs::create_dir_all(folder)?;
    let name = command.get_name().to_owned();
    write_all(folder, &name, &command, section)
}

/// A script that completes the program's commands, options and files.
pub fn completions(shell: Shell, mut command: clap::Command) -> Vec<u8> {
    // Made in memory: the generator panics when it can't write.
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}

fn write_all(folder: &Path, name: &str, command: &clap::Command, section: Section) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        write_all(folder, &format!("{name}-{}", subcommand.get_name()), subcommand, section)?;
    }
    fs::write(folder.join(format!("{name}.{}", section.number())), page_of(command.clone(), section)?)
}

/// As `Man::render`, but with the examples as they stand in the help, so that they can be copied.
fn page_of(command: clap::Command, section: Section) -> io::Result<Vec<u8>> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_options = command.get_arguments().any(|argument| !argument.is_hide_set());
    let has_subcommands = command.get_subcommands().any(|subcommand| !subcommand.is_hide_set());
    let has_version = command.get_version().is_some();
    let man = Man::new(command).section(section.number());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if has_options {
        man.render_options_section(&mut page)?;
    }
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(sections(&help).into_bytes());
    if has_version {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// What stands below the options, in the sections where manual pages have it.
fn sections(help: &str) -> String {
    let (examples, codes) = match help.split_once(EXIT_CODES) {
        Some((examples, codes)) => (examples, Some(codes)),
        None => (help, None),
    };
    let mut text = String::new();
    if let Some(examples) = examples.strip_prefix("Examples:\n") {
        text.push_str(".SH EXAMPLES\n.nf\n");
        for line in examples.trim_end().lines() {
            text.push_str(&literal(line.strip_prefix("  ").unwrap_or(line)));
            text.push('\n');
        }
        text.push_str(".fi\n");
    }
    if let Some(codes) = codes {
        text.push_str(&format!(".SH \"EXIT STATUS\"\n{}\n", literal(codes.trim())));
    }
    text
}

/// A line of roff that shows these very characters: some of them would become typographic ones.
fn literal(line: &str) -> String {
    let mut text = String::new();
    if line.starts_with(['.', '\'']) {
        text.push_str("\\&");
    }
    for c in line.chars() {
        match c {
            '\\' => text.push_str("\\e"),
            '-' => text.push_str("\\-"),
            '\'' => text.push_str("\\(aq"),
            '`' => text.push_str("\\(ga"),
            '~' => text.push_str("\\(ti"),
            '^' => text.push_str("\\(ha"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_characters() {
        let help = "Examples:\n  It's old:\n    kedge -c a.git@dev~1\n\n  .x\n\nExit codes: 0 done, 1 don't.";
        assert_eq!(
            sections(help),
            ".SH EXAMPLES\n.nf\nIt\\(aqs old:\n  kedge \\-c a.git@dev\\(ti1\n\n\\&.x\n.fi\n.SH \"EXIT STATUS\"\n0 done, 1 don\\(aqt.\n"
        );
        assert_eq!(sections(""), "");
    }

    #[test]
    fn every_command_has_a_page_in_its_section() {
        let folder = tempfile::tempdir().unwrap();
        let tree = clap::Command::new("kedge-agent").subcommand(clap::Command::new("status"));
        write_pages(&folder.path().join("man8"), tree, Section::Administration).unwrap();
        for name in ["kedge-agent.8", "kedge-agent-status.8"] {
            assert!(fs::read_to_string(folder.path().join("man8").join(name)).unwrap().contains(".SH NAME"), "{name}");
        }
    }

    #[test]
    fn completions_are_for_the_programs_name() {
        let script = String::from_utf8(completions(
            Shell::Fish,
            clap::Command::new("kedge-agent").arg(clap::Arg::new("x").long("x")),
        ))
        .unwrap();
        assert!(script.contains("complete -c kedge-agent -l x"), "{script}");
    }
}
