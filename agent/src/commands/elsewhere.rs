//! Holds on another cluster of the site, as `hold` and `unhold` make them with `--cluster`: which cluster is meant, and what is said.
//! The daemon gives them to the peers, who carry them; the target judges and obeys.

use std::time::Duration;

use kedge_model::wire::{ClusterId, Timestamp};

use super::error::{CommandError, Exit};
use super::hold::failed;
use super::output::{duration, print};
use super::person;
use crate::clock::{Clock as _, SystemClock};
use crate::contact::Contact;
use crate::holds::Holds;
use crate::identity::Identity;
use crate::overview::Overview;
use crate::paths::Paths;
use crate::peers::shown::Shown;

/// Whose assignment is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    This,
    Other(Other),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    pub cluster: ClusterId,
    /// As it was typed.
    pub name: String,
}

/// By id, or by the name that the running agent knows it under.
pub fn find(overview: &Overview, shown: Option<&Shown>, text: &str) -> Result<Target, CommandError> {
    let own = overview.cluster.as_ref().ok_or(CommandError::NotJoined)?;
    if text == own.name || text == own.id.to_string() {
        return Ok(Target::This);
    }
    if own.site.as_ref().is_none_or(String::is_empty) {
        let hint = "a platform team names the site of a cluster when it joins or is labelled; without one only the hub reaches others";
        return Err(CommandError::refused("this cluster belongs to no site, so no agent can carry the hold", hint));
    }
    let other = |cluster| Target::Other(Other { cluster, name: text.to_owned() });
    if let Ok(cluster) = text.parse() {
        return Ok(other(cluster));
    }
    let peers = shown.iter().flat_map(|shown| &shown.peers);
    let named: Vec<ClusterId> = peers.filter(|peer| peer.name.as_deref() == Some(text)).map(|peer| peer.id).collect();
    match named[..] {
        [cluster] => Ok(other(cluster)),
        [] => {
            let hint = "kedge-agent peers lists the known names; the id (32 digits) of an offline cluster works too";
            Err(CommandError::refused(format!("no cluster of the site is known as `{text}`"), hint))
        }
        [..] => {
            let ids: Vec<String> = named.iter().map(ClusterId::to_string).collect();
            let hint = format!("give the id of one of them: {}", ids.join(", "));
            Err(CommandError::refused(format!("{} clusters of the site are called `{text}`", named.len()), hint))
        }
    }
}

pub fn hold(
    target: &Other,
    identity: &Identity,
    paths: &Paths,
    assignment: &str,
    reason: &str,
    lasts: Duration,
) -> Result<Exit, CommandError> {
    let (name, by) = (short(assignment), format!("{}@{}", person::name(), host()));
    let holds = Holds::of(paths);
    let key = identity.signing_key();
    holds.hold_on(key, target.cluster, name, &by, reason, lasts, now(paths)).map_err(failed)?;
    let Other { name: on, .. } = target;
    print(&format!(
        "{name} on {on} is held by {by}, as soon as the agents of the site have carried it there; \
         for {}, or until kedge-agent unhold --cluster {on} {name}\n",
        duration(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX))
    ))?;
    Ok(Exit::Success)
}

pub fn unhold(target: &Other, identity: &Identity, paths: &Paths, assignment: &str) -> Result<Exit, CommandError> {
    let (name, on) = (short(assignment), &target.name);
    let holds = Holds::of(paths);
    let removed = holds.unhold_on(identity.signing_key(), target.cluster, name, now(paths)).map_err(failed)?;
    print(&match removed {
        true => format!("{name} on {on} is released from here as soon as the agents of the site have delivered it\n"),
        false => format!("{name} on {on} wasn't held from here\n"),
    })?;
    Ok(Exit::Success)
}

/// Also `<cluster type>/<name>`, as the hub writes it.
fn short(assignment: &str) -> &str {
    assignment.rsplit('/').next().unwrap_or(assignment)
}

