//! Each escape is tried.

use kedge_model::kinds::{Allow, Folder, HostNamespace};
use proptest::prelude::*;

use super::*;

pub fn tenant() -> Tenant {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    Tenant {
        assignment: "hello-test".to_owned(),
        namespace: "dev-vm-hello".to_owned(),
        user: "hello".to_owned(),
        group: "hello".to_owned(),
        slice: "kedge-dev_vm_hello.slice".to_owned(),
        given: HostNamespace {
            folders: vec![Folder { path: "/srv/app".to_owned(), mode: 0o750 }],
            allow: Allow {
                debs: words(&["nginx", "libc6:armhf"]),
                deb_files: vec![Digest::of(b"a deb").hex()],
                paths: words(&["/etc/nginx/conf.d", "/etc/motd", "/etc/systemd/system/odd.service"]),
                units: words(&["nginx.service", "getty@.service"]),
            },
            ..HostNamespace::default()
        },
    }
}

#[test]
fn own_and_allowed_paths_are_taken() {
    let tenant = tenant();
    for path in
        ["/srv/app/x", "/srv/app/a/b", "/etc/nginx/conf.d/a.conf", "/etc/motd", "/etc/kedge/workloads/hello-test/x.env"]
    {
        assert_eq!(tenant.check_path(path), Ok(Place::Plain), "{path}");
    }
    let unit = |unit: &str, named| Ok(Place::Unit { unit: unit.to_owned(), named });
    assert_eq!(tenant.check_path("/etc/systemd/system/hello-test.service"), unit("hello-test.service", false));
    assert_eq!(tenant.check_path("/etc/systemd/system/hello-test-x.timer"), unit("hello-test-x.timer", false));
    assert_eq!(tenant.check_path("/etc/systemd/system/hello-test@.service"), unit("hello-test@.service", false));
    assert_eq!(tenant.check_path("/etc/systemd/system/hello-test.service.d/a.conf"), unit("hello-test.service", false));
    assert_eq!(tenant.check_path("/etc/systemd/system/nginx.service.d/a.conf"), unit("nginx.service", true));
    assert_eq!(tenant.check_path("/etc/systemd/system/odd.service"), unit("odd.service", false));
}

#[test]
fn every_path_outside_is_refused() {
    for path in [
        "/etc/passwd",
        "/srv/appX",
        "/srv/appX/y",
        "/srv",
        "/",
        "",
        "srv/app/x",
        "/srv/app/../x",
        "/srv/app/./x",
        "/srv/app//x",
        "/srv/app/x/",
        "/srv/app/\0",
        "/srv/app/a\nb",
        "//srv/app/x",
        "/etc/nginx",
        "/etc/motd2",
        "/etc/nginx/conf.dx/a",
        "/etc/systemd/system/ssh.service",
        "/etc/systemd/system/hello-test.service.wants/x.service",
        "/etc/systemd/system/hello-test-.service.d/x.conf",
        "/etc/systemd/system/service.d/x.conf",
        "/etc/systemd/system",
        "/etc/systemd/system/hello-test.mount",
        "/etc/systemd/system/hello-test.slice",
        "/etc/systemd/system.conf",
        "/etc/systemd/system/hello-test.service.d/zzz-kedge.conf",
        "/etc/systemd/system/hello-test.service.d/zzzz.conf",
        "/etc/systemd/system/hello-test.service.d/~.conf",
        "/etc/systemd/system/hello-test.service.d/a/b.conf",
        "/etc/systemd/system/hello-testx.service",
        "/usr/lib/systemd/system/ssh.service",
        "/etc/systemd/system/multi-user.target.wants/hello-test.service",
    ] {
        assert!(tenant().check_path(path).is_err(), "{path:?}");
    }
    let sentence = tenant().check_path("/etc/passwd").unwrap_err().to_string();
    assert_eq!(
        sentence,
        "`/etc/passwd` is outside of the workload's folders (/srv/app, /etc/kedge/workloads/hello-test); the platform team can add `/etc/passwd` to `allow.paths` of HostNamespace `dev-vm-hello`"
    );
}

