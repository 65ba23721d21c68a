//! What a host refuses of a whole HostWorkload: each refusal with its entry, its place and its way out.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use kedge_model::kinds::{Artifact, ArtifactSource, HealthCheck, Unit};

use super::*;
use crate::tests::tenant;

/// Files by name; others can't be told.
#[derive(Default)]
struct Folder {
    files: BTreeMap<&'static str, &'static str>,
    is_no_host: bool,
}

impl Package for Folder {
    type Error = Infallible;

    fn text(&self, file: &FileEntry) -> Result<Option<String>, Infallible> {
        Ok(self.files.get(file.file.as_str()).map(|text| (*text).to_owned()))
    }

    fn deb(&self, file: &str) -> Result<Option<DebFile>, Infallible> {
        Ok(self.files.get(file).map(|text| DebFile { name: None, digest: Digest::of(text.as_bytes()) }))
    }

    fn runs_units(&self) -> bool {
        !self.is_no_host
    }
}

fn folder(files: &[(&'static str, &'static str)]) -> Folder {
    Folder { files: files.iter().copied().collect(), is_no_host: false }
}

fn file(path: &str, file: &str) -> FileEntry {
    FileEntry {
        path: path.to_owned(),
        file: file.to_owned(),
        owner: None,
        mode: FileEntry::DEFAULT_MODE,
        template: false,
    }
}

fn judged(workload: &HostWorkload, folder: &Folder) -> Judgement {
    let Ok(judgement) = judge(workload, &tenant(), folder);
    judgement
}

fn sentences(judgement: &Judgement) -> Vec<String> {
    judgement.refused.iter().map(|refused| refused.refusal.to_string()).collect()
}

const UNIT: &str = "/etc/systemd/system/hello-test.service";

#[test]
fn a_unit_that_the_workload_does_not_bring_is_neither_started_nor_stopped() {
    let workload = HostWorkload {
        files: vec![
            file(UNIT, "unit"),
            file("/etc/systemd/system/hello-test-a.service", "a"),
            file("/etc/systemd/system/hello-test@.service", "a"),
        ],
        ..HostWorkload::default()
    };
    let judged_with = |line: &str, folder: &Folder| {
        let text = format!("[Unit]\n{line}\n[Service]\nExecStart=/srv/app/run\n");
        let files = [("unit", &*Box::leak(text.into_boxed_str())), ("a", "[Service]\nExecStart=/srv/app/a\n")];
        let given = Folder { files: files.into(), is_no_host: folder.is_no_host };
        judged(&workload, &given)
    };
    let judgement = judged_with("Conflicts=hello-test-prod.service", &folder(&[]));
    assert_eq!(judgement.refused.len(), 1);
    assert_eq!((judgement.refused[0].entry, judgement.refused[0].file.as_deref()), (Entry::File(0), Some("unit")));
    let said = judgement.refused[0].refusal.to_string();
    assert!(said.contains("`hello-test-prod.service`") && said.contains("bring a file for it"), "{said}");
    for line in ["Conflicts=hello-test-a.service", "Wants=hello-test@%i.service hello-test@x.service nginx.service"] {
        assert_eq!(sentences(&judged_with(line, &folder(&[]))), Vec::<String>::new(), "{line}");
    }
    let is_no_host = Folder { is_no_host: true, ..Folder::default() };
    assert_eq!(sentences(&judged_with("Conflicts=hello-test-prod.service", &is_no_host)), Vec::<String>::new());
}

#[test]
fn an_honest_workload_is_refused_nothing() {
    let workload = HostWorkload {
        files: vec![file(UNIT, "unit"), file("/srv/app/run", "run")],
        debs: vec![Deb::Apt { name: "nginx".to_owned(), version: "1".to_owned() }, Deb::File("a.deb".to_owned())],
        units: vec![Unit {
            name: "hello-test.service".to_owned(),
            enabled: true,
            running: true,
            restart_on: Vec::new(),
        }],
        health: vec![HealthCheck {
            probe: HealthProbe::Unit("hello-test.service".to_owned()),
            timeout: Duration::from_secs(1),
        }],
        ..HostWorkload::default()
    };
    let text = "[Unit]\nConflicts=hello-test-old.service\n[Service]\nExecStart=/srv/app/run\n";
    let judgement = judged(&workload, &folder(&[("unit", text), ("a.deb", "a deb")]));
    assert_eq!(sentences(&judgement), Vec::<String>::new());
    assert_eq!(judgement.files.iter().flatten().count(), 2);
    assert_eq!((judgement.debs, judgement.units), (vec![true, true], vec![true]));
    assert_eq!(judgement.brought["hello-test.service"], [UNIT]);
    assert!(judgement.named.contains_key("hello-test-old.service"));
}

