//! Units by which a workload would get root's power, change somebody else's service or keep the host from booting: each is refused with
//! its reason and changes nothing; and whose a unit is, is asked again when units change.

use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::world::line::{FIRST, Line, await_local};
use kedge_tests::world::workload::Workload;

const UNITS: &str = "/etc/systemd/system";
const ADMINISTRATORS: &str = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n";

/// The usual workload with another unit file.
fn with_unit(text: &str) -> Workload {
    let mut workload = Workload::tool(FIRST, "1.0");
    workload.content.insert("unit.service".to_owned(), text.as_bytes().to_vec());
    workload
}

fn with_drop_in(unit: &str) -> Workload {
    let text = format!("[Service]\nExecStart=\nExecStart=/srv/{FIRST}/serve.sh\n");
    Workload::tool(FIRST, "1.0").file(&format!("{UNITS}/{unit}.d/mine.conf"), "mine.conf", &text, "owner: root")
}

/// Delivers it; why the host refused it, while the old one goes on.
fn refusal(line: &Line, workload: &Workload) -> String {
    line.deliver(FIRST, workload);
    let seen = line.await_failed(FIRST, "NotAllowed");
    assert_ne!(seen["desired"], seen["running"], "{seen}");
    seen["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_unit_that_would_get_more_is_refused_and_changes_nothing() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let host = &line.host;
    for path in [
        format!("{UNITS}/{FIRST}-backup.service"),
        format!("{UNITS}/{FIRST}-each@.service"),
        format!("/usr/local/lib/systemd/system/{FIRST}-local.service"),
        format!("/run/systemd/system/{FIRST}-run.service"),
    ] {
        host.write(&path, ADMINISTRATORS);
    }
    host.sh(&format!("mkdir -m 700 /var/lib/{FIRST}"));
    host.ok(&["systemctl", "daemon-reload"]);
    host.ok(&["systemd-run", "--quiet", &format!("--unit={FIRST}-transient.service"), "sleep", "infinity"]);
    let run = |exec: &str| {
        format!("[Service]\n{exec}\nExecStart=/srv/{FIRST}/serve.sh\n[Install]\nWantedBy=multi-user.target\n")
    };
    let shadow = Workload::tool(FIRST, "1.0").file(
        &format!("{UNITS}/{FIRST}-local.service"),
        "shadow.service",
        "[Service]\nExecStart=/bin/true\n",
        "owner: root",
    );
    let escapes = [
        ("an escaped prefix", with_unit(&run("ExecStartPre=\\x2b/bin/touch /root/escaped")), "plainly"),
        ("a quoted prefix", with_unit(&run("ExecStartPre=\"+/bin/touch\" /root/escaped")), "plainly"),
        // It owns the first folder and can make the second one a symlink to /etc.
        (
            "a state folder behind a symlink",
            with_unit(&run(&format!("StateDirectory={FIRST}/a/apt"))),
            "StateDirectory=",
        ),
        ("somebody's state folder", with_unit(&run(&format!("StateDirectory={FIRST}"))), "is on this host already"),
        ("a file that systemd would remove", with_unit(&run("PIDFile=/etc/victim")), "PIDFile="),
        ("a name on the bus", with_unit(&run("BusName=org.freedesktop.timedate1")), "BusName="),
        (
            "settings of another tenant",
            with_unit(&run(&format!("EnvironmentFile=/etc/kedge/workloads/{FIRST}/\\.\\./other/platform-config.env"))),
            "EnvironmentFile=",
        ),
        ("a drop-in for a unit of /etc", with_drop_in(&format!("{FIRST}-backup.service")), "belongs to somebody else"),
        (
            "a unit that stops somebody's of such a name",
            with_unit(&format!("[Unit]\nConflicts={FIRST}-backup.service\n{}", run("Type=simple"))),
            "belongs to somebody else",
        ),
        ("a drop-in for a template", with_drop_in(&format!("{FIRST}-each@.service")), "belongs to somebody else"),
        ("a drop-in for an instance", with_drop_in(&format!("{FIRST}-each@1.service")), "belongs to somebody else"),
        (
            "a drop-in for a unit of /usr/local",
            with_drop_in(&format!("{FIRST}-local.service")),
            "belongs to somebody else",
        ),
        ("a drop-in for a unit of /run", with_drop_in(&format!("{FIRST}-run.service")), "belongs to somebody else"),
        (
            "a drop-in for a transient unit",
            with_drop_in(&format!("{FIRST}-transient.service")),
            "belongs to somebody else",
        ),
        ("a unit that shadows another", shadow, "belongs to somebody else"),
    ];
    let before = Fingerprint::of(host);
    for (what, escape, word) in escapes {
        let said = refusal(&line, &escape);
        assert!(said.contains(word), "{what}: {said}");
        before.assert_same(&Fingerprint::of(host), what);
    }
    assert!(!host.exists("/root/escaped"));
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.await_converged(FIRST);
}

#[test]
fn a_unit_that_a_boot_would_wait_for_is_refused_and_the_next_boot_ends() {
    let Some(mut line) = Line::start() else { return };
    line.await_converged(FIRST);
    for (text, word) in [
        (
            "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=sysinit.target\n",
            "WantedBy=sysinit.target",
        ),
        (
            "[Unit]\nDefaultDependencies=no\nBefore=basic.target\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
            "Before=basic.target",
        ),
        (
            "[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
            "TimeoutStartSec=infinity",
        ),
    ] {
        let said = refusal(&line, &with_unit(text));
        assert!(said.contains(word) && said.contains("allow.units"), "{said}");
    }
    // What runs has an end of its start too, whatever its own file says.
    let bound = line.host.ok(&["systemctl", "show", "-P", "JobRunningTimeoutUSec", &format!("{FIRST}.service")]);
    assert_eq!(bound.trim(), "5min");
    line.host.shut_down();
    line.host.start();
    let state = line.host.run(&["systemctl", "is-system-running"]).stdout;
    assert_eq!(state.trim(), "running");
    line.await_host("the old version runs", |host| host.is_active(&format!("{FIRST}.service")));
}

#[test]
fn a_unit_that_an_administrator_makes_later_is_noticed_and_has_the_tenants_user_meanwhile() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let later = format!("{FIRST}-later.service");
    // A deb of the workload might bring it: nobody has it yet.
    line.deliver(FIRST, &with_drop_in(&later));
    line.await_converged(FIRST);
    line.host.write(&format!("{UNITS}/{later}"), ADMINISTRATORS);
    line.host.ok(&["systemctl", "daemon-reload"]);
    let user = line.host.ok(&["systemctl", "show", "-P", "User", &later]);
    assert_eq!(user, line.host.sh(&format!("stat -c %U /srv/{FIRST}")), "it never runs the tenant's program as root");
    await_local(&line.host, FIRST, |one| {
        one["drift"].as_str().is_some_and(|drift| drift.contains("belongs to somebody else"))
    });
    assert!(line.host.exists(&format!("{UNITS}/{later}")), "the administrator's unit stays");
}

