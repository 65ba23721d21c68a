//! `kedge man`: manual pages made from the help texts. Called by `main`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::command::Cli;
use crate::error::Exit;

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
        None => {
            let mut out = io::stdout().lock();
            out.write_all(&page(command)?)?;
            out.flush()?;
        }
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("`{}` can't be made", folder.display()))?;
            for subcommand in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                let name = format!("kedge-{}", subcommand.get_name());
                write(folder, &name, page(subcommand.clone())?)?;
            }
            write(folder, "kedge", page(command)?)?;
        }
    }
    Ok(Exit::Success)
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}

fn write(folder: &std::path::Path, name: &str, page: Vec<u8>) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page).with_context(|| format!("`{}` can't be written", path.display()))
}
