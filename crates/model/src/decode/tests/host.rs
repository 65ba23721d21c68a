//! Deliveries, HostWorkloads and HostNamespaces.

use std::time::Duration;

use super::*;
use crate::kinds::{
    ArtifactSource, Conflicts, Deb, Delivery, Destination, Drift, Folder, HealthProbe, Limits, Rollback, Scope,
    SourceRef,
};

const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn delivery_defaults_are_the_careful_ones() {
    let Spec::Delivery(read) = spec_of(&kedge("Delivery", "  source: {repo: u}\n  to: kubernetes\n")) else {
        panic!("another kind")
    };
    assert_eq!(read.source.reference, SourceRef::Branch("main".into()));
    assert_eq!(read.source.path, ".");
    assert_eq!((read.to, read.scope, read.conflicts), (Destination::Kubernetes, Scope::Namespace, Conflicts::Fail));
    assert_eq!((read.rollback, read.drift), (Rollback::Auto, Drift::Repair));
    assert_eq!((read.timeout, read.soak), (Delivery::DEFAULT_TIMEOUT, Delivery::DEFAULT_SOAK));
    assert_eq!((read.namespace, read.service_account), (None, None));
}

#[test]
fn delivery_is_read() {
    let spec = "  source: {repo: u, ref: {tag: v1}, path: p}\n  to: host\n  namespace: ns\n  scope: cluster\n  conflicts: take\n  serviceAccount: s\n  timeout: 10m\n  soak: 1h30m\n  rollback: never\n  drift: report\n";
    let Spec::Delivery(read) = spec_of(&kedge("Delivery", spec)) else { panic!("another kind") };
    assert_eq!(read.source.reference, SourceRef::Tag("v1".into()));
    assert_eq!((read.timeout, read.soak), (Duration::from_secs(600), Duration::from_secs(5400)));
    assert_eq!((read.rollback, read.drift), (Rollback::Never, Drift::Report));
}

#[test]
fn delivery_errors_are_told_at_once() {
    let spec = "  source: {repo: u, ref: {tag: v1, branch: b}}\n  to: docker\n  timeout: 30\n  scope: all\n";
    assert_eq!(
        broken(&kedge("Delivery", spec)),
        [
            "5:26 !InvalidValue: `spec.source.ref` of Delivery `x` must have one of `branch`, `tag` and `commit`",
            "6:7 !UnknownValue: `spec.to` of Delivery `x` can't be `docker` | write `kubernetes` or `host`",
            "7:12 !InvalidValue: `spec.timeout` of Delivery `x` is `30`, and it isn't a duration such as `30s`, `5m` or `1h30m`",
            "8:10 !UnknownValue: `spec.scope` of Delivery `x` can't be `all` | write `namespace` or `cluster`",
        ]
    );
}

#[test]
fn host_workload_is_read() {
    let spec = format!(
        "  debs:\n  - {{name: nginx, version: 1.22.1-9}}\n  - {{file: debs/app.deb}}\n  files:\n  - {{path: /etc/app.conf, file: app.conf, mode: \"0600\", template: true}}\n  artifacts:\n  - {{path: /var/lib/m, url: 'https://h/m', sha256: {DIGEST}}}\n  units:\n  - {{name: app.service, running: false, restartOn: [/etc/app.conf]}}\n  health:\n  - {{unit: app.service}}\n  - {{http: 'http://localhost/', timeout: 5s}}\n  - {{tcp: 'localhost:80'}}\n  - {{exec: [/bin/true]}}\n  - {{hub: true}}\n  soak: 10s\n"
    );
    let Spec::HostWorkload(read) = spec_of(&kedge("HostWorkload", &spec)) else { panic!("another kind") };
    assert_eq!(read.debs[0], Deb::Apt { name: "nginx".into(), version: "1.22.1-9".into() });
    assert_eq!(read.debs[1], Deb::File("debs/app.deb".into()));
    assert_eq!((read.files[0].mode, read.files[0].template), (0o600, true));
    assert_eq!(read.artifacts[0].source, ArtifactSource::Url("https://h/m".into()));
    assert_eq!((read.units[0].enabled, read.units[0].running), (true, false));
    let probes: Vec<_> = read.health.iter().map(|check| check.probe.clone()).collect();
    assert_eq!(probes[2], HealthProbe::Tcp("localhost:80".into()));
    assert_eq!(probes[4], HealthProbe::Hub);
    assert_eq!(read.health[1].timeout, Duration::from_secs(5));
    assert_eq!((read.timeout, read.soak), (None, Some(Duration::from_secs(10))));
}

