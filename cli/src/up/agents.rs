//! The agents of `up`: which there are, their folders, their start, and a look at those that have ended. A person kills one with its
//! `pid` file and asks for it again by touching the file `start` beside it.

mod plan;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use kedge_api::client::Client;
use kedge_api::join_tokens::JoinTokenRequest;

use super::error::UpError;
use super::hub::LocalHub;
use super::place::{Place, random};
use super::program::{Program, Programs, how_it_ended};
pub(super) use plan::Member;

/// All of them; running or not.
#[derive(Debug)]
pub(super) struct Agents {
    agents: Vec<Agent>,
    started: bool,
}

#[derive(Debug)]
struct Agent {
    member: Member,
    folder: PathBuf,
    program: Option<Program>,
}

/// Enough for every environment, cluster type and ring.
const USUAL: usize = 12;
/// The step under way ends; here it is short.
const END_WITHIN: Duration = Duration::from_secs(5);

impl Agents {
    /// As many as asked for, and never fewer than the folder has.
    pub fn plan(place: &Place, wanted: Option<usize>) -> Agents {
        let had = place.made().agents;
        let count = wanted.unwrap_or(if had == 0 { USUAL } else { had }).max(had);
        let agent = |member: Member| {
            let folder = place.path().join("agents").join(&member.name);
            Agent { member, folder, program: None }
        };
        Agents { agents: plan::members(count).into_iter().map(agent).collect(), started: false }
    }

    pub fn count(&self) -> usize {
        self.agents.len()
    }

    pub fn is_started(&self) -> bool {
        self.started
    }

    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.agents.iter().map(|agent| &agent.member)
    }

    /// Gives those that haven't joined a token, and starts all.
    pub fn start(&mut self, programs: &Programs, place: &mut Place, api: &Client, hub: &LocalHub) -> Result<()> {
        let count = self.agents.len();
        place.change(|made| made.agents = count)?;
        let mut groups: BTreeMap<(&str, &str, bool), Vec<&Agent>> = BTreeMap::new();
        for agent in &self.agents {
            agent.write_settings(hub)?;
            if !agent.has_joined() {
                let member = &agent.member;
                groups.entry((member.environment, member.cluster_type, member.canary)).or_default().push(agent);
            }
        }
        for ((environment, cluster_type, canary), agents) in groups {
            let request = JoinTokenRequest {
                environment: environment.to_owned(),
                cluster_type: cluster_type.to_owned(),
                labels: canary.then(|| ("ring".to_owned(), "canary".to_owned())).into_iter().collect(),
                site: None,
                uses: Some(agents.len() as u64),
                expires: None,
            };
            let made = api.create_join_token(&request)?.read()?;
            for agent in agents {
                agent.write_token(&made.token)?;
            }
        }
        for agent in &mut self.agents {
            agent.start(programs)?;
        }
        self.started = true;
        Ok(())
    }

    /// Who has ended since the last look, and whom a person wants back.
    pub fn look(&mut self, programs: &Programs) -> Result<Vec<String>, UpError> {
        let mut remarks = Vec::new();
        for agent in &mut self.agents {
            if let Some(status) = agent.program.as_mut().and_then(Program::ended) {
                agent.program = None;
                let name = &agent.member.name;
                remarks.push(format!(
                    "{name} has ended ({}); start it again: touch agents/{name}/start",
                    how_it_ended(status)
                ));
                agent.forget_id();
            }
            let wish = agent.folder.join("start");
            if agent.program.is_none() && self.started && fs::remove_file(&wish).is_ok() {
                agent.start(programs)?;
                remarks.push(format!("{} starts again", agent.member.name));
            }
        }
        Ok(remarks)
    }

    pub fn end(mut self) {
        let until = Instant::now() + END_WITHIN;
        let running: Vec<Program> = self.agents.iter_mut().filter_map(|agent| agent.program.take()).collect();
        running.iter().for_each(Program::ask_to_end);
        running.into_iter().for_each(|program| program.await_end(until));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.forget_id();
    }
}

impl Agent {
    fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// It uses its token up when it has joined.
    fn has_joined(&self) -> bool {
        !self.token().exists() && self.root().join("var/lib/kedge-agent").exists()
    }

    fn token(&self) -> PathBuf {
        self.root().join("etc/kedge/join-token")
    }

    fn write_settings(&self, hub: &LocalHub) -> Result<(), UpError> {
        let settings = self.root().join("etc/kedge");
        fs::create_dir_all(&settings).map_err(UpError::file(&settings))?;
        let machine = self.root().join("etc/machine-id");
        if !machine.exists() {
            write(&machine, &format!("{:016x}{:016x}\n", random(), random()))?;
        }
        let text = format!(
            "# Written by `kedge up` at each start.\nname = \"{}\"\nhub = \"{}\"\n",
            self.member.name,
            hub.agents_address()
        );
        write(&settings.join("agent.toml"), &text)
    }

    fn write_token(&self, token: &str) -> Result<(), UpError> {
        let path = self.token();
        write(&path, "")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(UpError::file(&path))?;
        write(&path, token)
    }

    fn start(&mut self, programs: &Programs) -> Result<(), UpError> {
        let root = self.root();
        let arguments: [OsString; 3] = ["run".into(), "--root".into(), root.clone().into()];
        // Checks of the sample are relative to the root.
        let program = Program::start(&programs.agent, &arguments, &root, &self.folder.join("log"))?;
        write(&self.folder.join("pid"), &format!("{}\n", program.id()))?;
        self.program = Some(program);
        Ok(())
    }

    /// A number that is somebody else's later must not be killed.
    fn forget_id(&self) {
        // Gone already is as good.
        let _ = fs::remove_file(self.folder.join("pid"));
    }
}

fn write(path: &Path, text: &str) -> Result<(), UpError> {
    fs::write(path, text).map_err(UpError::file(path))
}
