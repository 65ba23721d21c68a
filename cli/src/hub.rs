//! Which hub a command asks, with which token. Used by every online command.

mod settings;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use kedge_api::client::{Certificate, Client, Url};

use crate::error::UsageError;
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

    /// A PEM file with the authorities that may have issued the hub's certificate
    #[arg(long, value_name = "FILE", global = true, help_heading = "Hub")]
    ca: Option<PathBuf>,
}

/// A token is some 90 bytes.
const MAX_TOKEN: u64 = 4096;
impl HubArgs {
    /// For a command that may also work without a hub; no address: the one of `kedge login`.
    pub fn of(hub: &str, token_file: Option<PathBuf>, ca: Option<PathBuf>) -> HubArgs {
        HubArgs { hub: Some(hub.to_owned()).filter(|hub| !hub.is_empty()), token_file, ca }
    }

    pub fn open(&self) -> Result<Client> {
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
        connect(&url, token, ca.as_deref())
    }
}

/// Without a file of certificates the hub's has to be one that this machine believes.
pub fn connect(url: &str, token: String, ca: Option<&Path>) -> Result<Client> {
    let base = parse(url)?;
    let certificates = ca.map(certificates).transpose()?;
    Ok(Client::new(base, token, certificates, concat!("kedge/", env!("CARGO_PKG_VERSION")))?)
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, UsageError> {
    let unreadable = |error: &dyn std::error::Error| {
        UsageError::new(format!("{} can't be used: {error}", path.display()), "it should hold certificates in PEM")
    };
    let text = fs::read(path).map_err(|error| unreadable(&error))?;
    Certificate::from_pem_bundle(&text).map_err(|error| unreadable(&error))
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
