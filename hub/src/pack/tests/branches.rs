//! What a branch asks for becomes packages, observations or quarantines.

use super::*;
use kedge_model::wire::Digest;

fn plain(world: &World) {
    world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE)), ("hello/README.md", Item::File("x"))]);
}

#[tokio::test]
async fn a_delivery_becomes_two_packages() {
    let world = World::new().await;
    plain(&world);
    let packed = world.pack(&[vec![readme("drone")], kubernetes("drone", "hello-a", "./hello", "1")].concat()).await;
    let packages = apply(&packed, "drone", "hello-a");
    assert_eq!(packages.parameters.namespace.as_deref(), Some("dev-drone-hello-a"));
    assert_eq!(packages.workload.repo, APP);
    let platform = world.unpack(&packages.platform.digest);
    assert_eq!(platform.keys().collect::<Vec<_>>(), ["namespace.yaml", "platform-config.yaml"]);
    assert_eq!(
        world.unpack(&packages.workload.digest),
        BTreeMap::from([("manifests/service.yaml".to_owned(), SERVICE.to_owned())])
    );
    assert!(packed.problems.is_empty(), "{:?}", packed.problems);
}

#[tokio::test]
async fn a_listed_kustomization_needs_no_program_and_a_descriptor_gives_the_version() {
    let world = World::new().await;
    let descriptor = "apiVersion: hub.kalypso.io/v1alpha1\nkind: DeploymentDescriptor\nmetadata:\n  name: d\nspec:\n  workload: hello\n  workloadVersion:\n    version: 1.2.3\n    commit: abc\n";
    let mixed = format!("{descriptor}---\n{SERVICE}");
    world.app.commit(
        "dev",
        &[
            ("hello/kustomization.yaml", Item::File("resources:\n- deployment.yaml\n- more/\n- descriptor.yaml\n")),
            ("hello/deployment.yaml", Item::File(DEPLOYMENT)),
            ("hello/descriptor.yaml", Item::File(descriptor)),
            ("hello/not-listed.yaml", Item::File("{{ not yaml")),
            ("hello/link", Item::Link("/etc/passwd")),
            ("hello/more/kustomization.yaml", Item::File("resources: [mixed.yaml]\n")),
            ("hello/more/mixed.yaml", Item::File(&mixed)),
        ],
    );
    let packed = world.pack(&kubernetes("drone", "hello-a", "hello", "1")).await;
    let packages = apply(&packed, "drone", "hello-a");
    assert_eq!(packages.version.as_deref(), Some("1.2.3"));
    let files = world.unpack(&packages.workload.digest);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["manifests/deployment.yaml", "manifests/more/mixed.yaml"]);
    assert!(!files["manifests/more/mixed.yaml"].contains("DeploymentDescriptor"));
    assert!(files["manifests/more/mixed.yaml"].contains("kind: Service"));
}

#[tokio::test]
async fn what_another_reconciler_does_is_observed() {
    let world = World::new().await;
    plain(&world);
    let packed = world.pack(&flux("large", "hello-a")).await;
    let PackedEntry::Observe(first) = &packed.types["large"]["hello-a"] else { panic!("{packed:?}") };
    assert_eq!(first.objects[0].kind, "GitRepository");
    let commit = first.expected_commit.clone().unwrap();
    let next = world.app.commit("dev", &[("hello/service.yaml", Item::File(DEPLOYMENT))]);
    assert_ne!(commit, next);
    let packed = world.pack(&flux("large", "hello-a")).await;
    let PackedEntry::Observe(second) = &packed.types["large"]["hello-a"] else { panic!() };
    assert_eq!(second.expected_commit, Some(next));
    assert_ne!(first.content, second.content);
}

#[tokio::test]
async fn the_same_content_has_the_same_digest_on_every_hub() {
    let (one, other) = (World::new().await, World::new().await);
    let mut digests = Vec::new();
    for world in [&one, &other] {
        plain(world);
        let packed = world.pack(&kubernetes("drone", "hello-a", "hello", "1")).await;
        let packages = apply(&packed, "drone", "hello-a");
        digests.push((packages.platform.digest, packages.workload.digest));
    }
    assert_eq!(digests[0], digests[1]);
}

#[tokio::test]
async fn only_what_changed_is_packed_again_also_after_a_restart() {
    let mut world = World::new().await;
    plain(&world);
    let files = |config: &str| {
        [
            kubernetes("drone", "hello-a", "hello", config),
            kubernetes("drone", "hello-b", "hello", "1"),
            kubernetes("large", "hello-a", "hello", "large"),
        ]
        .concat()
    };
    let first = world.pack(&files("1")).await;
    assert_eq!(first.built, 3);
    let second = world.pack(&files("2")).await;
    assert_eq!(second.built, 1);
    assert!(Arc::ptr_eq(&first.types["large"], &second.types["large"]));
    assert!(!Arc::ptr_eq(&first.types["drone"], &second.types["drone"]));
    world.restart();
    let third = world.pack(&files("2")).await;
    assert_eq!(third.built, 0);
    assert_eq!(third.types["drone"], second.types["drone"]);
    // A package that is gone from the disk is made again.
    std::fs::remove_file(world.packer.blobs().path(&apply(&third, "large", "hello-a").platform.digest)).unwrap();
    world.restart();
    assert_eq!(world.pack(&files("2")).await.built, 1);
}

