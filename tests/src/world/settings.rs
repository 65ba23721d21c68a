//! The text of a hub's configuration file, from the few things in which tests differ.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::lab::hub::Places;

/// What a test may set; everything else is the hub's default.
#[derive(Debug, Clone)]
pub struct Settings {
    pub control_plane: Option<String>,
    /// None: `keys` in the data folder. Several hubs share one.
    pub keys: Option<PathBuf>,
    /// None: SQLite in the data folder.
    pub database: Option<String>,
    pub poll: String,
    pub hosts: Vec<String>,
    pub webhook_secret: Option<PathBuf>,
    pub credentials: Vec<Credential>,
    pub forges: Vec<Forge>,
    /// Environments that publish by pull request.
    pub by_pull_request: Vec<String>,
    /// Requests per second of a token and of an address: tests look often.
    pub rate: u32,
    /// The address that agents are told to use, with the hub's port; none: where the hub listens.
    pub agents_address: Option<IpAddr>,
    /// How long an idle poll is held.
    pub wait: String,
    /// Further lines of the tables `[api]`, `[agents]` and `[packages]`.
    pub api: Vec<String>,
    pub agents: Vec<String>,
    pub packages: Vec<String>,
    /// Further lines at the end.
    pub more: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Credential {
    pub prefix: String,
    pub username: Option<String>,
    pub secret_file: PathBuf,
    /// That it serves beside the platform.
    pub workspaces: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Forge {
    pub prefix: String,
    pub kind: &'static str,
}

impl Settings {
    pub fn new(control_plane: &str) -> Settings {
        Settings {
            control_plane: Some(control_plane.to_owned()),
            keys: None,
            database: None,
            // Longer than any test: what is seen sooner came by a webhook.
            poll: "1h".to_owned(),
            hosts: Vec::new(),
            webhook_secret: None,
            credentials: Vec::new(),
            forges: Vec::new(),
            by_pull_request: Vec::new(),
            rate: 100_000,
            agents_address: None,
            wait: "20s".to_owned(),
            api: Vec::new(),
            agents: Vec::new(),
            packages: Vec::new(),
            more: Vec::new(),
        }
    }

    pub fn text(&self, places: &Places) -> String {
        let mut text = String::new();
        let mut line = |what: String| writeln!(text, "{what}").unwrap();
        line(format!("data = {}", quoted(&places.data)));
        if let Some(keys) = &self.keys {
            line(format!("keys = {}", quoted(keys)));
        }
        line(format!("[api]\nlisten = \"{}\"", places.api));
        line(format!("rate_per_token = {0}\nrate_per_address = {0}", self.rate));
        self.api.iter().for_each(|more| line(more.clone()));
        let address = SocketAddr::new(self.agents_address.unwrap_or(places.agents.ip()), places.agents.port());
        line(format!(
            "[agents]\nlisten = \"{}\"\naddress = \"https://{address}\"\nwait = \"{}\"",
            places.agents, self.wait
        ));
        self.agents.iter().for_each(|more| line(more.clone()));
        if let Some(url) = &self.database {
            line(format!("[database]\nurl = {url:?}"));
        }
        line(format!("[git]\npoll = {:?}\nhosts = {:?}", self.poll, self.hosts));
        if let Some(url) = &self.control_plane {
            line(format!("control_plane = {url:?}"));
        }
        if let Some(path) = &self.webhook_secret {
            line(format!("webhook_secret_file = {}", quoted(path)));
        }
        for Credential { prefix, username, secret_file, workspaces } in &self.credentials {
            line(format!("[[git.credentials]]\nprefix = {prefix:?}\nsecret_file = {}", quoted(secret_file)));
            line("for = \"platform\"".to_owned());
            if !workspaces.is_empty() {
                line(format!("workspaces = {workspaces:?}"));
            }
            if let Some(username) = username {
                line(format!("username = {username:?}"));
            }
        }
        for Forge { prefix, kind } in &self.forges {
            line(format!("[[git.forges]]\nprefix = {prefix:?}\nkind = {kind:?}"));
        }
        for environment in &self.by_pull_request {
            line(format!("[environments.{environment}]\npublish = \"pull-request\""));
        }
        line("[packages]".to_owned());
        self.packages.iter().for_each(|more| line(more.clone()));
        self.more.iter().for_each(|more| line(more.clone()));
        text
    }
}

/// Paths of the lab are plain text, so that Rust's quotes are TOML's.
fn quoted(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}
