//! The listener of a fake hub: HTTP by hand, so that an answer can be cut at any byte.

use std::sync::{Arc, Mutex};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::authority::{Authority, DAY, now};

/// Stops when it is dropped.
pub struct FakeHub {
    pub address: String,
    pub seen: Arc<Mutex<Vec<Request>>>,
    accepting: JoinHandle<()>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    /// The head as it came.
    pub head: String,
    pub body: Vec<u8>,
    /// The client's certificate.
    pub certificate: Option<Vec<u8>>,
    /// Counts the connections.
    pub connection: usize,
}

pub enum Reply {
    Json(u16, Vec<u8>),
    /// With headers, for downloads.
    Bytes(u16, String, Vec<u8>),
    /// Any bytes, then the connection is closed.
    Cut(Vec<u8>),
    /// Nothing, ever.
    Silence,
}

type Answers = Arc<Mutex<dyn FnMut(&Request) -> Reply + Send>>;

impl FakeHub {
    /// A hub at 127.0.0.1 with a certificate of now.
    pub async fn start(authority: &Authority, answers: impl FnMut(&Request) -> Reply + Send + 'static) -> FakeHub {
        FakeHub::start_with(authority, "127.0.0.1", (now().0 - DAY / 24, now().0 + 90 * DAY), answers).await
    }

    pub async fn start_with(
        authority: &Authority,
        name: &str,
        dates: (i64, i64),
        answers: impl FnMut(&Request) -> Reply + Send + 'static,
    ) -> FakeHub {
        let (chain, key) = authority.server(name, dates);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(Arc::new(AnyClient))
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("https://{}", listener.local_addr().unwrap());
        let seen = Arc::default();
        let accepting =
            tokio::spawn(accept(listener, Arc::new(config), Arc::clone(&seen), Arc::new(Mutex::new(answers))));
        FakeHub { address, seen, accepting }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Reply {
    pub fn ok<T: Serialize>(message: &T) -> Reply {
        Reply::Json(200, serde_json::to_vec(message).unwrap())
    }

    pub fn refusal(status: u16, reason: &str) -> Reply {
        let problem = serde_json::json!({"reason": reason, "message": "no", "hint": "ask"});
        Reply::Json(status, serde_json::to_vec(&problem).unwrap())
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, config: Arc<ServerConfig>, seen: Arc<Mutex<Vec<Request>>>, answers: Answers) {
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0.. {
        let (socket, _) = listener.accept().await.unwrap();
        let (config, seen, answers) = (Arc::clone(&config), Arc::clone(&seen), Arc::clone(&answers));
        tasks.spawn(async move {
            if let Ok(stream) = TlsAcceptor::from(config).accept(socket).await {
                serve(stream, connection, &seen, &answers).await;
            }
        });
    }
}

async fn serve(mut stream: TlsStream<TcpStream>, connection: usize, seen: &Mutex<Vec<Request>>, answers: &Answers) {
    let certificate = stream.get_ref().1.peer_certificates().map(|chain| chain[0].to_vec());
    let mut bytes = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                return;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
        while bytes.len() < end + 4 + length {
            if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
                return;
            }
        }
        let rest = bytes.split_off(end + 4 + length);
        let body = bytes.split_off(end + 4);
        bytes = rest;
        let mut words = head.split(' ');
        let path = words.nth(1).unwrap().to_owned();
        let request = Request { path, head: head.clone(), body, certificate: certificate.clone(), connection };
        seen.lock().unwrap().push(request.clone());
        let reply = (answers.lock().unwrap())(&request);
        let (out, close) = match reply {
            Reply::Json(status, body) => (whole(status, "content-type: application/json\r\n", &body), false),
            Reply::Bytes(status, headers, body) => (whole(status, &headers, &body), false),
            Reply::Cut(bytes) => (bytes, true),
            Reply::Silence => std::future::pending().await,
        };
        if stream.write_all(&out).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if close {
            _ = stream.shutdown().await;
            return;
        }
    }
}

/// An answer with its length.
pub fn whole(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    out.extend_from_slice(body);
    out
}

/// Lets everybody in and notes who it was, as the hub does with expired certificates.
#[derive(Debug)]
struct AnyClient;

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
