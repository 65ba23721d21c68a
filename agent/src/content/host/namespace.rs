//! The tenant of an assignment: from `namespace.yaml` its user, slice and folders.

use std::fmt::Write as _;

use kedge_host_policy::Tenant;
use kedge_model::Spec;
use kedge_model::kinds::{HostNamespace, Limits};
use kedge_model::wire::Packages;
use nix::unistd::{Group, User};

use super::super::package::{Package, disk};
use super::Making;
use crate::bind::yaml::bind_yaml;
use crate::goal::{FileGoal, FolderGoal, HostFacts, Part};
use crate::record::Failure;

const NAMESPACE: &str = "namespace.yaml";
/// Where the administrator's units are.
pub const UNITS: &str = "/etc/systemd/system";

pub fn tenant(
    assignment: &str,
    platform: &Package<'_>,
    packages: &Packages,
    facts: &HostFacts,
) -> Result<Tenant, Failure> {
    let (namespace, given) = match platform.text(NAMESPACE)? {
        Some(text) => {
            let text = bind_yaml(&text, NAMESPACE, facts)?.unwrap_or(text);
            let mut objects = platform.decode(NAMESPACE, &text)?;
            match (objects.pop().map(|object| (object.meta.name, object.spec)), objects.is_empty()) {
                (Some((name, Spec::HostNamespace(given))), true) => (name, given),
                _ => return Err(Failure::new("BadPackage", format!("{NAMESPACE} must hold one HostNamespace"))),
            }
        }
        // Nothing is given, so nothing is allowed.
        None => {
            (packages.parameters.namespace.clone().unwrap_or_else(|| assignment.to_owned()), HostNamespace::default())
        }
    };
    let tenant = Tenant::new(assignment, namespace, given);
    let group = group_of(&tenant.user, &tenant.namespace)?;
    Ok(Tenant { group, ..tenant })
}

/// The group of a user that is there already; a new one gets a group of its own name. Another name for root is no tenant.
fn group_of(user: &str, namespace: &str) -> Result<String, Failure> {
    let Some(known) = User::from_name(user).ok().flatten() else { return Ok(user.to_owned()) };
    if known.uid.is_root() || known.gid.as_raw() == 0 {
        let message =
            format!("HostNamespace `{namespace}`: `{user}` is root or of root's group and can't be a tenant's user");
        return Err(Failure::new("NotAllowed", message));
    }
    Ok(Group::from_gid(known.gid).ok().flatten().map_or_else(|| user.to_owned(), |group| group.name))
}

impl Making<'_> {
    /// The user, the folders and the slice.
    pub fn namespace(&mut self) -> Result<(), Failure> {
        let own = self.own();
        self.goal.user = self.paths.is_host().then(|| self.tenant.user.clone());
        self.goal.namespace = self.paths.is_host().then(|| self.tenant.namespace.clone());
        self.goal.disk = self.tenant.given.limits.disk;
        for folder in &self.tenant.given.folders {
            self.goal.folders.push(FolderGoal { path: folder.path.clone(), owner: own.clone(), mode: folder.mode });
        }
        if self.paths.is_host() {
            let text = slice_file(&self.tenant.namespace, &self.tenant.given.limits);
            let path = format!("{UNITS}/{}", self.tenant.slice);
            self.add_made(path, &text, Part::Platform)?;
        }
        Ok(())
    }

    /// A file of root's that the agent writes itself.
    pub fn add_made(&mut self, path: String, text: &str, part: Part) -> Result<(), Failure> {
        let content = self.objects.put(text.as_bytes()).map_err(|error| disk("made", &error))?;
        let owner = self.root();
        self.goal.files.push(FileGoal { path, content, size: text.len() as u64, owner, mode: 0o644, part });
        Ok(())
    }
}

fn slice_file(namespace: &str, limits: &Limits) -> String {
    let mut text = format!("# Made by kedge-agent.\n[Unit]\nDescription=Kedge namespace {namespace}\n\n[Slice]\n");
    // Writing to a String can't fail.
    if let Some(cpu) = limits.cpu {
        _ = writeln!(text, "CPUQuota={}.{}%", cpu / 10, cpu % 10);
    }
    if let Some(memory) = limits.memory {
        _ = writeln!(text, "MemoryMax={memory}");
    }
    if let Some(tasks) = limits.tasks {
        _ = writeln!(text, "TasksMax={tasks}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_nobodys_tenant() {
        assert_eq!(group_of("root", "dev").unwrap_err().reason, "NotAllowed");
        assert_eq!(group_of("kedge-no-such-user", "dev").unwrap(), "kedge-no-such-user");
    }

    #[test]
    fn limits_become_the_slices_settings() {
        let limits = Limits { cpu: Some(1505), memory: Some(1 << 29), tasks: Some(64), disk: Some(1) };
        let text = slice_file("dev", &limits);
        assert!(text.ends_with("[Slice]\nCPUQuota=150.5%\nMemoryMax=536870912\nTasksMax=64\n"), "{text}");
        assert!(slice_file("dev", &Limits::default()).ends_with("[Slice]\n"));
    }
}
