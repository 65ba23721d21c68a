//! The hub as a command sees it: which one, with which token, and what it answers. Used by every online command.

mod answer;
mod pages;
mod settings;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use anyhow::Result;
use reqwest::blocking::{Client, RequestBuilder, Response};
use reqwest::{Method, Url};
use serde_json::Value;

use crate::error::UsageError;
pub use answer::{Answer, HubError};
pub use pages::Pages;
pub use settings::Settings;

/// Which hub, and who asks. Without these: KEDGE_HUB and KEDGE_TOKEN, then what `kedge login` stored.
#[derive(Clone, Debug, clap::Args)]
pub struct HubArgs {
    /// The hub's address [default: KEDGE_HUB, then the one of `kedge login`]
    #[arg(long, value_name = "URL", global = true, help_heading = "Hub")]
    hub: Option<String>,

    /// A file with the access token [default: KEDGE_TOKEN, then the one of `kedge login`]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Hub")]
    token_file: Option<PathBuf>,

    /// A file with the certificates that the hub's certificate may come from (PEM)
    #[arg(long, value_name = "FILE", global = true, help_heading = "Hub")]
    ca: Option<PathBuf>,
}

/// A hub and a token.
#[derive(Debug)]
pub struct Hub {
    client: Client,
    base: Url,
    token: String,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the hub holds a watch.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);
/// The largest file over a thin link.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// A token is some 90 bytes.
const MAX_TOKEN: u64 = 4096;
/// How often a request that is told to wait is sent again.
const TRIES: usize = 4;
/// The longest wait between two of them.
const MAX_PAUSE_S: u64 = 15;

impl HubArgs {
    /// For a command that may also work without a hub; no address: the one of `kedge login`.
    pub fn of(hub: &str, token_file: Option<PathBuf>, ca: Option<PathBuf>) -> HubArgs {
        HubArgs { hub: Some(hub.to_owned()).filter(|hub| !hub.is_empty()), token_file, ca }
    }

    pub fn open(&self) -> Result<Hub> {
        let stored = Settings::load()?;
        let url = self.hub.clone().or_else(|| env::var("KEDGE_HUB").ok().filter(|url| !url.is_empty()));
        let same_hub = url.is_none() || stored.as_ref().is_some_and(|stored| Some(&stored.hub) == url.as_ref());
        let stored = stored.filter(|_| same_hub);
        let Some(url) = url.or_else(|| stored.as_ref().map(|stored| stored.hub.clone())) else {
            return Err(UsageError::new("no hub is known", "log in: kedge login URL, or give --hub URL").into());
        };
        let token = match (&self.token_file, env::var("KEDGE_TOKEN").ok().filter(|token| !token.is_empty())) {
            (Some(file), _) => read_token(file)?,
            (None, Some(token)) => token.trim().to_owned(),
            (None, None) => stored.as_ref().map(|stored| stored.token.clone()).ok_or_else(|| {
                let message = format!("there is no access token for the hub at {url}");
                UsageError::new(message, "log in: kedge login URL, or give --token-file FILE")
            })?,
        };
        let ca = self.ca.clone().or_else(|| stored.as_ref().and_then(|stored| stored.ca.clone()));
        Hub::new(&url, token, ca.as_deref())
    }
}

