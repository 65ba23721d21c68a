//! A workload's life on a host: installed, upgraded, rolled back to the byte, in conflict with another, and removed.

use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::world::line::{FIRST, HOST, Line};
use kedge_tests::world::workload::Workload;

#[test]
fn a_workload_is_installed_upgraded_rolled_back_exactly_and_removed_without_a_trace() {
    let Some(line) = Line::start_before_join() else { return };
    let clean = Fingerprint::of(&line.host);
    line.join();

    // Installed.
    line.await_converged(FIRST);
    let host = &line.host;
    assert_eq!((host.version_of("tool").as_deref(), host.version_of("toollib").as_deref()), (Some("1.0"), Some("1.0")));
    assert!(host.is_active(&format!("{FIRST}.service")));
    assert_eq!(host.ok(&["systemctl", "is-enabled", &format!("{FIRST}.service")]).trim(), "enabled");
    let files = format!("stat -c '%a %U %n' /srv/{FIRST} /srv/{FIRST}/serve.sh /etc/systemd/system/{FIRST}.service");
    let user = host.sh(&format!("stat -c %U /srv/{FIRST}")).trim().to_owned();
    assert!(user.starts_with("kedge-"), "{user}");
    let expected = format!(
        "750 {user} /srv/{FIRST}\n755 {user} /srv/{FIRST}/serve.sh\n644 root /etc/systemd/system/{FIRST}.service\n"
    );
    assert_eq!(host.sh(&files), expected);
    let account = host.sh(&format!("getent passwd {user}"));
    assert!(account.contains(":Kedge namespace "), "{account}");
    let runs_as = host.sh(&format!("stat -c %U /proc/$(systemctl show -P MainPID {FIRST}.service)"));
    assert_eq!(runs_as.trim(), user, "the service runs as the namespace's user");
    let settings = host.read(&format!("/etc/kedge/workloads/{FIRST}/platform-config.env")).unwrap();
    assert!(settings.contains("GREETING=") && !settings.contains("export"), "{settings}");
    assert!(host.ok(&["apt-mark", "showhold"]).lines().any(|name| name == "tool"), "held against upgrades");
    assert!(host.ok(&["apt-mark", "showauto"]).lines().any(|name| name == "toolbase"), "a dependency");
    let status = line.agent(&["status"]);
    assert_eq!(status.code, 0, "{}{}", status.stdout, status.stderr);
    assert!(status.stdout.contains(FIRST) && status.stdout.contains("Converged"), "{}", status.stdout);
    assert!(line.world.kedge.run(["describe", "cluster", HOST]).contains("Converged"));

    // Upgraded, and what asked for it restarted.
    let started = format!("systemctl show -P ExecMainStartTimestampMonotonic {FIRST}.service");
    let before = host.sh(&started);
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.await_converged(FIRST);
    assert_eq!((host.version_of("tool").as_deref(), host.version_of("toollib").as_deref()), (Some("2.0"), Some("2.0")));
    assert_ne!(host.sh(&started), before, "restartOn names the deb");
    let why = line.agent(&["why", FIRST]);
    assert!(why.stdout.contains("tool"), "{}", why.stdout);

    // A change of the platform alone restarts what asked for it and touches no deb.
    let installed = host.sh("stat -c %Y /var/lib/dpkg/info/tool.list");
    line.change_greeting("Good evening");
    line.await_converged(FIRST);
    let settings = host.read(&format!("/etc/kedge/workloads/{FIRST}/platform-config.env")).unwrap();
    assert!(settings.contains("Good evening"), "{settings}");
    assert_eq!(host.sh("stat -c %Y /var/lib/dpkg/info/tool.list"), installed);

    // A sick version goes back to exactly what was there.
    let before = Fingerprint::of(host);
    let mut sick = Workload::tool(FIRST, "3.0");
    sick = sick.file(&format!("/srv/{FIRST}/more.txt"), "more.txt", "more\n", "mode: \"0600\"");
    line.deliver(FIRST, &sick);
    let failed = line.await_failed(FIRST, "HealthCheck");
    assert_ne!(failed["running"], failed["desired"], "the old one runs: {failed}");
    before.assert_same(&Fingerprint::of(host), "after the rollback");
    let status = line.agent(&["status"]);
    assert!(status.stdout.contains("HealthCheck") && status.code != 0, "{}", status.stdout);
    let why = line.agent(&["why", FIRST]);
    assert!(why.stdout.contains("healthy"), "which check failed: {}", why.stdout);

    // Removed: as if it had never been.
    line.deliver(FIRST, &Workload::tool(FIRST, "1.0"));
    line.await_converged(FIRST);
    line.remove_target(FIRST);
    line.confirm_removal();
    line.await_host("the workload is gone", |host| {
        host.version_of("tool").is_none() && !host.exists(&format!("/srv/{FIRST}"))
    });
    line.await_gone(FIRST);
    clean.assert_same(&Fingerprint::of(host), "after the removal");
}

#[test]
fn a_second_workload_that_wants_another_version_is_told_whose_it_is_and_the_first_goes_on() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let before = Fingerprint::of(&line.host);
    line.add_target("hello-second", &Workload::tool("hello-second", "2.0"));
    let failed = line.await_failed("hello-second", "DebConflict");
    assert!(failed["message"].as_str().is_some_and(|text| text.contains(FIRST) && text.contains("tool")), "{failed}");
    line.await_converged(FIRST);
    before.assert_same(&Fingerprint::of(&line.host), "what runs stays as it is");

    // The same version is shared, and stays while one of them needs it.
    line.deliver("hello-second", &Workload::tool("hello-second", "1.0"));
    line.await_converged("hello-second");
    line.remove_target("hello-second");
    line.await_gone("hello-second");
    assert_eq!(line.host.version_of("tool").as_deref(), Some("1.0"));
    line.await_converged(FIRST);
    before.assert_same(&Fingerprint::of(&line.host), "after the second is gone");
}

#[test]
fn a_deb_that_was_there_before_returns_to_its_version_also_when_no_source_has_it_any_more() {
    let Some(line) = Line::start_before_join() else { return };
    line.host.ok(&["apt-get", "-qy", "install", "tool=1.0", "toollib=1.0"]);
    line.host.write("/etc/tool.conf", "a person wrote this\n");
    line.host.ok(&["apt-mark", "manual", "toollib"]);
    let before = Fingerprint::of(&line.host);
    for name in ["tool", "toollib"] {
        line.repository.drop_version(name, "1.0");
    }
    line.host.ok(&["apt-get", "-q", "update"]);
    line.host.ok(&["apt-get", "clean"]);
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.join();
    line.await_converged(FIRST);
    assert_eq!(line.host.version_of("tool").as_deref(), Some("2.0"));
    assert_eq!(line.host.read("/etc/tool.conf").as_deref(), Some("a person wrote this\n"), "it isn't the workload's");

    line.remove_target(FIRST);
    line.confirm_removal();
    line.await_gone(FIRST);
    before.assert_same(&Fingerprint::of(&line.host), "after the removal");
}
