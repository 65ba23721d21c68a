//! Holders that behave as told, and a site of them that remembers who misbehaved.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use kedge_model::wire::{BlobRef, ClusterId, Digest};
use tokio::time::Instant;

use super::super::{ChunkList, Holder, HolderError, Misbehavior, Pieces, Sources};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behaviour {
    Honest,
    /// Bytes per second.
    Paced(u64),
    /// Answers nothing, ever.
    Silent,
    /// Breaks off after so many bytes in all, and is away then.
    DiesAfter(u64),
    /// Away for its first requests.
    AwayFor(usize),
    /// One bit of each chunk is another.
    WrongBytes,
    /// Another content, with its list.
    OtherContent,
    /// The right bytes, with a list of something else.
    FalseList,
    /// More and more.
    Endless,
    EndlessList,
    /// Bytes that are no list.
    Nonsense,
    /// Hasn't got it.
    Refuses,
    /// Ends each range one byte early.
    Short,
}

pub struct Fake {
    cluster: ClusterId,
    behaviour: Behaviour,
    content: Arc<Vec<u8>>,
    other: Arc<Vec<u8>>,
    given: Arc<AtomicU64>,
    requests: AtomicUsize,
    busy: Arc<Busy>,
    all: Arc<Busy>,
}

pub struct Site {
    pub fakes: Vec<Arc<Fake>>,
    misbehaviors: Mutex<BTreeMap<ClusterId, Vec<Misbehavior>>>,
    coming_until: Option<Instant>,
}

#[derive(Default)]
struct Busy {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// One request, until its last byte.
struct Turn(Vec<Arc<Busy>>);

pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| ((at % 251) ^ (at >> 12)) as u8).collect()
}

pub fn blob(content: &[u8]) -> BlobRef {
    BlobRef { digest: Digest::of(content), size: content.len() as u64 }
}

impl Site {
    pub fn of(content: &[u8], behaviours: &[Behaviour]) -> Site {
        let (content, all) = (Arc::new(content.to_vec()), Arc::new(Busy::default()));
        let other = Arc::new(content.iter().map(|byte| byte ^ 0x55).collect::<Vec<u8>>());
        let fake = |(number, behaviour): (usize, &Behaviour)| {
            let cluster = ClusterId::of_public_key(&[u8::try_from(number).unwrap(); 32]);
            Arc::new(Fake {
                cluster,
                behaviour: *behaviour,
                content: Arc::clone(&content),
                other: Arc::clone(&other),
                given: Arc::default(),
                requests: AtomicUsize::new(0),
                busy: Arc::default(),
                all: Arc::clone(&all),
            })
        };
        let fakes = behaviours.iter().enumerate().map(fake).collect();
        Site { fakes, misbehaviors: Mutex::default(), coming_until: None }
    }

    pub fn coming_for(self, time: Duration) -> Site {
        Site { coming_until: Some(Instant::now() + time), ..self }
    }

    /// Who misbehaved how, by its number.
    pub fn misbehaviors(&self) -> Vec<(usize, Misbehavior)> {
        let misbehaviors = self.misbehaviors.lock().unwrap();
        let number = |who: &ClusterId| self.fakes.iter().position(|fake| fake.cluster == *who).unwrap();
        let mut misbehaviors: Vec<_> = misbehaviors
            .iter()
            .flat_map(|(who, misbehaviors)| {
                misbehaviors.iter().map(move |misbehavior| (number(who), misbehavior.clone()))
            })
            .collect();
        misbehaviors.sort_by_key(|(number, _)| *number);
        misbehaviors
    }

    pub fn misbehaving(&self) -> Vec<usize> {
        self.misbehaviors().into_iter().map(|(number, _)| number).collect()
    }

    pub fn requests(&self) -> usize {
        self.fakes.iter().map(|fake| fake.requests.load(Ordering::Relaxed)).sum()
    }

    pub fn most_at_once(&self) -> usize {
        self.fakes.first().map_or(0, |fake| fake.all.most.load(Ordering::Relaxed))
    }
}

impl Sources for Site {
    fn holders(&self, _blob: &Digest) -> Vec<Arc<dyn Holder>> {
        self.fakes.iter().map(|fake| Arc::clone(fake) as Arc<dyn Holder>).collect()
    }

    fn is_coming(&self, _blob: &Digest) -> bool {
        self.coming_until.is_some_and(|until| Instant::now() < until)
    }

