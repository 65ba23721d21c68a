//! The lab's own promises: a host boots, takes debs from our repository, loses unsynced writes with its power, and leaves nothing
//! behind.

use std::fs;
use std::process::Command;

use kedge_tests::lab::apt_repository::{AptRepository, Deb};
use kedge_tests::lab::host::cut::Moment;
use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::lab::image::Flavour;

#[test]
fn a_host_installs_debs_of_our_repository_and_its_fingerprint_shows_each_change() {
    let Some(host) = DebianHost::boot(Flavour::Plain, Network::Shared) else { return };
    let repository = AptRepository::start();
    repository.add(&Deb::new("tool", "1").conffile("/etc/tool.conf", "one\n").file(
        "/usr/bin/tool",
        "#!/bin/sh\n",
        0o755,
    ));
    repository.connect(&host);
    let before = Fingerprint::of(&host);
    host.ok(&["apt-get", "-qy", "install", "tool=1"]);
    assert_eq!(host.version_of("tool").as_deref(), Some("1"));
    let differences = before.differences(&Fingerprint::of(&host));
    let has = |text: &str| differences.iter().any(|line| line.starts_with(text));
    assert!(
        has("+ deb tool 1 all ii") && has("+ /etc/tool.conf 0644 0:0") && has("+ /usr/bin/tool 0755"),
        "{differences:#?}"
    );
    host.ok(&["apt-get", "-qy", "purge", "tool"]);
    before.assert_same(&Fingerprint::of(&host), "after the purge");
    repository.drop_version("tool", "1");
    host.ok(&["apt-get", "-q", "update"]);
    assert_ne!(host.run(&["apt-get", "-qy", "install", "tool"]).code, 0);
}

#[test]
fn a_power_cut_loses_what_was_not_synced_and_nothing_else() {
    let Some(mut host) = DebianHost::boot(Flavour::Plain, Network::Out) else { return };
    host.sh("echo kept >/srv/kept; sync /srv/kept /srv; echo lost >/srv/lost");
    assert_eq!(host.read("/srv/lost").as_deref(), Some("lost\n"));
    host.cut_power();
    host.start();
    assert_eq!(host.read("/srv/kept").as_deref(), Some("kept\n"));
    assert_eq!(host.read("/srv/lost").unwrap_or_default(), "", "it wasn't synced");
    host.write("/srv/clean", "clean");
    host.shut_down();
    host.start();
    assert_eq!(host.read("/srv/clean").as_deref(), Some("clean"), "a shutdown syncs");
}

#[test]
fn each_write_of_a_watched_folder_is_a_moment_to_cut_the_power_at() {
    let Some(host) = DebianHost::boot(Flavour::Plain, Network::Out) else { return };
    host.sh("mkdir -p /srv/ledger");
    let moments = [Moment { folder: "/srv/ledger", ending: ".new" }];
    let script = "for n in 1 2 3; do echo $n >/srv/ledger/x.new; sync /srv/ledger/x.new; mv /srv/ledger/x.new /srv/ledger/x; sync /srv/ledger; done";
    let cuts = host.cuts_during(&moments, &|_, _| true, |host| drop(host.sh(script)));
    assert_eq!(host.read("/srv/ledger/x").as_deref(), Some("3\n"), "the host itself went on");
    let left: Vec<Option<String>> =
        cuts.iter().map(|cut| DebianHost::boot_on(cut.image(), Network::Out).read("/srv/ledger/x")).collect();
    assert_eq!(left, [None, Some("1\n".to_owned()), Some("2\n".to_owned())]);
}

#[test]
fn two_hosts_run_side_by_side_and_leave_nothing_behind() {
    let Some(one) = DebianHost::boot(Flavour::Plain, Network::Shared) else { return };
    let Some(two) = DebianHost::boot(Flavour::Ansible, Network::Cable(77)) else { return };
    assert!(two.ok(&["ansible-playbook", "--version"]).contains("core"));
    let ping = "exec 3<>/dev/tcp/10.213.77.1/1 2>/dev/null || ip route get 10.213.77.1";
    assert!(two.ok(&["bash", "-c", ping]).contains("dev host0"));
    let (first, second) = (one.name().to_owned(), two.name().to_owned());
    assert_eq!((one.sh("hostname").trim(), two.sh("hostname").trim()), (first.as_str(), second.as_str()));
    drop((one, two));
    let loops = Command::new("losetup").arg("-a").output().unwrap();
    let ours = format!("kedge-disk-.*{}", std::process::id());
    assert!(!String::from_utf8_lossy(&loops.stdout).contains(&ours));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("kedge-host-"), "{mounts}");
    for name in [first, second] {
        assert!(!fs::exists(format!("/sys/class/net/ve-{name}")).unwrap());
        let groups = Command::new("find")
            .args(["/sys/fs/cgroup", "-maxdepth", "6", "-name", &format!("kedge-lab-{name}")])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&groups.stdout), "");
    }
}

#[test]
fn a_host_ends_with_a_test_that_is_killed() {
    const PLAYS: &str = "KEDGE_LAB_PLAYS_THE_KILLED";
    if std::env::var_os(PLAYS).is_some() {
        let Some(host) = DebianHost::boot(Flavour::Plain, Network::Out) else { return };
        println!("booted {}", host.name());
        std::thread::sleep(std::time::Duration::from_secs(600));
        return;
    }
    let name = "lab_host::a_host_ends_with_a_test_that_is_killed";
    let Some(_) = DebianHost::boot(Flavour::Plain, Network::Out) else { return };
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(PLAYS, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(other.stdout.take().unwrap()));
    let booted =
        lines.map_while(Result::ok).find_map(|line| line.split_once("booted ").map(|(_, host)| host.to_owned()));
    let booted = booted.expect("the other test boots a host");
    other.kill().unwrap();
    other.wait().unwrap();
    kedge_tests::lab::await_true("its host is gone", std::time::Duration::from_secs(30), || {
        let found = Command::new("find")
            .args(["/sys/fs/cgroup", "-maxdepth", "6", "-name", &format!("kedge-lab-{booted}")])
            .output()
            .unwrap();
        found.stdout.is_empty()
    });
}