#[test]
fn nothing_allows_the_agent_itself() {
    let mut tenant = tenant();
    tenant.given.allow.paths = ["/etc", "/var", "/usr", "/run"].map(str::to_owned).into();
    tenant.given.allow.units = ["kedge-agent.service", "kedge-agent@x.service"].map(str::to_owned).into();
    tenant.given.allow.debs = vec!["kedge-agent".to_owned()];
    for path in [
        "/etc/kedge/agent.toml",
        "/etc/kedge",
        "/etc/kedge/workloads/other/x",
        "/etc/kedge/workloads",
        "/var/lib/kedge-agent/identity.a",
        "/var/lib/kedge-agent",
        "/usr/bin/kedge-agent",
        "/usr/lib/systemd/system/kedge-agent.service",
        "/etc/systemd/system/kedge-agent.service.d/x.conf",
        "/etc/systemd/system/kedge-agent.service",
        "/run/kedge-agent/x",
        "/etc/kedge/workloads/hello-test/platform-config.env",
        "/etc/kedge/workloads/hello-testx/a",
    ] {
        assert!(tenant.check_path(path).is_err(), "{path}");
    }
    for unit in ["kedge-agent.service", "kedge-agent.timer", "kedge-agent@x.service"] {
        assert!(tenant.check_unit(unit).unwrap_err().to_string().contains("the agent itself"), "{unit}");
    }
    for deb in ["kedge-agent", "kedge-agent:arm64"] {
        assert!(tenant.check_deb(deb).unwrap_err().to_string().contains("the agent itself"), "{deb}");
    }
    // A workload `kedge` with a target `agent`.
    tenant.assignment = "kedge-agent".to_owned();
    assert!(tenant.check_unit("kedge-agent.service").is_err());
    assert!(tenant.check_path("/etc/systemd/system/kedge-agent.service").is_err());
}

#[test]
fn units_of_others_are_refused() {
    let tenant = tenant();
    for unit in
        ["hello-test.service", "hello-test-a.timer", "hello-test@1.service", "nginx.service", "getty@tty1.service"]
    {
        assert_eq!(tenant.check_unit(unit), Ok(()), "{unit}");
    }
    for unit in [
        "ssh.service",
        "hello.service",
        "hello-testing.service",
        "hello-test",
        "hello-test-.service",
        "hello-test.mount",
        "hello-test.slice",
        "-x.service",
        "a b.service",
        "nginx.socket",
        "hello-test.service\n",
        "../hello-test.service",
        "",
        ".service",
        "x.device",
    ] {
        assert!(tenant.check_unit(unit).is_err(), "{unit:?}");
    }
    let named_like_systemd = Tenant { assignment: "systemd-logind".to_owned(), ..tenant };
    let sentence = named_like_systemd.check_unit("systemd-logind.service").unwrap_err().to_string();
    assert!(sentence.starts_with("the host has a unit `systemd-logind.service`"), "{sentence}");
}

#[test]
fn debs_must_be_on_the_list() {
    let tenant = tenant();
    for deb in ["nginx", "nginx:arm64", "libc6:armhf"] {
        assert_eq!(tenant.check_deb(deb), Ok(()), "{deb}");
    }
    let sentence = tenant.check_deb("sudo").unwrap_err().to_string();
    assert!(sentence.contains("`allow.debs` of HostNamespace `dev-vm-hello`"), "{sentence}");
    for deb in ["libc6", "-o", "nginx evil", "", "n", "nginx=1", "nginx*", "../x.deb"] {
        assert!(tenant.check_deb(deb).is_err(), "{deb:?}");
    }
}

#[test]
fn a_deb_file_is_allowed_by_its_digest_alone() {
    let tenant = tenant();
    assert_eq!(tenant.check_deb_file(Some("rogue"), "rogue.deb", &Digest::of(b"a deb")), Ok(()));
    let other = Digest::of(b"another");
    let sentence = tenant.check_deb_file(Some("nginx"), "nginx_999.deb", &other).unwrap_err().to_string();
    assert!(
        sentence.contains("`nginx_999.deb`") && sentence.contains("`allow.debFiles` of HostNamespace"),
        "{sentence}"
    );
    assert!(sentence.contains(&other.hex()), "{sentence}");
    // Neither a name nor the agent itself comes in by a digest that is on the other list.
    assert!(tenant.check_deb(&Digest::of(b"a deb").hex()).is_err());
    let agent = tenant.check_deb_file(Some("kedge-agent"), "x.deb", &Digest::of(b"a deb")).unwrap_err();
    assert!(agent.to_string().contains("the agent itself"), "{agent}");
}

