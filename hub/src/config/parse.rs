//! From the file's text to a `Config`, section by section, with every problem found. `Config::load` adds what only the
//! disk knows: whether the named files are there and who can read them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeTable;

use super::destination;
use super::problem::{ConfigError, ConfigProblem};
use super::reader::{At, Notes, Section};
use super::{
    Agents, Api, Config, Credential, Database, Environment, Forge, ForgeKind, Git, History, Packages, PublishMode,
    TlsFiles, default_data, host_of,
};
use crate::connections::proxies::{Network, Proxies};
use crate::private;
use crate::store::Backend;
use kedge_model::quantity::parse_duration;

/// What the command line says; it goes before the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub data: Option<PathBuf>,
    pub control_plane: Option<String>,
}

/// What reading a file came to.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Rendered warnings; the hub starts with them.
    pub warnings: Vec<String>,
}

/// Certificates of seconds are for tests; shorter ones would end before they arrive.
const SHORTEST_CERTIFICATE: Duration = Duration::from_secs(10);
/// A server that is asked more often than this thinks of an attack.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
/// Days go as a whole.
const SHORTEST_HISTORY: Duration = Duration::from_secs(86_400);
/// Less would not hold a busy hour.
const SMALLEST_HISTORY: u64 = 1_000_000;
/// An agent takes an answer within two seconds for that of a hub in trouble, and asks less often.
const SHORTEST_WAIT: Duration = Duration::from_secs(3);
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
const WAIT_REASON: &str = "agents take a quicker answer for that of a hub in trouble, and ask less often";
/// A file of settings; a larger one is something else.
const MAX_FILE: u64 = 1 << 20;

impl Config {
    /// The file's settings over the defaults.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        Ok(Config::load_with(path, &Flags::default())?.config)
    }

    pub fn load_with(path: &Path, flags: &Flags) -> Result<Loaded, ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
            return Err(failed(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it has more than 1 MiB")));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let base = std::path::absolute(path).map_err(failed)?;
        let mut notes = Notes { base: base.parent().unwrap_or(Path::new("/")).to_owned(), ..Notes::default() };
        let config = read(&text, flags, &mut notes);
        check_files(&mut notes);
        if config.database.url.starts_with("postgres") && holds_secret(&config.database.url) {
            check_own_mode(path, &text, &mut notes);
        }
        let name = path.display().to_string();
        notes.problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        let render = |problem: &ConfigProblem| problem.render(&name, &text);
        let warnings: Vec<String> = notes.problems.iter().filter(|problem| problem.warning).map(render).collect();
        let errors = notes.problems.iter().filter(|problem| !problem.warning).count();
        if errors > 0 {
            let mut report: String = notes.problems.iter().map(render).collect::<Vec<_>>().join("\n");
            let things = if errors == 1 { "1 error".to_owned() } else { format!("{errors} errors") };
            report.push_str(&format!("\n{name} has {things}"));
            return Err(ConfigError::Invalid { report });
        }
        Ok(Loaded { config, warnings })
    }

    /// Without a file: the defaults and the flags.
    pub fn of_flags(flags: &Flags) -> Config {
        let data = flags.data.clone().unwrap_or_else(default_data);
        let data = std::path::absolute(&data).unwrap_or(data);
        let mut config = Config::default_at(&data);
        config.git.control_plane = flags.control_plane.clone();
        config
    }
}

