//! The hub of `up`: its configuration, its ports on loopback, its start and its end.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use kedge_api::client::Client;

use super::error::UpError;
use super::place::Place;
use super::program::{Program, Programs, how_it_ended};
use super::signals::Signals;
use crate::hub::{connect, read_token};

/// A hub that serves.
#[derive(Debug)]
pub(super) struct LocalHub {
    program: Program,
    ports: Ports,
    token_file: PathBuf,
    /// The folder that stays when `up` ends.
    left: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    api: u16,
    agents: u16,
}

/// Keys, database and the first look at Git are made before it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Answers under way are finished.
const END_WITHIN: Duration = Duration::from_secs(10);
/// Between the choice of a port and its use somebody else may take it.
const TRIES: usize = 3;

/// Git is local, so a look costs nothing.
const POLL: &str = "1s";
/// A promise is short, so that an agent that was killed is soon Unknown.
const WAIT: &str = "5s";

impl LocalHub {
    /// Starts it and waits until it is ready; none when a signal came first.
    pub fn start(programs: &Programs, place: &mut Place, signals: &Signals) -> Result<Option<LocalHub>> {
        for attempt in 1.. {
            let ports = Ports::choose(place)?;
            place.change(|made| (made.api_port, made.agents_port) = (Some(ports.api), Some(ports.agents)))?;
            let config = place.path().join("hub.toml");
            fs::write(&config, settings(place, ports)).map_err(UpError::file(&config))?;
            let log = place.path().join("hub.log");
            let arguments: [OsString; 3] = ["serve".into(), "--config".into(), config.into()];
            let program = Program::start(&programs.hub, &arguments, place.path(), &log)?;
            let token_file = place.path().join("hub").join("platform-token");
            let left = place.stays().then(|| place.path().to_owned());
            let mut hub = LocalHub { program, ports, token_file, left };
            match hub.await_ready(signals) {
                Ok(true) => return Ok(Some(hub)),
                Ok(false) => return Ok(None),
                // Another program took the port meanwhile.
                Err(UpError::HubEnded { log, .. }) if attempt < TRIES && log.contains("in use") => {
                    place.change(|made| (made.api_port, made.agents_port) = (None, None))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The address of the page and the API.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.api)
    }

    /// Where agents reach it.
    pub fn agents_address(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.agents)
    }

    pub fn token_file(&self) -> &Path {
        &self.token_file
    }

    /// Its API, as the platform team.
    pub fn api(&self) -> Result<Client> {
        connect(&self.address(), read_token(&self.token_file)?, None)
    }

    /// An error when it has ended.
    pub fn check(&mut self) -> Result<(), UpError> {
        match self.program.ended() {
            None => Ok(()),
            Some(status) => {
                let (how, log) = (how_it_ended(status), self.program.last_lines());
                Err(UpError::HubEnded { how, log, left: self.left.clone() })
            }
        }
    }

    pub fn end(self) {
        self.program.ask_to_end();
        self.program.await_end(Instant::now() + END_WITHIN);
    }

    fn await_ready(&mut self, signals: &Signals) -> Result<bool, UpError> {
        let until = Instant::now() + READY_WITHIN;
        loop {
            self.check()?;
            if answers(self.ports.api) {
                // A folder from before persons has the platform team's token under its old name.
                let old = self.token_file.with_file_name("admin-token");
                if !self.token_file.exists() && old.exists() {
                    self.token_file = old;
                }
                if self.token_file.exists() {
                    return Ok(true);
                }
            }
            if Instant::now() > until {
                let log = self.program.last_lines();
                return Err(UpError::HubSlow { seconds: READY_WITHIN.as_secs(), log, left: self.left.clone() });
            }
            if signals.came(LOOK_AGAIN) {
                return Ok(false);
            }
        }
    }
}

impl Ports {
    /// Those of the last run if they are free, else any.
    fn choose(place: &Place) -> Result<Ports, UpError> {
        let take = |wanted: Option<u16>| {
            let bind = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            wanted.and_then(|port| bind(port).ok()).map_or_else(|| bind(0), Ok)
        };
        let no_port = |source| UpError::NoPort { source };
        // Both are held until both are chosen: they are never the same.
        let (api, agents) =
            (take(place.made().api_port).map_err(no_port)?, take(place.made().agents_port).map_err(no_port)?);
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port()).map_err(no_port);
        Ok(Ports { api: port(&api)?, agents: port(&agents)? })
    }
}

/// Whether the hub says that it is ready.
fn answers(port: u16) -> bool {
    use std::io::{Read as _, Write as _};
    let ask = || -> std::io::Result<bool> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = std::net::TcpStream::connect_timeout(&address, READY_WITHIN)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(&head == b"HTTP/1.1 200")
    };
    ask().unwrap_or(false)
}

/// TOML's basic strings are JSON's, but for DEL, which no sane path has.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.display().to_string()).to_string()
}

fn settings(place: &Place, ports: Ports) -> String {
    let data = quoted(&place.path().join("hub"));
    let control_plane = quoted(&place.platform().join("control-plane.git"));
    format!(
        "# Written by `kedge up` at each start.\n\
         data = {data}\n\n\
         [api]\nlisten = \"127.0.0.1:{}\"\nrate_per_token = 1000\nrate_per_address = 1000\n\n\
         [agents]\nlisten = \"127.0.0.1:{agents}\"\naddress = \"https://127.0.0.1:{agents}\"\nwait = \"{WAIT}\"\n\n\
         [git]\ncontrol_plane = {control_plane}\npoll = \"{POLL}\"\n",
        ports.api,
        agents = ports.agents,
    )
}
