//! What a HostWorkload may touch: nothing, but its own folders, its own units and its own user, and what its HostNamespace allows beyond.
//! It is root's power in an application team's hands, so what isn't known is refused, with the rule and the way out. Pure; the
//! agent asks before it applies, `kedge validate` before anything is published.

mod drop_in;
pub mod judge;
pub mod namespace;
pub mod path;
mod refusal;
pub mod tenant;
#[cfg(test)]
mod tests;
pub mod unit_file;
pub mod unit_name;

use kedge_model::wire::Digest;

pub use refusal::{Refusal, UnitLine};
pub use tenant::Tenant;

/// What a path is to a tenant that may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file in its folders, or where the namespace allows it.
    Plain,
    /// A unit's file or drop-in.
    Unit {
        unit: String,
        /// The platform team named the unit: its content is theirs to answer for.
        named: bool,
    },
}

/// The agent itself, in any spelling that a path, a deb or a unit has for it.
const AGENT: &str = "kedge-agent";
/// Our own drop-in's name: systemd reads drop-ins in the order of their names, and the last one counts.
pub const DROP_IN: &str = "zzz-kedge.conf";
/// setuid, setgid and sticky.
const SPECIAL: u32 = 0o7000;
/// Writable by group or others.
const SHARED: u32 = 0o022;

/// Where an assignment's platform configuration is on a host.
pub fn settings_of(assignment: &str) -> String {
    format!("/etc/kedge/workloads/{assignment}")
}

impl Tenant {
    /// Where the platform configuration is, and a workload's own files for units to read.
    pub fn settings(&self) -> String {
        settings_of(&self.assignment)
    }

    /// Whether a file or artifact may be at this path.
    pub fn check_path(&self, path: &str) -> Result<Place, Refusal> {
        path::check(path)?;
        let settings = self.settings();
        if path::is_agents(path) && !path::is_below(path, &settings) {
            return Err(format!("`{path}` belongs to the agent itself, and nothing allows that").into());
        }
        if path::is_below(path, &settings) {
            return match path.rsplit('/').next().unwrap_or_default().starts_with("platform-config.") {
                true => Err(Refusal::new(
                    format!("`{path}` is the platform's configuration"),
                    "write another file beside it",
                )),
                false => Ok(Place::Plain),
            };
        }
        if let Some(place) = self.check_unit_path(path)? {
            return Ok(place);
        }
        let own = self.given.folders.iter().any(|folder| path::is_below(path, &folder.path));
        if own || self.allows_path(path) {
            return Ok(Place::Plain);
        }
        Err(Refusal::new(
            format!("`{path}` is outside of the workload's folders ({})", self.folders()),
            self.way_out("paths", path),
        ))
    }

    /// A path in systemd's folders: a unit's file or drop-in; none: not such a path.
    fn check_unit_path(&self, path: &str) -> Result<Option<Place>, Refusal> {
        let Some(below) = path::below_systemd(path) else { return Ok(None) };
        if !path::is_below(path, path::UNITS) && !self.allows_path(path) {
            let reason = format!("`{path}` is where the host's own units are");
            return Err(Refusal::new(reason, format!("a workload's are in {}", path::UNITS)));
        }
        let (unit, drop_in) = match below.split_once('/') {
            None => (below, None),
            Some((folder, file)) => match folder.strip_suffix(".d") {
                Some(unit) if !file.contains('/') && file.ends_with(".conf") => (unit, Some(file)),
                _ if self.allows_path(path) => return Ok(Some(Place::Unit { unit: folder.to_owned(), named: true })),
                _ => {
                    let reason = format!("`{path}` isn't the file of a unit");
                    return Err(Refusal::new(reason, self.way_out("paths", path)));
                }
            },
        };
        if drop_in.is_some_and(|name| name >= DROP_IN) {
            return Err(Refusal::new(
                format!("`{path}` would be read after the agent's own drop-in, {DROP_IN}"),
                "give yours another name",
            ));
        }
        match self.check_unit(unit) {
            Err(_) if self.allows_path(path) && !path::is_agents(path) && unit_name::check(unit).is_ok() => {}
            other => other?,
        }
        Ok(Some(Place::Unit { unit: unit.to_owned(), named: self.names_unit(unit) }))
    }

    /// Whether a unit is its own or allowed.
    pub fn check_unit(&self, name: &str) -> Result<(), Refusal> {
        unit_name::check(name)?;
        if unit_name::is(name, AGENT) {
            return Err(format!("`{name}` is the agent itself, and nothing allows that").into());
        }
        if self.owns_unit(name) || self.names_unit(name) {
            return Ok(());
        }
        // Named like the assignment all the same.
        if unit_name::is_systems(name) && name.starts_with(&self.assignment) {
            let reason = format!("the host has a unit `{name}`: units by such names are systemd's");
            return Err(Refusal::new(reason, "give the workload or its deployment target another name"));
        }
        Err(Refusal::new(
            format!(
                "the unit `{name}` isn't the workload's own (`{0}.service`, `{0}-….timer`, `{0}@….service`)",
                self.assignment
            ),
            self.way_out("units", name),
        ))
    }