/// Reads the text; where something is wrong the default stays.
pub(super) fn read(text: &str, flags: &Flags, notes: &mut Notes) -> Config {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        notes.error(span, error.message().to_owned(), "");
    }
    let span = table.span();
    let mut file = Section::new(notes, "", span, table.into_inner());
    let written = file.path("data");
    let data = flags.data.clone().or(written).unwrap_or_else(default_data);
    let data = std::path::absolute(&data).unwrap_or(data);
    let mut config = Config::default_at(&data);
    if let Some(keys) = file.path("keys") {
        config.keys = keys;
    }
    if let Some(section) = file.section("api") {
        read_api(section, &mut config.api);
    }
    if let Some(section) = file.section("agents") {
        read_agents(section, &mut config.agents);
    }
    if let Some(mut section) = file.section("metrics") {
        config.metrics.listen = section.address("listen").map(|listen| listen.value);
        section.finish();
    }
    if let Some(section) = file.section("database") {
        read_database(section, &mut config.database);
    }
    if let Some(section) = file.section("git") {
        read_git(section, &mut config.git);
    }
    if let Some(section) = file.section("packages") {
        read_packages(section, &mut config.packages);
    }
    if let Some(section) = file.section("history") {
        read_history(section, &mut config.history);
    }
    let mut environments = BTreeMap::new();
    file.named("environments", |name, mut section| {
        const MODES: [(&str, PublishMode); 2] =
            [("direct", PublishMode::Direct), ("pull-request", PublishMode::PullRequest)];
        let publish = section.choice("publish", &MODES).unwrap_or_default();
        section.finish();
        environments.insert(name.to_owned(), Environment { publish });
    });
    config.environments = environments;
    let mut events = Vec::new();
    file.each("events", |section| events.extend(destination::read(section, &events)));
    config.events = events;
    file.finish();
    if let Some(control_plane) = &flags.control_plane {
        config.git.control_plane = Some(control_plane.clone());
    }
    config
}

fn read_api(mut section: Section<'_, '_>, api: &mut Api) {
    let listen = section.address("listen");
    if let Some(allow) = section.flag("allow_plain") {
        api.allow_plain = allow;
    }
    if let Some(rate) = section.number("rate_per_token", 1..=1_000_000) {
        api.rate_per_token = rate;
    }
    if let Some(rate) = section.number("rate_per_address", 1..=1_000_000) {
        api.rate_per_address = rate;
    }
    let public_url = section.filled("public_url");
    api.trusted_proxies = proxies(&mut section);
    if let Some(mut tls) = section.section("tls") {
        let certificate = tls.file("certificate", false);
        let key = tls.file("key", true);
        match (certificate, key) {
            (Some(certificate), Some(key)) => api.tls = Some(TlsFiles { certificate, key }),
            (None, _) => tls.missing("certificate", "name the PEM file with the certificate and its chain"),
            (_, None) => tls.missing("key", "name the PEM file with the certificate's key"),
        }
        tls.finish();
    }
    if let Some(url) = public_url {
        api.public_url = origin(&mut section, url, api.tls.is_some());
    }
    if let Some(listen) = listen {
        api.listen = listen.value;
        if !listen.value.ip().is_loopback() && api.tls.is_none() && !api.allow_plain {
            section.notes().error(
                listen.span,
                "tokens would cross the network in plain HTTP",
                "add [api.tls], listen on 127.0.0.1 behind a proxy, or set allow_plain = true if a proxy does TLS",
            );
        }
    }
    section.finish();
}

/// `https://kedge.example.com`, without anything after the host and its port: as browsers write an origin.
fn origin(section: &mut Section<'_, '_>, url: At<String>, tls: bool) -> Option<String> {
    let text = url.value.trim_end_matches('/');
    let uri = text.parse::<http::Uri>().ok().filter(|uri| uri.path() == "/" && uri.query().is_none());
    let scheme = uri.as_ref().and_then(|uri| uri.scheme_str());
    let host = uri.as_ref().and_then(http::Uri::host).filter(|host| !host.is_empty() && !text.contains('@'));
    match (scheme, host) {
        (Some("http"), Some(_)) if tls => {
            let hint = "write it with https; without a proxy the key isn't needed";
            section.notes().error(url.span, "`public_url` is http, and [api.tls] serves https", hint);
            None
        }
        (Some(scheme @ ("http" | "https")), Some(host)) => {
            let port = uri.as_ref().and_then(http::Uri::port_u16);
            let usual = if scheme == "https" { 443 } else { 80 };
            let port = port.filter(|port| *port != usual).map(|port| format!(":{port}")).unwrap_or_default();
            Some(format!("{scheme}://{}{port}", host.to_ascii_lowercase()))
        }
        _ => {
            let hint = "write \"https://kedge.example.com\", without a path";
            section.notes().error(url.span, "`public_url` is no address of a site", hint);
            None
        }
    }
}