#[test]
fn owners_and_modes_are_the_tenants_own() {
    let tenant = tenant();
    let unit = Place::Unit { unit: "hello-test.service".to_owned(), named: true };
    for owner in [None, Some("hello"), Some("hello:hello")] {
        assert_eq!(tenant.check_access("/srv/app/x", &Place::Plain, owner, 0o755), Ok(()));
    }
    for owner in [None, Some("root"), Some("root:root")] {
        assert_eq!(tenant.check_access("/x", &unit, owner, 0o644), Ok(()));
    }
    for (place, owner, mode) in [
        (&Place::Plain, None, 0o4755),
        (&Place::Plain, None, 0o2755),
        (&Place::Plain, None, 0o1777),
        (&Place::Plain, Some("root"), 0o644),
        (&Place::Plain, Some("hello:root"), 0o644),
        (&Place::Plain, Some("root:hello"), 0o644),
        (&Place::Plain, Some("0"), 0o644),
        (&Place::Plain, Some(""), 0o644),
        (&Place::Plain, Some("hello:"), 0o644),
        (&unit, Some("hello"), 0o644),
        (&unit, None, 0o666),
        (&unit, None, 0o664),
        (&unit, None, 0o4644),
    ] {
        assert!(tenant.check_access("/x", place, owner, mode).is_err(), "{place:?} {owner:?} {mode:o}");
    }
}

#[test]
fn accidents_in_a_namespace_are_refused() {
    assert_eq!(namespace::check(&tenant()), Vec::<String>::new());
    for folder in [
        "/",
        "/etc",
        "/usr",
        "/usr/bin/x",
        "/var/lib",
        "/var/lib/dpkg",
        "/var/lib/kedge-agent",
        "/etc/kedge",
        "/srv/../etc",
        "srv",
        "/proc/1",
        "/etc/systemd/system",
    ] {
        let mut tenant = tenant();
        tenant.given.folders[0].path = folder.to_owned();
        assert_eq!(namespace::check(&tenant).len(), 1, "{folder}");
    }
    for user in ["root", "", "kedge-agent", "-x", "a b", "Root", "0", "x:y", "a\n", &"x".repeat(33)] {
        let tenant = Tenant { user: user.to_owned(), ..tenant() };
        assert_eq!(namespace::check(&tenant).len(), 1, "{user:?}");
    }
    let mut tenant = tenant();
    tenant.given.allow.paths = vec!["/etc/../x".to_owned(), "/".to_owned()];
    assert_eq!(namespace::check(&tenant).len(), 2);
}

fn refused(text: &str) -> Vec<String> {
    unit_file::check(text, "hello-test.service", &tenant()).iter().map(ToString::to_string).collect()
}

