//! Pins: what they put in place of the head, and what they can't.

use super::*;
use kedge_model::decode::{self, Options};
use kedge_model::{Object, Platform, Source};

/// A platform with these Pins and the workload `hello` with the targets `a` and `b`.
fn pins(pins: &[(&str, &str)]) -> Pins {
    let mut text = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {name: hello}\nspec: {deploymentTargets: [{name: a, environment: dev}, {name: b, environment: dev}]}\n".to_owned();
    for (name, spec) in pins {
        text.push_str(&format!(
            "---\napiVersion: kedge.dev/v1alpha1\nkind: Pin\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
        ));
    }
    let source = Arc::new(Source { repo: "cp".to_owned(), revision: None });
    let file = kedge_model::Origin { source, file: "pins.yaml".into(), line: 0, column: 0 };
    let decoded = decode::objects(text.as_bytes(), &file, &Options::default());
    assert!(decoded.problems.is_empty(), "{:?}", decoded.problems);
    let objects = decoded.objects.into_iter().map(|object: Object| (object.id(), Arc::new(object))).collect();
    Pins::of(&Platform { environment: "dev".to_owned(), objects, ..Platform::default() })
}

const NOW: Timestamp = Timestamp(1_800_000_000_000);

impl World {
    async fn pinned(&self, files: &[(String, String)], pins: &Pins) -> Packed {
        let items: Vec<(&str, Item<'_>)> = files.iter().map(|(path, text)| (path.as_str(), Item::File(text))).collect();
        let commit = self.platform.commit("dev", &items);
        self.packer.pack_with("dev", &self.head(commit), &Tenancy::platform(), pins, NOW).await.unwrap()
    }
}

fn files() -> Vec<(String, String)> {
    [
        kubernetes("drone", "hello-a", "hello", "1"),
        kubernetes("drone", "hello-b", "./hello", "1"),
        kubernetes("large", "hello-a", "hello", "1"),
        kubernetes("large", "other-a", "hello", "1"),
    ]
    .concat()
}

/// A first commit, and a second one that the branch is at.
fn two(world: &World) -> (String, String) {
    let first = world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE))]);
    (first, world.app.commit("dev", &[("hello/service.yaml", Item::File(DEPLOYMENT))]))
}

fn places(packed: &Packed) -> Vec<String> {
    packed.pinned.keys().map(|(cluster_type, name)| format!("{cluster_type}/{name}")).collect()
}

#[tokio::test]
async fn a_pinned_commit_is_packed_beside_the_head() {
    let world = World::new().await;
    let (first, second) = two(&world);
    let wanted = pins(&[(
        "keep",
        &format!("workload: hello, commit: {first}, rings: [rest], reason: the camera, until: 2100-01-01"),
    )]);
    let packed = world.pinned(&files(), &wanted).await;
    assert_eq!(places(&packed), ["drone/hello-a", "drone/hello-b", "large/hello-a"]);
    let pinned = &packed.pinned[&("drone".to_owned(), "hello-a".to_owned())][0];
    assert_eq!(
        (pinned.name.as_str(), pinned.reason.as_str(), pinned.rings.as_slice()),
        ("keep", "the camera", &["rest".to_owned()][..])
    );
    assert_eq!(pinned.until, Some(Timestamp(4_102_444_800_000)));
    assert_eq!(pinned.packages.workload.commit, first);
    let head = apply(&packed, "drone", "hello-a");
    assert_eq!(head.workload.commit, second, "the head is as it is");
    assert_eq!(head.platform.digest, pinned.packages.platform.digest);
    assert_ne!(head.workload.digest, pinned.packages.workload.digest);
    assert!(packed.problems.is_empty(), "{:?}", packed.problems);
    let again = world.pinned(&files(), &wanted).await;
    let known = &again.pinned[&("drone".to_owned(), "hello-a".to_owned())][0];
    assert!(Arc::ptr_eq(&known.packages, &pinned.packages), "nothing is packed again");
    assert!(places(&world.pinned(&files(), &Pins::default()).await).is_empty(), "the Pin is gone");
}

