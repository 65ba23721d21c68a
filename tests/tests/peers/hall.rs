//! A hall: a plant's hub that is reached over a site's uplinks only, and boxes that are agents in networks of their own.

use std::time::{Duration, Instant};

use kedge_tests::lab::site::Site;
use kedge_tests::lab::{await_or_tell, stays_or_tell};
use kedge_tests::world::kedge::Run;
use kedge_tests::world::plant::{LINE, Plant};
use kedge_tests::world::policy::Policy;
use kedge_tests::world::settings::Settings;
use kedge_tests::world::{Database, SOON};
use serde_json::Value;

/// Finding each other, a state, content, an application and a status, on a busy machine.
pub const SETTLED: Duration = Duration::from_secs(120);

/// The parts, in the order in which they end.
pub struct Hall {
    pub plant: Plant,
    pub site: Site,
}

pub fn name(host: usize) -> String {
    format!("dev-{LINE}-{}", host + 1)
}

impl Hall {
    /// So many boxes that have joined and don't run; no uplink is plugged.
    pub fn start(hosts: usize) -> Option<Hall> {
        Hall::start_with(hosts, |_| {})
    }

    pub fn start_with(hosts: usize, change: impl FnOnce(&mut Settings)) -> Option<Hall> {
        Hall::make(hosts, None, change)
    }

    /// The same under a policy.
    pub fn start_under(hosts: usize, policy: &Policy) -> Option<Hall> {
        Hall::make(hosts, Some(policy), |_| {})
    }

    fn make(hosts: usize, policy: Option<&Policy>, change: impl FnOnce(&mut Settings)) -> Option<Hall> {
        let mut site = Site::start(hosts)?;
        let here = site.here();
        let mut plant = Plant::start_with(Database::Sqlite, policy, |settings, _| {
            settings.agents_address = Some(here);
            change(settings);
        })?;
        site.lead_to(plant.world.hub.places().agents);
        plant.add_site(&site, "dev", LINE, hosts);
        Some(Hall { plant, site })
    }

    /// Starts them all, these with an uplink.
    pub fn run(&mut self, uplinks: &[usize]) {
        uplinks.iter().for_each(|host| self.site.set_uplink(*host, true));
        self.plant.agents.iter_mut().for_each(|agent| agent.start_again());
    }

    /// A command of a box's own program.
    pub fn on(&self, host: usize, arguments: &[&str]) -> Run {
        let output = self.plant.agents[host].command(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Run { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// What a box's own `peers` says.
    pub fn peers(&self, host: usize) -> Value {
        serde_json::from_str(&self.on(host, &["peers", "-o", "json"]).stdout).unwrap_or_default()
    }

    /// Whether a box has heard of another by this name.
    pub fn knows(&self, host: usize, name: &str) -> bool {
        let peers = self.peers(host)["peers"].as_array().cloned().unwrap_or_default();
        peers.iter().any(|peer| peer["name"] == name)
    }

    /// Who carries for the site, as another box sees it.
    pub fn carrier_seen_by(&self, host: usize) -> Option<String> {
        let peers = self.peers(host);
        let uplink = peers["peers"].as_array()?.iter().find(|peer| peer["uplink"] == true)?;
        uplink["name"].as_str().map(str::to_owned)
    }

    /// Through whom the hub last heard of it.
    pub fn via(&self, host: usize) -> Option<String> {
        self.plant.seen(&name(host))["via"]["name"].as_str().map(str::to_owned)
    }

    /// Its sign of life may come some seconds after its document.
    pub fn await_via(&self, host: usize, by: usize) {
        self.await_so("the hub says who carries for it", SOON, |hall| hall.via(host) == Some(name(by)));
    }

    pub fn is_converged(&self, host: usize) -> bool {
        self.plant.condition(&name(host)) == "Converged"
    }

    /// How long it took.
    #[track_caller]
    pub fn await_so(&self, what: &str, within: Duration, mut look: impl FnMut(&Hall) -> bool) -> Duration {
        let began = Instant::now();
        await_or_tell(what, within, || self.story(), || look(self));
        began.elapsed()
    }

    #[track_caller]
    pub fn stays_so(&self, what: &str, during: Duration, mut look: impl FnMut(&Hall) -> bool) {
        stays_or_tell(what, during, || self.story(), || look(self));
    }

    #[track_caller]
    pub fn await_converged(&self, hosts: &[usize]) {
        let what = format!("{hosts:?} are Converged on the hub");
        self.await_so(&what, SETTLED, |hall| hosts.iter().all(|host| hall.is_converged(*host)));
    }

    #[track_caller]
    pub fn await_text(&self, hosts: &[usize], text: &str) {
        let shown: String = text.chars().take(20).collect();
        let runs = |hall: &Hall, host: &usize| hall.plant.text_on(&name(*host)).as_deref() == Some(text);
        self.await_so(&format!("{hosts:?} run {shown:?}"), SETTLED, |hall| hosts.iter().all(|host| runs(hall, host)));
    }

    fn story(&self) -> String {
        let agents = self.plant.agents.iter().enumerate().map(|(host, agent)| {
            let log = agent.log();
            let last: Vec<&str> = log.lines().rev().take(15).collect();
            format!("{}\n{}\n{}\n", agent.name(), self.on(host, &["peers"]).stdout, last.join("\n"))
        });
        agents.collect()
    }
}
