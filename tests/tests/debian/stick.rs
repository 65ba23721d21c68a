//! A stick full of symlinks: whatever the agent writes to it as root stays on it, and nothing is taken in by itself.

use kedge_tests::world::line::{FIRST, Line};

#[test]
fn a_stick_full_of_symlinks_makes_root_write_nowhere_else() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let host = &line.host;
    let identity = host.read("/var/lib/kedge-agent/identity.a");
    assert!(identity.is_some());
    host.sh("mkdir -p /mnt/stick; mount -t tmpfs tmpfs /mnt/stick; cd /mnt/stick
         for name in status.kedge .status.kedge.partial; do ln -s /var/lib/kedge-agent/identity.a $name; done
         ln -s /var/lib/kedge-agent folder");
    host.ok(&["kedge-agent", "export", "-o", "/mnt/stick/status.kedge"]);
    assert_eq!(host.read("/var/lib/kedge-agent/identity.a"), identity);
    assert_eq!(host.sh("stat -c %F /mnt/stick/status.kedge").trim(), "regular file");
    let refused = line.agent(&["export", "-o", "/mnt/stick/folder/identity.a"]);
    assert!(refused.code != 0 && refused.stderr.contains("symlink"), "{}{}", refused.stdout, refused.stderr);
    assert_eq!(host.read("/var/lib/kedge-agent/identity.a"), identity);
}

#[test]
fn sticks_are_taken_in_by_themselves_only_where_an_administrator_wants_it() {
    let Some(line) = Line::start_before_join() else { return };
    let host = &line.host;
    let rule = host.read("/usr/lib/udev/rules.d/90-kedge-agent.rules").unwrap();
    assert!(rule.contains("TEST!=\"/etc/kedge/import-sticks\", GOTO=\"kedge_agent_end\""), "{rule}");
    assert!(rule.contains("ENV{ID_FS_TYPE}!=\"vfat|exfat\""), "{rule}");
    assert!(!host.exists("/etc/kedge/import-sticks"), "it is off");
    let unit = host.ok(&["systemctl", "cat", "kedge-agent-stick@sdz1.service"]);
    assert!(unit.contains("ConditionPathExists=/etc/kedge/import-sticks"), "{unit}");
}
