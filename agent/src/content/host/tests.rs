//! Whole goals from real archives.

use std::sync::Arc;

use kedge_model::kinds::{Conflicts, Drift, Rollback, Scope};
use kedge_model::wire::{ApplyParameters, BlobRef, Digest, PackageRef};

use super::*;
use crate::archive::tests::pack;
use crate::bind::tests::facts;
use crate::goal::{FileGoal, Part, Probe};
use crate::store::index::PackageIndex;
use crate::store::memory::MemoryStore;

const NAMESPACE: &str = "apiVersion: kedge.dev/v1alpha1\nkind: HostNamespace\nmetadata:\n  name: dev-vm-hello\nspec:\n  user: kedge-test-hello\n  folders:\n    - {path: /srv/hello, mode: \"0750\"}\n  limits: {cpu: 500m, memory: 64Mi, tasks: 20, disk: 1Mi}\n  allow:\n    debs: [nginx]\n    paths: [/etc/hello]\n    units: [nginx.service]\n";
const ASSIGNMENT: &str = "hello-test";

struct World {
    _folder: tempfile::TempDir,
    objects: Objects,
    index: PackageIndex,
    paths: Paths,
}

impl World {
    fn host() -> World {
        let folder = tempfile::tempdir().unwrap();
        let objects = Objects::open(&folder.path().join("objects")).unwrap();
        World {
            _folder: folder,
            objects,
            index: PackageIndex::new(Arc::new(MemoryStore::default())),
            paths: Paths::host(),
        }
    }

    fn below_root() -> World {
        let world = World::host();
        World { paths: Paths::below(world._folder.path()), ..world }
    }

    fn packages(&self, platform: &[(&str, &str)], workload: &[(&str, &[u8])]) -> Packages {
        let put = |files: Vec<(&str, &[u8], bool)>| {
            let blob = pack(&files);
            let digest = self.objects.put(&blob).unwrap();
            PackageRef {
                digest,
                size: blob.len() as u64,
                repo: "r".to_owned(),
                commit: "c".to_owned(),
                artifacts: vec![],
            }
        };
        Packages {
            parameters: ApplyParameters {
                to: Destination::Host,
                namespace: None,
                scope: Scope::Namespace,
                conflicts: Conflicts::Fail,
                service_account: None,
                timeout_seconds: 300,
                soak_seconds: 30,
                rollback: Rollback::Auto,
                drift: Drift::Repair,
            },
            platform: put(platform.iter().map(|(path, text)| (*path, text.as_bytes(), false)).collect()),
            workload: put(workload.iter().map(|(path, bytes)| (*path, *bytes, false)).collect()),
            version: None,
        }
    }

    fn goal(&self, packages: &Packages) -> Result<Goal, Failure> {
        goal_of(ASSIGNMENT, packages, &self.objects, &self.index, &facts(), &self.paths)
    }

    /// The goal of a workload's spec with these files, in the namespace above.
    fn goal_with(&self, spec: &str, files: &[(&str, &[u8])]) -> Result<Goal, Failure> {
        let document = workload(spec);
        let mut all = vec![("host-workload.yaml", document.as_bytes())];
        all.extend(files);
        self.goal(&self.packages(&[("namespace.yaml", NAMESPACE)], &all))
    }

    fn text(&self, file: &FileGoal) -> String {
        String::from_utf8(self.objects.read_small(&file.content, 1 << 20).unwrap()).unwrap()
    }
}

fn workload(spec: &str) -> String {
    format!("apiVersion: kedge.dev/v1alpha1\nkind: HostWorkload\nmetadata:\n  name: hello\nspec:\n{spec}")
}

fn file<'g>(goal: &'g Goal, path: &str) -> &'g FileGoal {
    goal.files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} isn't in {:#?}", goal.files))
}

