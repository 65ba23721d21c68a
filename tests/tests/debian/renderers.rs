//! The hub's own unit lets bubblewrap shut kustomize and helm off: the packaged unit, its user and its filters on a booted host.

use std::path::Path;

use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::lab::hub;
use kedge_tests::lab::image::Flavour;
use kedge_tests::lab::skip;

const UNIT: &str = include_str!("../../../systemd/kedge-hub.service");

/// Tries what the hub tries, as the hub's user and under the unit's filters.
const ONCE: &str = "[Service]\nType=oneshot\nExecStart=\nExecStart=/usr/bin/kedge-hub check-config --config /etc/kedge/hub.toml\nRestart=no\nWatchdogSec=0\n";

#[test]
fn the_packaged_unit_lets_kustomize_and_helm_be_shut_off() {
    let Some(program) = hub::program() else { return };
    let bubblewrap = Path::new("/usr/bin/bwrap");
    if !bubblewrap.exists() {
        return skip("bubblewrap isn't here (Debian's package bubblewrap)");
    }
    let Some(host) = DebianHost::boot(Flavour::Plain, Network::Out) else { return };
    host.copy_in(&program, "/usr/bin/kedge-hub", 0o755);
    host.write("/etc/systemd/system/kedge-hub.service", UNIT);
    host.write("/etc/systemd/system/kedge-hub.service.d/once.conf", ONCE);
    host.write("/etc/kedge/hub.toml", "data = \"/var/lib/kedge-hub\"\n");
    host.sh("echo 'u kedge-hub - - /var/lib/kedge-hub' | systemd-sysusers - && chmod 644 /etc/kedge/hub.toml");
    host.ok(&["systemctl", "daemon-reload"]);
    let checked = || {
        let ran = host.run(&["systemctl", "start", "kedge-hub"]);
        let said = host.journal("kedge-hub");
        assert_eq!(ran.code, 0, "{}{said}", ran.stderr);
        said
    };
    let said = checked();
    assert!(said.contains("kustomize and helm can't be run here: bubblewrap (`bwrap`) isn't installed"), "{said}");
    // Its libraries are systemd's own, so they are there.
    host.copy_in(bubblewrap, "/usr/bin/bwrap", 0o755);
    let said = checked();
    assert!(said.contains("kustomize and helm can be run here, shut off from the hub"), "{said}");
}
