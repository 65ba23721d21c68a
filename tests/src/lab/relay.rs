//! A cable for TCP: an address that leads to another, can be cut and mended, and counts what passes. Hosts with a network of their
//! own reach a hub on loopback through it, and the benchmark weighs traffic with it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// A listener and what passed it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    bytes: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    connected: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

impl Relay {
    /// What connects to `address` reaches `target`.
    pub fn start(address: SocketAddr, target: SocketAddr) -> Relay {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (connected, _) = watch::channel(true);
        let (bytes, connections) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let listener = runtime.block_on(TcpListener::bind(address)).unwrap_or_else(|e| panic!("{address}: {e}"));
        let address = listener.local_addr().unwrap();
        runtime.spawn(accept(listener, target, Arc::clone(&bytes), Arc::clone(&connections), connected.clone()));
        Relay { address, bytes, connections, connected, runtime: Some(runtime) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection, and new ones as soon as they are made.
    pub fn cut(&self) {
        self.connected.send_replace(false);
    }

    pub fn mend(&self) {
        self.connected.send_replace(true);
    }

    /// Bytes that passed in both directions, without TCP's own.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Connections that were made so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    bytes: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    connected: watch::Sender<bool>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        let (bytes, mut cut) = (Arc::clone(&bytes), connected.subscribe());
        tokio::spawn(async move {
            tokio::select! {
                // A connection that breaks is what a relay passes on.
                _ = pass(stream, target, &bytes) => {}
                _ = cut.wait_for(|connected| !connected) => {}
            }
        });
    }
}

async fn pass(stream: TcpStream, target: SocketAddr, bytes: &AtomicU64) -> io::Result<()> {
    let other = TcpStream::connect(target).await?;
    let (near, far) = (stream.into_split(), other.into_split());
    tokio::try_join!(copy(near.0, far.1, bytes), copy(far.0, near.1, bytes))?;
    Ok(())
}

async fn copy(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    bytes: &AtomicU64,
) -> io::Result<()> {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..read]).await?;
        bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
}
