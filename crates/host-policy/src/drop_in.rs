//! The drop-in that the agent puts beside a tenant's units: systemd reads it last, so it stands whatever the other files say.

use super::Tenant;

/// How long a boot or a shutdown waits for a unit, however long the unit itself may take.
const LONGEST_JOB: &str = "5min";

impl Tenant {
    /// Its text for a service or a socket. `forced`: the workload brings files for it, and nobody allowed it by name.
    pub fn drop_in(&self, section: &str, forced: bool) -> String {
        let mut text = format!("# Made by kedge-agent.\n[{section}]\nSlice={}\n", self.slice);
        if forced {
            let (user, group) = (&self.user, &self.group);
            text.push_str(&format!(
                "User={user}\nGroup={group}\nSupplementaryGroups=\nDynamicUser=no\nNoNewPrivileges=yes\nAmbientCapabilities=\n"
            ));
            // Else some programs of a service would run as root.
            if section == "Service" {
                text.push_str("PermissionsStartOnly=no\n");
            }
            text.push_str(&format!("\n[Unit]\nJobRunningTimeoutSec={LONGEST_JOB}\n"));
        }
        text
    }
}