/// An administrator's unit that comes late, and a tenant's after it: with the order that systemd adds by itself that is a cycle, and
/// systemd would leave out one of the two.
#[test]
fn a_tenants_unit_after_a_late_one_of_the_administrator_closes_no_cycle_at_boot() {
    let Some(mut line) = Line::start() else { return };
    line.await_converged(FIRST);
    let late = format!("[Unit]\nAfter=multi-user.target\n{ADMINISTRATORS}[Install]\nWantedBy=multi-user.target\n");
    line.host.write(&format!("{UNITS}/late.service"), late);
    line.host.ok(&["systemctl", "daemon-reload"]);
    line.host.ok(&["systemctl", "enable", "late.service"]);
    let unit = format!(
        "[Unit]\nAfter=late.service\n[Service]\nExecStart=/srv/{FIRST}/serve.sh\n[Install]\nWantedBy=multi-user.target\n"
    );
    line.deliver(FIRST, &with_unit(&unit));
    line.await_converged(FIRST);
    let waits = line.host.ok(&["systemctl", "show", "-P", "After", "multi-user.target"]);
    assert!(!waits.contains(FIRST), "{waits}");
    for _ in 0..3 {
        line.host.shut_down();
        line.host.start();
        line.await_host("both run", |host| {
            host.is_active("late.service") && host.is_active(&format!("{FIRST}.service"))
        });
        let journal = line.host.ok(&["journalctl", "-b", "--no-pager", "-q"]);
        assert!(!journal.contains("ordering cycle"), "{journal}");
    }
}

#[test]
fn a_unit_by_the_name_of_a_later_assignment_is_noticed() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let (later, unit) = (format!("{FIRST}-later"), format!("{FIRST}-later-x.service"));
    let text = format!("[Service]\nExecStart=/srv/{FIRST}/serve.sh\n");
    line.deliver(
        FIRST,
        &Workload::tool(FIRST, "1.0").file(&format!("{UNITS}/{unit}"), "x.service", &text, "owner: root"),
    );
    line.await_converged(FIRST);
    line.add_target(&later, &Workload::tool(&later, "2.0"));
    await_local(&line.host, FIRST, |one| {
        let told = format!("unit {unit} belongs to {later} now");
        one["drift"].as_str().is_some_and(|drift| drift.contains(&told))
    });
    line.remove_target(&later);
    await_local(&line.host, FIRST, |one| one["drift"].is_null());
}