#[test]
fn a_whole_workload_becomes_a_goal() {
    let world = World::host();
    let spec = "  debs: [{name: nginx, version: 1.22.1-9}]\n  files:\n    - {path: /srv/hello/conf/app.toml, file: ./app.toml, mode: \"0640\", template: true}\n    - {path: /etc/systemd/system/hello-test.service, file: hello.service}\n  units:\n    - {name: hello-test.service, restartOn: [/srv/hello/conf/app.toml, platform-config]}\n    - {name: nginx.service, enabled: false}\n  health: [{unit: hello-test.service}, {exec: [/bin/true], timeout: 3s}]\n  soak: 1m\n";
    let document = workload(spec);
    let unit = b"[Service]\nExecStart=/srv/hello/run\n[Install]\nWantedBy=multi-user.target\n";
    let packages = world.packages(
        &[
            ("namespace.yaml", NAMESPACE),
            ("platform-config.yaml", "kind: ConfigMap\ndata:\n  AT: ${cluster.name}\n"),
            ("platform-config.env", "AT=\"\\${cluster.name}\"\n"),
        ],
        &[
            ("host-workload.yaml", document.as_bytes()),
            ("files/app.toml", b"site = \"${cluster.labels.region}\"\n"),
            ("files/hello.service", unit),
        ],
    );
    let goal = world.goal(&packages).unwrap();
    let own = Owner { user: "kedge-test-hello".to_owned(), group: "kedge-test-hello".to_owned() };
    assert_eq!(goal.user.as_deref(), Some("kedge-test-hello"));
    assert_eq!(goal.disk, Some(1 << 20));
    let folders: Vec<_> =
        goal.folders.iter().map(|folder| (folder.path.as_str(), &folder.owner.user, folder.mode)).collect();
    let (me, root) = (&own.user, &"root".to_owned());
    assert_eq!(
        folders,
        [("/srv/hello", me, 0o750), ("/etc/kedge/workloads/hello-test", root, 0o750), ("/srv/hello/conf", me, 0o750)]
    );
    let settings = file(&goal, "/etc/kedge/workloads/hello-test/platform-config.yaml");
    assert_eq!(world.text(settings), "data:\n  AT: line-7\nkind: ConfigMap\n");
    assert_eq!(
        (settings.mode, settings.owner.group.as_str(), settings.part),
        (0o640, "kedge-test-hello", Part::Platform)
    );
    assert_eq!(world.text(file(&goal, "/etc/kedge/workloads/hello-test/platform-config.env")), "AT=\"line-7\"\n");
    let conf = file(&goal, "/srv/hello/conf/app.toml");
    assert_eq!(world.text(conf), "site = \"north\"\n");
    assert_eq!((conf.mode, &conf.owner, conf.part), (0o640, &own, Part::Workload));
    let slice = file(&goal, "/etc/systemd/system/kedge-dev_vm_hello.slice");
    assert!(world.text(slice).contains("CPUQuota=50.0%\nMemoryMax=67108864\nTasksMax=20\n"), "{}", world.text(slice));
    assert_eq!(file(&goal, "/etc/systemd/system/hello-test.service").owner, Owner::root());
    assert_eq!(
        world.text(file(&goal, "/etc/systemd/system/hello-test.service.d/zzz-kedge.conf")),
        "# Made by kedge-agent.\n[Service]\nSlice=kedge-dev_vm_hello.slice\nUser=kedge-test-hello\nGroup=kedge-test-hello\nSupplementaryGroups=\n\
         DynamicUser=no\nNoNewPrivileges=yes\nAmbientCapabilities=\nPermissionsStartOnly=no\n\n[Unit]\nJobRunningTimeoutSec=5min\n\
         DefaultDependencies=no\nConflicts=shutdown.target\nBefore=shutdown.target\nRequires=sysinit.target\nAfter=sysinit.target basic.target\n"
    );
    assert_eq!(
        world.text(file(&goal, "/etc/systemd/system/nginx.service.d/zzz-kedge.conf")),
        "# Made by kedge-agent.\n[Service]\nSlice=kedge-dev_vm_hello.slice\n"
    );
    assert_eq!(goal.own_units.iter().map(String::as_str).collect::<Vec<_>>(), ["hello-test.service"]);
    assert_eq!(goal.debs.len(), 1);
    assert_eq!(
        goal.units[0].restart_on,
        [
            "/etc/kedge/workloads/hello-test/platform-config.env",
            "/etc/kedge/workloads/hello-test/platform-config.yaml",
            "/etc/systemd/system/hello-test.service",
            "/etc/systemd/system/hello-test.service.d/zzz-kedge.conf",
            "/srv/hello/conf/app.toml",
        ]
    );
    assert!(goal.units[0].enabled && !goal.units[1].enabled);
    let slice = Some("kedge-dev_vm_hello.slice".to_owned());
    let exec = Probe::Exec { command: vec!["/bin/true".to_owned()], user: goal.user.clone(), slice };
    assert_eq!(goal.health[1], crate::goal::Check { probe: exec, timeout_seconds: 3 });
    assert_eq!((goal.bounds.timeout_seconds, goal.bounds.soak_seconds), (300, 60));
    assert_eq!(world.goal(&packages).unwrap(), goal);
}

