//! The .deb of the agent and the join: installed, upgraded in place, removed, purged; joins that must fail leave everything as it was.

use kedge_tests::lab::apt_repository::Deb;
use kedge_tests::lab::await_true;
use kedge_tests::world::SOON;
use kedge_tests::world::cluster::Cluster;
use kedge_tests::world::line::{CHANGED_WITHIN, FIRST, HOST, Line};
use kedge_tests::world::workload::Workload;

#[test]
fn joins_that_cannot_be_fail_clearly_and_break_nothing() {
    let Some(line) = Line::start_before_join() else { return };
    let refused = |arguments: &[&str], word: &str| {
        let ran = line.agent(arguments);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_ne!(ran.code, 0, "{said}");
        assert!(said.to_lowercase().contains(word) && said.contains("Hint"), "{word}: {said}");
    };
    // Somebody else's hub: the address is ours, the authority isn't.
    let token = line.token();
    let other = {
        let mut wrong: kedge_model::wire::JoinToken = token.parse().unwrap();
        wrong.authority = kedge_model::wire::Digest::of(b"another authority");
        wrong.to_string()
    };
    refused(&["join", "--token", &other, "--name", HOST], "hub");
    refused(&["join", "--token", "nonsense", "--name", HOST], "token");
    let used = line.world.token("factory-line", &["--uses", "1"]).to_string();
    Cluster::join(&used.parse().unwrap(), "somebody-else");
    refused(&["join", "--token", &used, "--name", HOST], "used");
    assert_eq!(line.agent(&["status"]).code, 3, "it hasn't joined");

    let joined = line.agent(&["join", "--token", &token, "--name", HOST]);
    assert_eq!(joined.code, 0, "{}{}", joined.stdout, joined.stderr);
    line.await_converged(FIRST);
    let id = line.seen()["id"].clone();
    refused(&["join", "--token", &token, "--name", "again"], "joined already");
    assert_eq!(line.seen()["id"], id);
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.await_converged(FIRST);
}

#[test]
fn an_image_with_a_token_joins_by_itself_at_the_first_boot() {
    let Some(line) = Line::prepare_plain() else { return };
    line.host.write("/etc/kedge/join-token", line.token());
    line.host.sh("chmod 600 /etc/kedge/join-token");
    line.install_agent();
    let name = line.host.name().to_owned();
    await_true("it joined under the host's name", SOON, || {
        line.world.api.list("/api/v1/clusters").iter().any(|cluster| cluster["name"] == name.as_str())
    });
    line.await_host("the workload runs", |host| host.is_active(&format!("{FIRST}.service")));
}

#[test]
fn the_agents_deb_upgrades_in_place_keeps_its_state_and_leaves_workloads_alone_when_it_goes() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let host = &line.host;
    let id = line.seen()["id"].clone();
    let newer = "cd /root; rm -rf new; dpkg-deb -R kedge-agent.deb new; sed -i 's/^Version: .*/&.1/' new/DEBIAN/control; \
                 dpkg-deb -Znone -b new newer.deb; apt-get -qy install ./newer.deb";
    host.sh(newer);
    // The package doesn't wait for the restart.
    line.await_host("the agent is up again", |host| host.is_active("kedge-agent.service"));
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.await_converged(FIRST);
    assert_eq!(line.seen()["id"], id, "the same identity");

    host.ok(&["apt-get", "-qy", "remove", "kedge-agent"]);
    assert!(!host.is_active("kedge-agent.service"));
    assert!(host.exists("/var/lib/kedge-agent/identity.a"), "removed isn't purged");
    assert!(host.is_active(&format!("{FIRST}.service")) && host.version_of("tool").as_deref() == Some("2.0"));
    host.ok(&["apt-get", "-qy", "install", "/root/kedge-agent.deb", "--allow-downgrades"]);
    line.deliver(FIRST, &Workload::tool(FIRST, "1.0"));
    line.await_converged(FIRST);
    assert_eq!(line.seen()["id"], id);

    host.ok(&["apt-get", "-qy", "purge", "kedge-agent"]);
    assert!(!host.exists("/var/lib/kedge-agent") && !host.exists("/etc/kedge/agent.toml"));
    assert!(host.is_active(&format!("{FIRST}.service")) && host.version_of("tool").as_deref() == Some("1.0"));
}

#[test]
fn an_interrupted_dpkg_and_a_held_lock_are_waited_for_and_repaired() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let host = &line.host;
    // Somebody's own package hangs half configured, as after a crash of dpkg.
    line.repository.add(&Deb::new("other", "1").script("postinst", "test -e /root/good"));
    host.ok(&["apt-get", "-q", "update"]);
    assert_ne!(host.run(&["apt-get", "-qy", "install", "other"]).code, 0);
    host.write("/root/good", "");
    // And somebody holds the lock for a while.
    host.sh("systemd-run --collect --unit holder perl -e 'use Fcntl qw(:DEFAULT :flock); open(F, \">>\", \"/var/lib/dpkg/lock-frontend\"); my $l = pack(\"s s l! l! i x4\", 1, 0, 0, 0, 0); fcntl(F, 6, $l) or die; sleep 8'");
    line.deliver(FIRST, &Workload::tool(FIRST, "2.0"));
    line.await_converged(FIRST);
    await_true("the half of a package is whole", CHANGED_WITHIN, || host.version_of("other").as_deref() == Some("1"));
}