impl Hub {
    pub fn new(url: &str, token: String, ca: Option<&Path>) -> Result<Hub> {
        let base = parse(url)?;
        provide_tls();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("kedge/", env!("CARGO_PKG_VERSION")));
        if let Some(path) = ca {
            let unreadable = |error: &dyn std::error::Error| {
                UsageError::new(
                    format!("{} can't be used: {error}", path.display()),
                    "it should hold certificates in PEM",
                )
            };
            let text = fs::read(path).map_err(|error| unreadable(&error))?;
            let certificates = reqwest::Certificate::from_pem_bundle(&text).map_err(|error| unreadable(&error))?;
            builder = builder.tls_certs_only(certificates);
        }
        Ok(Hub { client: builder.build()?, base, token })
    }

    pub fn address(&self) -> &str {
        self.base.as_str()
    }

    /// `GET` with parameters; those without a value are left out.
    pub fn get(&self, path: &[&str], parameters: &[(&str, Option<String>)]) -> Result<Answer> {
        let mut url = self.url(path)?;
        for (name, value) in parameters {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        self.send(|| self.client.request(Method::GET, url.clone()))
    }

    pub fn post(&self, path: &[&str], body: &Value) -> Result<Answer> {
        let url = self.url(path)?;
        let text = body.to_string();
        self.send(|| {
            self.client.request(Method::POST, url.clone()).header("content-type", "application/json").body(text.clone())
        })
    }

    /// `GET` of something large: the answer is read by the caller, as it comes.
    pub fn download(&self, path: &[&str], parameters: &[(&str, Option<String>)]) -> Result<Response> {
        let mut url = self.url(path)?;
        for (name, value) in parameters {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        let sent = self.client.request(Method::GET, url).bearer_auth(&self.token).send();
        let response = sent.map_err(|error| HubError::unreachable(self.address(), error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Answer::read(self.address(), response)?.check(self.address())?;
        Err(HubError::Foreign { hub: self.address().to_owned(), status: 200 }.into())
    }

    /// `POST` of a file.
    pub fn upload(&self, path: &[&str], bytes: Vec<u8>) -> Result<Answer> {
        let url = self.url(path)?;
        self.send(|| {
            let request = self.client.request(Method::POST, url.clone()).timeout(UPLOAD_TIMEOUT);
            request.header("content-type", "application/vnd.kedge.bundle").body(bytes.clone())
        })
    }

    pub fn delete(&self, path: &[&str]) -> Result<Answer> {
        let url = self.url(path)?;
        self.send(|| self.client.request(Method::DELETE, url.clone()))
    }

    /// Names of objects may hold slashes and more: each part is one step of the path.
    fn url(&self, path: &[&str]) -> Result<Url> {
        if path.contains(&"") {
            return Err(UsageError::new("a name or an id is empty", "is a variable of a script not set?").into());
        }
        // They would be steps up in a path, whoever wrote them.
        if let Some(dots) = path.iter().find(|part| matches!(**part, "." | ".." | "")) {
            let message = format!("`{dots}` can't be the name of anything at the hub");
            return Err(UsageError::new(message, "`kedge get clusters` and its like list the names").into());
        }
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(["api", "v1"]).extend(path),
            Err(()) => return Err(UsageError::new("the hub's address has no path", "it begins with https://").into()),
        };
        Ok(url)
    }

    fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Answer> {
        let mut tries = 0;
        loop {
            tries += 1;
            let sent = request().bearer_auth(&self.token).send();
            let response = sent.map_err(|error| HubError::unreachable(self.address(), error))?;
            let answer = Answer::read(self.address(), response)?;
            match answer.pause() {
                // Told to come back: a busy hub, or a database that is away for a moment.
                Some(seconds) if tries < TRIES => {
                    std::thread::sleep(Duration::from_secs(seconds.clamp(1, MAX_PAUSE_S)));
                }
                _ => return Ok(answer.check(self.address())?),
            }
        }
    }
}

/// The text of a file, or of stdin for `-`.
pub fn read_token(file: &Path) -> Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(MAX_TOKEN).read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(MAX_TOKEN).read_to_string(&mut text))
    };
    let name = if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() };
    read.map_err(|error| {
        UsageError::new(format!("the token can't be read from {name}: {error}"), "is that the file?")
    })?;
    let token = text.trim().to_owned();
    if token.starts_with("kedge-join-") {
        let hint = "a join token is for agents; ask an administrator for an access token: kedge access create";
        return Err(UsageError::new(format!("{name} holds a join token, not an access token"), hint).into());
    }
    if token.is_empty() || token.contains(char::is_whitespace) {
        let hint = "an access token is one word that begins with kedge_";
        return Err(UsageError::new(format!("{name} holds no access token"), hint).into());
    }
    Ok(token)
}

fn parse(url: &str) -> Result<Url> {
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
    let parsed = Url::parse(&with_scheme).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let Some(url) = parsed.filter(|url| url.username().is_empty() && url.password().is_none()) else {
        let hint = "it is like https://hub.example:7480, without a user or a password";
        return Err(UsageError::new(format!("`{url}` isn't the address of a hub"), hint).into());
    };
    let local = url.host_str().is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    if url.scheme() == "http" && !local {
        crate::output::say("note: the access token goes over plain HTTP; whoever is in between can read it");
    }
    Ok(url)
}

fn provide_tls() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // An error means that the program has chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
