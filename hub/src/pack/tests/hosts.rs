//! Packages for hosts: files, blobs, the environment file.

use super::*;
use kedge_model::wire::Digest;

const WORKLOAD: &str = "apiVersion: kedge.dev/v1alpha1\nkind: HostWorkload\nmetadata:\n  name: hello\nspec:\n  files:\n    - path: /srv/hello/greet.sh\n      file: bin/greet.sh\n      mode: \"0755\"\n";

#[tokio::test]
async fn a_host_workload_carries_the_files_it_names() {
    let world = World::new().await;
    world.app.commit(
        "dev",
        &[
            ("host/host-workload.yaml", Item::File(WORKLOAD)),
            ("host/bin/greet.sh", Item::Program("#!/bin/sh\n")),
            ("host/other.yaml", Item::File("content: of a file")),
            ("host/unused", Item::Link("/etc/shadow")),
        ],
    );
    let shell = ("platform-config.sh", "export GREETING=\"hello \\$USER\"\nexport PORT=\"8080\"\n");
    let packed = world.pack(&host("line", "hello", "host", shell)).await;
    let packages = apply(&packed, "line", "hello");
    let files = world.unpack(&packages.workload.digest);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["files/bin/greet.sh", "host-workload.yaml"]);
    let platform = world.unpack(&packages.platform.digest);
    assert_eq!(platform.keys().collect::<Vec<_>>(), ["namespace.yaml", "platform-config.env", "platform-config.sh"]);
    assert_eq!(platform["platform-config.env"], "GREETING=\"hello \\$USER\"\nPORT=\"8080\"\n");
}

#[tokio::test]
async fn the_environment_file_also_comes_from_a_config_map_and_other_shapes_give_none() {
    let world = World::new().await;
    world.app.commit("dev", &[("host/w.yaml", Item::File(WORKLOAD)), ("host/bin/greet.sh", Item::File("x"))]);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  A: b\n";
    let files = [
        host("line", "map", "host", ("platform-config.yaml", yaml)),
        host("line", "other", "host", ("platform-config.yaml", "some: [thing]\n")),
    ]
    .concat();
    let packed = world.pack(&files).await;
    let env = |name: &str| world.unpack(&apply(&packed, "line", name).platform.digest).remove("platform-config.env");
    assert_eq!(env("map").as_deref(), Some("A=\"b\"\n"));
    assert_eq!(env("other"), None);
    assert_eq!(codes(&packed), ["NoEnvironmentFile"]);
}

#[tokio::test]
async fn big_files_are_blobs_of_their_own() {
    let world = World::new().await;
    let model = vec![7_u8; 3 << 20];
    let digest = Digest::of(&model);
    let text = format!(
        "{WORKLOAD}  artifacts:\n    - path: /srv/hello/model\n      file: model.bin\n      sha256: {}\n",
        digest.hex()
    );
    world.app.commit(
        "dev",
        &[
            ("host/w.yaml", Item::File(&text)),
            ("host/bin/greet.sh", Item::File("x")),
            ("host/model.bin", Item::Bytes(&model)),
        ],
    );
    let packed = world.pack(&host("line", "hello", "host", ("platform-config.sh", "export A=\"1\"\n"))).await;
    let packages = apply(&packed, "line", "hello");
    assert_eq!(packages.workload.artifacts.len(), 1);
    assert_eq!((packages.workload.artifacts[0].digest, packages.workload.artifacts[0].size), (digest, 3 << 20));
    assert_eq!(world.packer.blobs().size(&digest), Some(3 << 20));
    let files = world.unpack(&packages.workload.digest);
    assert_eq!(files["blobs.json"], format!("{{\"model.bin\":{{\"digest\":\"{digest}\",\"size\":3145728}}}}"));
}

#[tokio::test]
async fn what_a_host_could_not_do_is_quarantined() {
    let world = World::new().await;
    let wrong = format!(
        "{WORKLOAD}  artifacts:\n    - path: /srv/x\n      file: bin/greet.sh\n      sha256: {}\n",
        "a".repeat(64)
    );
    let url = format!(
        "{WORKLOAD}  artifacts:\n    - path: /srv/x\n      url: https://evil.example/x\n      sha256: {}\n",
        "a".repeat(64)
    );
    let escape = WORKLOAD.replace("bin/greet.sh", "../../etc/shadow");
    let two = format!("{WORKLOAD}---\n{WORKLOAD}");
    let cases: [(&str, &str, &str); 8] = [
        ("digest", &wrong, "DigestMismatch"),
        ("url", &url, "UrlNotAllowed"),
        ("escape", &escape, "InvalidValue"),
        ("two", &two, "TooManyWorkloads"),
        ("linked", WORKLOAD, "NotAFile"),
        ("gone", WORKLOAD, "PathMissing"),
        ("none", "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\n", "NothingToDeliver"),
        ("broken", "kind: HostWorkload\na: [\n", "NotYaml"),
    ];
    let texts: Vec<(String, Item<'_>)> =
        cases.iter().map(|(name, text, _)| (format!("{name}/w.yaml"), Item::File(text))).collect();
    let programs: Vec<(String, Item<'_>)> = cases
        .iter()
        .filter(|(name, ..)| *name != "gone")
        .map(|(name, ..)| match *name {
            "linked" => ("linked/bin/greet.sh".to_owned(), Item::Link("/etc/shadow")),
            name => (format!("{name}/bin/greet.sh"), Item::File("x")),
        })
        .collect();
    let items: Vec<(&str, Item<'_>)> =
        texts.iter().chain(&programs).map(|(path, item)| (path.as_str(), *item)).collect();
    world.app.commit("dev", &items);
    let shell = ("platform-config.sh", "export A=\"1\"\n");
    let files: Vec<_> = cases.iter().flat_map(|(name, ..)| host("line", name, name, shell)).collect();
    let packed = world.pack(&files).await;
    for (name, _, code) in cases {
        let found = packed.problems.iter().find(|problem| problem.assignment == Some(format!("line/{name}")));
        assert_eq!(found.map(|problem| problem.code), Some(code), "{name}: {found:?}");
    }
}
