//! Reading a request's body: never more than its route allows, never for longer, and never so much of one sender that others
//! have to wait. Each route has memory of its own, and a body takes of it what has arrived, not what it announces.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use kedge_model::wire::Envelope;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::answer::Refusal;
use crate::connections::shares::{Bounds, Full, Owner, Share, Shares};

/// What a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub bytes: usize,
    pub within: Duration,
    pool: Pool,
}

/// Whose memory a body takes: no route's senders hold up another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pool {
    Join,
    Renew,
    Poll,
    Status,
    Site,
    Proof,
}

/// A token, a CSR, a name and facts.
pub const JOIN: Allowance = Allowance { bytes: 16 * 1024, within: Duration::from_secs(15), pool: Pool::Join };
pub const RENEW: Allowance = Allowance { bytes: 8 * 1024, within: Duration::from_secs(15), pool: Pool::Renew };
/// An idle one is two hundred bytes; a document with many writers has many heads.
pub const POLL: Allowance = Allowance { bytes: 16 * 1024, within: Duration::from_secs(15), pool: Pool::Poll };
/// A document of 256 KiB in base64, and its envelope; a thin link needs its time.
pub const STATUS: Allowance = Allowance { bytes: 384 * 1024, within: Duration::from_secs(60), pool: Pool::Status };
/// Signs of life of a whole site, of about a kilobyte each; it comes over the site's one thin link.
pub const SITE: Allowance = Allowance { bytes: 512 * 1024, within: Duration::from_secs(30), pool: Pool::Site };
/// The state of a type with thousands of assignments.
pub const PROOF: Allowance = Allowance { bytes: 8 * 1024 * 1024, within: Duration::from_secs(120), pool: Pool::Proof };

/// In KiB, all together 72 MiB.
const POOLS: [(Pool, u32); 6] = [
    (Pool::Join, 2 * 1024),
    (Pool::Renew, 2 * 1024),
    (Pool::Poll, 8 * 1024),
    (Pool::Status, 24 * 1024),
    (Pool::Site, 12 * 1024),
    (Pool::Proof, 24 * 1024),
];
/// A body that has only begun holds its buffers too, in KiB.
const BEGUN: u32 = 1;
/// What one cluster reads of a route at one time: a try that broke off unnoticed, and the next one.
const PER_CLUSTER: u32 = 2;
/// What one address has of a pool, in quarters: a whole site is behind one.
const PER_ADDRESS: u32 = 3;
/// For others to finish, when a pool is used up.
const PATIENCE: Duration = Duration::from_secs(3);
/// Who sends nothing for so long has gone, or waits on purpose.
const STALLED: Duration = Duration::from_secs(10);
/// After this a body keeps to a rate, in bytes per second; the thinnest link that carries agents is faster.
const GRACE: Duration = Duration::from_secs(10);
const LEAST_RATE: u64 = 128;
const BUSY_RETRY: std::ops::RangeInclusive<u64> = 2..=10;

/// Bounds the memory of all bodies together, by route, cluster and address.
#[derive(Debug)]
pub struct Reading([Arc<Shares>; POOLS.len()]);

impl Default for Reading {
    fn default() -> Reading {
        Reading(POOLS.map(|(pool, all)| Shares::new(bounds(pool, all))))
    }
}

