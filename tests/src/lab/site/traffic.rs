//! How the lines of a site are: thin, lossy, and what has passed them.

use std::fs;
use std::process::Command;

use super::Site;
use crate::lab::skip;

/// Bytes over a line with every header of theirs, as its owner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    pub sent: u64,
    pub received: u64,
}

impl Traffic {
    pub fn total(self) -> u64 {
        self.sent + self.received
    }

    /// What has passed since then.
    pub fn since(self, before: Traffic) -> Traffic {
        Traffic { sent: self.sent - before.sent, received: self.received - before.received }
    }
}

impl Site {
    /// All uplinks together carry no more than this (`256kbit`), in each direction.
    pub fn limit_uplink(&self, rate: &str) {
        for end in [self.uplink(), self.outside_of_uplink()] {
            let queue = ["qdisc", "replace", "dev", &end, "root", "tbf", "rate", rate, "burst", "32kbit"];
            run(Command::new("tc").args(queue).args(["latency", "400ms"]));
        }
    }

    /// Of the packets that a host should get over the LAN so many in a hundred are lost. Without nftables the test is marked as
    /// skipped, and it is false.
    #[must_use]
    pub fn lose(&self, percent: u8) -> bool {
        if Command::new("nft").arg("--version").output().is_err() {
            skip("there is no `nft` (package nftables)");
            return false;
        }
        let rules = format!(
            "add table netdev loss; delete table netdev loss; add table netdev loss; \
             add chain netdev loss in {{ type filter hook ingress device lan0 priority 0; }}; \
             add rule netdev loss in numgen random mod 100 < {percent} drop"
        );
        for host in 0..self.hosts {
            run(Command::new("ip").args(["netns", "exec", &self.namespace(host), "nft", &rules]));
        }
        true
    }

    /// What the hosts sent to the hub and received from it, all together.
    pub fn uplink_bytes(&self) -> Traffic {
        seen_from_the_other_end(&self.uplink())
    }

    /// What a host sent over the LAN and received.
    pub fn lan_bytes(&self, host: usize) -> Traffic {
        seen_from_the_other_end(&self.outside(host, "l"))
    }
}

fn seen_from_the_other_end(link: &str) -> Traffic {
    let count = |which: &str| {
        let path = format!("/sys/class/net/{link}/statistics/{which}_bytes");
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        text.trim().parse().unwrap()
    };
    Traffic { sent: count("rx"), received: count("tx") }
}

#[track_caller]
fn run(command: &mut Command) {
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
}
