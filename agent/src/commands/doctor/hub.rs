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
        let message = format!("it ended on {until}, by this host's clock; what runs here goes on");
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
                "look at the network, at a firewall on the way, and whether the hub runs; workloads go on without it".to_owned()
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
    use super::*;

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
