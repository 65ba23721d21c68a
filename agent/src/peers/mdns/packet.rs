//! The bytes of multicast DNS (RFC 6762), as far as one service needs them: a question for `_kedge._tcp.local`, and an answer that
//! names a cluster, the hash of its site and a port. Pure; read from anybody on the LAN, so every number has a bound.

use kedge_model::wire::ClusterId;

/// What a packet says, as far as it concerns this service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Somebody asks who is there.
    pub asks: bool,
    pub said: Vec<Announcement>,
}

/// One agent, as it says itself. Nothing of it is believed before a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    pub cluster: ClusterId,
    /// 16 hexadecimal digits.
    pub site: String,
    pub port: u16,
    /// False: it goes.
    pub stays: bool,
}

/// What is read of a packet while its records are gathered.
#[derive(Default)]
struct Found {
    instance: Vec<u8>,
    port: Option<u16>,
    cluster: Option<ClusterId>,
    site: Option<String>,
    stays: bool,
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

const SERVICE: [&[u8]; 3] = [b"_kedge", b"_tcp", b"local"];
/// What one datagram on a LAN holds at most, jumbo frames included.
pub const MAX_PACKET: usize = 9000;
/// An answer has four records; others gather those of many services in one.
const MAX_RECORDS: usize = 64;
const MAX_FOUND: usize = 16;
const MAX_NAME: usize = 255;
/// Each jump must lead backwards; more of them than this is no name.
const MAX_JUMPS: usize = 16;
/// Others keep a record so long: an hour and a quarter, as the RFC proposes.
const TTL: u32 = 4500;

const PTR: u16 = 12;
const TXT: u16 = 16;
const SRV: u16 = 33;
const ANY: u16 = 255;
const INTERNET: u16 = 1;
/// This record replaces others of its name.
const FLUSH: u16 = 0x8000;
const IS_ANSWER: u16 = 0x8000;
const AUTHORITATIVE: u16 = 0x0400;

/// A question for everybody of this service.
pub fn question() -> Vec<u8> {
    let mut out = header(0, 1, 0);
    put_name(&mut out, &SERVICE);
    put_all(&mut out, &[PTR, INTERNET]);
    out
}

/// What this agent says of itself: PTR, SRV and TXT.
pub fn announcement(said: &Announcement) -> Vec<u8> {
    let (instance, ttl) = (said.cluster.to_string(), if said.stays { TTL } else { 0 });
    let full: [&[u8]; 4] = [instance.as_bytes(), SERVICE[0], SERVICE[1], SERVICE[2]];
    let mut out = header(IS_ANSWER | AUTHORITATIVE, 0, 3);
    // The service's name begins after the header, the instance's within the first record: later ones point there.
    let service = 0xC000 | 12;
    put_name(&mut out, &SERVICE);
    put_record(&mut out, PTR, INTERNET, ttl, |data| {
        put_label(data, full[0]);
        put_all(data, &[service]);
    });
    let instance_at = u16::try_from(out.len() - 1 - instance.len() - 2).unwrap_or(0);
    put_all(&mut out, &[0xC000 | instance_at]);
    put_record(&mut out, SRV, INTERNET | FLUSH, ttl, |data| {
        put_all(data, &[0, 0, said.port]);
        put_name(data, &[full[0], b"local"]);
    });
    put_all(&mut out, &[0xC000 | instance_at]);
    put_record(&mut out, TXT, INTERNET | FLUSH, ttl, |data| {
        put_label(data, format!("id={}", said.cluster).as_bytes());
        put_label(data, format!("site={}", said.site).as_bytes());
    });
    out
}

/// None: it isn't DNS, or too much of it.
pub fn read(bytes: &[u8]) -> Option<Packet> {
    if bytes.len() > MAX_PACKET {
        return None;
    }
    let mut reader = Reader { bytes, at: 0 };
    let (_id, flags) = (reader.number()?, reader.number()?);
    let mut counts = [0; 4];
    for count in &mut counts {
        *count = usize::from(reader.number()?);
    }
    let [questions, records @ ..] = counts;
    let records: usize = records.iter().sum();
    if questions + records > MAX_RECORDS {
        return None;
    }
    let mut packet = Packet::default();
    for _ in 0..questions {
        let name = reader.name()?;
        let (kind, _class) = (reader.number()?, reader.number()?);
        packet.asks |= flags & IS_ANSWER == 0 && is_service(&name) && matches!(kind, PTR | ANY);
    }
    if flags & IS_ANSWER == 0 {
        return Some(packet);
    }
    let mut found: Vec<Found> = Vec::new();
    for _ in 0..records {
        reader.record(&mut found)?;
    }
    packet.said = found.into_iter().filter_map(Found::whole).collect();
    Some(packet)
}

impl Found {
    fn whole(self) -> Option<Announcement> {
        let port = self.port.filter(|port| *port > 0)?;
        Some(Announcement { cluster: self.cluster?, site: self.site?, port, stays: self.stays })
    }