#[tokio::test]
async fn one_bad_assignment_stops_itself_only() {
    let world = World::new().await;
    world.app.commit(
        "dev",
        &[
            ("good/service.yaml", Item::File(SERVICE)),
            ("linked/service.yaml", Item::Link("../good/service.yaml")),
            ("module/sub", Item::Submodule),
            ("broken/a.yaml", Item::File("a: [")),
            ("nameless/a.yaml", Item::File("apiVersion: v1\nkind: Service\n")),
            ("empty/README.md", Item::File("x")),
            ("kustomized/kustomization.yaml", Item::File("resources: [a.yaml]\nnamePrefix: x-\n")),
            ("remote/kustomization.yaml", Item::File("resources: [https://evil.example/x.yaml]\n")),
            ("chart/Chart.yaml", Item::File("name: x\n")),
            (
                "ours/a.yaml",
                Item::File("apiVersion: kedge.dev/v1alpha1\nkind: HostWorkload\nmetadata: {name: a}\nspec: {}\n"),
            ),
        ],
    );
    let folders = [
        ("good", None),
        ("linked", Some("NotAFile")),
        ("module", Some("NotAFile")),
        ("broken", Some("NotYaml")),
        ("nameless", Some("NameMissing")),
        ("empty", Some("NothingToDeliver")),
        ("kustomized", Some("ProgramMissing")),
        ("remote", Some("RemoteResource")),
        ("chart", Some("ProgramMissing")),
        ("ours", Some("KindNotAllowed")),
        ("missing", Some("PathMissing")),
    ];
    let files: Vec<_> = folders.iter().flat_map(|(folder, _)| kubernetes("drone", folder, folder, "1")).collect();
    let packed = world.pack(&files).await;
    for (folder, expected) in folders {
        let found = packed.problems.iter().find(|problem| problem.assignment == Some(format!("drone/{folder}")));
        assert_eq!(found.map(|problem| problem.code), expected, "{folder}: {found:?}");
        assert_eq!(packed.types["drone"][folder] == PackedEntry::Quarantined, expected.is_some(), "{folder}");
    }
}

#[tokio::test]
async fn a_failing_source_stops_who_needs_it_and_nobody_else() {
    let world = World::new().await;
    plain(&world);
    let mut other = kubernetes("drone", "other", "hello", "1");
    other[0].1 = other[0].1.replace(APP, "https://git.example.com/gone");
    let packed = world.pack(&[kubernetes("drone", "hello", "hello", "1"), other].concat()).await;
    assert_eq!(packed.types["drone"]["other"], PackedEntry::Quarantined);
    assert_eq!(codes(&packed), ["SourceFailing"]);
    apply(&packed, "drone", "hello");
}

#[tokio::test]
async fn folders_of_others_are_left_alone_and_an_empty_type_is_there() {
    let world = World::new().await;
    plain(&world);
    let files = [
        vec![
            readme("drone"),
            ("docs/guide/a.md".to_owned(), "x".to_owned()),
            (".github/x/reconciler.yaml".to_owned(), "a: b".to_owned()),
        ],
        kubernetes("large", "hello", "hello", "1"),
    ]
    .concat();
    let packed = world.pack(&files).await;
    assert_eq!(packed.types.keys().collect::<Vec<_>>(), ["drone", "large"]);
    assert!(packed.types["drone"].is_empty());
}

#[tokio::test]
async fn an_emptied_branch_is_an_error_and_no_removal() {
    let world = World::new().await;
    let commit = world.platform.commit("dev", &[]);
    let error = world.packer.pack("dev", &world.head(commit)).await.unwrap_err();
    assert!(matches!(error, PackError::Emptied { .. }), "{error}");
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_not_delivered_and_said() {
    let world = World::new().await;
    plain(&world);
    let mut files = kubernetes("drone", "hello", "hello", "1");
    files.push(("drone/hello/extra.yaml".to_owned(), SERVICE.to_owned()));
    let packed = world.pack(&files).await;
    assert_eq!(codes(&packed), ["NotDelivered"]);
    assert_eq!(packed.problems[0].assignment.as_deref(), Some("drone/hello"));
    assert_eq!(world.unpack(&apply(&packed, "drone", "hello").platform.digest).len(), 2);
}

#[tokio::test]
async fn an_unrelated_commit_of_a_source_gives_the_same_package() {
    let world = World::new().await;
    plain(&world);
    let files = kubernetes("drone", "hello", "hello", "1");
    let first = world.pack(&files).await;
    world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE)), ("other/x.yaml", Item::File("a: b"))]);
    let second = world.pack(&files).await;
    let digest = |packed: &Packed| apply(packed, "drone", "hello").workload.digest;
    assert_eq!(digest(&first), digest(&second));
}