#[test]
fn each_escape_is_not_allowed() {
    let world = World::host();
    for (spec, expected) in [
        ("  files: [{path: /etc/passwd, file: x}]\n", "outside of the workload's folders"),
        ("  files: [{path: /srv/helloX/x, file: x}]\n", "outside of the workload's folders"),
        ("  files: [{path: /srv/hello//x, file: x}]\n", "written plainly"),
        ("  files: [{path: /srv/hello/x, file: x, mode: \"4755\"}]\n", "setuid"),
        ("  files: [{path: /srv/hello/x, file: x, owner: root}]\n", "namespace's own user"),
        ("  files: [{path: /etc/kedge/agent.toml, file: x}]\n", "the agent itself"),
        (
            "  files: [{path: /etc/kedge/workloads/hello-test/platform-config.env, file: x}]\n",
            "platform's configuration",
        ),
        ("  files: [{path: /etc/systemd/system/ssh.service, file: x}]\n", "isn't the workload's own"),
        ("  files: [{path: /etc/systemd/system/hello-test.service, file: evil}]\n", "root's power"),
        ("  files: [{path: /srv/hello/evil, file: x}]\n  units: [{name: ssh.service}]\n", "isn't the workload's own"),
        ("  debs: [{name: sudo, version: '1'}]\n", "isn't on the namespace's list"),
        ("  health: [{unit: '--help'}]\n", "can't be a unit's name"),
    ] {
        let failure = world
            .goal_with(spec, &[("files/x", b"x"), ("files/evil", b"[Service]\nExecStart=+/bin/sh\n")])
            .unwrap_err();
        assert_eq!(failure.reason, "NotAllowed", "{spec}: {}", failure.message);
        assert!(failure.message.contains(expected), "{spec}: {}", failure.message);
    }
}

#[test]
fn a_refusal_names_the_entry_or_the_line_that_it_is_about() {
    let world = World::host();
    let spec = "  files:\n    - {path: /srv/hello/x, file: x}\n    - {path: /etc/passwd, file: x}\n    - {path: /etc/systemd/system/hello-test.service, file: evil}\n";
    let files: [(&str, &[u8]); 2] = [("files/x", b"x"), ("files/evil", b"[Service]\nExecStart=+/bin/sh\n")];
    let message = world.goal_with(spec, &files).unwrap_err().message;
    assert!(message.contains("HostWorkload, spec.files[1]: `/etc/passwd`"), "{message}");
    assert!(
        message.contains("/etc/systemd/system/hello-test.service:2: ") && !message.contains("files[2]"),
        "{message}"
    );
}

#[test]
fn all_refusals_are_said_at_once_and_bounded() {
    let files: Vec<String> = (0..7).map(|number| format!("    - {{path: /etc/{number}, file: x}}\n")).collect();
    let failure = World::host().goal_with(&format!("  files:\n{}", files.concat()), &[("files/x", b"x")]).unwrap_err();
    assert!(failure.message.contains("/etc/0") && failure.message.contains("/etc/3"), "{}", failure.message);
    assert!(failure.message.ends_with(". And 3 more"), "{}", failure.message);
}

#[test]
fn a_bound_value_in_a_unit_is_judged_too() {
    let spec = "  files: [{path: /etc/systemd/system/hello-test.service, file: u, template: true}]\n";
    let world = World::host();
    let unit = b"[Service]\nUser=${cluster.labels.region}\n";
    assert!(world.goal_with(spec, &[("files/u", unit)]).unwrap_err().message.contains("User=north"));
}

