//! A hub as a program asks it: blocking, with a token, one method for each operation. Used by the CLI. Owns the connection; the
//! operations of a noun are in the noun's file below.

mod access_tokens;
mod answer;
mod clusters;
mod error;
mod imports;
mod lists;
mod operations;
mod overviews;
mod pages;
mod people;
mod plans;
mod promotions;
mod rollouts;

use std::sync::Once;
use std::time::Duration;

use reqwest::Method;
use reqwest::blocking::{Client as Http, RequestBuilder};
use serde::Serialize;

pub use answer::Answer;
pub use error::ClientError;
pub use lists::ListKind;
pub use pages::{List, Pages};
pub use reqwest::blocking::Response;
pub use reqwest::{Certificate, Url};

/// Parameters of a query; those without a value are left out.
pub type Parameters<'a> = [(&'a str, Option<String>)];

/// A hub and a token.
pub struct Client {
    http: Http,
    base: Url,
    token: String,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the hub holds a watch.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);
/// The largest file over a thin link.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How often a request that is told to wait is sent again.
const TRIES: usize = 4;
/// The longest wait between two of them.
const MAX_PAUSE_S: u64 = 15;
/// What a bundle says it is.
const BUNDLE: &str = "application/vnd.kedge.bundle";

impl Client {
    /// Without certificates of its own it believes what this machine believes.
    pub fn new(
        base: Url,
        token: String,
        certificates: Option<Vec<Certificate>>,
        agent: &str,
    ) -> Result<Client, ClientError> {
        provide_tls();
        let mut builder = Http::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(agent);
        if let Some(certificates) = certificates {
            builder = builder.tls_certs_only(certificates);
        }
        let http = builder.build().map_err(|error| ClientError::unreachable(base.as_str(), error))?;
        Ok(Client { http, base, token })
    }

    pub fn address(&self) -> &str {
        self.base.as_str()
    }

    fn get<T>(&self, path: &[&str], parameters: &Parameters<'_>) -> Result<Answer<T>, ClientError> {
        let url = self.query(path, parameters)?;
        self.send(|| self.http.request(Method::GET, url.clone()))
    }

    fn post<T>(&self, path: &[&str], body: &impl Serialize) -> Result<Answer<T>, ClientError> {
        self.write(Method::POST, path, body)
    }

    fn patch<T>(&self, path: &[&str], body: &impl Serialize) -> Result<Answer<T>, ClientError> {
        self.write(Method::PATCH, path, body)
    }

    fn write<T>(&self, method: Method, path: &[&str], body: &impl Serialize) -> Result<Answer<T>, ClientError> {
        let url = self.url(path)?;
        let text = serde_json::to_value(body).map_err(|error| ClientError::unwritable(&error))?.to_string();
        self.send(|| {
            let request = self.http.request(method.clone(), url.clone());
            request.header("content-type", "application/json").body(text.clone())
        })
    }

    fn delete(&self, path: &[&str]) -> Result<(), ClientError> {
        let url = self.url(path)?;
        self.send::<()>(|| self.http.request(Method::DELETE, url.clone())).map(drop)
    }

    /// Something large: the answer is read by the caller, as it comes.
    fn download(&self, path: &[&str], parameters: &Parameters<'_>) -> Result<Response, ClientError> {
        let url = self.query(path, parameters)?;
        let sent = self.http.request(Method::GET, url).bearer_auth(&self.token).send();
        let response = sent.map_err(|error| ClientError::unreachable(self.address(), error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        answer::Received::read(self.address(), response)?.check::<()>(self.address())?;
        Err(ClientError::Foreign { hub: self.address().to_owned(), status: 200 })
    }

    fn upload<T>(&self, path: &[&str], bytes: &[u8]) -> Result<Answer<T>, ClientError> {
        let url = self.url(path)?;
        self.send(|| {
            let request = self.http.request(Method::POST, url.clone()).timeout(UPLOAD_TIMEOUT);
            request.header("content-type", BUNDLE).body(bytes.to_vec())
        })
    }

    fn query(&self, path: &[&str], parameters: &Parameters<'_>) -> Result<Url, ClientError> {
        let mut url = self.url(path)?;
        for (name, value) in parameters {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        Ok(url)
    }

    /// Names of objects may hold slashes and more: each part is one step of the path.
    fn url(&self, path: &[&str]) -> Result<Url, ClientError> {
        if path.contains(&"") {
            return Err(ClientError::BadName {
                message: "a name or an id is empty".to_owned(),
                hint: "is a variable of a script not set?",
            });
        }
        // They would be steps up in a path, whoever wrote them.
        if let Some(dots) = path.iter().find(|part| matches!(**part, "." | "..")) {
            return Err(ClientError::BadName {
                message: format!("`{dots}` can't be the name of anything at the hub"),
                hint: "`kedge get clusters` and its like list the names",
            });
        }
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(["api", "v1"]).extend(path),
            Err(()) => {
                return Err(ClientError::BadName {
                    message: "the hub's address has no path".to_owned(),
                    hint: "it begins with https://",
                });
            }
        };
        Ok(url)
    }

    fn send<T>(&self, request: impl Fn() -> RequestBuilder) -> Result<Answer<T>, ClientError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let sent = request().bearer_auth(&self.token).send();
            let response = sent.map_err(|error| ClientError::unreachable(self.address(), error))?;
            let received = answer::Received::read(self.address(), response)?;
            match received.pause() {
                // Told to come back: a busy hub, or a database that can't be reached for a moment.
                Some(seconds) if tries < TRIES => {
                    std::thread::sleep(Duration::from_secs(seconds.clamp(1, MAX_PAUSE_S)));
                }
                _ => return received.check(self.address()),
            }
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

fn provide_tls() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that the program has chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
