//! Paths that a workload or a namespace names: their plain form, and what is inside of what.

use super::{AGENT, unit_name};

/// Linux' limits.
const MAX_PATH: usize = 4000;
const MAX_PART: usize = 255;
/// Everything here but a workload's own folder is the agent's.
const SETTINGS: &str = "/etc/kedge";
/// Where an administrator's units are, and workloads'.
pub const UNITS: &str = "/etc/systemd/system";
/// Where systemd reads the system's units.
const UNIT_FOLDERS: [&str; 5] =
    [UNITS, "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system", "/usr/local/lib/systemd/system"];

/// Absolute and in its one plain form, so that comparing texts is comparing places.
pub fn check(path: &str) -> Result<(), String> {
    let shown: String = path.chars().take(200).flat_map(char::escape_debug).collect();
    let Some(below) = path.strip_prefix('/') else {
        return Err(format!("`{shown}` must be a path from `/`"));
    };
    if path.len() > MAX_PATH || path.chars().any(char::is_control) {
        return Err(format!("`{shown}` is too long for a path or has control characters"));
    }
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && part.len() <= MAX_PART;
    match below.split('/').all(is_plain) {
        true => Ok(()),
        false => Err(format!("`{shown}` must be written plainly, without `.`, `..` and doubled slashes")),
    }
}

/// Whether a plain path is that folder or something in it.
pub fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The agent's program, state, settings, units: by place, and by name wherever it is.
pub fn is_agents(path: &str) -> bool {
    let named =
        |part: &str| part == AGENT || part == ".kedge-agent" || unit_name::is(part.trim_end_matches(".d"), AGENT);
    is_below(path, SETTINGS) || path.split('/').any(named)
}

/// What stands behind systemd's folder.
pub fn below_systemd(path: &str) -> Option<&str> {
    let rest = UNIT_FOLDERS.iter().find_map(|folder| path.strip_prefix(folder)?.strip_prefix('/'))?;
    (!rest.is_empty()).then_some(rest)
}
