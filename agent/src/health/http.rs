//! One GET by hand over a blocking socket: a check needs a status and nothing else. Redirects aren't followed, the answer's body isn't
//! read, and the whole ends at a deadline.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// An `http://` or `https://` address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// As it was written, for the header.
    pub authority: String,
    pub path: String,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("this is no http:// or https:// address")]
    Address,
    #[error("it doesn't answer: {0}")]
    Io(#[from] io::Error),
    #[error("it doesn't answer in time")]
    Slow,
    #[error("its answer is no HTTP")]
    NotHttp,
    #[error("no secure connection: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the host's authorities {0} can't be read; install ca-certificates")]
    Authorities(PathBuf),
}

/// The status line and some headers; what is longer isn't read.
const MAX_HEAD: usize = 4096;

impl Address {
    pub(super) fn of(url: &str) -> Result<Address, HttpError> {
        let (tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(HttpError::Address),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        // A space or a line break would end the request's line.
        let odd = |c: char| c.is_control() || c.is_whitespace();
        if authority.is_empty() || authority.contains('@') || url.contains(odd) {
            return Err(HttpError::Address);
        }
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let usual = if tls { 443 } else { 80 };
        let port = port.map_or(Ok(usual), |port| port.parse().map_err(|_| HttpError::Address))?;
        Ok(Address { tls, host: host.to_owned(), port, authority: authority.to_owned(), path })
    }

    fn connect(&self, deadline: Instant) -> io::Result<TcpStream> {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        super::connect(&format!("{host}:{}", self.port), deadline)
    }
}

/// The status of the answer.
pub(super) fn get(address: &Address, tls: Option<ClientConfig>, deadline: Instant) -> Result<u16, HttpError> {
    let socket = Deadline { socket: address.connect(deadline).map_err(in_time)?, deadline };
    let Some(config) = tls else { return ask(socket, address) };
    let name = ServerName::try_from(address.host.clone()).map_err(|_| HttpError::Address)?;
    ask(StreamOwned::new(ClientConnection::new(Arc::new(config), name)?, socket), address)
}

/// A client that believes what the host believes.
pub(super) fn trusting(authorities: &Path) -> Result<ClientConfig, HttpError> {
    let failed = || HttpError::Authorities(authorities.to_owned());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authorities).map_err(|_| failed())? {
        // An odd one among a hundred isn't a reason to trust none.
        _ = roots.add(certificate.map_err(|_| failed())?);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(client.with_root_certificates(roots).with_no_client_auth())
}

fn ask(mut stream: impl Read + Write, address: &Address) -> Result<u16, HttpError> {
    let Address { authority, path, .. } = address;
    let asked =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: kedge-agent\r\nConnection: close\r\n\r\n");
    stream.write_all(asked.as_bytes()).map_err(in_time)?;
    stream.flush().map_err(in_time)?;
    let (mut head, mut piece) = (Vec::new(), [0; 512]);
    loop {
        let read = stream.read(&mut piece).map_err(in_time)?;
        head.extend_from_slice(&piece[..read]);
        let line = head.iter().position(|byte| *byte == b'\n').map(|end| &head[..end]);
        if let Some(line) = line {
            return status_of(line).ok_or(HttpError::NotHttp);
        }
        if read == 0 || head.len() > MAX_HEAD {
            return Err(HttpError::NotHttp);
        }
    }
}

/// `HTTP/1.1 204 No Content` is 204.
fn status_of(line: &[u8]) -> Option<u16> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    words.next()?.strip_prefix("HTTP/1.")?;
    words.next()?.parse().ok().filter(|status| (100..=599).contains(status))
}

fn in_time(error: io::Error) -> HttpError {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => HttpError::Slow,
        _ => HttpError::Io(error),
    }
}

/// A socket whose every read and write ends at the same moment.
struct Deadline {
    socket: TcpStream,
    deadline: Instant,
}

impl Deadline {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Deadline {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        self.socket.read(buffer)
    }
}

impl Write for Deadline {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        self.socket.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let address = Address::of("https://[::1]:8443/a/b?c#d").unwrap();
        assert_eq!((address.host.as_str(), address.port, address.tls), ("::1", 8443, true));
        assert_eq!(address.path, "/a/b?c");
        let address = Address::of("http://box?x").unwrap();
        assert_eq!((address.port, address.path.as_str(), address.authority.as_str()), (80, "/?x", "box"));
        for wrong in ["ftp://x", "http://", "http://u@h/", "http://h:x/", "http://h/\r\nX: y", "h"] {
            assert!(Address::of(wrong).is_err(), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_the_reader_panic(line in proptest::collection::vec(proptest::num::u8::ANY, 0..64), url in "\\PC{0,40}") {
            _ = status_of(&line);
            _ = Address::of(&format!("http://{url}"));
            _ = Address::of(&url);
        }
    }
}
