//! What goes wrong around a change: a full disk, an apt source that is gone, a change that cuts the host off.

use kedge_tests::lab::apt_repository::Deb;
use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::world::line::{FIRST, Line};
use kedge_tests::world::workload::Workload;

const FILLER: &str = "/var/filler";

/// Leaves so many MiB free.
fn fill(host: &DebianHost, free: u64) {
    host.sh(&format!(
        "rm -f {FILLER}; sync; free=$(df --output=avail -B1M / | tail -1); fallocate -l $((free - {free}))M {FILLER}; sync"
    ));
}

/// Bytes that no disk makes smaller.
fn noise(mib: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..mib << 17).flat_map(|_| next()).collect()
}

#[test]
fn a_disk_that_fills_during_download_staging_or_apply_leaves_the_old_state_and_passes() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let host = &line.host;
    let before = Fingerprint::of(host);

    // The workload's own package is too much: noticed before the download.
    let mut large = Workload::tool(FIRST, "2.0").file(&format!("/srv/{FIRST}/model"), "model", "", "");
    large.content.insert("model".to_owned(), noise(20));
    fill(host, 100);
    line.deliver(FIRST, &large);
    line.await_failed(FIRST, "DiskFull");
    before.assert_same(&Fingerprint::of(host), "while the download has no room");
    host.sh(&format!("rm {FILLER}"));
    line.await_converged(FIRST);

    // Without a reserve of its own the agent runs into the wall while it stages debs, and while dpkg unpacks them.
    host.write("/etc/kedge/agent.toml", "disk_reserve = \"0\"\n");
    host.sh("systemctl restart kedge-agent");
    let before = Fingerprint::of(host);
    line.repository.add(&Deb::new("other", "1").file("/usr/lib/other/data", noise(40), 0o644));
    host.ok(&["apt-get", "-q", "update"]);
    for (what, free) in [("staging", 25), ("apply", 60)] {
        fill(host, free);
        line.deliver(
            FIRST,
            &Workload::tool(FIRST, "1.0").deb("other", "1").file(&format!("/srv/{FIRST}/{what}"), "x", what, ""),
        );
        line.await_failed(FIRST, "DiskFull");
        before.assert_same(&Fingerprint::of(host), what);
        host.sh(&format!("rm {FILLER}"));
        if what == "staging" {
            line.deliver(FIRST, &large);
            line.await_converged(FIRST);
        }
    }
    line.await_converged(FIRST);
    assert_eq!((host.version_of("tool").as_deref(), host.version_of("other").as_deref()), (Some("1.0"), Some("1")));
}

#[test]
fn an_apt_source_that_is_gone_leaves_what_runs_and_is_asked_again() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let before = Fingerprint::of(&line.host);
    line.repository.close();
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    let failed = line.await_condition(FIRST, "Failed");
    assert!(["Network", "DebUnavailable"].iter().any(|reason| failed["reason"] == *reason), "{failed}");
    before.assert_same(&Fingerprint::of(&line.host), "while the source is gone");
    line.repository.open();
    line.await_converged(FIRST);
    assert_eq!(line.host.version_of("tool").as_deref(), Some("2.0"));
}

#[test]
fn a_change_that_cuts_the_host_off_is_rolled_back_when_the_hub_is_part_of_its_health() {
    let Some(line) = Line::prepare_with_agent(Network::cable()) else { return };
    line.await_converged(FIRST);
    line.repository.add(
        &Deb::new("netcut", "1")
            .script("postinst", "ip link set host0 down")
            .script("postrm", "ip link set host0 up; ip route replace default via $(ip -4 -o addr show host0 | sed 's/.*inet \\([0-9.]*\\)\\.2\\/.*/\\1.1/')"),
    );
    line.repository.copy_into(&line.host);
    let before = Fingerprint::of(&line.host);
    let mut workload = Workload::tool(FIRST, "1.0").deb("netcut", "1");
    workload.health.push("{hub: true, timeout: 5s}".to_owned());
    line.deliver(FIRST, &workload);
    let failed = line.await_failed(FIRST, "HealthCheck");
    assert!(failed["message"].as_str().is_some_and(|text| text.to_lowercase().contains("hub")), "{failed}");
    before.assert_same(&Fingerprint::of(&line.host), "after the rollback");
    assert!(line.host.sh("ip link show host0").contains("state UP"));
}