    /// By its name alone.
    pub fn owns_unit(&self, name: &str) -> bool {
        unit_name::is_own(name, &self.assignment)
    }

    /// The platform team allowed it by name.
    pub fn names_unit(&self, name: &str) -> bool {
        self.given.allow.units.iter().any(|allowed| unit_name::fits(name, allowed))
    }

    /// A deb of the host's apt sources.
    pub fn check_deb(&self, name: &str) -> Result<(), Refusal> {
        let plain = self.check_deb_name(name)?;
        match self.given.allow.debs.iter().any(|allowed| allowed == name || allowed == plain) {
            true => Ok(()),
            false => Err(Refusal::new(
                format!("the deb `{plain}` isn't on the namespace's list"),
                self.way_out("debs", plain),
            )),
        }
    }

    /// A deb that is a file of the tenant's: its scripts run as root and its name is whatever the tenant wrote, so its content counts.
    /// Without a name, which only the file itself says, that is all that is checked.
    pub fn check_deb_file(&self, name: Option<&str>, file: &str, digest: &Digest) -> Result<(), Refusal> {
        if let Some(name) = name {
            self.check_deb_name(name)?;
        }
        let hex = digest.hex();
        match self.given.allow.deb_files.contains(&hex) {
            true => Ok(()),
            false => Err(Refusal::new(
                format!(
                    "the deb file `{}` isn't on the namespace's list, which has files by digest",
                    file.escape_debug()
                ),
                self.way_out("debFiles", &hex),
            )),
        }
    }

    /// The name without an architecture.
    fn check_deb_name<'n>(&self, name: &'n str) -> Result<&'n str, Refusal> {
        let plain = name.split(':').next().unwrap_or_default();
        if plain == AGENT {
            return Err(format!("the deb `{name}` is the agent itself, and nothing allows that").into());
        }
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.');
        let fits = plain.len() >= 2 && plain.bytes().all(letters) && plain.as_bytes()[0].is_ascii_alphanumeric();
        if !fits || name.len() > 200 || !name[plain.len()..].bytes().all(|b| b == b':' || letters(b)) {
            return Err(format!("`{}` can't be a deb's name", name.escape_debug()).into());
        }
        Ok(plain)
    }

    /// Whose a file may be, and how open: its own user's, and root's for units only.
    pub fn check_access(&self, path: &str, place: &Place, owner: Option<&str>, mode: u32) -> Result<(), Refusal> {
        if mode & SPECIAL != 0 {
            let reason = format!("`{path}` has the mode {mode:04o}: setuid, setgid and sticky files are never allowed");
            return Err(reason.into());
        }
        let is_unit = matches!(place, Place::Unit { .. });
        if is_unit && mode & SHARED != 0 {
            return Err(Refusal::new(
                format!("`{path}` has the mode {mode:04o}: a unit's file is writable by root alone"),
                "use \"0644\"",
            ));
        }
        let Some(owner) = owner else { return Ok(()) };
        let (user, group) = owner.split_once(':').map_or((owner, None), |(user, group)| (user, Some(group)));
        let (own_user, own_group) = if is_unit { ("root", "root") } else { (self.user.as_str(), self.group.as_str()) };
        if user == own_user && group.is_none_or(|group| group == own_group) {
            return Ok(());
        }
        let rule = if is_unit { "a unit's file belongs to root" } else { "files belong to the namespace's own user" };
        let reason = format!("`{path}` can't belong to `{}`: {rule} (`{own_user}`)", owner.escape_debug());
        Err(Refusal::new(reason, "leave `owner` out"))
    }

    /// A folder of the namespace, or a place that the platform team allowed.
    pub(crate) fn is_given(&self, path: &str) -> bool {
        let own = self.given.folders.iter().any(|folder| path::is_below(path, &folder.path));
        own || self.allows_path(path) || path::is_below(path, &self.settings())
    }

    fn allows_path(&self, path: &str) -> bool {
        self.given.allow.paths.iter().any(|allowed| path::is_below(path, allowed))
    }

    fn folders(&self) -> String {
        let folders = self.given.folders.iter().map(|folder| folder.path.clone());
        folders.chain([self.settings()]).collect::<Vec<_>>().join(", ")
    }

    /// Who may change it, and where.
    pub fn way_out(&self, list: &str, what: &str) -> String {
        format!("the platform team can add `{what}` to `allow.{list}` of HostNamespace `{}`", self.namespace)
    }
}
