//! Shares of what everybody needs and nobody may use up: memory for bodies, downloads, connections. There is a bound for all,
//! one for each cluster and one for each address; what was taken comes back when the share is dropped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kedge_model::wire::ClusterId;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::address::network;

/// Who takes a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// None without a certificate.
    pub cluster: Option<ClusterId>,
    pub address: IpAddr,
}

/// How much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub all: u32,
    /// What one cluster may have of it.
    pub cluster: u32,
    /// What all may have together that come from one address: many clusters are behind one router.
    pub address: u32,
}

#[derive(Debug)]
pub struct Shares {
    bounds: Bounds,
    all: Semaphore,
    taken: Mutex<HashMap<Key, u32>>,
    released: Notify,
}

/// What somebody has; given back when dropped.
#[derive(Debug)]
pub struct Share {
    shares: Arc<Shares>,
    keys: [Option<Key>; 2],
    amount: u32,
}

/// Whose bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("too much is under way at one time")]
    All,
    #[error("this cluster has too much under way at one time")]
    Cluster,
    #[error("too much is under way from this address at one time")]
    Address,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Cluster(ClusterId),
    Address(IpAddr),
}

impl Shares {
    pub fn new(bounds: Bounds) -> Arc<Shares> {
        Arc::new(Shares {
            bounds,
            all: Semaphore::new(bounds.all as usize),
            taken: Mutex::default(),
            released: Notify::new(),
        })
    }

    /// A share that holds nothing yet.
    pub fn open(self: &Arc<Shares>, owner: Owner) -> Share {
        let keys = [owner.cluster.map(Key::Cluster), Some(Key::Address(network(owner.address)))];
        Share { shares: Arc::clone(self), keys, amount: 0 }
    }

    /// A share of one, at once or not at all.
    pub fn take_one(self: &Arc<Shares>, owner: Owner) -> Result<Share, Full> {
        let mut share = self.open(owner);
        share.claim(1)?;
        match self.all.try_acquire() {
            Ok(permit) => share.keep(permit, 1),
            Err(_) => {
                self.release(&share.keys, 1);
                return Err(Full::All);
            }
        }
        Ok(share)
    }

    fn bound(&self, key: Key) -> (u32, Full) {
        match key {
            Key::Cluster(_) => (self.bounds.cluster, Full::Cluster),
            Key::Address(_) => (self.bounds.address, Full::Address),
        }
    }

    fn release(&self, keys: &[Option<Key>], amount: u32) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys.iter().flatten() {
            if let Entry::Occupied(mut entry) = taken.entry(*key) {
                *entry.get_mut() = entry.get().saturating_sub(amount);
                if *entry.get() == 0 {
                    entry.remove();
                }
            }
        }
        drop(taken);
        self.released.notify_waiters();
    }
}

impl Share {
    /// Takes more. A cluster that has its share is told at once; what others have taken is waited for a little.
    pub async fn grow(&mut self, by: u32, patience: Duration) -> Result<(), Full> {
        if by == 0 {
            return Ok(());
        }
        let end = Instant::now() + patience;
        loop {
            let released = self.shares.released.notified();
            let mut released = std::pin::pin!(released);
            // What comes back between the look and the wait is seen.
            released.as_mut().enable();
            match self.claim(by) {
                Ok(()) => break,
                Err(Full::Address) if tokio::time::timeout_at(end, released).await.is_ok() => {}
                Err(full) => return Err(full),
            }
        }
        let shares = Arc::clone(&self.shares);
        let mut claimed = Claimed { shares: &shares, keys: self.keys, amount: by };
        match tokio::time::timeout_at(end, shares.all.acquire_many(by)).await {
            Ok(Ok(permit)) => {
                claimed.amount = 0;
                self.keep(permit, by);
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(Full::All),
        }
    }

    /// Notes it with the cluster and the address, if both may have it.
    fn claim(&self, by: u32) -> Result<(), Full> {
        let mut taken = self.shares.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for key in self.keys.iter().flatten() {
            let (bound, full) = self.shares.bound(*key);
            let has = taken.get(key).copied().unwrap_or_default();
            if has.checked_add(by).is_none_or(|wanted| wanted > bound) {
                return Err(full);
            }
        }
        self.keys.iter().flatten().for_each(|key| *taken.entry(*key).or_default() += by);
        Ok(())
    }

    fn keep(&mut self, permit: SemaphorePermit<'_>, amount: u32) {
        permit.forget();
        self.amount += amount;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.shares.release(&self.keys, self.amount);
            self.shares.all.add_permits(self.amount as usize);
        }
    }
}

/// What is claimed and isn't had yet: gone again if the one who waits goes.
struct Claimed<'a> {
    shares: &'a Shares,
    keys: [Option<Key>; 2],
    amount: u32,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.shares.release(&self.keys, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(20);

    fn owner(cluster: u8, address: u8) -> Owner {
        Owner { cluster: Some(ClusterId::of_public_key(&[cluster; 32])), address: IpAddr::from([10, 0, 0, address]) }
    }

    #[tokio::test]
    async fn one_cluster_has_its_share_and_others_have_theirs() {
        let shares = Shares::new(Bounds { all: 100, cluster: 10, address: 50 });
        let mut first = shares.open(owner(1, 1));
        first.grow(8, PATIENCE).await.unwrap();
        let mut second = shares.open(owner(1, 2));
        assert_eq!(second.grow(3, PATIENCE).await, Err(Full::Cluster));
        second.grow(2, PATIENCE).await.unwrap();
        shares.open(owner(2, 1)).grow(10, PATIENCE).await.unwrap();
        drop(first);
        second.grow(8, PATIENCE).await.unwrap();
    }

    #[tokio::test]
    async fn one_address_has_its_share_whoever_comes_from_it() {
        let shares = Shares::new(Bounds { all: 100, cluster: 10, address: 25 });
        let mut held = Vec::new();
        for cluster in 0..2 {
            let mut share = shares.open(owner(cluster, 1));
            share.grow(10, PATIENCE).await.unwrap();
            held.push(share);
        }
        assert_eq!(shares.open(owner(3, 1)).grow(6, PATIENCE).await, Err(Full::Address));
        shares.open(owner(3, 2)).grow(6, PATIENCE).await.unwrap();
        let stranger = Owner { cluster: None, ..owner(0, 1) };
        assert_eq!(shares.open(stranger).grow(6, PATIENCE).await, Err(Full::Address));
        let mut waiting = shares.open(stranger);
        let (grown, ()) = tokio::join!(waiting.grow(6, Duration::from_secs(10)), async { drop(held.pop()) });
        assert_eq!(grown, Ok(()), "what another gave back");
    }

    #[tokio::test]
    async fn who_waits_gets_what_comes_back_and_leaves_nothing_behind_when_it_gives_up() {
        let shares = Shares::new(Bounds { all: 10, cluster: 10, address: 10 });
        let mut first = shares.open(owner(1, 1));
        first.grow(10, PATIENCE).await.unwrap();
        assert_eq!(shares.open(owner(2, 2)).grow(1, PATIENCE).await, Err(Full::All));
        assert_eq!(shares.take_one(owner(2, 2)).unwrap_err(), Full::All);
        let waiting = tokio::spawn({
            let shares = Arc::clone(&shares);
            async move {
                let mut share = shares.open(owner(3, 3));
                share.grow(10, Duration::from_secs(10)).await.map(|()| share)
            }
        });
        tokio::task::yield_now().await;
        drop(first);
        drop(waiting.await.unwrap().unwrap());
        assert!(shares.taken.lock().unwrap().is_empty());
        assert_eq!(shares.all.available_permits(), 10);
    }
}
