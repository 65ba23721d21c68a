//! `kedge login`: remembers a hub and a token for the commands that follow. Called by `main`.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::Result;

use crate::error::Exit;
use crate::hub::{Settings, connect, read_token};
use crate::output::say;

/// Remember a hub and an access token.
///
/// Asks the hub whose token it is and stores both for the commands that follow, readable by you alone. The token is read from a
/// file or from stdin, never from the command line. At its first start, a hub prints the paths of two files with tokens: the
/// platform team's first token is in `platform-token`, the first administrator's in `admin-token`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  With the platform team's first token, on the hub's machine:
    sudo cat /var/lib/kedge-hub/platform-token | kedge login http://127.0.0.1:7480

  As the first administrator, to add people and create their tokens:
    sudo cat /var/lib/kedge-hub/admin-token | kedge login http://127.0.0.1:7480

  With a token in a file, and a private authority:
    kedge login https://hub.example:7480 --token-file ~/kedge-token --ca hub-ca.pem")]
pub struct LoginArgs {
    /// The hub's address
    #[arg(value_name = "URL")]
    url: String,

    /// A file with the access token [default: stdin]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A PEM file with the authorities that may have issued the hub's certificate
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

pub fn run(args: &LoginArgs) -> Result<Exit> {
    let file = args.token_file.clone().unwrap_or_else(|| PathBuf::from("-"));
    if args.token_file.is_none() && std::io::stdin().is_terminal() {
        say("Paste the access token, then press Enter and Ctrl-D:");
    }
    let token = read_token(&file)?;
    // Commands run in other folders too.
    let ca = args.ca.as_deref().map(std::path::absolute).transpose()?;
    let hub = connect(&args.url, token.clone(), ca.as_deref())?;
    let who = hub.whoami()?.read()?;
    let path = Settings { hub: hub.address().to_owned(), token, ca }.store()?;
    let whose = match who.workspaces.as_slice() {
        [] => String::new(),
        some => format!(" of {}", some.join(", ")),
    };
    say(&format!("logged in to {} as {} ({}{whose})", hub.address(), who.name, who.role));
    say(&format!("stored in {}", path.display()));
    Ok(Exit::Success)
}
