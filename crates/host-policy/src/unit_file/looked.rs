//! Paths that systemd looks at as root for a unit file: `ConditionPathExists=`, `PathChanged=`. Whether the unit starts tells the tenant what
//! is there, and a mount that hangs would hang systemd.

use super::{Tenant, path};

/// Everybody may look there.
const PUBLIC: [&str; 10] =
    ["/bin", "/dev", "/etc/ssl/certs", "/lib", "/lib64", "/proc/cmdline", "/proc/sys", "/sbin", "/sys", "/usr"];
/// And at what is directly in these.
const LISTED: [&str; 6] = ["/etc", "/run", "/var/cache", "/var/lib", "/var/log", "/opt"];
/// Nobody but root knows what is in these.
const CLOSED: [&str; 2] = ["/root", "/lost+found"];
/// Where a workload's own folders are.
const BASES: [&str; 5] = ["/run", "/var/lib", "/var/cache", "/var/log", "/etc"];
/// Of these keys' values: negated, or one of several.
const SIGNS: [char; 2] = ['|', '!'];
const PATTERN: [char; 4] = ['*', '?', '[', ']'];

pub(super) fn fits(value: &str, tenant: &Tenant) -> bool {
    let value = value.trim_start_matches(SIGNS).trim_start();
    if value.is_empty() {
        return true;
    }
    // A pattern counts as the folder before it; an instance's name may hold anything.
    let fixed = match value.find(PATTERN) {
        Some(at) => value[..at].rsplit_once('/').map_or("", |(folder, _)| folder),
        None => value.trim_end_matches('/'),
    };
    if path::check(fixed).is_err() || value.contains(['%', '\\', '"', '\'', '{', '}']) || value.contains("/..") {
        return false;
    }
    let is_pattern = value.contains(PATTERN);
    // `/etc/x*`, but not `/etc/*/x`: systemd itself would go through all folders that fit, and stand still meanwhile.
    if is_pattern && value[fixed.len() + 1..].contains('/') {
        return false;
    }
    let is_listed = || {
        let (folder, _) = fixed.rsplit_once('/').unwrap_or_default();
        let is_top = folder.is_empty() && !CLOSED.contains(&fixed);
        LISTED.contains(&fixed) || (!is_pattern && (LISTED.contains(&folder) || is_top))
    };
    let own = || BASES.iter().any(|base| path::is_below(fixed, &format!("{base}/{}", tenant.assignment)));
    PUBLIC.iter().any(|public| path::is_below(fixed, public)) || tenant.is_given(fixed) || own() || is_listed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tenant;

    #[test]
    fn what_everybody_may_see_and_its_own_is_taken() {
        for value in [
            "",
            "/etc/os-release",
            "!/etc/os-release",
            "|!/srv/app/x",
            "/srv/app/*.json",
            "/etc/motd",
            "/usr/bin/python3",
            "/sys/class/net/*",
            "/dev/video0",
            "/var/lib/hello-test/a/b",
            "/run/hello-test/*",
            "/etc/kedge/workloads/hello-test/x.env",
            "/etc/*-release",
            "/srv",
        ] {
            assert!(fits(value, &tenant()), "{value}");
        }
    }

    #[test]
    fn what_root_alone_may_see_is_refused() {
        for value in [
            "/root/.ssh/id_rsa",
            "!/root/x",
            "/root/*",
            "/etc/ssl/private/*",
            "/etc/*/private",
            "/etc/kedge/workloads/other/platform-config.env",
            "/proc/1/root/root/x",
            "/mnt/far/x",
            "/home/ann/x",
            "/srv/app/../../root/x",
            "/srv/app/*/../../../root/x",
            "/srv/app/%I",
            "/srv/app/*/*/*/*/x",
            "/sys/*/*/*/*/*/*/*/*/x",
            "/dev/*/x",
            "/root",
            "/root/",
            "/lost+found",
            "/var/lib/other/x",
            "relative",
            "*",
        ] {
            assert!(!fits(value, &tenant()), "{value}");
        }
    }
}
