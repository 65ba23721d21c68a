//! A unit's file or drop-in that a workload brings. systemd reads it as root, so only settings whose whole effect is on the workload
//! itself are taken; a unit that needs more is one that the platform team allows by name.

mod folders;
mod lines;
mod looked;
mod mounts;
mod others;
mod program;
mod settings;
mod span;

use std::time::Duration;

use super::{Refusal, Tenant, UnitLine, path, unit_name};
pub use folders::claimed;
use lines::Line;
pub use others::named;
use settings::{Rule, rule};

/// Targets that a unit may want: reaching them changes nothing that runs.
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
/// Targets that a unit may be wanted by: they are reached last, and with the agent's drop-in they don't wait for it.
const LAST: [&str; 3] = ["default.target", "graphical.target", "multi-user.target"];
/// Targets of one type of units, which only those may be wanted by: a service there would stand in the way of a boot.
const OF_TYPE: [(&str, &str); 3] = [("paths.target", "path"), ("sockets.target", "socket"), ("timers.target", "timer")];
/// Types that a boot waits for before it starts any service.
const EARLY: [&str; 2] = ["path", "socket"];
/// What is there before those.
const EARLIER: [&str; 2] = ["local-fs.target", "sysinit.target"];
/// A start or a stop that takes longer needs the platform team's word.
const LONGEST: Duration = Duration::from_secs(3600);
/// Less than this systemd may take for no time at all, which it reads as no end.
const SHORTEST: Duration = Duration::from_millis(1);
const TIMERS: &str = "timers.target";
/// What every unit that ends properly stands before, and conflicts with.
const SHUTDOWN: &str = "shutdown.target";
/// Below it a port is the host's.
const FIRST_PORT: u16 = 1024;
/// What Kedge's own folders begin with, below `/var/lib`, `/run` and the like.
const RESERVED: &str = "kedge";
/// What is shown of a value.
const SHOWN: usize = 80;

/// What the file may not say.
pub fn check(text: &str, path: &str, tenant: &Tenant) -> Vec<Refusal> {
    if text.contains('\0') {
        return vec![format!("`{path}` has a NUL character").into()];
    }
    let mut wrong = Vec::new();
    let mut section = String::new();
    let kind = kind_of(path);
    for (number, line) in lines::read(text) {
        let refusal = match line {
            Line::Section(name) => {
                section = name;
                None
            }
            Line::Setting { key, value } => check_setting(&section, &key, &value, kind, tenant),
            Line::Other(text) => Some(format!("`{}` is neither a section nor a setting", short(&text)).into()),
        };
        let line = UnitLine { path: path.to_owned(), number };
        wrong.extend(refusal.map(|refusal| Refusal { line: Some(line), ..refusal }));
    }
    wrong
}

/// `service` of `x.service` and of its drop-ins.
fn kind_of(path: &str) -> &str {
    let unit = path::below_systemd(path).unwrap_or(path);
    let unit = unit.split_once('/').map_or(unit, |(folder, _)| folder.strip_suffix(".d").unwrap_or(folder));
    unit_name::split(unit).map_or("", |(_, kind)| kind)
}

fn check_setting(section: &str, key: &str, value: &str, kind: &str, tenant: &Tenant) -> Option<Refusal> {
    let words = || value.split_whitespace();
    let own = |word: &str| is_own(word, tenant);
    let common = |word: &str| own(word) || TARGETS.contains(&word);
    let ending = |word: &str| word == SHUTDOWN;
    let early = |word: &str| unit_name::split(word).is_some_and(|(_, kind)| EARLY.contains(&kind));
    let is_early = EARLY.contains(&kind);
    let of_type = |word: &str| own(word) || OF_TYPE.contains(&(word, kind));
    let last = |word: &str| of_type(word) || LAST.contains(&word);
    let (fits, because) = match rule(section, key) {
        Rule::Free => (true, String::new()),
        Rule::Unknown => (false, "isn't a setting that a workload's own unit may have".to_owned()),
        Rule::Program => {
            let problem = program::problem(value);
            (problem.is_none(), problem.unwrap_or_default().to_owned())
        }
        Rule::User => (value == tenant.user, format!("must be the namespace's user `{}`, or be left out", tenant.user)),
        Rule::Group => {
            (value == tenant.group, format!("must be the namespace's group `{}`, or be left out", tenant.group))
        }
        Rule::Slice => {
            (value == tenant.slice, format!("must be the namespace's slice `{}`, or be left out", tenant.slice))
        }
        Rule::Needs => (words().all(common), "may name the workload's own units and the usual targets only".to_owned()),
        Rule::WantedBy => (
            words().all(last),
            format!("may name the workload's own units and {} only: the host's boot waits for others", shown(&LAST)),
        ),
        Rule::Before => (
            words().all(|word| (of_type(word) && (is_early || !early(word))) || ending(word)),
            "may name the workload's own services, timers and targets only: the host's boot would wait for the unit"
                .to_owned(),
        ),
        Rule::After if is_early => (
            words().all(|word| (own(word) && early(word)) || EARLIER.contains(&word)),
            "would let the host's boot wait: of a socket or a path it may name the workload's own sockets and paths"
                .to_owned(),
        ),
        // timers.target waits for every timer.
        Rule::After if kind == "timer" => (
            words().all(|word| word != TIMERS && common(word)),
            format!("may name the workload's own units and the usual targets but {TIMERS}: that waits for all timers"),
        ),
        Rule::After => (true, String::new()),
        Rule::Mounts if is_early => (false, "would let the host's boot wait for a mount".to_owned()),
        Rule::Mounts => (words().all(|word| mounts::fits(word, tenant)), mounts::BECAUSE.to_owned()),
        Rule::Entered => (mounts::fits(value, tenant), mounts::BECAUSE.to_owned()),
        Rule::Time => (
            span::read(value).is_some_and(|time| (SHORTEST..=LONGEST).contains(&time)),
            "must have an end within 1 h, such as `90s`".to_owned(),
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
            match is_reserved(tenant) {
                true => format!("would be a folder of Kedge's own: names that begin with `{RESERVED}` are"),
                false => format!(
                    "must be `{0}` or a folder in it, such as `{0}/cache`: systemd gives it to the unit's user",
                    tenant.assignment
                ),
            },
        ),
        Rule::Listen => (
            is_listen(value, tenant),
            match is_reserved(tenant) {
                true => format!("must be a port from {FIRST_PORT} on: /run/{} is Kedge's own", tenant.assignment),
                false => format!("must be a port from {FIRST_PORT} on, or a socket in /run/{}", tenant.assignment),
            },
        ),
        Rule::PidFile => (
            is_pid_file(value, tenant),
            format!("is removed by root, so it must be a file in /run/{}", tenant.assignment),
        ),
        Rule::Looked => (
            looked::fits(value, tenant),
            "is looked at by root, so it must be in the namespace's folders, in `allow.paths`, or where everybody may look, \
             such as /usr and /dev"
                .to_owned(),
        ),
        Rule::AtLeast(millis) => (
            span::read(value).is_some_and(|span| span >= Duration::from_millis(millis)),
            format!("must be at least {}: below that systemd itself would be kept busy", shown_span(millis)),
        ),
        Rule::Within(least, most) => (
            value.parse::<u32>().is_ok_and(|number| (least..=most).contains(&number)),
            format!("must be a number from {least} to {most}: it is systemd or the journal that does the work"),
        ),
    };
    (!fits).then(|| {
        Refusal::new(
            format!("`{}={}` {because}", short(key), short(value)),
            format!(
                "the platform team can allow the unit by name in `allow.units` of HostNamespace `{}`",
                tenant.namespace
            ),
        )
    })
}

