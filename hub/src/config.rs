//! The hub's one TOML file as values. Read by `run`; unknown keys are refused and every error is reported with its line.

mod destination;
pub mod parse;
pub mod problem;
mod reader;
pub mod show;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kedge_hub_types::events::EventKind;

pub use parse::Flags;
pub use problem::{ConfigError, ConfigProblem};

use crate::connections::proxies::Proxies;

/// Everything a hub can be told. `packaging/hub.toml` explains each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Keys, database, mirrors and packages live below it.
    pub data: PathBuf,
    /// The folder of the private keys. Default: `keys` below `data`; several hubs have the same files in it.
    pub keys: PathBuf,
    pub api: Api,
    pub agents: Agents,
    pub metrics: MetricsListener,
    pub database: Database,
    pub git: Git,
    pub environments: BTreeMap<String, Environment>,
    pub packages: Packages,
    pub history: History,
    pub events: Vec<Destination>,
}

/// `/api/v1`, the page, webhooks, health, metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    pub listen: SocketAddr,
    /// Certificate chain and key (PEM files). Without them plain HTTP: on loopback, or behind a proxy.
    pub tls: Option<TlsFiles>,
    /// Plain HTTP on an address that others reach must be asked for.
    pub allow_plain: bool,
    /// Requests per second of one token, and of one address without a token.
    pub rate_per_token: u32,
    pub rate_per_address: u32,
    /// Where people reach it, when that isn't the listener itself: `https://kedge.example.com`.
    pub public_url: Option<String>,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Proxies,
}

/// A listener of its own for `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsListener {
    /// None: `/metrics` is on the API's, and needs a token.
    pub listen: Option<SocketAddr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// `/agent/v1`, always mutual TLS with the hub's own authority.
#[derive(Clone, Debug, PartialEq)]
pub struct Agents {
    pub listen: SocketAddr,
    /// The address in join tokens; its host is in the server's certificate.
    pub address: String,
    /// Further names and addresses for the server's certificate.
    pub names: Vec<String>,
    /// How long a poll is held without news.
    pub wait: Duration,
    /// Between two polls in the traffic profile `low`.
    pub low_interval: Duration,
    pub certificate_lifetime: Duration,
    /// After so long without a sign of life a person lets a cluster in again; none: never.
    pub longest_silence: Option<Duration>,
    /// Environments whose clusters may be silent for ever.
    pub unlimited_silence: Vec<String>,
    /// More connections than this are refused.
    pub max_connections: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// `sqlite:PATH` or `postgres://…`.
    pub url: String,
    /// The file with the password of a `postgres://` address, so that the address holds no secret.
    pub password_file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Git {
    /// The control-plane repository: https URL, ssh address or path. None: the hub serves what it has.
    pub control_plane: Option<String>,
    pub branch: String,
    pub poll: Duration,
    /// Another interval for single repositories, by URL.
    pub poll_of: BTreeMap<String, Duration>,
    /// Hosts beside the control plane's own from which repositories that others name may be fetched.
    pub hosts: Vec<String>,
    pub credentials: Vec<Credential>,
    pub forges: Vec<Forge>,
    /// The file with the secret of `POST /hooks/git`; without it the hook is off.
    pub webhook_secret_file: Option<PathBuf>,
    /// Name and address of the hub's commits.
    pub author_name: String,
    pub author_email: String,
}

/// Sent only to addresses that begin with the prefix, and only for those whom it serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Credential {
    pub prefix: String,
    /// It fetches what the platform team names, and pushes.
    pub platform: bool,
    /// It fetches what application teams of these workspaces name.
    pub workspaces: Vec<String>,
    /// For basic authentication; with a token alone most servers take any name.
    pub username: Option<String>,
    /// The file that holds the token or password.
    pub secret_file: Option<PathBuf>,
    /// For ssh: the private key's file.
    pub ssh_key_file: Option<PathBuf>,
}

/// A server with pull requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Forge {
    /// Repositories whose URL begins so are on it.
    pub prefix: String,
    pub kind: ForgeKind,
    /// The REST API's base; default: made from the prefix.
    pub api: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeKind {
    GitHub,
    Gitea,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    pub publish: PublishMode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishMode {
    #[default]
    Direct,
    PullRequest,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Packages {
    /// Default: `packages` below `data`; several hubs share one.
    pub folder: Option<PathBuf>,
    /// What nobody needs is kept so long.
    pub keep: Duration,
    /// Hosts from which artifacts may be fetched.
    pub hosts: Vec<String>,
    pub kustomize: PathBuf,
    pub helm: PathBuf,
    /// The socket of a separate renderer; then this machine's programs aren't used.
    pub renderer: Option<PathBuf>,
}

/// How much of what happened is kept; whole days go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    pub keep: Duration,
    /// Bytes in the database, with indexes.
    pub max_size: u64,
}

/// Where events go.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    /// For the log, metrics and people; how far it got is remembered by it.
    pub name: String,
    pub url: String,
    /// The file with the secret that its events are signed with.
    pub secret_file: PathBuf,
    pub kinds: Vec<EventKind>,
    /// Empty: all.
    pub environments: Vec<String>,
}

