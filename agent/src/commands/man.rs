//! `kedge-agent man`: manual pages made from the help texts. Called by `main`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use super::error::{CommandError, Exit};
use super::output::print;

/// Print the manual page, or write one for each command.
///
/// Without a folder the page of `kedge-agent` itself is printed; with one there is a page for every command. The Debian package
/// installs them.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Read the page:
    kedge-agent man | man -l -

  Install the pages of all commands:
    kedge-agent man --out /usr/local/share/man/man8")]
pub struct ManArgs {
    /// The folder to write kedge-agent.8, kedge-agent-status.8, … to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Pages of system administration.
const SECTION: &str = "8";
/// Ends the examples of a command's help.
const EXIT_CODES: &str = "\nExit codes: ";

/// `command` is the whole tree.
pub fn run(args: &ManArgs, mut command: clap::Command) -> Result<Exit, CommandError> {
    command.build();
    match &args.out {
        None => print(&String::from_utf8_lossy(&page(command)?))?,
        Some(folder) => {
            let failed = |source| CommandError::File { path: folder.clone(), action: "made", source };
            fs::create_dir_all(folder).map_err(failed)?;
            let name = command.get_name().to_owned();
            write_all(folder, &name, &command)?;
        }
    }
    Ok(Exit::Success)
}

/// The page of a command and, named after it, those of the commands below it.
fn write_all(folder: &Path, name: &str, command: &clap::Command) -> Result<(), CommandError> {
    for subcommand in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        write_all(folder, &format!("{name}-{}", subcommand.get_name()), subcommand)?;
    }
    let path = folder.join(format!("{name}.{SECTION}"));
    fs::write(&path, page(command.clone())?).map_err(|source| CommandError::File { path, action: "written", source })
}

/// As `Man::render`, but with the examples as they stand in the help, so that they can be copied.
fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let has_options = command.get_arguments().any(|argument| !argument.is_hide_set());
    let has_subcommands = command.get_subcommands().any(|subcommand| !subcommand.is_hide_set());
    let has_version = command.get_version().is_some();
    let man = Man::new(command).section(SECTION);
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
        let help = "Examples:\n  It's old:\n    kedge-agent why a~1\n\n  .x\n\nExit codes: 0 done, 1 don't.";
        assert_eq!(
            sections(help),
            ".SH EXAMPLES\n.nf\nIt\\(aqs old:\n  kedge\\-agent why a\\(ti1\n\n\\&.x\n.fi\n.SH \"EXIT STATUS\"\n0 done, 1 don\\(aqt.\n"
        );
    }

    #[test]
    fn pages_are_written_for_every_command() {
        let folder = tempfile::tempdir().unwrap();
        let tree = clap::Command::new("kedge-agent").subcommand(clap::Command::new("status"));
        let args = ManArgs { out: Some(folder.path().join("man8")) };
        assert_eq!(run(&args, tree).unwrap(), Exit::Success);
        for name in ["kedge-agent.8", "kedge-agent-status.8"] {
            assert!(fs::read_to_string(folder.path().join("man8").join(name)).unwrap().contains(".SH NAME"), "{name}");
        }
    }
}
