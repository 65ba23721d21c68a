//! The drop-in that the agent puts beside a tenant's units: systemd reads it last, so it stands whatever the other files say.

use super::{Tenant, unit_name};

/// How long a boot or a shutdown waits for a unit, however long the unit itself may take.
const LONGEST_JOB: &str = "5min";

/// What `DefaultDependencies=` would add, but for one thing: with them a target waits for the units that it wants. Then a unit that comes
/// after another which itself comes after multi-user.target closes a cycle, and systemd leaves out one of its units at boot, whosever
/// it is. Without them nothing of the host ever waits for a tenant's unit.
const ORDER: &str = "DefaultDependencies=no\nConflicts=shutdown.target\nBefore=shutdown.target\n";
/// The rest of them for what runs programs.
const AFTER_BOOT: &str = "Requires=sysinit.target\nAfter=sysinit.target basic.target\n";

impl Tenant {
    /// Its text. None: systemd has nothing to be told of such a unit. `forced`: the workload brings files for it, and nobody allowed
    /// it by name.
    pub fn drop_in(&self, unit: &str, forced: bool) -> Option<String> {
        let (_, kind) = unit_name::split(unit)?;
        let mut text = "# Made by kedge-agent.\n".to_owned();
        match kind {
            "service" => text.push_str(&self.runs("Service", forced)),
            "socket" => text.push_str(&self.runs("Socket", forced)),
            "target" if forced => {}
            _ => return None,
        }
        if forced {
            text.push_str("\n[Unit]\n");
            match kind {
                "service" => text.push_str(&format!("JobRunningTimeoutSec={LONGEST_JOB}\n{ORDER}{AFTER_BOOT}")),
                "target" => text.push_str(ORDER),
                _ => text.push_str(&format!("JobRunningTimeoutSec={LONGEST_JOB}\n")),
            }
        }
        Some(text)
    }

    /// As whom its programs run, and in which slice.
    fn runs(&self, section: &str, forced: bool) -> String {
        let mut text = format!("[{section}]\nSlice={}\n", self.slice);
        if forced {
            let (user, group) = (&self.user, &self.group);
            text.push_str(&format!(
                "User={user}\nGroup={group}\nSupplementaryGroups=\nDynamicUser=no\nNoNewPrivileges=yes\nAmbientCapabilities=\n"
            ));
            // Else some programs of a service would run as root.
            if section == "Service" {
                text.push_str("PermissionsStartOnly=no\n");
            }
        }
        text
    }
}