/// The time that others can compare: the hub's, where a contact told how this clock is off.
fn now(paths: &Paths) -> Timestamp {
    Timestamp(SystemClock.now().0.saturating_add(Contact::read(paths).clock_offset().unwrap_or(0)))
}

fn host() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unnamed".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::commands::sample;
    use crate::link::fake::Authority;
    use crate::overview::Cluster;
    use kedge_durable::RealDisk;
    use kedge_model::wire::SiteHolds;

    fn overview(site: Option<&str>) -> Overview {
        let cluster = Cluster {
            id: ClusterId::of_public_key(&[1; 32]),
            name: "gate-1".to_owned(),
            stream: None,
            site: site.map(str::to_owned),
            hub: "https://127.0.0.1:1".to_owned(),
        };
        Overview { cluster: Some(cluster), ..Overview::default() }
    }

    #[test]
    fn a_cluster_of_the_site_is_found_and_one_without_a_site_finds_nobody() {
        let other = ClusterId::of_public_key(&[2; 32]);
        let found = find(&overview(Some("works")), None, &other.to_string()).unwrap();
        assert_eq!(found, Target::Other(Other { cluster: other, name: other.to_string() }));
        for own in ["gate-1".to_owned(), ClusterId::of_public_key(&[1; 32]).to_string()] {
            assert_eq!(find(&overview(None), None, &own).unwrap(), Target::This);
        }
        assert!(find(&overview(None), None, &other.to_string()).unwrap_err().to_text().contains("belongs to no site"));
        assert!(find(&overview(Some("works")), None, "press").unwrap_err().to_text().contains("known as `press`"));
        assert!(matches!(find(&Overview::default(), None, "press"), Err(CommandError::NotJoined)));
    }

    #[test]
    fn a_name_is_looked_up_among_the_peers_and_must_be_one_clusters() {
        let peer = |seed: u8, name: &str| {
            let id = ClusterId::of_public_key(&[seed; 32]).to_string();
            serde_json::json!({"id": id, "name": name, "relay": false, "since": 0, "reachesHub": false, "uplink": false,
                "has": 0, "lies": []})
        };
        let peers = [peer(2, "press"), peer(3, "mill"), peer(4, "mill")];
        let shown: Shown = serde_json::from_value(serde_json::json!({"site": "works", "peers": peers})).unwrap();
        let find = |text: &str| find(&overview(Some("works")), Some(&shown), text);
        let press = Other { cluster: ClusterId::of_public_key(&[2; 32]), name: "press".to_owned() };
        assert_eq!(find("press").unwrap(), Target::Other(press));
        assert!(find("mill").unwrap_err().to_text().contains("2 clusters of the site are called `mill`"));
        assert!(find("saw").is_err());
    }

    #[test]
    fn a_hold_on_another_waits_for_the_peers_and_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        sample::join(&paths, &Authority::new(), "https://127.0.0.1:1");
        let identity = Identity::read(&RealDisk, &paths).unwrap().unwrap();
        let target = Other { cluster: ClusterId::of_public_key(&[2; 32]), name: "press".to_owned() };
        let lasts = Duration::from_secs(3600);
        hold(&target, &identity, &paths, "drone/camera", "new lens", lasts).unwrap();
        let holds = Holds::of(&paths);
        let said = SiteHolds::open(&holds.outgoing().unwrap()[0]).unwrap();
        assert_eq!((said.writer(), said.document.cluster), (identity.cluster(), target.cluster));
        let overview = Overview::read(&paths).unwrap();
        let [held] = &overview.holds_elsewhere[..] else { unreachable!() };
        assert_eq!((held.cluster, held.assignment.as_str()), (target.cluster, "camera"));
        assert!(held.by.contains('@') && overview.assignments.is_empty());
        assert_eq!(unhold(&target, &identity, &paths, "camera").unwrap(), Exit::Success);
        let told = SiteHolds::open(&holds.outgoing().unwrap()[0]).unwrap().document;
        assert!(told.sequence == 2 && told.holds.is_empty(), "that it is over is told too");
    }
}
