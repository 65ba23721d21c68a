//! One connection to the hub: TLS and HTTP/1.1 with as few bytes as they need. It belongs to whoever makes a request and is given
//! back when the answer is read to its end; dropped before, it is closed.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kedge_model::wire::WireProblem;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::address::Address;
use super::error::LinkError;

#[derive(Debug)]
pub struct Connection {
    address: Address,
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    /// It answered before: that it is closed now says nothing about the hub.
    used: bool,
}

/// What an exchange may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub head: Duration,
    pub body: Duration,
    pub answer: usize,
}

/// A request failed, and whether it is worth a fresh connection at once.
#[derive(Debug)]
pub struct Failed {
    pub error: LinkError,
    /// An idle connection had been closed by the other side.
    pub stale: bool,
}

/// Certificates and a few round trips.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(20);
/// The least that hyper takes: an answer's pieces are not larger.
const BUFFER: usize = 16 * 1024;
/// Answers have five headers.
const MAX_HEADERS: usize = 32;
/// A refusal is a sentence; so much of anything else is read to say what it is.
const MAX_REFUSAL: usize = 16 * 1024;
/// Of a page that isn't ours.
const MAX_SAID: usize = 80;
/// No hub says more than a day.
const MAX_RETRY_AFTER: u64 = 86_400;

impl Connection {
    pub async fn open(address: &Address, config: Arc<ClientConfig>) -> Result<Connection, LinkError> {
        let socket = address.connect().await?;
        let handshake = TlsConnector::from(config).connect(address.server_name()?, socket);
        let stream = match tokio::time::timeout(HANDSHAKE_WITHIN, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(of_tls(address, error)),
            Err(_) => return Err(address.slow("agree on a secure connection", HANDSHAKE_WITHIN)),
        };
        Connection::over(address, stream).await
    }