#[test]
fn an_ordinary_unit_is_taken() {
    let text = "# a comment\n[Unit]\nDescription=Hello\nAfter=network-online.target ssh.service\nWants=network-online.target hello-test-x.service\n\
        Conflicts=shutdown.target\nBefore=shutdown.target\nConditionPathExists=/etc/os-release\n\n[Service]\nType=notify\nUser=hello\nGroup=hello\n\
        ExecStartPre=-/bin/true\nExecStart=/srv/app/run --port 8080 \\\n  --verbose\nEnvironmentFile=-/etc/kedge/workloads/hello-test/platform-config.env\n\
        Restart=always\nRestartSec=2\nStateDirectory=hello-test hello-test/cache hello-test/x\nNoNewPrivileges=True\nStartLimitBurst=3\nProtectSystem=strict\nAmbientCapabilities=\n\
        StandardOutput=journal\nNice=5\nMemoryMax=64M\nSlice=kedge-dev_vm_hello.slice\nX-Ours=1\n\n[Install]\nWantedBy=multi-user.target\n";
    assert_eq!(refused(text), Vec::<String>::new());
    for (path, text) in [
        (
            "/etc/systemd/system/hello-test.timer",
            "[Timer]\nOnCalendar=daily\nUnit=hello-test.service\n[Install]\nWantedBy=timers.target\n",
        ),
        (
            "/etc/systemd/system/hello-test.socket.d/a.conf",
            "[Unit]\nBefore=sockets.target\n[Socket]\nListenStream=8080\nListenStream=127.0.0.1:9000\nListenStream=[::1]:9000\n\
             ListenStream=/run/hello-test/s\nAccept=no\n[Install]\nWantedBy=sockets.target\n",
        ),
        ("/etc/systemd/system/hello-test.path", "[Path]\nPathExists=/srv/app/x\n[Install]\nWantedBy=paths.target\n"),
    ] {
        assert_eq!(unit_file::check(text, path, &tenant()), Vec::new());
        assert!(!refused(text).is_empty(), "a service isn't wanted there: {text}");
    }
    assert_eq!(refused("\u{feff}[Service]\r\nExecStart=/bin/a \\\r\n  b\r\n"), Vec::<String>::new());
    assert_eq!(refused("[Unit]\nWants=sysinit.target basic.target\nAfter=sysinit.target\n"), Vec::<String>::new());
    assert_eq!(refused("[Service]\nTimeoutStartSec=5min\nTimeoutStopSec=90\nTimeoutSec=1h\n"), Vec::<String>::new());
    assert_eq!(refused("[Unit]\nWants=hello-test@%i.service nginx.service\n"), Vec::<String>::new());
}

#[test]
fn a_socket_or_path_that_would_wait_for_something_late_is_refused() {
    for kind in ["socket", "path"] {
        let path = format!("/etc/systemd/system/hello-test.{kind}");
        let check = |text: &str| unit_file::check(text, &path, &tenant());
        for text in ["After=hello-test.service", "After=network-online.target", "RequiresMountsFor=/mnt/far"] {
            assert!(check(&format!("[Unit]\n{text}\n"))[0].to_string().contains("boot wait"), "{text}");
        }
        assert_eq!(check("[Unit]\nAfter=sysinit.target hello-test-x.socket\nBefore=hello-test-y.path\n"), Vec::new());
    }
    assert_eq!(
        refused("[Unit]\nAfter=hello-test.socket network-online.target\nRequiresMountsFor=/srv/app\n"),
        Vec::<String>::new()
    );
}

#[test]
fn a_timer_that_would_close_a_cycle_is_refused() {
    let check = |text: &str| unit_file::check(text, "/etc/systemd/system/hello-test.timer", &tenant());
    for text in ["After=timers.target", "After=ssh.service"] {
        assert!(check(&format!("[Unit]\n{text}\n"))[0].to_string().contains("waits for all timers"), "{text}");
    }
    assert_eq!(check("[Unit]\nAfter=network-online.target time-sync.target hello-test.service\n"), Vec::new());
}

#[test]
fn nothing_of_the_host_waits_for_a_tenants_unit() {
    let tenant = tenant();
    for unit in ["hello-test.service", "hello-test@.service", "hello-test-x.target"] {
        let text = tenant.drop_in(unit, true).unwrap();
        assert!(text.contains("[Unit]\n") && text.contains("\nDefaultDependencies=no\n"), "{unit}: {text}");
        assert!(
            text.contains("\nBefore=shutdown.target\n") && text.contains("\nConflicts=shutdown.target\n"),
            "{text}"
        );
    }
    let service = tenant.drop_in("hello-test.service", true).unwrap();
    assert!(service.contains("\nAfter=sysinit.target basic.target\n"), "{service}");
    assert_eq!(tenant.drop_in("hello-test.timer", true), None);
    assert_eq!(tenant.drop_in("hello-test.target", false), None);
    assert!(!tenant.drop_in("nginx.service", false).unwrap().contains("[Unit]"));
}