/// A unit of the workload. `%i` and the like are filled in by systemd, so they may only be in an instance's own part: what they make of
/// `<assignment>-%i.service` may be a unit of the assignment `<assignment>-x`.
fn is_own(word: &str, tenant: &Tenant) -> bool {
    let plain = word.replace('%', "_");
    let is_fixed = !word.split('@').next().unwrap_or_default().contains('%');
    unit_name::check(&plain).is_ok() && ((is_fixed && tenant.owns_unit(&plain)) || tenant.names_unit(word))
}

fn is_output(value: &str) -> bool {
    matches!(value, "" | "inherit" | "null" | "journal" | "syslog" | "socket" | "data") || value.starts_with("fd:")
}

/// In a folder that only root changes: elsewhere a symlink could be put under systemd's feet.
fn is_settings(value: &str, tenant: &Tenant) -> bool {
    let path = value.strip_prefix('-').unwrap_or(value);
    if path.is_empty() {
        return true;
    }
    let allowed =
        tenant.given.allow.paths.iter().chain([&tenant.settings()]).any(|folder| path::is_below(path, folder));
    let in_own_folder = tenant.given.folders.iter().any(|folder| path::is_below(path, &folder.path));
    path::check(path).is_ok() && allowed && !in_own_folder && is_literal(path)
}

/// By its exact name: `<assignment>-x` may be another assignment's. At most one folder deep: below that systemd, as root, would go through folders in which the tenant can put symlinks.
fn is_own_folder(word: &str, tenant: &Tenant) -> bool {
    let first = word.split('/').next().unwrap_or_default();
    let is_plain = path::check(&format!("/{word}")).is_ok() && !word.contains(':') && is_literal(word);
    let is_own = first == tenant.assignment;
    let is_shallow = word.split('/').count() <= 2;
    is_plain && is_shallow && is_own && !is_reserved(tenant)
}

/// Kedge's own programs have folders by these names.
fn is_reserved(tenant: &Tenant) -> bool {
    tenant.assignment.starts_with(RESERVED)
}

/// systemd removes whatever is there when the service has ended, so it is in the folder that only this workload has.
fn is_pid_file(value: &str, tenant: &Tenant) -> bool {
    let below = value.strip_prefix("/run/");
    value.is_empty() || below.is_some_and(|below| below.contains('/') && is_own_folder(below, tenant))
}

fn shown_span(millis: u64) -> String {
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

fn is_listen(value: &str, tenant: &Tenant) -> bool {
    let port = value.rsplit(':').next().unwrap_or_default();
    let is_port = port.parse::<u16>().is_ok_and(|port| port >= FIRST_PORT);
    let is_socket = value.strip_prefix("/run/").is_some_and(|rest| rest.contains('/') && is_own_folder(rest, tenant));
    value.is_empty() || (is_literal(value) && (is_socket || (is_port && !value.starts_with(['/', '@']))))
}

/// systemd takes it letter by letter: no specifier, pattern, quote or escape, behind which there may be another path.
fn is_literal(text: &str) -> bool {
    let is_address = text.starts_with('[') && !text.contains('/');
    !text.contains(['%', '*', '?', '{', '}', '\\', '"', '\'', '$', '~']) && (is_address || !text.contains('['))
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