#[tokio::test]
async fn a_version_is_found_by_its_tag_or_by_what_was_packed_before() {
    let world = World::new().await;
    let (first, _) = two(&world);
    world.app.tag("v1.4.2", &first);
    for version in ["1.4.2", "v1.4.2"] {
        let packed = world
            .pinned(
                &files(),
                &pins(&[("p", &format!("workload: hello, target: a, clusterTypes: [drone], version: {version}"))]),
            )
            .await;
        assert_eq!(places(&packed), ["drone/hello-a"]);
        let pinned = &packed.pinned[&("drone".to_owned(), "hello-a".to_owned())][0];
        assert_eq!(
            (pinned.packages.workload.commit.as_str(), pinned.packages.version.as_deref()),
            (first.as_str(), Some("1.4.2"))
        );
    }
    // Without a tag: a descriptor named it when it was packed.
    let world = World::new().await;
    let descriptor = |version: &str| {
        format!(
            "apiVersion: hub.kalypso.io/v1alpha1\nkind: DeploymentDescriptor\nmetadata: {{name: d}}\nspec: {{workloadVersion: {{version: {version}}}}}\n"
        )
    };
    let old = world
        .app
        .commit("dev", &[("hello/s.yaml", Item::File(SERVICE)), ("hello/d.yaml", Item::File(&descriptor("1.0.0")))]);
    world.pack(&files()).await;
    world
        .app
        .commit("dev", &[("hello/s.yaml", Item::File(SERVICE)), ("hello/d.yaml", Item::File(&descriptor("1.0.1")))]);
    let packed = world.pinned(&files(), &pins(&[("p", "workload: hello, version: v1.0.0")])).await;
    assert_eq!(packed.pinned[&("large".to_owned(), "hello-a".to_owned())][0].packages.workload.commit, old);
    assert_eq!(apply(&packed, "large", "hello-a").version.as_deref(), Some("1.0.1"));
}

#[tokio::test]
async fn a_pin_that_cannot_be_resolved_changes_nothing_and_is_said_once() {
    let world = World::new().await;
    two(&world);
    let wanted = pins(&[
        ("gone", "workload: hello, version: 9.9.9"),
        ("lost", &format!("workload: hello, commit: {}", "ab".repeat(20))),
    ]);
    let packed = world.pinned(&files(), &wanted).await;
    assert!(packed.pinned.is_empty());
    assert_eq!(codes(&packed), ["PinUnresolved", "PinUnresolved"]);
    assert!(packed.problems[0].message.contains("no tag `9.9.9` or `v9.9.9`"), "{}", packed.problems[0].message);
    let hint = packed.problems[0].hint.as_deref().unwrap_or_default();
    assert!(hint.contains("push the tag") && hint.contains("or delete "), "{hint}");
    assert!(packed.problems.iter().all(|problem| problem.assignment.is_none()), "no assignment is quarantined for it");
    apply(&packed, "drone", "hello-a");
}

#[tokio::test]
async fn a_pin_whose_content_cannot_be_delivered_is_unresolved() {
    let world = World::new().await;
    let first = world.app.commit("dev", &[("hello/README.md", Item::File("nothing"))]);
    world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE))]);
    let packed = world
        .pinned(
            &kubernetes("drone", "hello-a", "hello", "1"),
            &pins(&[("p", &format!("workload: hello, commit: {first}"))]),
        )
        .await;
    assert_eq!(codes(&packed), ["PinUnresolved"]);
    assert!(packed.problems[0].message.contains("there is no object to deliver"), "{}", packed.problems[0].message);
    apply(&packed, "drone", "hello-a");
}

#[tokio::test]
async fn pins_that_are_over_or_meet_nothing_are_notes() {
    let world = World::new().await;
    let (first, _) = two(&world);
    let to = format!("commit: {first}");
    let wanted = pins(&[
        ("over", &format!("workload: hello, {to}, until: 2020-01-01")),
        ("wrong", &format!("workload: hallo, {to}")),
        ("elsewhere", &format!("workload: hello, {to}, clusterTypes: [plane]")),
    ]);
    let packed = world.pinned(&files(), &wanted).await;
    assert!(packed.pinned.is_empty());
    let mut found = codes(&packed);
    found.sort_unstable();
    assert_eq!(found, ["PinExpired", "PinWithoutEffect", "PinWithoutEffect"]);
    assert!(packed.problems.iter().all(|problem| !problem.is_error()));
    let packed = world.pinned(&flux("cloud", "hello-a"), &pins(&[("p", &format!("workload: hello, {to}"))])).await;
    assert_eq!(codes(&packed), ["PinWithoutEffect"]);
}

#[tokio::test]
async fn of_two_pins_the_one_whose_name_comes_first_is_first() {
    let world = World::new().await;
    let (first, second) = two(&world);
    let wanted = pins(&[
        ("b", &format!("workload: hello, commit: {second}")),
        ("a", &format!("workload: hello, commit: {first}")),
    ]);
    let packed = world.pinned(&files(), &wanted).await;
    let names: Vec<&str> =
        packed.pinned[&("drone".to_owned(), "hello-a".to_owned())].iter().map(|pinned| pinned.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}
