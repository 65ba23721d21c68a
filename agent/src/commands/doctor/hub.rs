//! The hub and this host's standing with it: machine, certificate, and whether a connection can be made now. Part of `doctor`.

use std::sync::Arc;
use std::time::Duration;

use kedge_durable::RealDisk;
use kedge_model::wire::Timestamp;

use super::Finding;
use crate::clock::SystemClock;
use crate::commands::output::{duration, time};
use crate::desired::Memory;
use crate::identity::Identity;
use crate::identity::certificate::Validity;
use crate::link::{HubLink, LinkError};
use crate::paths::Paths;

/// A thin line answers later, but a person waits.
const PATIENCE: Duration = Duration::from_secs(15);

pub fn check(paths: &Paths, now: Timestamp) -> Vec<Finding> {
    let identity = match Identity::read(&RealDisk, paths) {
        Ok(Some(identity)) => identity,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let way_out = "ask for a token (kedge cluster replace NAME) and join again";
            return vec![Finding::problem("identity", error.to_string(), way_out)];
        }
    };
    let mut findings = vec![machine(&identity, paths), certificate(identity.validity(), now)];
    if identity.is_of_this_machine(paths) {
        findings.push(reach(paths, identity));
    }
    findings
}

fn machine(identity: &Identity, paths: &Paths) -> Finding {
    match identity.is_of_this_machine(paths) {
        true => Finding::ok("machine", "the one that joined"),
        false => Finding::problem(
            "machine",
            "/etc/machine-id isn't that of the machine that joined: this disk was copied",
            "join as a machine of its own: kedge-agent join --again --token-file FILE",
        ),
    }
}

fn certificate(validity: Validity, now: Timestamp) -> Finding {
    let until = time(validity.until);
    if now > validity.until {
        let message = format!("it ended on {until}, by this host's clock; what runs here continues");
        return Finding::problem(
            "certificate",
            message,
            "it is renewed with the next contact: see that the hub is reached",
        );
    }
    if now > validity.renew_at() {
        let left = duration((validity.until.0 - now.0).unsigned_abs());
        let message = format!("good until {until} ({left}), and should have been renewed by now");
        return Finding::problem(
            "certificate",
            message,
            "it is renewed with the next contact: see that the hub is reached",
        );
    }
    Finding::ok("certificate", format!("good until {until}"))
}

/// A connection as the agent makes it, opened and closed.
fn reach(paths: &Paths, identity: Identity) -> Finding {
    let hub = identity.hub().to_owned();
    match connect(paths, identity) {
        Ok(()) => Finding::ok("hub", format!("{hub} answers")),
        Err(error) => {
            let way_out = error.hint().unwrap_or_else(|| {
                "check the network, firewalls, and whether the hub runs; workloads continue without it".to_owned()
            });
            Finding::problem("hub", format!("{hub}: {}", error.sentence()), way_out)
        }
    }
}

fn connect(paths: &Paths, identity: Identity) -> Result<(), LinkError> {
    let hub = identity.hub().to_owned();
    // What the join said, where nothing newer is remembered.
    let remembered = Memory::read(&RealDisk, paths).ok().flatten().map(|(_, _, remembered)| remembered);
    let (keys, _, joined_at) = identity.origin();
    let (authorities, hub_time) = match remembered {
        Some(remembered) => (remembered.keys.authorities, remembered.hub_time),
        None => (keys.authorities.clone(), joined_at),
    };
    let link = HubLink::new(Arc::new(RealDisk), paths, identity, &authorities, hub_time, Arc::new(SystemClock))?;
    let unreachable = |source| LinkError::Unreachable { hub: hub.clone(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unreachable)?;
    let slow = LinkError::Slow { hub: hub.clone(), step: "answer", seconds: PATIENCE.as_secs() };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, link.reach()).await }).unwrap_or(Err(slow))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::commands::sample;
    use crate::link::fake::{Authority, FakeHub, Reply};
    use kedge_model::wire::Digest;

    #[tokio::test]
    async fn a_hub_that_answers_is_fine_and_one_that_is_gone_is_a_finding() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let paths = Paths::below(folder.path());
        let hub = FakeHub::start(&authority, |_| Reply::Silence).await;
        let hub_address = hub.address.clone();
        sample::join(&paths, &authority, &hub_address);
        let look = |paths: Paths| async move {
            let found = tokio::task::spawn_blocking(move || check(&paths, sample::now())).await.unwrap();
            found.into_iter().find(|finding| finding.what == "hub").unwrap()
        };
        let found = look(paths.clone()).await;
        assert_eq!(found, Finding::ok("hub", format!("{hub_address} answers")));
        drop(hub);
        let found = look(paths.clone()).await;
        assert!(found.problem && found.way_out.is_some(), "{found:?}");

        let impostor = FakeHub::start(&Authority::new(), |_| Reply::Silence).await;
        sample::join(&paths, &authority, &impostor.address);
        assert!(look(paths).await.message.contains("is not the hub that is pinned here"));
    }

    #[test]
    fn a_copied_disk_is_told_and_nobody_is_asked() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let paths = Paths::below(folder.path());
        std::fs::create_dir_all(folder.path().join("etc")).unwrap();
        std::fs::write(folder.path().join("etc/machine-id"), "first").unwrap();
        sample::join_on(&paths, &authority, "https://127.0.0.1:1", Some(Digest::of(b"another")));
        let found = check(&paths, sample::now());
        assert!(found[0].problem && found[0].message.contains("this disk was copied"), "{found:?}");
        assert!(found.iter().all(|finding| finding.what != "hub"));
    }

    #[test]
    fn a_certificate_that_ended_or_is_late_is_a_problem() {
        let day = 86_400_000;
        let validity = Validity { from: Timestamp(0), until: Timestamp(90 * day) };
        let told = |days: i64| certificate(validity, Timestamp(days * day));
        assert!(!told(59).problem);
        assert!(told(70).message.contains("(20 d), and should have been renewed"));
        assert!(told(91).message.contains("it ended on 1970-04-01"));
    }
}