#[test]
fn artifacts_are_objects_that_were_fetched() {
    let world = World::host();
    let (big, small) = (vec![7; 500_000], b"small".to_vec());
    let (big_digest, small_digest) = (Digest::of(&big), Digest::of(&small));
    let spec = format!(
        "  artifacts:\n    - {{path: /srv/hello/model, url: 'https://m/x', sha256: {}}}\n    - {{path: /srv/hello/small, file: s, sha256: {}}}\n  files: [{{path: /srv/hello/big, file: big.bin}}]\n",
        big_digest.hex(),
        small_digest.hex()
    );
    let document = workload(&spec);
    let blob = BlobRef { digest: big_digest, size: big.len() as u64 };
    let index = serde_json::to_vec(&BTreeMap::from([("big.bin", &blob)])).unwrap();
    let mut packages = world.packages(
        &[("namespace.yaml", NAMESPACE)],
        &[("host-workload.yaml", document.as_bytes()), ("blobs.json", &index), ("files/s", &small)],
    );
    assert!(world.goal(&packages).unwrap_err().message.contains("isn't listed"));
    packages.workload.artifacts = vec![blob];
    let failure = world.goal(&packages).unwrap_err();
    assert!(failure.passes && failure.message.contains("isn't here yet"), "{failure:?}");
    world.objects.put(&big).unwrap();
    let goal = world.goal(&packages).unwrap();
    let paths: Vec<_> =
        goal.artifacts.iter().map(|artifact| (artifact.path.as_str(), artifact.content, artifact.size)).collect();
    assert_eq!(paths, [("/srv/hello/model", big_digest, 500_000), ("/srv/hello/small", small_digest, 5)]);
    assert_eq!(file(&goal, "/srv/hello/big").content, big_digest);
}

#[test]
fn more_than_the_disk_limit_is_refused() {
    let big = vec![1; 1 << 20];
    let failure =
        World::host().goal_with("  files: [{path: /srv/hello/x, file: x}]\n", &[("files/x", &big)]).unwrap_err();
    assert!(failure.message.contains("over the disk limit of 1048576"), "{}", failure.message);
}

#[test]
fn below_a_root_there_are_folders_and_files_without_owners() {
    let world = World::below_root();
    let goal = world
        .goal_with("  files: [{path: /srv/hello/x, file: x}]\n  health: [{exec: [/bin/true]}]\n", &[("files/x", b"x")])
        .unwrap();
    assert_eq!(goal.user, None);
    assert!(goal.files.iter().all(|file| file.owner == Owner::default()));
    assert!(goal.folders.iter().all(|folder| folder.owner == Owner::default()));
    assert_eq!(goal.files.len(), 1);
    assert_eq!(goal.health[0].probe, Probe::Exec { command: vec!["/bin/true".to_owned()], user: None, slice: None });
    for spec in [
        "  debs: [{name: nginx, version: '1'}]\n",
        "  units: [{name: hello-test.service}]\n",
        "  health: [{unit: x.service}]\n",
    ] {
        assert_eq!(world.goal_with(spec, &[]).unwrap_err().reason, "Unsupported", "{spec}");
    }
}

#[test]
fn what_is_wrong_with_a_package_is_named() {
    let world = World::host();
    for (spec, expected) in [
        ("  files: [{path: /srv/hello/x, file: nope}]\n", "has no file `nope`"),
        ("  files: [{path: /srv/hello/x, file: x}, {path: /srv/hello/x, file: x}]\n", "wanted twice"),
        ("  files: [{path: /srv/hello/x, file: x}, {path: /srv/hello/x/y, file: x}]\n", "inside of another file"),
        ("  files: [{path: /srv/hello, file: x}]\n", "is a folder of the namespace"),
        ("  files: [{path: /srv/hello/x, file: x}]\n  nope: [\n", "host-workload.yaml:"),
        ("  units: [{name: hello-test.service}, {name: hello-test.service}]\n", "wanted twice"),
        ("  units: [{name: hello-test@.service}]\n", "name an instance"),
        ("  debs: [{name: nginx, version: '1'}, {name: nginx, version: '2'}]\n", "wanted twice"),
        ("  debs: [{name: nginx, version: '-1'}]\n", "can't be a deb's version"),
        ("  debs: [{file: x}]\n", "isn't a deb"),
        ("  files: [{path: /srv/hello/x, file: b, template: true}]\n", "isn't UTF-8"),
    ] {
        let failure = world.goal_with(spec, &[("files/x", b"x"), ("files/b", b"\xff")]).unwrap_err();
        assert_eq!(failure.reason, "BadPackage", "{spec}: {}", failure.message);
        assert!(failure.message.contains(expected), "{spec}: {}", failure.message);
    }
    let unbound =
        world.goal_with("  files: [{path: /srv/hello/x, file: t, template: true}]\n", &[("files/t", b"\n${nope}")]);
    let failure = unbound.unwrap_err();
    assert!(failure.reason == "Unbound" && failure.message.starts_with("t:2: `nope`"), "{failure:?}");
}