#[test]
fn each_way_to_more_power_is_refused() {
    for line in [
        "[Unit]\nConditionPathExistsGlob=/srv/app/*/*/x",
        "[Unit]\nAssertPathExistsGlob=/dev/*/*/*/*/*",
        "[Path]\nPathExistsGlob=/sys/*/*/*/*/*/*/*/*/x",
        "[Path]\nDirectoryNotEmpty=/root",
        "[Unit]\nRequiresMountsFor=/srv/app /mnt/backup",
        "[Service]\nWorkingDirectory=/mnt/backup",
        "[Service]\nExecStart=+/bin/sh",
        "[Service]\nExecStart=-+/bin/sh",
        "[Service]\nExecStartPre=!/bin/sh",
        "[Service]\nExecStop=!!/bin/sh",
        "[Service]\nExecStart=@+/bin/sh sh",
        "[Service]\nType=oneshot\nExecStart=/bin/a ; +/bin/sh",
        "[Service]\nExecStart=\\\n+/bin/sh",
        "[Service]\nExecStart=\\x2b/bin/sh -c id",
        "[Service]\nExecStart=\\053/bin/sh -c id",
        "[Service]\nExecStart=\\u002b/bin/sh",
        "[Service]\nExecStartPre=-\\x2b/bin/sh",
        "[Service]\nExecStop=\"+/bin/sh\" -c id",
        "[Service]\nExecReload=\"\"+/bin/sh",
        "[Service]\nExecStart=|/bin/sh",
        "[Service]\nExecStart=/bin/a \"x\" ; '+/bin/sh'",
        "[Service]\nExecStart=\\\r\n+/bin/sh x=1",
        "[Service]\nExecStart=\\\n# between\n\u{feff}+/bin/sh",
        "[Service]\nDescription=x\rExecStart=+/bin/sh",
        "[Service]\nUser=root",
        "[Service]\nUser=",
        "[Service]\nUser=0",
        "[Service]\nGroup=root",
        "[Service]\nSupplementaryGroups=docker",
        "[Service]\nAmbientCapabilities=CAP_SYS_ADMIN",
        "[Service]\nNoNewPrivileges=No",
        "[Service]\nFailureAction=reboot",
        "[Service]\nPermissionsStartOnly=true",
        "[Service]\nDynamicUser=yes",
        "[Service]\nSlice=system.slice",
        "[Service]\nPAMName=login",
        "[Service]\nRootDirectory=/x",
        "[Service]\nBindPaths=/etc",
        "[Service]\nStandardOutput=file:/etc/passwd",
        "[Service]\nStandardOutput=append:/srv/app/log",
        "[Service]\nStandardInput=tty",
        "[Service]\nEnvironmentFile=/etc/shadow",
        "[Service]\nEnvironmentFile=/srv/app/env",
        "[Service]\nEnvironmentFile=/etc/kedge/workloads/other/platform-config.env",
        "[Service]\nEnvironmentFile=/etc/kedge/workloads/*/x",
        "[Service]\nEnvironmentFile=/etc/kedge/workloads/hello-test/../other/x",
        "[Service]\nEnvironmentFile=/etc/kedge/workloads/hello-test/\\.\\./other/platform-config.env",
        "[Service]\nEnvironmentFile=/etc/kedge/workloads/hello-test/.{.,}/other/platform-config.env",
        "[Service]\nStateDirectory=hello-test\\x2f..\\x2fdpkg",
        // It may be another assignment's.
        "[Service]\nStateDirectory=hello-test-prod",
        "[Service]\nRuntimeDirectory=hello-test hello-test-prod",
        "[Service]\nStateDirectory=hello-test/\"x\"",
        // The tenant owns /var/lib/hello-test and makes `a` a symlink to /etc.
        "[Service]\nStateDirectory=hello-test/a/systemd",
        "[Service]\nTimeoutStartSec=infinity",
        "[Service]\nTimeoutStartSec=0",
        "[Service]\nTimeoutStartSec=0.0000001",
        "[Service]\nTimeoutSec=2h",
        "[Service]\nTimeoutStopSec=infinity",
        "[Service]\nTimeoutStartSec=",
        "[Unit]\nJobRunningTimeoutSec=infinity",
        "[Service]\nLoadCredential=a:/etc/shadow",
        "[Service]\nStateDirectory=dpkg",
        "[Service]\nStateDirectory=hello-test/../dpkg",
        "[Service]\nRuntimeDirectory=hello-test:x",
        "[Service]\nNice=-5",
        "[Service]\nOOMScoreAdjust=-1000",
        "[Service]\nCPUSchedulingPolicy=fifo",
        "[Service]\nIOSchedulingClass=realtime",
        "[Service]\nLimitRTPRIO=99",
        "[Service]\nDelegate=yes",
        "[Service]\nSockets=dbus.socket",
        "[Unit]\nConflicts=ssh.service",
        "[Unit]\nOnFailure=reboot.target",
        "[Unit]\nOnSuccess=x.service",
        "[Unit]\nPropagatesStopTo=ssh.service",
        "[Unit]\nFailureAction=reboot",
        "[Unit]\nStartLimitAction=poweroff-force",
        "[Unit]\nJobTimeoutAction=reboot",
        "[Unit]\nWants=ssh.service",
        "[Unit]\nRequires=rescue.target",
        "[Unit]\nBefore=ssh.service",
        "[Unit]\nBefore=sysinit.target",
        "[Unit]\nBefore=basic.target",
        "[Unit]\nBefore=network-online.target",
        "[Unit]\nBefore=sockets.target",
        "[Unit]\nBefore=multi-user.target",
        "[Unit]\nConflicts=hello-test-%i.service",
        "[Unit]\nWants=hello-test-%j@x.service",
        "[Unit]\nDefaultDependencies=no\nBefore=hello-test.socket",
        "[Unit]\nBefore=hello-test-x.service hello-test.path",
        "[Unit]\nJoinsNamespaceOf=ssh.service",
        "[Unit]\nUpholds=kedge-agent.service",
        "[Install]\nAlias=dbus.service",
        "[Install]\nAlso=ssh.service",
        "[Install]\nRequiredBy=multi-user.target",
        "[Install]\nWantedBy=reboot.target",
        "[Install]\nWantedBy=sysinit.target",
        "[Install]\nWantedBy=basic.target",
        "[Install]\nWantedBy=local-fs.target",
        "[Install]\nWantedBy=multi-user.target network-pre.target",
        "[Install]\nWantedBy=timers.target",
        "[Timer]\nUnit=reboot.target",
        "[Timer]\nWakeSystem=yes",
        "[Path]\nUnit=ssh.service",
        "[Path]\nMakeDirectory=yes",
        "[Socket]\nListenStream=22",
        "[Socket]\nListenStream=/run/dbus/system_bus_socket",
        "[Socket]\nListenStream=@x:8080",
        "[Socket]\nListenStream=%t/dbus/x:8080",
        "[Socket]\nListenStream=/run/hello-test/a/passwd",
        "[Socket]\nExecStartPre=/bin/sleep infinity",
        "[Socket]\nService=ssh.service",
        "[Socket]\nSocketUser=root",
        "[Socket]\nExecStartPost=+/bin/sh",
        "[Socket]\nSymlinks=/etc/x",
        "[Mount]\nWhat=/dev/sda",
        "[Slice]\nCPUQuota=1%",
        // systemd removes, gives away, registers or looks at what it names, as root.
        "[Service]\nPIDFile=/etc/victimdir/victim",
        "[Service]\nPIDFile=hello-test/pid",
        "[Service]\nPIDFile=/run/hello-test",
        "[Service]\nPIDFile=/run/hello-test/../victim",
        "[Service]\nPIDFile=/run/hello-test/a/b",
        "[Service]\nBusName=org.freedesktop.timedate1",
        "[Service]\nType=dbus",
        "[Socket]\nSocketUser=hello",
        "[Socket]\nSocketGroup=hello",
        "[Socket]\nListenStream=/run/hello-test",
        "[Socket]\nReusePort=yes",
        "[Socket]\nReceiveBuffer=1G",
        "[Socket]\nWorkingDirectory=/mnt/far",
        "[Unit]\nConditionPathExists=/root/.ssh/id_rsa",
        "[Unit]\nAssertFileNotEmpty=!/root/x",
        "[Path]\nPathExists=/mnt/far/x",
        // It stays, or is somebody else's work.
        "[Service]\nKillMode=none",
        "[Service]\nKillMode=process",
        "[Service]\nSendSIGKILL=no",
        "[Service]\nFinalKillSignal=SIGCONT",
        "[Unit]\nRefuseManualStop=yes",
        "[Service]\nKeyringMode=inherit",
        "[Unit]\nStartLimitIntervalSec=0",
        "[Unit]\nStartLimitBurst=0",
        "[Service]\nStartLimitInterval=1us",
        "[Service]\nFileDescriptorStoreMax=1000000",
        "[Service]\nLogRateLimitIntervalSec=0",
        "[Service]\nLogRateLimitBurst=0",
        "[Service]\nLogFilterPatterns=(a+)+b",
        "[Service]\nStandardOutput=journal+console",
        "[Socket]\nTriggerLimitIntervalSec=0",
        "[Path]\nTriggerLimitBurst=0",
        "[Timer]\nAccuracySec=1us",
        "[Service]\nUnknown=1",
        "User=root",
        ".include /etc/x",
        "[Service]\nExecStart=/bin/a\0",
    ] {
        assert!(!refused(line).is_empty(), "{line:?}");
    }
    let sentence = refused("[Service]\n\nUser=root\n").remove(0);
    assert_eq!(
        sentence,
        "hello-test.service:3: `User=root` must be the namespace's user `hello`, or be left out; or the platform team can allow the unit by name in `allow.units` of HostNamespace `dev-vm-hello`"
    );
}

