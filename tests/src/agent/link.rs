//! One connection to a hub: TLS and as much of HTTP/1.1 as agents need, written by hand so that a test can also send what no
//! client would, and count every byte.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Where a hub is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// As in the address: the hub's certificate must name it.
    pub host: String,
    pub port: u16,
}

#[derive(Debug)]
pub struct Link {
    stream: TlsStream<TcpStream>,
    host: String,
    over: bool,
    /// HTTP's bytes of all requests and answers, without TLS.
    pub sent: u64,
    pub received: u64,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("`{0}` is no address of a hub")]
    Address(String),
    #[error("the hub can't be reached")]
    Connect(#[source] io::Error),
    /// Also a TLS alert: the hub doesn't want this certificate.
    #[error("no secure connection")]
    Handshake(#[source] io::Error),
    #[error("the connection was closed before an answer began")]
    Closed,
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    #[error("this is no answer: {0}")]
    NoHttp(String),
}

/// An answer's head is a few lines.
const MAX_HEAD: usize = 16 * 1024;

impl Hub {
    /// `https://host:port`.
    pub fn parse(address: &str) -> Result<Hub, LinkError> {
        let wrong = || LinkError::Address(address.to_owned());
        let uri: http::Uri = address.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        Ok(Hub { host, port: uri.port_u16().unwrap_or(443) })
    }

    pub async fn connect(&self) -> Result<TcpStream, LinkError> {
        let address = match self.host.parse() {
            Ok(ip) => SocketAddr::new(ip, self.port),
            Err(_) => {
                let mut found =
                    tokio::net::lookup_host((self.host.as_str(), self.port)).await.map_err(LinkError::Connect)?;
                found.next().ok_or_else(|| LinkError::Address(self.host.clone()))?
            }
        };
        let socket = TcpStream::connect(address).await.map_err(LinkError::Connect)?;
        socket.set_nodelay(true).map_err(LinkError::Connect)?;
        Ok(socket)
    }
}

impl Link {
    pub async fn open(hub: &Hub, config: Arc<ClientConfig>) -> Result<Link, LinkError> {
        let name = ServerName::try_from(hub.host.clone()).map_err(|_| LinkError::Address(hub.host.clone()))?;
        let socket = hub.connect().await?;
        let stream = TlsConnector::from(config).connect(name, socket).await.map_err(LinkError::Handshake)?;
        Ok(Link { stream, host: format!("{}:{}", hub.host, hub.port), over: false, sent: 0, received: 0 })
    }

    /// Whether the hub said that it closes.
    pub fn is_over(&self) -> bool {
        self.over
    }

    pub async fn post(&mut self, path: &str, body: &[u8]) -> Result<Reply, LinkError> {
        self.send("POST", path, &[], body).await
    }

    /// A request and its answer.
    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, LinkError> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.host);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.write(&bytes).await?;
        self.answer(method == "HEAD").await
    }

    /// Any bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        self.sent += bytes.len() as u64;
        self.stream.write_all(bytes).await.map_err(LinkError::Broken)?;
        self.stream.flush().await.map_err(LinkError::Broken)
    }

    /// Reads one answer.
    pub async fn answer(&mut self, is_head: bool) -> Result<Reply, LinkError> {
        let mut reply = self.head().await?;
        let length: usize = match (is_head || reply.status == 304, reply.header("content-length")) {
            (true, _) => 0,
            (false, Some(text)) => text.parse().map_err(|_| LinkError::NoHttp(format!("a length of `{text}`")))?,
            (false, None) => return Err(LinkError::NoHttp("an answer without a length".to_owned())),
        };
        while reply.body.len() < length {
            self.read_more(&mut reply.body).await?;
        }
        Ok(reply)
    }

    /// Reads the head of an answer, and what came with it of its body.
    pub async fn head(&mut self) -> Result<Reply, LinkError> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if bytes.len() > MAX_HEAD {
                return Err(LinkError::NoHttp("the head is too long".to_owned()));
            }
            self.read_more(&mut bytes).await?;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let status: u16 = status.ok_or_else(|| LinkError::NoHttp(head.clone()))?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let reply = Reply { status, headers, body: bytes.split_off(end + 4) };
        self.over |= reply.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        Ok(reply)
    }

    /// Whether the other side closes within the time.
    pub async fn closes_within(&mut self, time: std::time::Duration) -> bool {
        let mut buffer = [0; 1024];
        let end = async { while matches!(self.stream.read(&mut buffer).await, Ok(read) if read > 0) {} };
        tokio::time::timeout(time, end).await.is_ok()
    }

    async fn read_more(&mut self, bytes: &mut Vec<u8>) -> Result<(), LinkError> {
        // On the heap and only while reading: a poll that is held keeps no buffer.
        let read = self.stream.read_buf(bytes).await;
        match read {
            Ok(0) | Err(_) if bytes.is_empty() => {
                self.over = true;
                match read {
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(LinkError::Handshake(error)),
                    _ => Err(LinkError::Closed),
                }
            }
            Ok(0) => Err(LinkError::Broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(read) => {
                self.received += read as u64;
                Ok(())
            }
            Err(error) => Err(LinkError::Broken(error)),
        }
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