#[test]
fn without_a_namespace_nothing_is_allowed() {
    let world = World::host();
    let document = workload("  files: [{path: /srv/x, file: x}]\n");
    let packages = world.packages(&[], &[("host-workload.yaml", document.as_bytes()), ("files/x", b"x")]);
    let failure = world.goal(&packages).unwrap_err();
    assert!(failure.message.contains("HostNamespace `hello-test`"), "{}", failure.message);
}

#[test]
fn a_missing_or_broken_package_says_which() {
    let world = World::host();
    let document = workload("  soak: 1s\n");
    let mut packages = world.packages(&[("namespace.yaml", NAMESPACE)], &[("host-workload.yaml", document.as_bytes())]);
    packages.platform.digest = Digest::of(b"nowhere");
    let failure = world.goal(&packages).unwrap_err();
    assert!(failure.passes && failure.message.contains("the platform package isn't here yet"), "{failure:?}");
    packages.platform.digest = world.objects.put(b"no archive").unwrap();
    assert_eq!(world.goal(&packages).unwrap_err().reason, "BadPackage");
    std::fs::write(world.objects.path(&packages.platform.digest), "rotten").unwrap();
    let failure = world.goal(&packages).unwrap_err();
    assert!(failure.passes && failure.message.contains("damaged"), "{failure:?}");
    assert!(!world.objects.has(&packages.platform.digest));
    packages.parameters.to = Destination::Kubernetes;
    assert_eq!(world.goal(&packages).unwrap_err().reason, "Unsupported");
}

#[test]
fn an_assignments_name_cant_leave_its_folder() {
    for name in ["", ".", "..", "a/b", "-x", "a b", "é", "a\n"] {
        assert_eq!(check_name(name).unwrap_err().reason, "Unsupported", "{name:?}");
    }
    assert!(check_name("hello-test.v2_x").is_ok());
}

#[test]
fn a_drop_in_alone_needs_a_deb_of_the_workload_and_gets_the_tenants_user() {
    let world = World::host();
    let drop_in = "  files: [{path: /etc/systemd/system/hello-test-x.service.d/a.conf, file: d}]\n";
    let text: &[u8] = b"[Service]\nExecStart=\nExecStart=/srv/hello/run\n";
    let failure = world.goal_with(drop_in, &[("files/d", text)]).unwrap_err();
    assert_eq!(failure.reason, "NotAllowed");
    assert!(failure.message.contains("neither a file nor a deb of this workload brings"), "{}", failure.message);
    let with_deb = format!("{drop_in}  debs: [{{name: nginx, version: '1'}}]\n");
    let goal = world.goal_with(&with_deb, &[("files/d", text)]).unwrap();
    let forced = world.text(file(&goal, "/etc/systemd/system/hello-test-x.service.d/zzz-kedge.conf"));
    assert!(forced.contains("User=kedge-test-hello\n") && forced.contains("NoNewPrivileges=yes\n"), "{forced}");
    assert!(goal.own_units.contains("hello-test-x.service"));
    // A template is asked for by an instance; a unit that was allowed by name is nobody's to ask for.
    let spec = "  files:\n    - {path: /etc/systemd/system/hello-test@.service, file: d}\n    - {path: /etc/systemd/system/nginx.service.d/a.conf, file: d}\n";
    let goal = world.goal_with(spec, &[("files/d", text)]).unwrap();
    assert_eq!(goal.own_units.iter().map(String::as_str).collect::<Vec<_>>(), ["hello-test@kedge.service"]);
    // What its files would stop must be its own as well: brought by it, or by a deb of it, which only the host knows.
    let spec = "  files: [{path: /etc/systemd/system/hello-test.service, file: c}]\n";
    let with_deb = format!("{spec}  debs: [{{name: nginx, version: '1'}}]\n");
    let stops: &[u8] = b"[Unit]\nConflicts=hello-test-prod.service\n[Service]\nExecStart=/srv/hello/run\n";
    assert_eq!(world.goal_with(spec, &[("files/c", stops)]).unwrap_err().reason, "NotAllowed");
    let stopping = world.goal_with(&with_deb, &[("files/c", stops)]).unwrap();
    assert!(stopping.own_units.contains("hello-test-prod.service"));
    let named = world.text(file(&goal, "/etc/systemd/system/nginx.service.d/zzz-kedge.conf"));
    assert!(!named.contains("User="), "{named}");
}
