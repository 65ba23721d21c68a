//! Where peers are said to be, bounded: anybody on a LAN can announce ten thousand of them. An address that was proved by a handshake
//! isn't pushed out by one that was only said. Pure; owned by the driver.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use kedge_model::wire::{ClusterId, Timestamp};

#[derive(Debug, Default)]
pub struct Table {
    known: BTreeMap<ClusterId, Place>,
}

/// Where one is, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Answered there with the right key.
    pub proved: Option<SocketAddr>,
    /// Was announced there.
    pub told: Option<SocketAddr>,
    at: Timestamp,
}

/// Four times as many as a site may have; the rest is noise.
pub const MOST: usize = 1024;

impl Table {
    /// It was announced. True: it wasn't known here.
    pub fn tell(&mut self, cluster: ClusterId, address: SocketAddr, now: Timestamp) -> bool {
        if !self.known.contains_key(&cluster) && self.known.len() >= MOST && !self.make_room() {
            return false;
        }
        let place = self.known.entry(cluster).or_default();
        let new = place.told != Some(address) && place.proved != Some(address);
        (place.told, place.at) = (Some(address), now);
        new
    }

    /// It answered there and showed its key.
    pub fn prove(&mut self, cluster: ClusterId, address: SocketAddr, now: Timestamp) {
        if !self.known.contains_key(&cluster) && self.known.len() >= MOST {
            self.make_room();
        }
        let place = self.known.entry(cluster).or_default();
        (place.proved, place.at) = (Some(address), now);
    }

    /// Somebody else answers there, or nobody.
    pub fn disprove(&mut self, cluster: &ClusterId, address: SocketAddr) {
        let Some(place) = self.known.get_mut(cluster) else { return };
        place.proved = place.proved.filter(|known| *known != address);
        // What was said last may be true again: only a newer word replaces it.
        if place.told.is_none() && place.proved.is_none() {
            self.known.remove(cluster);
        }
    }

    /// Where to try, the proved one first.
    pub fn addresses(&self, cluster: &ClusterId) -> Vec<SocketAddr> {
        let Some(place) = self.known.get(cluster) else { return Vec::new() };
        let told = place.told.filter(|told| place.proved != Some(*told));
        place.proved.into_iter().chain(told).collect()
    }

    /// The oldest of those that nobody has seen goes.
    fn make_room(&mut self) -> bool {
        let unproved = self.known.iter().filter(|(_, place)| place.proved.is_none());
        let Some(oldest) = unproved.min_by_key(|(_, place)| place.at).map(|(cluster, _)| *cluster) else {
            return false;
        };
        self.known.remove(&oldest);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(number: u32) -> ClusterId {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        ClusterId::of_public_key(&key)
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 7443))
    }

    #[test]
    fn ten_thousand_announcements_leave_a_bounded_table_and_who_was_proved() {
        let mut table = Table::default();
        for number in 0..20 {
            table.prove(cluster(number), address(1), Timestamp(0));
        }
        for number in 20..10_020 {
            table.tell(cluster(number), address(2), Timestamp(i64::from(number)));
        }
        assert_eq!(table.known.len(), MOST);
        assert!((0..20).all(|number| table.addresses(&cluster(number)) == [address(1)]));
        assert!(!table.addresses(&cluster(10_019)).is_empty());
    }

    #[test]
    fn a_proved_address_is_tried_before_one_that_was_only_said() {
        let (mut table, one) = (Table::default(), cluster(1));
        assert!(table.tell(one, address(1), Timestamp(1)));
        assert!(!table.tell(one, address(1), Timestamp(2)));
        table.prove(one, address(1), Timestamp(2));
        assert!(table.tell(one, address(9), Timestamp(3)));
        assert_eq!(table.addresses(&one), [address(1), address(9)]);
        table.disprove(&one, address(1));
        assert_eq!(table.addresses(&one), [address(9)]);
    }
}