#[test]
fn a_host_workload_has_no_text_that_a_log_or_apt_reads_otherwise() {
    for (spec, path) in [
        ("debs: [{name: x, version: \"1\\nPackage: *\"}]", "spec.debs[0].version"),
        ("debs: [{name: x, version: \"* sudo\"}]", "spec.debs[0].version"),
        ("debs: [{name: x, version: -o}]", "spec.debs[0].version"),
        ("health: [{exec: [/bin/true, \"a\\n INFO done\"]}]", "spec.health[0].exec[1]"),
        ("health: [{http: \"http://127.0.0.1/\\r\\nx\"}]", "spec.health[0].http"),
        ("health: [{unit: \"a\\u202Eb\"}]", "spec.health[0].unit"),
        ("files: [{path: \"/srv/a\\u2028b\", file: a}]", "spec.files[0].path"),
    ] {
        let said = broken(&kedge("HostWorkload", &format!("  {spec}\n")));
        assert!(said.iter().any(|line| line.contains(path)), "{spec}: {said:?}");
    }
}

#[test]
fn host_workload_errors_are_told_at_once() {
    let spec = "  debs:\n  - {name: kedge-agent, version: '1'}\n  files:\n  - {path: etc/x, file: ../y, mode: 0644}\n  artifacts:\n  - {path: /m, sha256: abc}\n  units:\n  - {name: kedge-agent.service}\n  health:\n  - {timeout: 1s}\n  - {tcp: here}\n";
    let said = broken(&kedge("HostWorkload", spec));
    let codes: Vec<_> = said.iter().map(|line| line.split(" of ").next().unwrap()).collect();
    assert_eq!(
        codes,
        [
            "6:12 !NotAllowed: `spec.debs[0].name`",
            "8:12 !InvalidValue: `spec.files[0].path`",
            "8:25 !InvalidValue: `spec.files[0].file`",
            "8:37 !NotAString: `spec.files[0].mode`",
            "10:5 !InvalidValue: `spec.artifacts[0]`",
            "10:24 !InvalidValue: `spec.artifacts[0].sha256`",
            "12:12 !NotAllowed: `spec.units[0].name`",
            "14:5 !InvalidValue: `spec.health[0]`",
            "15:11 !InvalidValue: `spec.health[1].tcp`",
        ]
    );
}

#[test]
fn host_namespace_is_read() {
    let spec = "  user: app\n  folders:\n  - {path: /srv/app, mode: \"0700\"}\n  limits: {cpu: 0.5, memory: 512Mi, tasks: 100, disk: 10G}\n  allow:\n    debs: [nginx]\n    debFiles: [@]\n    paths: [/etc/nginx]\n    units: [nginx.service]\n";
    let spec = spec.replace('@', DIGEST);
    let Spec::HostNamespace(read) = spec_of(&kedge("HostNamespace", &spec)) else { panic!("another kind") };
    assert_eq!(read.folders, [Folder { path: "/srv/app".into(), mode: 0o700 }]);
    assert_eq!(
        read.limits,
        Limits { cpu: Some(500), memory: Some(512 << 20), tasks: Some(100), disk: Some(10_000_000_000) }
    );
    assert_eq!(read.allow.units, ["nginx.service"]);
    assert_eq!(read.allow.deb_files, [DIGEST]);
    assert!(matches!(spec_of(&kedge("HostNamespace", "  {}\n")), Spec::HostNamespace(_)));
}

#[test]
fn limit_that_is_not_known_is_refused() {
    let spec = "  limits: {memroy: 1Gi, cpu: many}\n";
    assert_eq!(
        broken(&kedge("HostNamespace", spec)),
        [
            "5:30 !InvalidValue: `spec.limits.cpu` of HostNamespace `x` is `many`, and it isn't a number of cores such as `2`, \
             `0.5` or `500m`",
            "5:12 !UnknownField: `spec.limits.memroy` of HostNamespace `x` isn't a field that Kedge knows | did you mean `memory`?",
        ]
    );
}
