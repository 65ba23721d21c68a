//! `kedge-agent peers`: the other agents of this site, and the other pods of this cluster, as the daemon last saw them. Called by
//! `main`.

mod pods;

use std::fmt::Write as _;

use kedge_model::wire::{ClusterId, Timestamp};
use serde::Serialize;

use super::error::{CommandError, Exit};
use super::output::{Format, Table, ago, show, time};
use crate::clock::Time;
use crate::clock::{Clock as _, SystemClock};
use crate::daemon;
use crate::paths::Paths;
use crate::peers::shown::pods::Pods;
use crate::peers::shown::{Peer, Shown};
use pods::PodsDocument;

/// Show the other agents of this host's site.
///
/// Agents that the hub placed in one site find each other on the network, fetch content from each other, and one that reaches the
/// hub carries for all: the uplink. Nothing is trusted because it came from a peer. A peer that misbehaved is ignored for a
/// while, and shown with what it did. In a Kubernetes cluster the other pods are shown too: those that fetched content from the
/// working pod, or what a standby pod still lacks.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Which peers are there, and which one carries?
    kedge-agent peers

  Which peers misbehaved, as JSON:
    kedge-agent peers -o json | jq '.peers[] | select(.lies != [])'")]
pub struct PeersArgs {
    /// How to show it
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(flatten)]
    site: Option<SiteDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<PodsDocument>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SiteDocument {
    site: String,
    port: u16,
    own: Option<ClusterId>,
    uplink: Option<ClusterId>,
    peers: Vec<Row>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: ClusterId,
    name: Option<String>,
    stream: Option<String>,
    relay: bool,
    address: Option<String>,
    since: Time,
    last_heard: Option<Time>,
    reaches_hub: bool,
    uplink: bool,
    /// Pieces of content that are looked for here and it has.
    has: usize,
    dropped_until: Option<Time>,
    lies: Vec<String>,
}

pub fn run(args: &PeersArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let state = paths.state();
    if let Err(error) = std::fs::read_dir(&state)
        && error.kind() == std::io::ErrorKind::PermissionDenied
    {
        return Err(CommandError::NeedsRoot { what: state.display().to_string() });
    }
    let runs = daemon::holder(paths).is_some();
    let (shown, pods) = (Shown::read(paths).filter(|_| runs), Pods::read(paths).filter(|_| runs));
    if shown.is_none() && pods.is_none() {
        let hint = "the hub places a host in a site (join token --site, or kedge cluster set); the agent must run, and [peers] \
                    in agent.toml must not say enabled = false";
        return Err(CommandError::refused("this agent has no peers: it belongs to no site, or doesn't run", hint));
    }
    let document =
        Document { site: shown.as_ref().map(SiteDocument::from), pods: pods.as_ref().map(PodsDocument::from) };
    let now = SystemClock.now();
    show(args.output, &document, || {
        let parts = shown.iter().map(|shown| text(shown, now)).chain(pods.iter().map(|pods| pods::text(pods, now)));
        parts.collect::<Vec<_>>().join("\n")
    })?;
    let lied = shown.is_some_and(|shown| shown.peers.iter().any(|peer| !peer.lies.is_empty()));
    let lied = lied || matches!(pods, Some(Pods::StandsBy { lied: true, .. }));
    Ok(if lied { Exit::Findings } else { Exit::Success })
}

impl From<&Shown> for SiteDocument {
    fn from(shown: &Shown) -> SiteDocument {
        let peers = shown.peers.iter().map(|peer| Row {
            id: peer.id,
            name: peer.name.clone(),
            stream: peer.stream.clone(),
            relay: peer.relay,
            address: peer.address.clone(),
            since: Time(peer.since),
            last_heard: peer.last_heard.map(Time),
            reaches_hub: peer.reaches_hub,
            uplink: peer.uplink,
            has: peer.has,
            dropped_until: peer.dropped_until.map(Time),
            lies: peer.lies.clone(),
        });
        let peers = peers.collect();
        SiteDocument { site: shown.site.clone(), port: shown.port, own: shown.own, uplink: shown.uplink, peers }
    }
}

fn text(shown: &Shown, now: Timestamp) -> String {
    let mut text = format!("Site {}, peers connect at port {}\n", shown.site, shown.port);
    let uplink = match (shown.uplink, shown.via()) {
        (None, _) => "no agent reaches the hub".to_owned(),
        (Some(_), Some(peer)) => peer.title(),
        (Some(_), None) => "this agent".to_owned(),
    };
    _ = writeln!(text, "Uplink: {uplink}");
    if shown.peers.is_empty() {
        text.push_str("\nNobody else was found yet.\n");
        return text;
    }
    let mut table = Table::default();
    table.row(["NAME", "STREAM", "ADDRESS", "SINCE", "HEARD", "CARRIES"]);
    for peer in &shown.peers {
        let heard = peer.last_heard.map_or_else(|| "-".to_owned(), |heard| ago(heard, now));
        let stream = peer.stream.as_deref().unwrap_or("-");
        let address = peer.address.as_deref().unwrap_or("-");
        table.row([&peer.title(), stream, address, &time(peer.since), &heard, &carries(peer)]);
    }
    _ = write!(text, "\n{}", table.to_text(""));
    let liars = shown.peers.iter().filter(|peer| !peer.lies.is_empty());
    for (index, peer) in liars.enumerate() {
        if index == 0 {
            text.push_str("\nWarnings\n");
        }
        let until = peer.dropped_until.map_or_else(String::new, |until| format!(", left alone until {}", time(until)));
        _ = writeln!(text, "  {}{until}: {}", peer.title(), peer.lies.join("; "));
    }
    text
}

/// What it is good for.
fn carries(peer: &Peer) -> String {
    let content = format!("{} wanted", peer.has);
    let words = [
        (peer.uplink, "uplink"),
        (peer.reaches_hub && !peer.uplink, "reaches the hub"),
        (peer.relay, "relay"),
        (peer.has > 0, content.as_str()),
    ];
    let said: Vec<&str> = words.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect();
    if said.is_empty() { "documents".to_owned() } else { format!("documents, {}", said.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_shown_with_who_carries_and_who_lied() {
        let (own, other) = (ClusterId::of_public_key(&[1; 32]), ClusterId::of_public_key(&[2; 32]));
        let peer = Peer {
            id: other,
            name: Some("press-2".to_owned()),
            stream: Some("prod/press/all".to_owned()),
            relay: false,
            address: Some("10.0.0.2:7443".to_owned()),
            since: Timestamp(1_000_000_000_000),
            last_heard: Some(Timestamp(1_000_000_050_000)),
            reaches_hub: true,
            uplink: true,
            has: 2,
            dropped_until: None,
            lies: vec!["the signature does not fit the content".to_owned()],
        };
        let shown = Shown {
            site: "berlin".to_owned(),
            port: 7443,
            uplink: Some(other),
            own: Some(own),
            waits: None,
            peers: vec![peer],
            written_at: Timestamp(0),
        };
        insta::assert_snapshot!(text(&shown, Timestamp(1_000_000_060_000)), @r"
        Site berlin, peers connect at port 7443
        Uplink: press-2

        NAME     STREAM          ADDRESS        SINCE                 HEARD     CARRIES
        press-2  prod/press/all  10.0.0.2:7443  2001-09-09 01:46:40Z  10 s ago  documents, uplink, 2 wanted

        Warnings
          press-2: the signature does not fit the content
        ");
    }
}