impl Reading {
    pub async fn json<T: DeserializeOwned, B>(&self, owner: Owner, body: B, allowance: Allowance) -> Result<T, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (bytes, _share) = self.bytes(owner, body, allowance).await?;
        serde_json::from_slice(&bytes).map_err(|why| malformed(format!("the body can't be read: {why}")))
    }

    pub async fn envelope<B>(&self, owner: Owner, body: B, allowance: Allowance) -> Result<Envelope, Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.json(owner, body, allowance).await
    }

    /// The body, and the memory that it takes until it is understood.
    async fn bytes<B>(&self, owner: Owner, mut body: B, allowance: Allowance) -> Result<(BytesMut, Share), Refusal>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if body.size_hint().lower() > allowance.bytes as u64 {
            return Err(too_large(allowance));
        }
        let mut share = self.pool(allowance.pool).open(owner);
        share.grow(BEGUN, PATIENCE).await.map_err(busy)?;
        let (mut read, mut held) = (BytesMut::new(), BEGUN);
        let mut clock = Clock::start(allowance.within);
        loop {
            let frame = match tokio::time::timeout_at(clock.deadline(read.len()), body.frame()).await {
                Ok(None) => return Ok((read, share)),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    let error = error.into();
                    return Err(malformed(format!("the body is cut or broken: {error}")).closing());
                }
                Err(_) => return Err(clock.too_slow()),
            };
            // Trailers say nothing.
            let Ok(data) = frame.into_data() else { continue };
            if read.len() + data.len() > allowance.bytes {
                return Err(too_large(allowance));
            }
            let needed = BEGUN + kibibytes(read.len() + data.len());
            let asked = Instant::now();
            share.grow(needed - held, PATIENCE).await.map_err(busy)?;
            held = needed;
            clock.arrived(asked.elapsed());
            read.extend_from_slice(&data);
        }
    }

    fn pool(&self, pool: Pool) -> &Arc<Shares> {
        let [join, renew, poll, status, site, proof] = &self.0;
        match pool {
            Pool::Join => join,
            Pool::Renew => renew,
            Pool::Poll => poll,
            Pool::Status => status,
            Pool::Site => site,
            Pool::Proof => proof,
        }
    }
}

/// When a body that makes no progress is given up.
struct Clock {
    begun: Instant,
    last: Instant,
    end: Instant,
    within: Duration,
}

impl Clock {
    fn start(within: Duration) -> Clock {
        let begun = Instant::now();
        Clock { begun, last: begun, end: begun + within, within }
    }

    /// The first of: the route's time, a stall, and the moment at which so few bytes are too few.
    fn deadline(&self, bytes: usize) -> Instant {
        let at_rate = Duration::from_secs(bytes as u64 / LEAST_RATE).max(GRACE);
        self.end.min(self.last + STALLED).min(self.begun + at_rate)
    }

    /// Something came, after we kept the sender waiting for so long: that isn't its fault.
    fn arrived(&mut self, waited: Duration) {
        self.last = Instant::now();
        self.begun += waited;
    }

    fn too_slow(&self) -> Refusal {
        let message = if Instant::now() >= self.end {
            format!("the body did not arrive within {} s", self.within.as_secs())
        } else {
            format!("the body arrives at less than {LEAST_RATE} bytes a second, or not at all")
        };
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message).closing()
    }
}

fn bounds(pool: Pool, all: u32) -> Bounds {
    let allowances = [JOIN, RENEW, POLL, STATUS, SITE, PROOF];
    let largest = allowances.iter().find(|allowance| allowance.pool == pool).map_or(0, |allowance| allowance.bytes);
    let cluster = PER_CLUSTER * (BEGUN + kibibytes(largest));
    Bounds { all, cluster, address: (all / 4 * PER_ADDRESS).max(cluster) }
}

fn kibibytes(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX)
}

/// What the hub has no room for now comes again in a while.
pub fn busy(full: Full) -> Refusal {
    let status = match full {
        Full::All => StatusCode::SERVICE_UNAVAILABLE,
        Full::Cluster | Full::Address => StatusCode::TOO_MANY_REQUESTS,
    };
    let refusal = Refusal::new(status, "Busy", full.to_string()).closing();
    Refusal { retry_after: Some(rand::random_range(BUSY_RETRY)), ..refusal }
}

fn too_large(allowance: Allowance) -> Refusal {
    let message = format!("the body is larger than {} bytes", allowance.bytes);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message).closing()
}