    fn misbehaved(&self, who: ClusterId, misbehavior: Misbehavior) {
        self.misbehaviors.lock().unwrap().entry(who).or_default().push(misbehavior);
    }
}

impl Fake {
    pub fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    pub fn most_at_once(&self) -> usize {
        self.busy.most.load(Ordering::Relaxed)
    }

    fn turn(&self) -> Turn {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let turn = Turn(vec![Arc::clone(&self.busy), Arc::clone(&self.all)]);
        for busy in &turn.0 {
            let now = busy.now.fetch_add(1, Ordering::Relaxed) + 1;
            busy.most.fetch_max(now, Ordering::Relaxed);
        }
        turn
    }

    fn dead(&self) -> bool {
        match self.behaviour {
            Behaviour::DiesAfter(bytes) => self.given() >= bytes,
            Behaviour::AwayFor(requests) => self.requests.load(Ordering::Relaxed) <= requests,
            _ => false,
        }
    }

    /// In pieces, each after its time.
    fn stream(&self, bytes: Vec<u8>, turn: Turn) -> Pieces {
        const PIECE: usize = 16 * 1024;
        let (behaviour, given) = (self.behaviour, Arc::clone(&self.given));
        let pieces: Vec<Bytes> = bytes.chunks(PIECE).map(Bytes::copy_from_slice).collect();
        let endless = behaviour == Behaviour::Endless;
        let more = endless.then(|| stream::repeat(Bytes::from_static(&[7; PIECE])));
        let pieces = stream::iter(pieces).chain(stream::iter(more).flatten());
        pieces
            .then(move |piece| {
                let given = Arc::clone(&given);
                _ = &turn;
                async move {
                    match behaviour {
                        Behaviour::Paced(rate) => {
                            tokio::time::sleep(Duration::from_secs_f64(piece.len() as f64 / rate as f64)).await;
                        }
                        _ => tokio::task::yield_now().await,
                    }
                    let before = given.load(Ordering::Relaxed);
                    let piece = match behaviour {
                        Behaviour::DiesAfter(most) if before >= most => {
                            return Err(HolderError::Broken("it died".to_owned()));
                        }
                        Behaviour::DiesAfter(most) => {
                            piece.slice(..piece.len().min(usize::try_from(most - before).unwrap()))
                        }
                        _ => piece,
                    };
                    given.fetch_add(piece.len() as u64, Ordering::Relaxed);
                    Ok(piece)
                }
            })
            .boxed()
    }
}

impl Holder for Fake {
    fn cluster(&self) -> ClusterId {
        self.cluster
    }

    fn chunks(&self, _blob: Digest) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        let turn = self.turn();
        Box::pin(async move {
            let list = |content: &[u8]| ChunkList::compute(content, content.len() as u64).unwrap().0.to_json().unwrap();
            let json = match self.behaviour {
                Behaviour::Refuses => return Err(HolderError::Refused("no".to_owned())),
                Behaviour::Silent => std::future::pending().await,
                _ if self.dead() => return Err(HolderError::Broken("it is away".to_owned())),
                Behaviour::OtherContent | Behaviour::FalseList => list(&self.other),
                Behaviour::Nonsense => vec![b'{'; 100],
                Behaviour::EndlessList => {
                    return Ok(stream::repeat(Bytes::from_static(b"    ")).map(Ok).boxed());
                }
                _ => list(&self.content),
            };
            tokio::task::yield_now().await;
            drop(turn);
            Ok(stream::iter([Ok(Bytes::from(json))]).boxed())
        })
    }

    fn range(&self, _blob: Digest, range: Range<u64>) -> BoxFuture<'_, Result<Pieces, HolderError>> {
        let turn = self.turn();
        Box::pin(async move {
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            let mut bytes = self.content[range.clone()].to_vec();
            match self.behaviour {
                Behaviour::Refuses => return Err(HolderError::Refused("no".to_owned())),
                Behaviour::Silent => std::future::pending().await,
                _ if self.dead() => return Err(HolderError::Broken("it is away".to_owned())),
                Behaviour::OtherContent => bytes = self.other[range].to_vec(),
                Behaviour::WrongBytes => bytes[0] ^= 1,
                Behaviour::Short => _ = bytes.pop(),
                _ => {}
            }
            Ok(self.stream(bytes, turn))
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.iter().for_each(|busy| _ = busy.now.fetch_sub(1, Ordering::Relaxed));
    }
}
