//! The hub's one TOML file as values. Read by `run`; unknown keys are refused and every error is reported with its line.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything a hub can be told. `packaging/hub.toml` explains each key.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Keys, database, mirrors and packages live below it.
    pub data: PathBuf,
    pub api: Api,
    pub agents: Agents,
    pub database: Database,
    pub git: Git,
    pub environments: BTreeMap<String, Environment>,
    pub packages: Packages,
}

/// `/api/v1`, webhooks, health, metrics.
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
    /// More connections than this are refused.
    pub max_connections: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// `sqlite:PATH` or `postgres://…`.
    pub url: String,
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

/// Sent only to addresses that begin with the prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct Credential {
    pub prefix: String,
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
}