pub fn malformed(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "Malformed", message)
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use kedge_model::wire::{ClusterId, JoinRequest, PollRequest, RenewRequest, SiteRequest};
    use proptest::prelude::*;

    use super::*;

    fn owner(cluster: u8) -> Owner {
        let cluster = Some(ClusterId::of_public_key(&[cluster; 32]));
        Owner { cluster, address: std::net::IpAddr::from([10, 0, 0, 1]) }
    }

    fn read<T: DeserializeOwned>(bytes: Vec<u8>, allowance: Allowance) -> Result<T, Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(Reading::default().json(owner(1), http_body_util::Full::new(Bytes::from(bytes)), allowance))
    }

    /// A body that sends so many bytes at once, and then so many every second.
    fn trickle(first: usize, then: usize) -> impl Body<Data = Bytes, Error = std::io::Error> + Unpin {
        let pieces = futures_util::stream::unfold(false, move |begun| async move {
            if begun {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            let size = if begun { then } else { first };
            if size == 0 {
                std::future::pending::<()>().await;
            }
            Some((Ok(Frame::data(Bytes::from(vec![b' '; size]))), true))
        });
        StreamBody::new(Box::pin(pieces))
    }

    async fn seconds_until_given_up(first: usize, then: usize, allowance: Allowance) -> u64 {
        let begun = Instant::now();
        let refused = Reading::default().envelope(owner(1), trickle(first, then), allowance).await.unwrap_err();
        assert_eq!((refused.status, refused.reason), (StatusCode::REQUEST_TIMEOUT, "TooSlow"));
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_trickles_or_takes_too_long_is_given_up() {
        assert_eq!(seconds_until_given_up(0, 0, PROOF).await, 10);
        assert_eq!(seconds_until_given_up(100_000, 0, PROOF).await, 10);
        assert_eq!(seconds_until_given_up(1, 1, PROOF).await, 10);
        assert!((10..=15).contains(&seconds_until_given_up(1000, 50, PROOF).await));
        assert_eq!(seconds_until_given_up(2000, 500, STATUS).await, 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_takes_what_has_arrived_and_not_what_it_announces() {
        let reading = Arc::new(Reading::default());
        let mut slow = Vec::new();
        // More than the pool would hold of whole ones.
        for cluster in 0..100 {
            let reading = Arc::clone(&reading);
            slow.push(tokio::spawn(async move { reading.envelope(owner(cluster), trickle(1, 1), PROOF).await }));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let body = || http_body_util::Full::new(Bytes::from(vec![b' '; PROOF.bytes]));
        let refused = reading.envelope(owner(200), body(), PROOF).await.unwrap_err();
        assert_eq!(refused.reason, "Malformed", "it was read");
        for body in slow {
            assert_eq!(body.await.unwrap().unwrap_err().reason, "TooSlow");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_cluster_fills_neither_a_pool_nor_another_route() {
        let reading = Arc::new(Reading::default());
        for _ in 0..1000 {
            let reading = Arc::clone(&reading);
            tokio::spawn(async move { reading.envelope(owner(1), trickle(300_000, 1), STATUS).await });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let body = |size| http_body_util::Full::new(Bytes::from(vec![b' '; size]));
        let own = reading.envelope(owner(1), body(STATUS.bytes), STATUS).await.unwrap_err();
        assert_eq!((own.status, own.reason), (StatusCode::TOO_MANY_REQUESTS, "Busy"));
        assert!(own.retry_after.is_some() && own.close);
        for (cluster, allowance) in [(2, STATUS), (1, POLL), (1, PROOF)] {
            let refused = reading.envelope(owner(cluster), body(allowance.bytes), allowance).await.unwrap_err();
            assert_eq!(refused.reason, "Malformed", "it was read: {cluster} {allowance:?}");
        }
    }

    #[test]
    fn the_largest_body_of_a_route_fits_into_every_bound() {
        for allowance in [JOIN, RENEW, POLL, STATUS, SITE, PROOF] {
            let all = POOLS.iter().find(|(pool, _)| *pool == allowance.pool).unwrap().1;
            let bounds = bounds(allowance.pool, all);
            assert!(bounds.cluster <= bounds.address && bounds.address <= bounds.all, "{allowance:?}: {bounds:?}");
        }
    }

    #[test]
    fn a_body_above_the_limit_is_refused_as_too_large() {
        let refused = read::<PollRequest>(vec![b' '; POLL.bytes + 1], POLL).unwrap_err();
        assert_eq!((refused.status, refused.reason), (StatusCode::PAYLOAD_TOO_LARGE, "TooLarge"));
    }

    #[test]
    fn a_truncated_body_is_malformed() {
        let refused = read::<RenewRequest>(br#"{"csr":"-----BEG"#.to_vec(), RENEW).unwrap_err();
        assert_eq!((refused.status, refused.reason), (StatusCode::BAD_REQUEST, "Malformed"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = read::<JoinRequest>(bytes.clone(), JOIN);
            let _ = read::<PollRequest>(bytes.clone(), POLL);
            let _ = read::<SiteRequest>(bytes.clone(), SITE);
            let _ = read::<Envelope>(bytes, STATUS);
        }
    }
}
