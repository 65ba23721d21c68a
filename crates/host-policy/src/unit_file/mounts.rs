//! Folders that a unit needs: systemd mounts whatever is configured to be mounted there, also what the administrator left to be mounted
//! by hand. So they are the workload's own, or where no host has a mount of its own to spare.

use super::{Tenant, path};

/// A host's system, and where programs and their data usually are.
const USUAL: [&str; 6] = ["/bin", "/lib", "/opt", "/srv", "/tmp", "/usr"];
/// Where a workload's own folders are.
const BASES: [&str; 5] = ["/run", "/var/lib", "/var/cache", "/var/log", "/etc"];
/// systemd's own folders and the user's home, as a unit file writes them.
const FILLED_IN: [&str; 8] = ["%C", "%E", "%L", "%S", "%T", "%V", "%h", "%t"];

pub(super) const BECAUSE: &str = "would have systemd mount what is configured there: it must be in the namespace's folders, in \
    `allow.paths`, or in /opt, /srv, /tmp or /usr";

pub(super) fn fits(value: &str, tenant: &Tenant) -> bool {
    let value = value.strip_prefix('-').unwrap_or(value).trim_end_matches('/');
    if matches!(value, "" | "~") {
        return true;
    }
    let (first, rest) = value.split_at_checked(2).unwrap_or((value, ""));
    let is_filled_in = FILLED_IN.contains(&first) && (rest.is_empty() || path::check(rest).is_ok());
    if is_filled_in {
        return !rest.contains(['%', '\\', '"', '\'']);
    }
    if path::check(value).is_err() || value.contains(['%', '\\', '"', '\'']) {
        return false;
    }
    let own = || BASES.iter().any(|base| path::is_below(value, &format!("{base}/{}", tenant.assignment)));
    USUAL.iter().any(|usual| path::is_below(value, usual)) || tenant.is_given(value) || own()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tenant;

    #[test]
    fn a_unit_has_nothing_mounted_that_the_administrator_left_unmounted() {
        for value in ["", "/", "~", "-/srv/app", "/srv/app/", "/opt/x", "%S/hello-test", "%h", "/var/lib/hello-test/a"]
        {
            assert!(fits(value, &tenant()), "{value}");
        }
        for value in ["/mnt/backup", "/media/usb", "/net/far", "/var/lib/other", "/srv/../mnt", "%S/../mnt", "%I", "x"]
        {
            assert!(!fits(value, &tenant()), "{value}");
        }
    }
}