#[test]
fn what_affects_the_workload_alone_is_taken() {
    for text in [
        "[Service]\nType=forking\nPIDFile=/run/hello-test/pid\nRuntimeDirectory=hello-test\n",
        "[Service]\nKillMode=mixed\nKeyringMode=private\nSendSIGKILL=yes\nFileDescriptorStoreMax=16\n",
        "[Unit]\nStartLimitIntervalSec=1d\nStartLimitBurst=5\n[Service]\nRestart=always\nRestartSec=0\n",
        "[Unit]\nConditionPathExists=!/srv/app/off\nConditionVirtualization=!container\nConditionMemory=>1G\n",
        "[Timer]\nOnCalendar=hourly\nAccuracySec=1s\n",
        "[Path]\nPathExistsGlob=/srv/app/in/*.json\nTriggerLimitIntervalSec=2s\nTriggerLimitBurst=20\n",
    ] {
        assert_eq!(refused(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn folders_by_kedges_own_name_are_reserved() {
    for assignment in ["kedge-hub", "kedge", "kedge-agent"] {
        let tenant = Tenant { assignment: assignment.to_owned(), ..tenant() };
        for text in [
            format!("[Service]\nStateDirectory={assignment}\n"),
            format!("[Service]\nPIDFile=/run/{assignment}/x\n"),
            format!("[Socket]\nListenStream=/run/{assignment}/x\n"),
        ] {
            let refused = unit_file::check(&text, "x.service", &tenant);
            assert_eq!(refused.len(), 1, "{text}");
        }
        let text = format!("[Service]\nLogsDirectory={assignment}\n");
        let sentence = unit_file::check(&text, "x.service", &tenant).remove(0).to_string();
        assert!(sentence.contains("names that begin with `kedge`"), "{sentence}");
    }
}

proptest! {
    #[test]
    fn no_path_that_is_taken_is_outside(path in "(/(srv|app|appX|etc|nginx|conf\\.d|kedge|workloads|hello-test|\\.\\.|\\.|systemd|system|x\\.service|)){0,6}") {
        if tenant().check_path(&path) == Ok(Place::Plain) {
            let inside = ["/srv/app", "/etc/nginx/conf.d", "/etc/motd", "/etc/kedge/workloads/hello-test"].iter().any(|folder| path::is_below(&path, folder));
            prop_assert!(inside && !path.contains("..") && !path.contains("//"));
        }
    }

    #[test]
    fn no_name_or_text_panics(text in any::<String>()) {
        let tenant = tenant();
        let _ = (tenant.check_path(&text), tenant.check_unit(&text), tenant.check_deb(&text));
        let _ = (refused(&text), refused(&format!("[Service]\nExecStart={text}\nStateDirectory={text}\n")));
        let _ = tenant.check_access("/x", &Place::Plain, Some(&text), 0);
    }
}
