//! `kedge open`: the hub's page in a browser, logged in by a link that works once. Called by `main`; `up` makes its links here.

use std::process::{Command, Stdio};

use anyhow::Result;
use kedge_api::client::Client;

use crate::error::Exit;
use crate::hub::HubArgs;
use crate::output::{print_text, say};

/// Open the hub's page in a browser.
///
/// The browser is logged in as you by a link that works once and for ten minutes; your token stays here.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Open the page:
    kedge open

  On a machine without a browser, print the link for another one:
    kedge open --print")]
pub struct OpenArgs {
    /// Print the link instead of opening it
    #[arg(long)]
    print: bool,

    #[command(flatten)]
    hub: HubArgs,
}

pub fn run(args: &OpenArgs) -> Result<Exit> {
    let link = login_link(&args.hub.open()?)?;
    if args.print || !in_browser(&link) {
        print_text(&format!("{link}\n"))?;
        say("the link works once, for ten minutes");
    }
    Ok(Exit::Success)
}

/// A link that logs a browser in as the caller, once.
pub fn login_link(hub: &Client) -> Result<String> {
    let made = hub.create_login_link()?.read()?;
    Ok(format!("{}{}", hub.address().trim_end_matches('/'), made.path))
}

/// False: there is nothing here to open it with.
pub fn in_browser(link: &str) -> bool {
    let mut command = Command::new("xdg-open");
    let quiet = command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
