//! Who else of the site is on the LAN, by multicast DNS: this agent says where it listens and hears where others do. A socket for each
//! interface that the configuration allows, in one task; what is heard goes into a bounded channel and is only a hint.

pub mod interface;
pub mod packet;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use kedge_model::wire::ClusterId;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::Instant;

use interface::Interface;
use packet::Announcement;

/// What is said of this agent, and where.
#[derive(Clone, Debug)]
pub struct Settings {
    pub cluster: ClusterId,
    /// 16 hexadecimal digits.
    pub site: String,
    pub port: u16,
    /// None: all but the loopback.
    pub interfaces: Option<Vec<String>>,
}

/// Somebody said something on the LAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub cluster: ClusterId,
    pub address: SocketAddr,
    /// False: it goes.
    pub stays: bool,
}

struct Announcer {
    settings: Settings,
    mdns_sockets: Vec<MdnsSocket>,
    /// When it is said again that this agent is here.
    say_at: Instant,
    /// How often it was said since something changed.
    said: usize,
    last: Option<Instant>,
    /// Somebody of the site was heard.
    met: bool,
    look_at: Instant,
}

struct MdnsSocket {
    interface: Interface,
    socket: UdpSocket,
}

pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
pub(super) const PORT: u16 = 5353;
/// After a start or a new address: packets get lost.
const FIRST: [Duration; 3] = [Duration::from_millis(20), Duration::from_secs(1), Duration::from_secs(4)];
/// Well before others forget it; and rarely, since everybody on the LAN hears it.
const EVERY: Duration = Duration::from_secs(20 * 60);
/// The same while nobody of the site was heard: the first words may all have been lost.
const LONELY_EVERY: Duration = Duration::from_secs(60);
/// Who asks gets one answer for all who ask within this time.
const ANSWER_AGAIN: Duration = Duration::from_secs(2);
/// All answer the same question: each waits a moment of its own.
const ANSWER_WITHIN: Duration = Duration::from_millis(400);
/// Cables are plugged and addresses change.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// A host has a handful; a router of containers thousands.
const MAX_SOCKETS: usize = 8;

/// Until the channel is closed.
pub async fn run(settings: Settings, tell: mpsc::Sender<Heard>) {
    let now = Instant::now();
    let mut announcer =
        Announcer { settings, mdns_sockets: Vec::new(), say_at: now, said: 0, last: None, met: false, look_at: now };
    while !tell.is_closed() {
        announcer.keep_up().await;
        let wake = announcer.say_at.min(announcer.look_at);
        tokio::select! {
            (interface, bytes, from) = hear(&announcer.mdns_sockets) => announcer.take(interface, &bytes, from, &tell),
            () = tokio::time::sleep_until(wake) => {}
            () = tell.closed() => break,
        }
    }
}

/// The hash that stands for a site's name on the LAN.
pub fn hash_of(site: &str) -> String {
    let digest = kedge_model::wire::Digest::of(format!("kedge site {site}").as_bytes());
    digest.hex().chars().take(16).collect()
}

impl Announcer {
    async fn keep_up(&mut self) {
        let now = Instant::now();
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            if self.look() {
                (self.said, self.say_at) = (0, now + FIRST[0]);
            }
        }
        if now >= self.say_at {
            if self.said < FIRST.len() || !self.met {
                self.ask().await;
            }
            self.say().await;
            self.said += 1;
            let wait = FIRST.get(self.said).copied().unwrap_or(if self.met { EVERY } else { LONELY_EVERY });
            self.say_at = now + wait.mul_f64(rand::random_range(0.8..1.2));
        }
    }

    /// True: there is a new way to say something.
    fn look(&mut self) -> bool {
        let here = interface::all(self.settings.interfaces.as_deref());
        self.mdns_sockets.retain(|mdns_socket| here.contains(&mdns_socket.interface));
        let mut new = false;
        for interface in here {
            if self.mdns_sockets.len() == MAX_SOCKETS
                || self.mdns_sockets.iter().any(|mdns_socket| mdns_socket.interface == interface)
            {
                continue;
            }
            match interface.open() {
                Ok(socket) => {
                    tracing::debug!(interface = interface.name, "peers are looked for");
                    self.mdns_sockets.push(MdnsSocket { interface, socket });
                    new = true;
                }
                Err(error) => {
                    tracing::debug!(interface = interface.name, %error, "peers can't be looked for here");
                }
            }
        }
        new
    }

    async fn ask(&self) {
        self.send(&packet::question()).await;
    }

    async fn say(&mut self) {
        self.send(&self.words(true)).await;
        self.last = Some(Instant::now());
    }

    fn words(&self, stays: bool) -> Vec<u8> {
        let Settings { cluster, site, port, .. } = &self.settings;
        packet::announcement(&Announcement { cluster: *cluster, site: site.clone(), port: *port, stays })
    }

    async fn send(&self, bytes: &[u8]) {
        for mdns_socket in &self.mdns_sockets {
            // An interface that is down says so; the next look finds out.
            _ = mdns_socket.socket.send_to(bytes, SocketAddr::from((GROUP, PORT))).await;
        }
    }

    fn take(&mut self, interface: usize, bytes: &[u8], from: SocketAddr, tell: &mpsc::Sender<Heard>) {
        let Some(mdns_socket) = self.mdns_sockets.get(interface) else { return };
        // Only who shares the link is a neighbour.
        if !matches!(from.ip(), IpAddr::V4(ip) if mdns_socket.interface.reaches(ip)) {
            return;
        }
        let Some(packet) = packet::read(bytes) else { return };
        if packet.asks && self.last.is_none_or(|last| last.elapsed() >= ANSWER_AGAIN) {
            let soon = Instant::now() + ANSWER_WITHIN.mul_f64(rand::random_range(0.05..1.0));
            self.say_at = self.say_at.min(soon);
            self.said = self.said.max(FIRST.len());
        }
        for said in packet.said {
            if said.site == self.settings.site && said.cluster != self.settings.cluster {
                let address = SocketAddr::new(from.ip(), said.port);
                self.met = true;
                // Who floods the LAN is heard as far as there is room.
                _ = tell.try_send(Heard { cluster: said.cluster, address, stays: said.stays });
            }
        }
    }
}

impl Drop for Announcer {
    /// Says goodbye, so that others needn't find out.
    fn drop(&mut self) {
        let goodbye = self.words(false);
        for mdns_socket in &self.mdns_sockets {
            _ = mdns_socket.socket.try_send_to(&goodbye, SocketAddr::from((GROUP, PORT)));
        }
    }
}

/// The next packet, by which of the sockets it came.
async fn hear(mdns_sockets: &[MdnsSocket]) -> (usize, Vec<u8>, SocketAddr) {
    if mdns_sockets.is_empty() {
        return std::future::pending().await;
    }
    let waits = mdns_sockets.iter().map(|mdns_socket| Box::pin(mdns_socket.socket.readable()));
    let (_, ready, _) = futures_util::future::select_all(waits).await;
    let mut bytes = vec![0; packet::MAX_PACKET];
    match mdns_sockets.get(ready).map(|mdns_socket| mdns_socket.socket.try_recv_from(&mut bytes)) {
        Some(Ok((length, from))) => {
            bytes.truncate(length);
            (ready, bytes, from)
        }
        Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => (ready, Vec::new(), unknown()),
        _ => {
            // A socket of an interface that went: not at once again.
            tokio::time::sleep(Duration::from_secs(1)).await;
            (ready, Vec::new(), unknown())
        }
    }
}

fn unknown() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], 0))
}