    /// Over a stream that is secure already.
    pub async fn over(address: &Address, stream: TlsStream<TcpStream>) -> Result<Connection, LinkError> {
        let made = http1::Builder::new()
            .max_buf_size(BUFFER)
            .max_headers(MAX_HEADERS)
            .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
            .await;
        let (sender, connection) = made.map_err(|error| broken(address, error))?;
        let driver = tokio::spawn(async move {
            // How it ended is told to whoever waits for an answer.
            _ = connection.await;
        });
        Ok(Connection { address: address.clone(), sender, driver, used: false })
    }

    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request; the answer's head.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        within: Duration,
    ) -> Result<Response<Incoming>, Failed> {
        let failed = |error| Failed { error, stale: false };
        let mut request = Request::builder().method(method).uri(path).header(HOST, self.address.to_string());
        if let Some(all) = request.headers_mut() {
            all.extend(headers);
        }
        let request = request.body(Full::new(body)).map_err(|error| failed(broken(&self.address, error)))?;
        let sent = async {
            self.sender.ready().await?;
            self.sender.send_request(request).await
        };
        match tokio::time::timeout(within, sent).await {
            Ok(Ok(answer)) => {
                self.used = true;
                Ok(answer)
            }
            Ok(Err(error)) => {
                let stale = self.used
                    && (error.is_canceled() || error.is_closed() || error.is_incomplete_message() || was_cut(&error));
                Err(Failed { error: of_http(&self.address, error), stale })
            }
            Err(_) => Err(failed(self.address.slow("answer", within))),
        }
    }

    /// A whole exchange of JSON: the answer's body, or why not.
    pub async fn post(&mut self, path: &str, body: Bytes, limits: Limits) -> Result<Bytes, Failed> {
        let answer = self.send(Method::POST, path, HeaderMap::new(), body, limits.head).await?;
        let failed = |error| Failed { error, stale: false };
        if answer.status() != StatusCode::OK {
            return Err(failed(refused(&self.address, answer).await));
        }
        read(&self.address, answer.into_body(), limits.answer, limits.body).await.map_err(failed)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Why an answer isn't 2xx. What isn't a refusal in JSON comes from somebody else.
pub async fn refused(address: &Address, answer: Response<Incoming>) -> LinkError {
    let status = answer.status();
    let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let body = match read(address, answer.into_body(), MAX_REFUSAL, HANDSHAKE_WITHIN).await {
        Ok(body) => body,
        Err(LinkError::TooLarge(_)) => Bytes::new(),
        Err(error) => return error,
    };
    match serde_json::from_slice::<WireProblem>(&body) {
        Ok(problem) => {
            let after = after.map(|seconds| Duration::from_secs(seconds.min(MAX_RETRY_AFTER)));
            LinkError::Refused { status: status.as_u16(), problem: harmless(problem), after }
        }
        Err(_) => LinkError::NotAHub { hub: address.to_string(), said: said(status, &body) },
    }
}

/// The body of an answer, up to a bound of bytes and time.
pub async fn read(address: &Address, body: Incoming, most: usize, within: Duration) -> Result<Bytes, LinkError> {
    match tokio::time::timeout(within, Limited::new(body, most).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(LinkError::TooLarge(most)),
        Ok(Err(source)) => Err(LinkError::Broken { hub: address.to_string(), source }),
        Err(_) => Err(address.slow("send its answer", within)),
    }
}

pub fn broken(address: &Address, error: impl Into<Box<dyn Error + Send + Sync>>) -> LinkError {
    LinkError::Broken { hub: address.to_string(), source: error.into() }
}

/// What an answer that isn't a hub's begins with.
pub fn said(status: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain: String = words.chars().filter(|letter| !letter.is_control()).take(MAX_SAID).collect();
    match plain.is_empty() {
        true => format!("it says {status}"),
        false => format!("it says {status}, `{plain}`"),
    }
}

/// Its words are shown on terminals and kept in documents.
fn harmless(problem: WireProblem) -> WireProblem {
    let plain = |text: String, most: usize| text.chars().filter(|letter| !letter.is_control()).take(most).collect();
    WireProblem {
        reason: plain(problem.reason, 64),
        message: plain(problem.message, 500),
        hint: problem.hint.map(|hint| plain(hint, 500)),
    }
}

pub(crate) fn of_tls(address: &Address, error: io::Error) -> LinkError {
    let hub = address.to_string();
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(source @ rustls::Error::InvalidCertificate(_)) => LinkError::WrongHub { hub, source: source.clone() },
        Some(source @ rustls::Error::AlertReceived(_)) => LinkError::Rejected { hub, source: source.clone() },
        Some(rustls::Error::InvalidMessage(_)) => LinkError::NotAHub { hub, said: "it doesn't speak TLS".to_owned() },
        _ => LinkError::Broken { hub, source: error.into() },
    }
}

/// With TLS 1.3 the hub judges our certificate after our side of the handshake is done.
fn of_http(address: &Address, error: hyper::Error) -> LinkError {
    match io_cause(&error).and_then(|io| io.get_ref()?.downcast_ref::<rustls::Error>()) {
        Some(source @ rustls::Error::AlertReceived(_)) => {
            LinkError::Rejected { hub: address.to_string(), source: source.clone() }
        }
        _ if error.is_parse() => LinkError::NotAHub { hub: address.to_string(), said: "it isn't HTTP".to_owned() },
        _ => broken(address, error),
    }
}

fn was_cut(error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    io_cause(error)
        .is_some_and(|io| matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

fn io_cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e io::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_others_say_is_shown_short_and_harmless(body in proptest::collection::vec(any::<u8>(), 0..4000)) {
            let text = said(StatusCode::BAD_GATEWAY, &body);
            prop_assert!(text.chars().count() <= MAX_SAID + 40);
            prop_assert!(!text.chars().any(char::is_control));
        }
    }

    #[test]
    fn a_proxys_page_is_shown_by_its_beginning() {
        let text = said(StatusCode::FORBIDDEN, b"<html>\n  <h1>Blocked</h1>\x1b[31m");
        assert_eq!(text, "it says 403 Forbidden, `<html> <h1>Blocked</h1>[31m`");
    }
}