#[test]
fn every_refusal_is_told_at_once_in_the_order_of_the_workload() {
    let entry = |path: &str, name: &str| FileEntry { mode: 0o666, ..file(path, name) };
    let workload = HostWorkload {
        files: vec![
            file("/etc/passwd", "x"),
            entry(UNIT, "unit"),
            file("/etc/systemd/system/ssh.service.d/a.conf", "unit"),
        ],
        artifacts: vec![Artifact {
            path: "/etc/systemd/system/hello-test-a.service".to_owned(),
            source: ArtifactSource::File("x".to_owned()),
            sha256: "0".repeat(64),
        }],
        debs: vec![Deb::File("b.deb".to_owned())],
        units: vec![Unit { name: "ssh.service".to_owned(), enabled: true, running: true, restart_on: Vec::new() }],
        health: vec![HealthCheck { probe: HealthProbe::Unit("x".to_owned()), timeout: Duration::from_secs(1) }],
        ..HostWorkload::default()
    };
    let text = "[Service]\nExecStart=\\x2b/bin/sh\n\n[Install]\nWantedBy=sysinit.target\n";
    let judgement = judged(&workload, &folder(&[("unit", text), ("b.deb", "another")]));
    let found = sentences(&judgement);
    let expected = [
        "`/etc/passwd` is outside",
        "a unit's file is writable by root alone; use \"0644\"",
        "/etc/systemd/system/hello-test.service:2: `ExecStart=",
        "/etc/systemd/system/hello-test.service:5: `WantedBy=sysinit.target` may name",
        "the unit `ssh.service` isn't the workload's own",
        "is a unit's place and can't be an artifact; use `files`",
        "the deb file `b.deb` isn't on the namespace's list",
        "the unit `ssh.service` isn't the workload's own",
        "`x` can't be a unit's name",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (sentence, expected) in found.iter().zip(expected) {
        assert!(sentence.contains(expected), "{sentence}");
    }
    let entries: Vec<Entry> = judgement.refused.iter().map(|refused| refused.entry).collect();
    assert_eq!(entries[..5], [Entry::File(0), Entry::File(1), Entry::File(1), Entry::File(1), Entry::File(2)]);
    assert_eq!(entries[5..], [Entry::Artifact(0), Entry::Deb(0), Entry::Unit(0), Entry::Health(0)]);
    let named: Vec<Option<&str>> = judgement.refused.iter().map(|refused| refused.file.as_deref()).collect();
    assert_eq!(named[..4], [None, None, Some("unit"), Some("unit")]);
    assert_eq!(judgement.files.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!((judgement.debs, judgement.units), (vec![false], vec![false]));
}

#[test]
fn a_lone_drop_in_is_refused_where_units_run() {
    let workload = HostWorkload {
        files: vec![file("/etc/systemd/system/hello-test-x.service.d/a.conf", "unit")],
        ..HostWorkload::default()
    };
    let mut folder = folder(&[("unit", "[Service]\nExecStart=/srv/app/run\n")]);
    let found = sentences(&judged(&workload, &folder));
    assert!(
        found.len() == 1
            && found[0].contains("neither a file nor a deb of this workload brings; the platform team can"),
        "{found:?}"
    );
    folder.is_no_host = true;
    assert_eq!(sentences(&judged(&workload, &folder)), Vec::<String>::new());
    let deb = Deb::Apt { name: "nginx".to_owned(), version: "1".to_owned() };
    folder.is_no_host = false;
    assert_eq!(
        sentences(&judged(&HostWorkload { debs: vec![deb], ..workload }, &folder)),
        Vec::<String>::new(),
        "a deb may bring it"
    );
}

#[test]
fn files_that_cannot_be_told_are_judged_by_what_the_workload_says() {
    let workload = HostWorkload {
        files: vec![file(UNIT, "unit"), file("/etc/passwd", "x")],
        debs: vec![Deb::File("a.deb".to_owned())],
        ..HostWorkload::default()
    };
    let found = sentences(&judged(&workload, &Folder::default()));
    assert!(found.len() == 1 && found[0].starts_with("`/etc/passwd`"), "{found:?}");
}
