//! A HostNamespace itself: the platform team is trusted, but an accident such as `/` as a folder would give a whole host away.

use super::{Tenant, path, unit_name};

/// Folders of the system: never a tenant's, and neither is anything below those in `DEEP`.
const SYSTEM: [&str; 33] = [
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/backups",
    "/var/cache",
    "/var/lib",
    "/var/local",
    "/var/lock",
    "/var/log",
    "/var/mail",
    "/var/opt",
    "/var/run",
    "/var/spool",
    "/var/tmp",
];
const DEEP: [&str; 29] = [
    "/bin",
    "/boot",
    "/dev",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/root",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/libexec",
    "/usr/sbin",
    "/usr/share",
    "/etc/apt",
    "/etc/cron.d",
    "/etc/dpkg",
    "/etc/pam.d",
    "/etc/ssh",
    "/etc/ssl",
    "/etc/sudoers.d",
    "/etc/systemd",
    "/run/systemd",
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/systemd",
    "/var/spool/cron",
];
/// useradd's limit.
const MAX_USER: usize = 32;

/// What can't be meant, each in a sentence.
pub fn check(tenant: &Tenant) -> Vec<String> {
    let name = &tenant.namespace;
    let mut wrong = Vec::new();
    if !is_user(&tenant.user) || matches!(tenant.user.as_str(), "root" | "kedge-agent" | "nobody") {
        let user: String = tenant.user.chars().take(80).flat_map(char::escape_debug).collect();
        wrong.push(format!(
            "HostNamespace `{name}`: `{user}` can't be a tenant's user; leave `user` out or name another"
        ));
    }
    for folder in tenant.given.folders.iter().map(|folder| folder.path.as_str()) {
        let is_system = SYSTEM.contains(&folder) || DEEP.iter().any(|deep| path::is_below(folder, deep));
        // A folder above the agent's would make its tenant the agent.
        let is_agents = path::is_agents(folder) || path::is_below("/var/lib/kedge-agent", folder);
        if let Err(error) = path::check(folder) {
            wrong.push(format!("HostNamespace `{name}`: {error}"));
        } else if is_system || is_agents {
            wrong.push(format!("HostNamespace `{name}`: `{folder}` is the system's and can't be a tenant's folder"));
        }
    }
    for allowed in &tenant.given.allow.paths {
        if let Err(error) = path::check(allowed.trim_end_matches('/')) {
            wrong.push(format!("HostNamespace `{name}`: in `allow.paths`, {error}"));
        }
    }
    for unit in &tenant.given.allow.units {
        if let Err(error) = unit_name::check(unit) {
            wrong.push(format!("HostNamespace `{name}`: in `allow.units`, {error}"));
        }
    }
    wrong
}

/// As useradd takes it.
fn is_user(user: &str) -> bool {
    let first = |b: u8| b.is_ascii_lowercase() || b == b'_';
    user.len() <= MAX_USER
        && user.bytes().next().is_some_and(first)
        && user.bytes().all(|b| first(b) || b.is_ascii_digit() || b == b'-')
}