fn proxies(section: &mut Section<'_, '_>) -> Proxies {
    let mut networks = Vec::new();
    for text in section.texts("trusted_proxies").unwrap_or_default() {
        match text.value.parse::<Network>() {
            Ok(network) => networks.push(network),
            Err(_) => section.notes().error(
                text.span,
                "this is no address and no network",
                "write \"10.0.0.5\" or \"10.0.0.0/24\"; names are not looked up",
            ),
        }
    }
    Proxies::new(networks)
}

fn read_agents(mut section: Section<'_, '_>, agents: &mut Agents) {
    if let Some(listen) = section.address("listen") {
        agents.listen = listen.value;
        let host = host_of(&agents.address).unwrap_or_default();
        agents.address = format!("https://{host}:{}", listen.value.port());
    }
    if let Some(address) = section.filled("address") {
        let text = address.value.trim_end_matches('/').to_owned();
        let uri = text.parse::<http::Uri>().ok().filter(|uri| {
            uri.scheme_str() == Some("https") && uri.host().is_some_and(|host| !host.is_empty()) && uri.path() == "/"
        });
        match uri {
            Some(_) if !text.contains('@') => agents.address = text,
            _ => section.notes().error(
                address.span,
                "`address` is no https address",
                "write \"https://hub.example.com:7443\"",
            ),
        }
    }
    for name in section.texts("names").unwrap_or_default() {
        let good = !name.value.is_empty() && !name.value.contains(['/', ':', ' '])
            || name.value.parse::<std::net::IpAddr>().is_ok();
        if good {
            agents.names.push(name.value);
        } else {
            section.notes().error(
                name.span,
                "this is no host's name or address",
                "write \"hub.example.com\" or \"10.0.0.5\"",
            );
        }
    }
    if let Some(wait) = section.duration_because("wait", SHORTEST_WAIT, WAIT_REASON) {
        agents.wait = wait;
    }
    if let Some(interval) = section.duration("low_interval", SHORTEST_INTERVAL) {
        agents.low_interval = interval;
    }
    if let Some(lifetime) = section.duration("certificate_lifetime", SHORTEST_CERTIFICATE) {
        agents.certificate_lifetime = lifetime;
    }
    if let Some(text) = section.filled("longest_silence") {
        match text.value.as_str() {
            "never" => agents.longest_silence = None,
            value => match parse_duration(value) {
                Ok(longest) if longest >= agents.certificate_lifetime => agents.longest_silence = Some(longest),
                Ok(_) => section.notes().error(
                    text.span,
                    "`longest_silence` is shorter than `certificate_lifetime`",
                    "a certificate that is still good is a sign of life: write at least as much, or \"never\"",
                ),
                Err(_) => {
                    section.notes().error(text.span, "`longest_silence` is no duration", "write \"365d\", or \"never\"")
                }
            },
        }
    }
    for environment in section.texts("unlimited_silence").unwrap_or_default() {
        agents.unlimited_silence.push(environment.value);
    }
    if let Some(most) = section.number("max_connections", 1..=1_000_000) {
        agents.max_connections = most as usize;
    }
    section.finish();
}

