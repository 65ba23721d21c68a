//! Who the peers are, for the commands that people type: a file in the folder that a reboot empties, written by the driver a few times
//! a minute at most. Nothing depends on it.

pub mod pods;

use std::fs;
use std::io;
use std::path::PathBuf;

use kedge_model::wire::{ClusterId, Generation, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::paths::Paths;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Shown {
    pub site: String,
    /// Where this agent lets peers in.
    pub port: u16,
    /// Who carries for the site; it may be this one.
    pub uplink: Option<ClusterId>,
    /// This cluster.
    pub own: Option<ClusterId>,
    /// A newer state that waits for this cluster's turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Generation>,
    pub peers: Vec<Peer>,
    pub written_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peer {
    pub id: ClusterId,
    /// From its membership; none before that is known.
    pub name: Option<String>,
    pub stream: Option<String>,
    pub relay: bool,
    pub address: Option<String>,
    pub since: Timestamp,
    pub last_heard: Option<Timestamp>,
    /// It reaches the hub itself.
    pub reaches_hub: bool,
    pub uplink: bool,
    /// Pieces of content that we look for and it has.
    pub has: usize,
    /// It isn't talked to until then.
    pub dropped_until: Option<Timestamp>,
    /// What it did that no honest peer does.
    pub lies: Vec<String>,
}

const FILE: &str = "peers.json";
/// 1,024 peers with what they did.
const MOST: u64 = 4 * 1024 * 1024;

impl Shown {
    /// None: there are no peers, or the agent doesn't run.
    pub fn read(paths: &Paths) -> Option<Shown> {
        read(paths, FILE)
    }

    /// Who carries for this one: another one.
    pub fn via(&self) -> Option<&Peer> {
        let uplink = self.uplink.filter(|uplink| Some(*uplink) != self.own)?;
        self.peers.iter().find(|peer| peer.id == uplink)
    }

    pub fn write(&self, paths: &Paths) -> io::Result<()> {
        write(paths, FILE, self)
    }

    /// The peers are no longer talked to.
    pub fn end(paths: &Paths) {
        end(paths, FILE);
    }
}

impl Peer {
    /// As a person calls it.
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }
}

fn read<T: DeserializeOwned>(paths: &Paths, file: &str) -> Option<T> {
    let place = place(paths, file);
    if fs::metadata(&place).ok()?.len() > MOST {
        return None;
    }
    serde_json::from_slice(&fs::read(place).ok()?).ok()
}

fn write<T: Serialize>(paths: &Paths, file: &str, shown: &T) -> io::Result<()> {
    let place = place(paths, file);
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = place.with_extension("new");
    fs::write(&temporary, serde_json::to_vec(shown)?)?;
    fs::rename(&temporary, &place)
}

fn end(paths: &Paths, file: &str) {
    // It is only shown.
    _ = fs::remove_file(place(paths, file));
}

fn place(paths: &Paths, file: &str) -> PathBuf {
    paths.root().join("run/kedge-agent").join(file)
}
