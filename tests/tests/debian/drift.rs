//! Drift: whatever somebody changes by hand is noticed, told and repaired, unless the workload or a hold says otherwise.

use kedge_tests::lab::await_true;
use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::world::SOON;
use kedge_tests::world::line::{CHANGED_WITHIN, FIRST, HOST, Line, await_local};
use kedge_tests::world::workload::Workload;

/// What a hand does, and a word of what the agent says of it.
const HANDS: [(&str, &str); 9] = [
    ("echo '#!/bin/sh' >/srv/hello-line-test/serve.sh", "serve.sh"),
    ("rm /srv/hello-line-test/serve.sh", "serve.sh"),
    ("chmod 0700 /srv/hello-line-test/serve.sh", "serve.sh"),
    ("chown root /srv/hello-line-test/serve.sh", "serve.sh"),
    ("rm /etc/kedge/workloads/hello-line-test/platform-config.env", "platform-config.env"),
    ("systemctl stop hello-line-test.service", "hello-line-test.service"),
    ("systemctl disable hello-line-test.service", "hello-line-test.service"),
    ("dpkg --force-all --remove tool", "tool"),
    ("dpkg --force-all --install /root/tool2.deb /root/toollib2.deb", "tool"),
];

#[test]
fn drift_of_each_kind_is_repaired_at_once_and_told() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    for name in ["tool", "toollib"] {
        line.host.copy_in(&line.repository.path(name, "2.0"), &format!("/root/{name}2.deb"), 0o644);
    }
    let before = Fingerprint::of(&line.host);
    for (hand, word) in HANDS {
        line.host.sh(hand);
        await_true(&format!("{hand}: repaired"), CHANGED_WITHIN, || {
            let why = line.agent(&["why", FIRST]).stdout;
            why.to_lowercase().contains("drift")
                && why.contains(word)
                && before.differences(&Fingerprint::of(&line.host)).is_empty()
        });
        await_local(&line.host, FIRST, |one| one["condition"] == "Converged" && one["drift"].is_null());
    }
    line.await_converged(FIRST);
    before.assert_same(&Fingerprint::of(&line.host), "at the end");
}

#[test]
fn drift_that_is_only_to_be_reported_stays_and_the_hub_knows_what_differs() {
    let Some(line) = Line::start() else { return };
    let mut workload = Workload::tool(FIRST, "1.0");
    workload.more.push("drift: report".to_owned());
    line.deliver(FIRST, &workload);
    line.await_converged(FIRST);
    line.host.write(&format!("/srv/{FIRST}/serve.sh"), "#!/bin/sh\nexec sleep 1000\n");
    let told = |what: bool| {
        await_true(&format!("the hub knows of the drift: {what}"), SOON, || {
            let seen = line.condition(FIRST).unwrap_or_default();
            seen["drift"].as_str().is_some_and(|text| text.contains("serve.sh")) == what
        });
    };
    told(true);
    assert!(line.host.read(&format!("/srv/{FIRST}/serve.sh")).unwrap().contains("1000"), "nobody repaired it");
    let status = line.agent(&["status"]);
    assert!(status.stdout.contains("serve.sh"), "{}", status.stdout);
    line.host.write(&format!("/srv/{FIRST}/serve.sh"), "#!/bin/sh\nexec sleep infinity\n");
    told(false);
}

#[test]
fn a_hold_of_a_technician_or_of_the_hub_stops_changes_and_repairs_until_it_ends() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let holds = |how_many: usize| {
        await_true(&format!("the hub shows {how_many} holds that are obeyed"), SOON, || {
            let seen = line.seen();
            let holds = seen["holds"].as_array().cloned().unwrap_or_default();
            holds.len() == how_many && holds.iter().all(|hold| hold["obeyed"] == true)
        });
    };
    let hold = line.agent(&["hold", FIRST, "--reason", "the sensor is being replaced"]);
    assert_eq!(hold.code, 0, "{}{}", hold.stdout, hold.stderr);
    holds(1);
    line.world.kedge.run(["hold", HOST, FIRST, "--reason", "wait for the audit"]);
    holds(2);
    let status = line.agent(&["status"]).stdout;
    assert!(status.contains("the sensor is being replaced") && status.contains("wait for the audit"), "{status}");

    // Neither a new version nor a repair, and the truth is still told.
    let held = Fingerprint::of(&line.host);
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.host.sh(&format!("systemctl stop {FIRST}.service"));
    await_true("the drift is told", SOON, || line.condition(FIRST).is_some_and(|seen| !seen["drift"].is_null()));
    assert_eq!(line.host.version_of("tool").as_deref(), Some("1.0"));
    let differences = held.differences(&Fingerprint::of(&line.host));
    assert!(differences.iter().all(|line| line.contains(&format!("unit {FIRST}.service"))), "{differences:?}");

    // One of two is not enough.
    line.world.kedge.run(["unhold", HOST, FIRST]);
    holds(1);
    line.await_host("the host knows of one hold only", |_| {
        !line.agent(&["status"]).stdout.contains("wait for the audit")
    });
    assert_eq!(line.host.version_of("tool").as_deref(), Some("1.0"));
    assert!(!line.host.is_active(&format!("{FIRST}.service")));
    let unhold = line.agent(&["unhold", FIRST]);
    // 3: the host hasn't heard of the hub's release yet.
    assert!(matches!(unhold.code, 0 | 3), "{}{}", unhold.stdout, unhold.stderr);
    line.await_converged(FIRST);
    holds(0);
    assert_eq!(line.host.version_of("tool").as_deref(), Some("2.0"));
    assert!(line.host.is_active(&format!("{FIRST}.service")));
}