    fn take_text(&mut self, data: &[u8]) {
        let mut rest = data;
        while let Some((&length, after)) = rest.split_first() {
            let Some((pair, after)) = after.split_at_checked(usize::from(length)) else { return };
            rest = after;
            let Ok(pair) = std::str::from_utf8(pair) else { continue };
            match pair.split_once('=') {
                Some(("id", id)) => self.cluster = id.parse().ok(),
                Some(("site", site)) if is_site(site) => self.site = Some(site.to_owned()),
                _ => {}
            }
        }
    }
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// The labels of a name; each pointer leads backwards.
    fn name(&mut self) -> Option<Vec<Vec<u8>>> {
        let (mut labels, mut length, mut jumps, mut back) = (Vec::new(), 0, 0, None);
        let mut before = self.at;
        loop {
            let size = usize::from(*self.take(1)?.first()?);
            match size >> 6 {
                0 if size == 0 => break,
                0 => {
                    length += size + 1;
                    if length > MAX_NAME {
                        return None;
                    }
                    labels.push(self.take(size)?.to_ascii_lowercase());
                }
                3 => {
                    let low = usize::from(*self.take(1)?.first()?);
                    let target = (size & 0x3F) << 8 | low;
                    jumps += 1;
                    if target >= before || jumps > MAX_JUMPS {
                        return None;
                    }
                    back.get_or_insert(self.at);
                    (self.at, before) = (target, target);
                }
                _ => return None,
            }
        }
        if let Some(back) = back {
            self.at = back;
        }
        Some(labels)
    }

    fn record(&mut self, found: &mut Vec<Found>) -> Option<()> {
        let name = self.name()?;
        let (kind, _class) = (self.number()?, self.number()?);
        let ttl = self.take(4)?.iter().any(|byte| *byte != 0);
        let length = usize::from(self.number()?);
        let data = self.take(length)?.to_vec();
        let [instance, service @ ..] = &name[..] else { return Some(()) };
        if !is_service(service) || !matches!(kind, SRV | TXT) {
            return Some(());
        }
        let at = match found.iter().position(|known| known.instance == *instance) {
            Some(at) => at,
            None if found.len() == MAX_FOUND => return Some(()),
            None => {
                found.push(Found { instance: instance.clone(), ..Found::default() });
                found.len() - 1
            }
        };
        let known = found.get_mut(at)?;
        known.stays |= ttl;
        match kind {
            // Priority and weight before it, a host's name behind it: the packet's sender is the host.
            SRV => known.port = data.get(4..6).and_then(|port| port.try_into().ok()).map(u16::from_be_bytes),
            _ => known.take_text(&data),
        }
        Some(())
    }
}

fn is_service(name: &[Vec<u8>]) -> bool {
    name.len() == SERVICE.len() && name.iter().zip(SERVICE).all(|(label, known)| label == known)
}

fn is_site(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|letter| letter.is_ascii_hexdigit())
}

fn header(flags: u16, questions: u16, answers: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    put_all(&mut out, &[0, flags, questions, answers, 0, 0]);
    out
}

fn put_all(out: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| out.extend(number.to_be_bytes()));
}

fn put_label(out: &mut Vec<u8>, label: &[u8]) {
    // Ours are 47 bytes at most.
    out.push(u8::try_from(label.len()).unwrap_or(0));
    out.extend(label);
}

fn put_name(out: &mut Vec<u8>, labels: &[&[u8]]) {
    labels.iter().for_each(|label| put_label(out, label));
    out.push(0);
}

fn put_record(out: &mut Vec<u8>, kind: u16, class: u16, ttl: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_all(out, &[kind, class]);
    out.extend(ttl.to_be_bytes());
    let mut data = Vec::new();
    write(&mut data);
    put_all(out, &[u16::try_from(data.len()).unwrap_or(0)]);
    out.extend(data);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn said() -> Announcement {
        let cluster = "00112233445566778899aabbccddeeff".parse().unwrap();
        Announcement { cluster, site: "0123456789abcdef".to_owned(), port: 7443, stays: true }
    }

    #[test]
    fn what_is_announced_is_read_as_it_was_said() {
        let bytes = announcement(&said());
        assert!(bytes.len() < 230, "{}", bytes.len());
        assert_eq!(read(&bytes).unwrap(), Packet { asks: false, said: vec![said()] });
        let goes = Announcement { stays: false, ..said() };
        assert_eq!(read(&announcement(&goes)).unwrap().said, [goes]);
    }

    #[test]
    fn a_question_asks_and_says_nothing() {
        assert_eq!(read(&question()).unwrap(), Packet { asks: true, said: Vec::new() });
    }

    #[test]
    fn a_name_that_points_at_itself_is_no_name() {
        let mut bytes = header(0, 1, 0);
        bytes.extend([0xC0, 12, 0, 12, 0, 1]);
        assert_eq!(read(&bytes), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Some(packet) = read(&bytes) {
                prop_assert!(packet.said.len() <= MAX_FOUND);
            }
        }

        #[test]
        fn a_changed_announcement_is_read_without_harm(at in 0usize..200, byte in any::<u8>(), cut in 0usize..230) {
            let mut bytes = announcement(&said());
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            _ = read(&bytes);
        }
    }
}
