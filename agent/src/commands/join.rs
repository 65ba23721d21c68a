//! `kedge-agent join`: makes this host a cluster of a fleet. The work is in `crate::join`.

use std::path::PathBuf;
use std::sync::Arc;

use kedge_durable::{Disk, RealDisk};

use super::error::{CommandError, Exit};
use super::output;
use crate::clock::SystemClock;
use crate::daemon;
use crate::join::{self, JoinOptions, TokenSource, Welcome};
use crate::paths::Paths;

/// Join a hub with a token.
///
/// The platform team creates a token with `kedge token create`. It contains the hub's address and fingerprint, and what this host
/// will be. The host generates its own key, and the hub issues a certificate for it. If the answer is lost, run the command again
/// with the same token.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Join with a token that was copied to the host (it stays out of the shell's history):
    kedge-agent join --token-file token

  The same, from stdin:
    kedge token create -e prod -t line | ssh host kedge-agent join --token-file -

  Prepare an image: its first boot joins by itself, and then removes the file:
    cp token /etc/kedge/join-token")]
pub struct JoinArgs {
    /// The token itself
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// A file with the token, or - for stdin [default: /etc/kedge/join-token]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The name of this cluster [default: the host's name]
    #[arg(long)]
    name: Option<String>,
    /// Give up this host's cluster, and join as a new one; what runs stays until the new hub changes it
    #[arg(long)]
    again: bool,
}

pub fn run(args: &JoinArgs, paths: &Paths) -> Result<Exit, CommandError> {
    if paths.is_host() && !nix::unistd::geteuid().is_root() {
        return Err(CommandError::NeedsRootToChange);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::failed("the runtime can't start", error))?;
    let (disk, options): (Arc<dyn Disk>, _) = (Arc::new(RealDisk), JoinOptions::from(args));
    let joined = join::join(&disk, paths, Arc::new(SystemClock), &options);
    let welcome = runtime.block_on(joined).map_err(Box::new)?;
    output::print(&text(&welcome, paths.is_host() && daemon::holder(paths).is_none()))?;
    Ok(Exit::Success)
}

fn text(welcome: &Welcome, idle: bool) -> String {
    let Welcome { cluster, name, hub, stream } = welcome;
    let mut text = format!("Joined {hub} as {name} ({cluster}), stream {stream}.\n");
    if idle {
        text.push_str("The agent doesn't run yet: systemctl enable --now kedge-agent\n");
    }
    text
}

impl From<&JoinArgs> for JoinOptions {
    fn from(args: &JoinArgs) -> JoinOptions {
        let token = match (&args.token, &args.token_file) {
            (Some(text), _) => TokenSource::Text(text.clone()),
            (None, Some(path)) => TokenSource::File(path.clone()),
            (None, None) => TokenSource::Image,
        };
        JoinOptions { token, name: args.name.clone(), again: args.again }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use kedge_model::wire::{ClusterId, Stream};

    use super::*;

    #[test]
    fn a_person_is_told_who_the_host_is_now_and_what_is_left_to_do() {
        let welcome = Welcome {
            cluster: ClusterId::of_public_key(&[1; 32]),
            name: "line-7".to_owned(),
            hub: "https://hub:7443".to_owned(),
            stream: Stream::new("prod", "line", "all"),
        };
        let said = text(&welcome, true);
        assert!(said.starts_with("Joined https://hub:7443 as line-7 ("), "{said}");
        assert!(said.contains("prod/line/all") && said.ends_with("systemctl enable --now kedge-agent\n"));
        assert_eq!(text(&welcome, false).lines().count(), 1);
    }

    #[test]
    fn a_host_without_a_token_is_told_how_to_get_one() {
        let folder = tempfile::tempdir().unwrap();
        let args = JoinArgs { token: None, token_file: None, name: None, again: false };
        let said = run(&args, &Paths::below(folder.path())).unwrap_err().to_text();
        assert!(said.contains("Error: there is no token") && said.contains("Hint: make one with"), "{said}");
    }
}
