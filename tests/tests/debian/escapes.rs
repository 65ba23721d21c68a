//! What a HostWorkload may not do, tried for real: each is refused by the hub or by the host, and changes nothing.

use kedge_tests::lab::apt_repository::Deb;
use kedge_tests::lab::await_some;
use kedge_tests::lab::host::fingerprint::Fingerprint;
use kedge_tests::world::line::{CHANGED_WITHIN, FIRST, Line};
use kedge_tests::world::workload::Workload;

/// Pushes it; who refused it, and why.
fn refusal(line: &Line, workload: &Workload) -> String {
    let commit = workload.push(&line.world.sample.hello_gitops, "line-test");
    await_some("it is refused", CHANGED_WITHIN, || {
        let problems = line.world.api.problems();
        let problem = problems.iter().find(|problem| problem.to_string().contains(&format!("factory-line/{FIRST}")));
        if let Some(problem) = problem {
            return Some(format!("hub: {problem}"));
        }
        line.entry(FIRST).filter(|entry| entry["workload"]["commit"] == commit.as_str())?;
        let seen = line.condition(FIRST)?;
        (seen["condition"] == "Failed" && seen["desired"] != seen["running"]).then(|| format!("host: {seen}"))
    })
}

#[test]
fn each_escape_of_a_workload_is_refused_and_changes_nothing() {
    let Some(line) = Line::start() else { return };
    line.await_converged(FIRST);
    let host = &line.host;
    line.repository.add(&Deb::new("rogue", "1").file("/usr/bin/rogue", "x", 0o755));
    host.ok(&["apt-get", "-q", "update"]);
    // What the workload's own user may do beforehand.
    host.sh(&format!("ln -s /etc /srv/{FIRST}/link; chown -h --reference=/srv/{FIRST} /srv/{FIRST}/link"));
    let tool = || Workload::tool(FIRST, "1.0");
    let file = |path: &str, more: &str| tool().file(path, "escape", "escape\n", more);
    let unit = |text: &str| {
        let mut workload = tool();
        workload.units.push(text.to_owned());
        workload
    };
    let mut rogue_file = tool();
    rogue_file.debs.push("{file: rogue.deb}".to_owned());
    rogue_file.content.insert("rogue.deb".to_owned(), std::fs::read(line.repository.path("rogue", "1")).unwrap());
    // Its name is on the list; that means apt's.
    line.repository.add(&Deb::new("tool", "999").field("X-Whose", "the tenant's").file("/usr/bin/tool", "x", 0o755));
    let mut called_like_another = Workload::tool(FIRST, "1.0");
    called_like_another.debs = vec!["{file: tool_999.deb}".to_owned()];
    called_like_another
        .content
        .insert("tool_999.deb".to_owned(), std::fs::read(line.repository.path("tool", "999")).unwrap());
    line.repository.drop_version("tool", "999");
    host.ok(&["apt-get", "-q", "update"]);
    let escapes = [
        ("a path outside", file("/etc/cron.d/escape", "owner: root")),
        ("a path that climbs out", file(&format!("/srv/{FIRST}/../../etc/escape"), "")),
        ("a symlink on the way", file(&format!("/srv/{FIRST}/link/escape"), "")),
        ("a setuid file", file(&format!("/srv/{FIRST}/escape"), "mode: \"4755\"")),
        ("somebody's unit", unit("{name: dbus.service, running: false, enabled: false}")),
        ("a unit file of somebody", file("/etc/systemd/system/dbus.service", "owner: root")),
        ("the agent's unit", unit("{name: kedge-agent.service, running: false}")),
        ("the agent's settings", file("/etc/kedge/agent.toml", "owner: root")),
        ("the agent's state", file("/var/lib/kedge-agent/identity.a", "owner: root")),
        ("the agent's deb", tool().deb("kedge-agent", "1")),
        ("a deb that isn't on the list", tool().deb("rogue", "1")),
        ("a deb file that isn't on the list", rogue_file),
        ("a deb file that is called like a deb on the list", called_like_another),
        ("another workload's settings", file("/etc/kedge/workloads/hello-other/platform-config.env", "")),
    ];
    let before = Fingerprint::of(host);
    for (what, escape) in escapes {
        let said = refusal(&line, &escape);
        eprintln!("{what}: {said}");
        before.assert_same(&Fingerprint::of(host), what);
        assert!(host.is_active("kedge-agent.service") && host.is_active("dbus.service"), "{what}");
        // Back to something good, so that each escape is tried from the same state.
        let good = tool().file(&format!("/srv/{FIRST}/note"), "note", what, "");
        line.deliver(FIRST, &good);
        line.await_converged(FIRST);
        line.deliver(FIRST, &tool());
        line.await_converged(FIRST);
    }
    before.assert_same(&Fingerprint::of(host), "at the end");
}
