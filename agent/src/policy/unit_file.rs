//! A unit's file or drop-in that a workload brings. systemd reads it as root, so only settings whose whole effect is on the workload
//! itself are taken; a unit that needs more is one that the platform team allows by name.

mod lines;
mod settings;

use super::Tenant;
use lines::Line;
use settings::{Rule, rule};

/// Targets that a unit may want, be wanted by, or stand before: reaching them changes nothing that runs.
const TARGETS: [&str; 18] = [
    "basic.target",
    "default.target",
    "graphical.target",
    "local-fs.target",
    "multi-user.target",
    "network-online.target",
    "network-pre.target",
    "network.target",
    "nss-lookup.target",
    "nss-user-lookup.target",
    "paths.target",
    "remote-fs.target",
    "slices.target",
    "sockets.target",
    "sysinit.target",
    "time-set.target",
    "time-sync.target",
    "timers.target",
];
/// What every unit that ends properly stands before, and conflicts with.
const SHUTDOWN: &str = "shutdown.target";
/// Below it a port is the host's.
const FIRST_PORT: u16 = 1024;
/// What is shown of a value.
const SHOWN: usize = 80;

/// What the file may not say, each in a sentence.
pub fn check(text: &str, path: &str, tenant: &Tenant) -> Vec<String> {
    if text.contains('\0') {
        return vec![format!("`{path}` has a NUL character")];
    }
    let mut wrong = Vec::new();
    let mut section = String::new();
    for (number, line) in lines::read(text) {
        let problem = match line {
            Line::Section(name) => {
                section = name;
                None
            }
            Line::Setting { key, value } => check_setting(&section, &key, &value, tenant),
            Line::Other(text) => Some(format!("`{}` is neither a section nor a setting", short(&text))),
        };
        wrong.extend(problem.map(|problem| format!("{path}:{number}: {problem}")));
    }
    wrong
}

fn check_setting(section: &str, key: &str, value: &str, tenant: &Tenant) -> Option<String> {
    let words = || value.split_whitespace();
    let own = |word: &str| is_own(word, tenant);
    let common = |word: &str| own(word) || TARGETS.contains(&word);
    let ending = |word: &str| word == SHUTDOWN;
    let (fits, because) = match rule(section, key) {
        Rule::Free => (true, String::new()),
        Rule::Unknown => (false, "isn't a setting that a workload's own unit may have".to_owned()),
        Rule::Program => (!is_privileged(value), "with `+` or `!` would run with root's power".to_owned()),
        Rule::User => (value == tenant.user, format!("must be the namespace's user `{}`, or be left out", tenant.user)),
        Rule::Group => {
            (value == tenant.group, format!("must be the namespace's group `{}`, or be left out", tenant.group))
        }
        Rule::Slice => {
            (value == tenant.slice, format!("must be the namespace's slice `{}`, or be left out", tenant.slice))
        }
        Rule::Needs => (words().all(common), "may name the workload's own units and the usual targets only".to_owned()),
        Rule::Before => (
            words().all(|word| common(word) || ending(word)),
            "may name the workload's own units and the usual targets only".to_owned(),
        ),
        Rule::Own => (
            words().all(|word| own(word) || (key == "Conflicts" && ending(word))),
            "would start, stop or stand for another's unit".to_owned(),
        ),
        Rule::One(allowed) => {
            (allowed.iter().any(|word| word.eq_ignore_ascii_case(value)), format!("can only be {}", shown(allowed)))
        }
        Rule::AtLeastZero => (value.parse::<i32>().is_ok_and(|number| number >= 0), "can't be below 0".to_owned()),
        Rule::Output => (
            is_output(value),
            "can only be `journal`, `null`, `inherit` or `socket`: systemd opens files as root".to_owned(),
        ),
        Rule::Settings => (
            is_settings(value, tenant),
            format!("is read by root, so it must be in {} or in `allow.paths`", tenant.settings()),
        ),
        Rule::Folder => (
            words().all(|word| is_own_folder(word, tenant)),
            format!(
                "must be `{0}`, `{0}-…` or below it: systemd gives the folder to the unit's user",
                tenant.assignment
            ),
        ),
        Rule::Listen => (
            is_listen(value, tenant),
            format!("must be a port from {FIRST_PORT} on, or a socket below /run/{}", tenant.assignment),
        ),
    };
    let way_out = "allow the unit by name in `allow.units` of HostNamespace";
    (!fits).then(|| {
        format!(
            "`{}={}` {because}; or the platform team can {way_out} `{}`",
            short(key),
            short(value),
            tenant.namespace
        )
    })
}

/// Whether one of its commands, which `;` separates, begins with a prefix that keeps root's rights.
fn is_privileged(value: &str) -> bool {
    let words = std::iter::once(";").chain(value.split_whitespace());
    let mut begins = false;
    words.into_iter().any(|word| {
        let privileged = begins && word.trim_start_matches(['@', '-', ':', '|', '"', '\'']).starts_with(['+', '!']);
        // A prefix may stand alone before its program.
        begins = word == ";" || (begins && word.chars().all(|c| "@-:|".contains(c)));
        privileged
    })
}

/// A unit of the workload; `%i` and the like are filled in by systemd, behind a name that is already its own.
fn is_own(word: &str, tenant: &Tenant) -> bool {
    let plain = word.replace('%', "_");
    super::unit_name::check(&plain).is_ok() && (tenant.owns_unit(&plain) || tenant.names_unit(word))
}

fn is_output(value: &str) -> bool {
    matches!(
        value,
        "" | "inherit" | "null" | "journal" | "syslog" | "journal+console" | "syslog+console" | "socket" | "data"
    ) || value.starts_with("fd:")
}

/// In a folder that only root changes: elsewhere a symlink could be put under systemd's feet.
fn is_settings(value: &str, tenant: &Tenant) -> bool {
    let path = value.strip_prefix('-').unwrap_or(value);
    if path.is_empty() {
        return true;
    }
    let allowed =
        tenant.given.allow.paths.iter().chain([&tenant.settings()]).any(|folder| super::path::is_below(path, folder));
    let in_own_folder = tenant.given.folders.iter().any(|folder| super::path::is_below(path, &folder.path));
    super::path::check(path).is_ok() && allowed && !in_own_folder && !path.contains(['%', '*', '?', '['])
}

fn is_own_folder(word: &str, tenant: &Tenant) -> bool {
    let first = word.split('/').next().unwrap_or_default();
    let is_plain = super::path::check(&format!("/{word}")).is_ok() && !word.contains([':', '%']);
    let is_own =
        first.strip_prefix(tenant.assignment.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    is_plain && is_own && !super::path::is_agents(&format!("/{word}"))
}

fn is_listen(value: &str, tenant: &Tenant) -> bool {
    let port = value.rsplit(':').next().unwrap_or_default();
    let is_port = port.parse::<u16>().is_ok_and(|port| port >= FIRST_PORT);
    let is_socket = value.strip_prefix("/run/").is_some_and(|rest| is_own_folder(rest, tenant));
    value.is_empty() || is_socket || (is_port && !value.starts_with(['/', '@']))
}

fn shown(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| if word.is_empty() { "empty".to_owned() } else { format!("`{word}`") })
        .collect::<Vec<_>>()
        .join(", ")
}

fn short(text: &str) -> String {
    text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}