#[tokio::test]
async fn a_kustomization_is_rendered_by_the_program_once() {
    let tools = tempfile::tempdir().unwrap();
    let program = tools.path().join("kustomize");
    std::fs::write(&program, "#!/bin/sh\ncat \"$2/../base/service.yaml\"\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let world = World::with(&program).await;
    world.app.commit(
        "dev",
        &[
            ("base/service.yaml", Item::File(SERVICE)),
            ("overlay/kustomization.yaml", Item::File("resources: [../base]\nnamePrefix: a-\n")),
        ],
    );
    let files = kubernetes("drone", "hello", "overlay", "1");
    let packed = world.pack(&files).await;
    let package = apply(&packed, "drone", "hello").workload.digest;
    assert_eq!(world.unpack(&package), BTreeMap::from([("manifests/rendered.yaml".to_owned(), SERVICE.to_owned())]));
    // It isn't needed for what was rendered before.
    std::fs::remove_file(&program).unwrap();
    let packed = world.pack(&kubernetes("drone", "hello", "overlay", "2")).await;
    assert_eq!(apply(&packed, "drone", "hello").workload.digest, package);
    assert_ne!(package, Digest::of(b""));
}

#[tokio::test]
async fn a_renderer_that_is_away_stops_who_needs_it_until_it_answers() {
    let mut world = World::new().await;
    let socket = world.folder.path().join("renderer.sock");
    world.use_renderer(&socket);
    plain(&world);
    world.app.commit(
        "dev",
        &[
            ("hello/service.yaml", Item::File(SERVICE)),
            ("overlay/kustomization.yaml", Item::File("resources: [../hello]\nnamePrefix: a-\n")),
        ],
    );
    let files = [kubernetes("drone", "plain", "hello", "1"), kubernetes("drone", "rendered", "overlay", "1")].concat();
    let packed = world.pack(&files).await;
    assert_eq!(codes(&packed), ["RendererAway"]);
    assert!(packed.awaits_renderer(), "the environment is looked at again soon");
    assert_eq!(packed.types["drone"]["rendered"], PackedEntry::Quarantined);
    apply(&packed, "drone", "plain");
    // It comes back, and nothing else changes.
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let renderer = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = vec![0; stream.read_u32().await.unwrap() as usize];
        stream.read_exact(&mut head).await.unwrap();
        let head: serde_json::Value = serde_json::from_slice(&head).unwrap();
        let mut tar = vec![0; head["bytes"].as_u64().unwrap() as usize];
        stream.read_exact(&mut tar).await.unwrap();
        let answer = format!(r#"{{"answer":"rendered","bytes":{}}}"#, SERVICE.len());
        stream.write_u32(answer.len() as u32).await.unwrap();
        stream.write_all(format!("{answer}{SERVICE}").as_bytes()).await.unwrap();
        (head, archive::Contents::of_tar(&tar).unwrap())
    });
    let packed = world.pack(&files).await;
    let package = apply(&packed, "drone", "rendered").workload.digest;
    assert_eq!(world.unpack(&package), BTreeMap::from([("manifests/rendered.yaml".to_owned(), SERVICE.to_owned())]));
    let (head, sent) = renderer.await.unwrap();
    assert_eq!((head["program"].as_str(), head["path"].as_str()), (Some("kustomize"), Some("overlay")));
    assert_eq!((head["release"].as_str(), head["namespace"].as_str()), (Some("rendered"), Some("dev-drone-rendered")));
    assert_eq!(sent.files().keys().collect::<Vec<_>>(), ["hello/service.yaml", "overlay/kustomization.yaml"]);
}

#[tokio::test]
async fn packages_that_nobody_picked_go_after_their_time() {
    let mut world = World::new().await;
    plain(&world);
    let packed = world.pack(&kubernetes("drone", "hello", "hello", "1")).await;
    let digest = apply(&packed, "drone", "hello").platform.digest;
    assert_eq!(world.packer.collect().await.unwrap().deleted, 0);
    world.packer.keep = Duration::ZERO;
    assert_eq!(world.packer.collect().await.unwrap().deleted, 2);
    assert!(world.packer.blobs().size(&digest).is_none());
}

#[tokio::test]
async fn every_assignment_says_where_its_workload_is() {
    let world = World::new().await;
    plain(&world);
    let mut files = [kubernetes("drone", "hello-a", "./hello", "1"), flux("large", "hello-a")].concat();
    let tagged = kubernetes("drone", "hello-b", "hello", "1")
        .into_iter()
        .map(|(path, text)| (path, text.replace("branch: dev", "tag: v1")));
    files.extend(tagged);
    let first = world.pack(&files).await;
    let origin = |name: &str| first.origins["drone"][name].clone();
    let expected = Origin { repo: APP.to_owned(), reference: "dev".to_owned(), path: "./hello".to_owned() };
    assert_eq!(origin("hello-a"), expected);
    assert_eq!(origin("hello-b").reference, "refs/tags/v1");
    assert_eq!(first.origins["large"]["hello-a"].reference, "dev");
    let second = world.pack(&files).await;
    assert!(Arc::ptr_eq(&first.origins["drone"], &second.origins["drone"]));
    // A quarantined one is named all the same: what a commit stopped is seen by comparing.
    assert_eq!(first.types["drone"]["hello-b"], PackedEntry::Quarantined);
}