/// People and programs on this machine; another address must be asked for, with TLS.
const API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7480);
/// Agents come from everywhere, and nobody gets in without a certificate or a token.
const AGENTS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 7443);
/// Below the five minutes after which routers begin to forget a silent connection, and long enough that an idle cluster costs less
/// than 10 MB a month.
const WAIT: Duration = Duration::from_secs(4 * 60);
/// For links that are paid by the byte: each contact is a handshake of some kilobytes, so a month costs less than 1 MB.
const LOW_INTERVAL: Duration = Duration::from_secs(4 * 60 * 60);
/// Renewed at two thirds, so that an agent may be away for a month and is still let in.
const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(90 * 86_400);
/// A host that nobody heard for a year is one that somebody should look at before it is let in again.
const LONGEST_SILENCE: Duration = Duration::from_secs(365 * 24 * 3600);
/// Ten thousand agents for one hub is the goal; beyond this memory is at risk.
const MAX_CONNECTIONS: usize = 20_000;
/// A person's script; a program that needs more should watch.
const RATE_PER_TOKEN: u32 = 100;
/// Enough to log in; too little to guess.
const RATE_PER_ADDRESS: u32 = 20;
/// Webhooks make it immediate; this is for servers without them.
const POLL: Duration = Duration::from_secs(30);
/// What a rollback or a forgotten agent may still ask for.
const KEEP: Duration = Duration::from_secs(30 * 86_400);
/// A quarter: what people look back at, and compare with the one before.
const HISTORY_KEEP: Duration = Duration::from_secs(90 * 86_400);
/// Some four million entries; ten thousand quiet clusters for a quarter, and no disk is filled by a busy day.
const HISTORY_SIZE: u64 = 2_000_000_000;

impl Config {
    /// What a hub does that was told nothing but where its data is.
    pub fn default_at(data: &Path) -> Config {
        Config {
            data: data.to_owned(),
            keys: data.join("keys"),
            api: Api {
                listen: API,
                tls: None,
                allow_plain: false,
                rate_per_token: RATE_PER_TOKEN,
                rate_per_address: RATE_PER_ADDRESS,
                public_url: None,
                trusted_proxies: Proxies::default(),
            },
            metrics: MetricsListener::default(),
            agents: Agents {
                listen: AGENTS,
                address: format!("https://{}:{}", hostname(), AGENTS.port()),
                names: Vec::new(),
                wait: WAIT,
                low_interval: LOW_INTERVAL,
                certificate_lifetime: CERTIFICATE_LIFETIME,
                longest_silence: Some(LONGEST_SILENCE),
                unlimited_silence: Vec::new(),
                max_connections: MAX_CONNECTIONS,
            },
            database: Database { url: sqlite_url(&data.join("hub.db")), password_file: None },
            git: Git {
                control_plane: None,
                branch: "main".to_owned(),
                poll: POLL,
                poll_of: BTreeMap::new(),
                hosts: Vec::new(),
                credentials: Vec::new(),
                forges: Vec::new(),
                webhook_secret_file: None,
                author_name: "Kedge hub".to_owned(),
                author_email: "kedge-hub@localhost".to_owned(),
            },
            environments: BTreeMap::new(),
            packages: Packages {
                folder: None,
                keep: KEEP,
                hosts: Vec::new(),
                kustomize: PathBuf::from("kustomize"),
                helm: PathBuf::from("helm"),
                renderer: None,
            },
            history: History { keep: HISTORY_KEEP, max_size: HISTORY_SIZE },
            events: Vec::new(),
        }
    }

    /// Where packages are.
    pub fn packages_folder(&self) -> PathBuf {
        self.packages.folder.clone().unwrap_or_else(|| self.data.join("packages"))
    }

    /// The names in the certificate of the agents' listener: the address' own host first.
    pub fn server_names(&self) -> Vec<String> {
        let mut names: Vec<String> = host_of(&self.agents.address).into_iter().collect();
        for name in self.agents.names.iter().chain(["localhost", "127.0.0.1", "::1"].map(str::to_owned).iter()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

impl Api {
    /// Browsers reach it by TLS, ours or a proxy's: cookies and browsers may insist on it.
    pub fn is_secure(&self) -> bool {
        self.tls.is_some() || self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }
}

impl Database {
    /// The address to connect to, with the password from its file.
    pub fn connection_url(&self) -> Result<String, std::io::Error> {
        let Some(file) = &self.password_file else { return Ok(self.url.clone()) };
        let password = std::fs::read_to_string(file)?;
        let password = percent_encoding::utf8_percent_encode(password.trim_end(), percent_encoding::NON_ALPHANUMERIC);
        Ok(match self.url.split_once("://").map(|(scheme, rest)| (scheme, rest.split_once('@'))) {
            Some((scheme, Some((user, place)))) => format!("{scheme}://{user}:{password}@{place}"),
            _ => self.url.clone(),
        })
    }
}

/// Where data is when nobody says: the system's place for root, the user's own otherwise.
pub fn default_data() -> PathBuf {
    let of_user = || {
        let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
        Some(base.join("kedge-hub"))
    };
    let system = PathBuf::from("/var/lib/kedge-hub");
    if nix::unistd::geteuid().is_root() { system } else { of_user().unwrap_or(system) }
}

/// The path as an address: `?`, `#` and `%` would mean something else.
fn sqlite_url(path: &Path) -> String {
    const SPECIAL: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS.add(b' ').add(b'?').add(b'#').add(b'%');
    format!("sqlite:{}", percent_encoding::utf8_percent_encode(&path.to_string_lossy(), SPECIAL))
}

/// `https://host:port/…` → `host`, without the brackets of an IPv6 address.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let uri: http::Uri = address.parse().ok()?;
    Some(uri.host()?.trim_matches(['[', ']']).to_owned())
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
