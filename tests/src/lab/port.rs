//! Free ports on loopback. Tests run side by side in processes of their own, so a port is claimed with a lock on a file for
//! as long as its part lives, also while that part is stopped.

use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use nix::unistd::Uid;

/// Below what Linux gives to outgoing connections (32768 and up), so that no client sits on a port of ours.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port that nobody else of the lab uses while this lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _claim: File,
}

impl Port {
    pub fn claim() -> Port {
        // One place for all runs of one user: each run has a temporary folder of its own, but the ports are shared.
        let claims = PathBuf::from(format!("/tmp/kedge-lab-ports-{}", Uid::effective()));
        fs::create_dir_all(&claims).unwrap();
        // Each process begins elsewhere; most find their first port free.
        let begin = (process::id() % u32::from(COUNT)) as u16;
        for _ in 0..COUNT {
            let number = FIRST + begin.wrapping_mul(7).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
            let claim = OpenOptions::new().create(true).append(true).open(claims.join(number.to_string())).unwrap();
            if claim.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Port { number, _claim: claim };
            }
        }
        panic!("all {COUNT} ports from {FIRST} are in use");
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_claims_are_two_ports() {
        let (one, two) = (Port::claim(), Port::claim());
        assert_ne!(one.number(), two.number());
    }
}
