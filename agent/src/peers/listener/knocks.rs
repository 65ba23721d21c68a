//! Who stands at the door and hasn't shown who it is: so many from one address at a time, so that a stranger that says nothing can't
//! take every seat.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Debug, Default)]
pub struct Knocks(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// One handshake; its place is free again when it is dropped.
#[derive(Debug)]
pub struct Knock {
    knocks: Knocks,
    address: IpAddr,
}

/// One for messages, four for content, and an agent or two more behind the same address.
const EACH: usize = 8;

impl Knocks {
    /// None: too many stand there.
    pub fn enter(&self, address: IpAddr) -> Option<Knock> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = all.entry(address).or_default();
        if *standing >= EACH {
            return None;
        }
        *standing += 1;
        Some(Knock { knocks: self.clone(), address })
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        let mut all = self.knocks.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(standing) = all.get_mut(&self.address) {
            *standing -= 1;
            if *standing == 0 {
                all.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn one_address_takes_a_few_places_and_leaves_the_others_theirs() {
        let (knocks, one, other) = (Knocks::default(), IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut standing: Vec<Knock> = (0..EACH).map(|_| knocks.enter(one).unwrap()).collect();
        assert!(knocks.enter(one).is_none() && knocks.enter(other).is_some());
        standing.pop();
        standing.push(knocks.enter(one).unwrap());
        drop(standing);
        assert!(knocks.0.lock().unwrap().is_empty(), "nobody is remembered");
    }
}
