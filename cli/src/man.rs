//! `kedge man`: manual pages made from the help texts. Called by `main`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::command::Cli;
use crate::error::Exit;
use crate::output::print;

/// Ends the examples in the help of `kedge` itself.
const EXIT_CODES: &str = "\nExit codes: ";

/// Print the manual page, or write one for each command.
///
/// Without a folder the page of `kedge` itself is printed; with one there is a page for every command.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Read the page:
    kedge man | man -l -

  Install the pages of all commands:
    kedge man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder to write kedge.1, kedge-render.1, … to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &ManArgs) -> Result<Exit> {
    let mut command = Cli::command();
    command.build();
    match &args.out {
        None => print(&page(command)?)?,
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("`{}` can't be made", folder.display()))?;
            write_all(folder, "kedge", &command)?;
        }
    }
    Ok(Exit::Success)
}

/// The page of a command and, named after it, those of the commands below it.
fn write_all(folder: &Path, name: &str, command: &clap::Command) -> Result<()> {
    for subcommand in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        write_all(folder, &format!("{name}-{}", subcommand.get_name()), subcommand)?;
    }
    write(folder, name, page(command.clone())?)
}

/// As `Man::render`, but with the examples as they stand in the help, so that they can be copied.
fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_options = command.get_arguments().any(|argument| !argument.is_hide_set());
    let has_subcommands = command.get_subcommands().any(|subcommand| !subcommand.is_hide_set());
    let has_version = command.get_version().is_some();
    let man = Man::new(command);
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

fn write(folder: &Path, name: &str, page: Vec<u8>) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page).with_context(|| format!("`{}` can't be written", path.display()))
}

#[cfg(test)]
mod tests {
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
    fn every_page_has_its_examples_in_a_section_of_their_own() {
        let mut command = Cli::command();
        command.build();
        for subcommand in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            let page = String::from_utf8(page(subcommand.clone()).unwrap()).unwrap();
            assert!(page.contains("\n.SH EXAMPLES\n.nf\n") && !page.contains("EXTRA"), "{page}");
        }
    }
}
