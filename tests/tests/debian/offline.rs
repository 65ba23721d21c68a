//! Without the hub: reboots with the cable out, hundreds of days away, and clocks that are wrong.

use std::fs;

use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::lab::{await_true, skip};
use kedge_tests::world::SOON;
use kedge_tests::world::line::{FIRST, Line, await_local};
use kedge_tests::world::workload::Workload;
use serde_json::Value;

/// The library that Debian's package libfaketime has.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
/// Where it reads what the time is.
const TIME: &str = "/etc/faketimerc";

#[test]
fn a_reboot_with_the_cable_out_brings_the_workloads_back() {
    let Some(mut line) = Line::start() else { return };
    line.await_converged(FIRST);
    line.host.shut_down();
    line.host.set_network(Network::Out);
    line.host.start();
    line.await_host("the workload runs", |host| host.is_active(&format!("{FIRST}.service")));
    await_local(&line.host, FIRST, |one| one["condition"] == "Converged");
    // It still mends what a hand breaks.
    line.host.sh(&format!("rm /srv/{FIRST}/serve.sh; systemctl stop {FIRST}.service"));
    line.await_host("the workload is mended", |host| {
        host.exists(&format!("/srv/{FIRST}/serve.sh")) && host.is_active(&format!("{FIRST}.service"))
    });
    // And is heard again once the cable is back.
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.host.shut_down();
    line.host.set_network(Network::Shared);
    line.host.start();
    line.await_converged(FIRST);
    assert_eq!(line.host.version_of("tool").as_deref(), Some("2.0"));
}

/// Lets the agent see a time of our own from its next start on.
fn fake_clock(host: &DebianHost, time: &str) {
    host.write(TIME, format!("{time}\n"));
    let lines = format!(
        "[Service]\nEnvironment=LD_PRELOAD={LIBRARY} FAKETIME_TIMESTAMP_FILE={TIME} FAKETIME_NO_CACHE=1 \
         FAKETIME_DONT_FAKE_MONOTONIC=1\n"
    );
    host.write("/etc/systemd/system/kedge-agent.service.d/clock.conf", lines);
    host.sh("systemctl daemon-reload; systemctl restart kedge-agent");
}

fn seconds_since(time: &Value) -> i64 {
    let output =
        std::process::Command::new("date").args(["+%s", "-d", time.as_str().unwrap_or_default()]).output().unwrap();
    let then: i64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{time}"));
    kedge_tests::world::cluster::now().0 / 1000 - then
}

#[test]
fn a_clock_in_1970_hours_off_or_jumping_stops_nothing_and_the_hub_knows_the_true_times() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    for (number, clock) in ["@1970-01-01 00:00:10", "-6h", "+6h"].into_iter().enumerate() {
        fake_clock(&line.host, clock);
        line.deliver(FIRST, &Workload::tool(FIRST, if number % 2 == 0 { "2.0" } else { "1.0" }));
        let seen = line.await_converged(FIRST);
        let since = seconds_since(&seen["since"]);
        assert!((-5..120).contains(&since), "{clock}: since {since} s ago, {seen}");
    }
    // Between minutes and years, while it works.
    for (number, clock) in ["+400d", "@1970-01-01 00:00:10", "-10m", "+1y", "+0"].into_iter().enumerate() {
        line.host.write(TIME, format!("{clock}\n"));
        line.change_greeting(&format!("Jump {number}"));
        let seen = line.await_converged(FIRST);
        let since = seconds_since(&seen["since"]);
        assert!((-5..120).contains(&since), "{clock}: since {since} s ago, {seen}");
    }
    assert!(line.host.is_active("kedge-agent.service"));
}

#[test]
fn after_400_days_without_the_hub_a_person_lets_it_in_and_it_renews_its_certificate_and_catches_up() {
    let Some(mut line) = Line::start() else { return };
    line.await_converged(FIRST);
    let Ok(library) = fs::read(line.host.path(LIBRARY)) else { return skip("libfaketime isn't on the host") };
    let here = line.world.folder.path().join("libfaketime.so.1");
    fs::write(&here, library).unwrap();
    let until = line.seen()["certificateUntil"].clone();
    line.world.hub.stop();

    // 400 days later the host is still alone, and what it runs runs.
    fake_clock(&line.host, "+400d");
    await_local(&line.host, FIRST, |one| one["condition"] == "Converged");
    line.host.sh(&format!("systemctl stop {FIRST}.service"));
    line.await_host("it mends what it runs", |host| host.is_active(&format!("{FIRST}.service")));

    line.world.hub.set_environment("LD_PRELOAD", here.to_str().unwrap());
    line.world.hub.set_environment("FAKETIME", "+400d");
    line.world.hub.set_environment("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    // It would leave its shared memory behind when it is killed.
    line.world.hub.set_environment("FAKETIME_DISABLE_SHM", "1");
    line.world.hub.start_again();
    await_true("it is too long", SOON, || line.seen()["needsReadmission"] == true);
    assert_eq!(line.seen()["certificateUntil"], until, "nobody let it in yet");
    let name = line.seen()["name"].as_str().expect("a cluster has a name").to_owned();
    line.world.kedge.run(["cluster", "readmit", &name]);
    await_true("its certificate is renewed", SOON, || line.seen()["certificateUntil"] != until);
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.await_converged(FIRST);
    assert_eq!(line.host.version_of("tool").as_deref(), Some("2.0"));
}
