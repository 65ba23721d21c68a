//! Serves the numbers: one connection at a time, each with a deadline, so that a scraper that hangs costs a socket and no more.
//! A task beside the loop, started by `run`; what fails here is tried again and never stops the agent.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use kedge_durable::RealDisk;
use nix::sys::statvfs::statvfs;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{Instant, timeout};

use super::request::{self, Asked};
use super::text::{self, Room, Seen};
use crate::clock::{Clock as _, SystemClock};
use crate::config::Endpoint;
use crate::identity::Identity;
use crate::overview::Overview;
use crate::paths::Paths;

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// What was last answered, for scrapes that come together.
#[derive(Default)]
struct Kept(Option<(Instant, String)>);

/// A scraper asks and reads within this, or is cut off.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of two scrapes within this time the second gets the first one's answer.
const FRESH: Duration = Duration::from_secs(2);
/// The port may be another program's for a while.
const BIND_AGAIN: Duration = Duration::from_secs(60);
/// After a failure to accept.
const PAUSE: Duration = Duration::from_secs(1);
/// The owner and a group that the administrator chooses for the socket's folder.
const SOCKET_MODE: u32 = 0o660;

/// For as long as the agent lives.
pub async fn serve(endpoint: Endpoint, paths: Paths) {
    let listener = loop {
        match bind(&endpoint) {
            Ok(listener) => break listener,
            Err(error) => tracing::warn!(%error, %endpoint, "metrics can't be served; trying again"),
        }
        tokio::time::sleep(BIND_AGAIN).await;
    };
    tracing::info!(at = listener.name(&endpoint), "metrics are served");
    let mut kept = Kept::default();
    loop {
        let accepted = match &listener {
            Listener::Tcp(listener) => match listener.accept().await {
                Ok((stream, _)) => Ok(timeout(PATIENCE, talk(stream, &paths, &mut kept)).await),
                Err(error) => Err(error),
            },
            Listener::Unix(listener) => match listener.accept().await {
                Ok((stream, _)) => Ok(timeout(PATIENCE, talk(stream, &paths, &mut kept)).await),
                Err(error) => Err(error),
            },
        };
        match accepted {
            // Who goes away or is too slow has no answer; there is nothing to do about it.
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection for metrics can be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn bind(endpoint: &Endpoint) -> io::Result<Listener> {
    match endpoint {
        Endpoint::Tcp(address) => {
            let socket = std::net::TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok(Listener::Tcp(TcpListener::from_std(socket)?))
        }
        Endpoint::Unix(path) => {
            clear(path)?;
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE))?;
            Ok(Listener::Unix(listener))
        }
    }
}

/// The socket that an agent before this one left; nothing else is deleted.
fn clear(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl Listener {
    /// With the real port.
    fn name(&self, endpoint: &Endpoint) -> String {
        match self {
            Listener::Tcp(listener) => match listener.local_addr() {
                Ok(address) => Endpoint::Tcp(address).to_string(),
                Err(_) => endpoint.to_string(),
            },
            Listener::Unix(_) => endpoint.to_string(),
        }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, paths: &Paths, kept: &mut Kept) -> io::Result<()> {
    let (mut head, mut piece) = (Vec::new(), [0; 512]);
    let asked = loop {
        if let Some(asked) = request::read(&head) {
            break asked;
        }
        match stream.read(&mut piece).await? {
            0 => return Ok(()),
            read => head.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    };
    let (status, body) = match asked {
        Asked::Metrics => ("200 OK", kept.fresh(paths).await),
        Asked::Elsewhere => ("404 Not Found", "see /metrics\n".to_owned()),
        Asked::NotGet => ("405 Method Not Allowed", "only GET\n".to_owned()),
        Asked::NotHttp => ("400 Bad Request", "this isn't HTTP\n".to_owned()),
    };
    let kind = if asked == Asked::Metrics { text::CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

impl Kept {
    async fn fresh(&mut self, paths: &Paths) -> String {
        if let Some((_, text)) = self.0.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return text.clone();
        }
        let paths = paths.clone();
        // Ledgers are small, and the loop still shouldn't wait for a slow disk.
        let seen = tokio::task::spawn_blocking(move || look(&paths)).await.unwrap_or_default();
        let text = text::write(&seen, SystemClock.now());
        self.0 = Some((Instant::now(), text.clone()));
        text
    }
}

fn look(paths: &Paths) -> Seen {
    let identity = Identity::read(&RealDisk, paths).ok().flatten();
    Seen {
        overview: Overview::read(paths).unwrap_or_default(),
        certificate_ends: identity.map(|identity| identity.validity().until),
        disk: room(&paths.objects()),
    }
}

fn room(folder: &Path) -> Option<Room> {
    let disk = statvfs(folder).ok()?;
    #[allow(clippy::useless_conversion, reason = "the fields are 32 bits wide on armhf")]
    let bytes = |blocks| u64::from(blocks).saturating_mul(u64::from(disk.fragment_size()));
    Some(Room { free: bytes(disk.blocks_available()), size: bytes(disk.blocks()) })
}