fn read_database(mut section: Section<'_, '_>, database: &mut Database) {
    if let Some(url) = section.filled("url") {
        let known = ["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| url.value.starts_with(scheme));
        if !known {
            section.notes().error(
                url.span,
                "`url` is neither SQLite nor PostgreSQL",
                "write \"sqlite:/var/lib/kedge-hub/hub.db\" or \"postgres://kedge@db.example.com/kedge\"",
            );
        } else if Backend::of(&url.value) == Backend::Sqlite && url.value.contains('?') {
            section.notes().error(url.span, "an SQLite address takes no options", "leave out what begins with `?`");
        } else {
            database.url = url.value;
        }
    }
    database.password_file = section.file("password_file", true);
    if database.password_file.is_some() && !database.url.contains('@') {
        let span = section.notes().files.last().map_or(0..0, |file| file.span.clone());
        section.notes().error(span, "`password_file` needs a user in `url`", "write \"postgres://USER@HOST/DATABASE\"");
    }
    section.finish();
}

fn read_git(mut section: Section<'_, '_>, git: &mut Git) {
    if let Some(address) = section.filled("control_plane") {
        match holds_secret(&address.value) {
            true => section.notes().error(
                address.span,
                "`control_plane` holds a password",
                "put it in a file and name that in [[git.credentials]]",
            ),
            false => git.control_plane = Some(on_disk(&address.value, &section.notes().base)),
        }
    }
    if let Some(branch) = section.filled("branch") {
        git.branch = branch.value;
    }
    if let Some(poll) = section.duration("poll", SHORTEST_POLL) {
        git.poll = poll;
    }
    git.poll_of = section.durations("poll_of", SHORTEST_POLL).into_iter().collect();
    git.hosts = hosts(&mut section);
    git.webhook_secret_file = section.file("webhook_secret_file", true);
    if let Some(name) = section.filled("author_name") {
        git.author_name = name.value;
    }
    if let Some(email) = section.filled("author_email") {
        git.author_email = email.value;
    }
    let mut credentials = Vec::new();
    section.each("credentials", |section| credentials.extend(read_credential(section)));
    git.credentials = credentials;
    let mut forges = Vec::new();
    section.each("forges", |section| forges.extend(read_forge(section)));
    git.forges = forges;
    section.finish();
}

fn read_credential(mut section: Section<'_, '_>) -> Option<Credential> {
    let prefix = prefix(&mut section);
    let (platform, workspaces) = serves(&mut section);
    let username = section.filled("username").map(|text| text.value);
    let secret_file = section.file("secret_file", true);
    let ssh_key_file = section.file("ssh_key_file", true);
    if secret_file.is_some() == ssh_key_file.is_some() {
        let span = section.span();
        section.notes().error(
            span,
            "a credential has either `secret_file` or `ssh_key_file`",
            "name the file with the token or password, or that of the private ssh key",
        );
    }
    section.finish();
    Some(Credential { prefix: prefix?, platform, workspaces, username, secret_file, ssh_key_file })
}

/// Whom a credential serves: the platform, workspaces, or both. Without a word it is the platform alone, so that no team
/// fetches another team's repository with it.
fn serves(section: &mut Section<'_, '_>) -> (bool, Vec<String>) {
    let platform = section.choice("for", &[("platform", true)]);
    let listed = section.texts("workspaces");
    let mut workspaces = Vec::new();
    for workspace in listed.iter().flatten() {
        if workspace.value.trim().is_empty() {
            let hint = "write the `workspace` of a WorkloadRegistration";
            section.notes().error(workspace.span.clone(), "this names no workspace", hint);
        } else {
            workspaces.push(workspace.value.clone());
        }
    }
    if platform.is_none() && listed.is_none() {
        let span = section.span();
        section.notes().warning(
            span,
            "this credential doesn't say whom it serves, so it serves the platform alone: repositories that applications name are fetched without it",
            "add `for = \"platform\"`, or `workspaces = [\"…\"]` for the teams whose sources it may fetch; or both",
        );
    }
    (platform.is_some() || listed.is_none(), workspaces)
}

fn read_forge(mut section: Section<'_, '_>) -> Option<Forge> {
    const KINDS: [(&str, ForgeKind); 2] = [("github", ForgeKind::GitHub), ("gitea", ForgeKind::Gitea)];
    let prefix = prefix(&mut section);
    let kind = section.choice("kind", &KINDS);
    let api = section.filled("api");
    let api = api.and_then(|api| {
        let good = api.value.starts_with("https://") || api.value.starts_with("http://");
        if !good {
            section.notes().error(api.span, "`api` is no address", "write \"https://git.example.com/api/v1\"");
        }
        good.then_some(api.value)
    });
    section.finish();
    Some(Forge { prefix: prefix?, kind: kind?, api })
}

/// The beginning of addresses.
fn prefix(section: &mut Section<'_, '_>) -> Option<String> {
    let Some(prefix) = section.filled("prefix") else {
        section.missing(
            "prefix",
            "write the beginning of the addresses that it is for: \"https://git.example.com/team/\"",
        );
        return None;
    };
    if holds_secret(&prefix.value) {
        section.notes().error(prefix.span, "`prefix` holds a password", "leave it out; the file named here has it");
        return None;
    }
    Some(prefix.value)
}

fn hosts(section: &mut Section<'_, '_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for host in section.texts("hosts").unwrap_or_default() {
        if host.value.is_empty() || host.value.contains(['/', '@', ' ', '*']) {
            section.notes().error(
                host.span,
                "this is no host",
                "write \"git.example.com\", with \":PORT\" if it has one",
            );
        } else {
            hosts.push(host.value);
        }
    }
    hosts
}

fn read_packages(mut section: Section<'_, '_>, packages: &mut Packages) {
    packages.folder = section.path("folder");
    if let Some(keep) = section.duration("keep", Duration::ZERO) {
        packages.keep = keep;
    }
    packages.hosts = hosts(&mut section);
    if let Some(program) = section.filled("kustomize") {
        packages.kustomize = PathBuf::from(program.value);
    }
    if let Some(program) = section.filled("helm") {
        packages.helm = PathBuf::from(program.value);
    }
    packages.renderer = section.path("renderer");
    section.finish();
}

fn read_history(mut section: Section<'_, '_>, history: &mut History) {
    if let Some(keep) = section.duration("keep", SHORTEST_HISTORY) {
        history.keep = keep;
    }
    if let Some(size) = section.bytes("max_size", SMALLEST_HISTORY) {
        history.max_size = size;
    }
    section.finish();
}

/// A relative path begins at the file's folder, like all others.
fn on_disk(address: &str, base: &Path) -> String {
    let is_path = !address.contains("://") && (address.starts_with(['.', '/']) || !address.contains(':'));
    if is_path { base.join(address).display().to_string() } else { address.to_owned() }
}

/// `https://user:password@host`; `git@host:path` holds none.
pub(super) fn holds_secret(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

fn check_files(notes: &mut Notes) {
    for file in std::mem::take(&mut notes.files) {
        let path = file.path.display();
        match std::fs::metadata(&file.path) {
            Err(error) => {
                notes.error(file.span, format!("{path} can't be read: {error}"), "make the file, or name another one")
            }
            Ok(found) if !found.is_file() => notes.error(file.span, format!("{path} is no file"), "name a file"),
            Ok(_) if std::fs::File::open(&file.path).is_err() => {
                notes.error(
                    file.span,
                    format!("{path} can't be opened by this user"),
                    "give the hub's user the right to read it",
                );
            }
            Ok(_) if file.secret && private::is_open_to_others(&file.path).unwrap_or(false) => {
                notes.error(file.span, format!("others can read {path}"), format!("chmod 600 {path}"));
            }
            Ok(_) => {}
        }
    }
}

/// A file with a password in it is a secret itself.
fn check_own_mode(path: &Path, text: &str, notes: &mut Notes) {
    if private::is_open_to_others(path).unwrap_or(false) {
        let start = text.find("postgres").unwrap_or(0);
        let hint =
            format!("put the password into a file and name it in `password_file`, or chmod 600 {}", path.display());
        notes.error(start..start, "others can read this file, and the database's address holds a password", hint);
    }
}
