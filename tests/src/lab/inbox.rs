//! An HTTP address that takes everything and remembers it: what a webhook or a notification is sent to.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use ring::hmac;

use super::http::{Handler, Server, plain};

/// What was sent.
#[derive(Debug)]
pub struct Message {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The address and what arrived there.
#[derive(Debug)]
pub struct Inbox {
    server: Server,
    messages: Receiver<Message>,
}

impl Inbox {
    pub fn start() -> Inbox {
        let (sender, messages) = mpsc::channel();
        let sender = Arc::new(Mutex::new(sender));
        let handler: Handler = Arc::new(move |request| {
            let (head, body) = request.into_parts();
            let message =
                Message { method: head.method, path: head.uri.path().to_owned(), headers: head.headers, body };
            // Nobody reads any more: the test is over.
            let _ = sender.lock().unwrap().send(message);
            Box::pin(async { plain(200, "taken") })
        });
        Inbox { server: Server::start(handler), messages }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server.url())
    }

    /// The next message, in the order of arrival.
    pub fn next(&self, within: Duration) -> Message {
        self.messages.recv_timeout(within).unwrap_or_else(|_| panic!("nothing arrived within {within:?}"))
    }

    /// Whether nothing more has arrived.
    pub fn is_empty(&self) -> bool {
        self.messages.try_recv().is_err()
    }
}

impl Message {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap_or_default())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether `X-Hub-Signature-256` is this body's, with that secret.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        self.header("x-hub-signature-256") == signature(secret, &self.body)
    }
}

/// What GitHub and Gitea send as `X-Hub-Signature-256`.
pub fn signature(secret: &str, body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), body);
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}
