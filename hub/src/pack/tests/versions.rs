//! Where a workload's version comes from.

use super::*;

const DESCRIPTOR: &str = "apiVersion: hub.kalypso.io/v1alpha1\nkind: DeploymentDescriptor\nmetadata:\n  name: d\nspec:\n  workloadVersion:\n    version: 3.0.0\n";

fn labelled(kind: &str, version: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: {kind}\nmetadata:\n  name: hello\n  labels:\n    app.kubernetes.io/version: \"{version}\"\n"
    )
}

async fn version(world: &World, files: &[(&str, &str)]) -> Option<String> {
    let items: Vec<(&str, Item<'_>)> = files.iter().map(|(path, text)| (*path, Item::File(text))).collect();
    world.app.commit("dev", &items);
    let packed = world.pack(&kubernetes("drone", "hello-a", "hello", "1")).await;
    apply(&packed, "drone", "hello-a").version.clone()
}

#[tokio::test]
async fn a_descriptor_wins_over_labels_and_what_runs_over_the_rest() {
    let world = World::new().await;
    let (service, deployment) = (labelled("Service", "1.0.0"), labelled("Deployment", "2.0.0"));
    let (a, b, c) = ("hello/a.yaml", "hello/b.yaml", "hello/c.yaml");
    assert_eq!(version(&world, &[(a, &service)]).await.as_deref(), Some("1.0.0"));
    assert_eq!(version(&world, &[(a, &service), (b, &deployment)]).await.as_deref(), Some("2.0.0"));
    assert_eq!(version(&world, &[(a, &service), (b, &deployment), (c, DESCRIPTOR)]).await.as_deref(), Some("3.0.0"));
}

#[tokio::test]
async fn a_tag_names_what_has_no_version_of_its_own_also_when_it_comes_later() {
    let mut world = World::new().await;
    let first = world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE))]);
    world.app.tag("v1.2.3", &first);
    let files = |config: &str| kubernetes("drone", "hello-a", "hello", config);
    let packed = world.pack(&files("1")).await;
    assert_eq!(apply(&packed, "drone", "hello-a").version.as_deref(), Some("1.2.3"));
    let again = world.pack(&files("1")).await;
    assert!(Arc::ptr_eq(&packed.types["drone"], &again.types["drone"]));
    // A change of the platform doesn't lose it.
    assert_eq!(apply(&world.pack(&files("2")).await, "drone", "hello-a").version.as_deref(), Some("1.2.3"));
    // A commit whose tag isn't pushed yet.
    let second = world.app.commit("dev", &[("hello/service.yaml", Item::File(DEPLOYMENT))]);
    assert_eq!(apply(&world.pack(&files("2")).await, "drone", "hello-a").version, None);
    world.app.tag("1.3.0-rc.1", &second);
    world.restart();
    assert_eq!(apply(&world.pack(&files("2")).await, "drone", "hello-a").version.as_deref(), Some("1.3.0-rc.1"));
}

#[tokio::test]
async fn a_host_workload_says_its_version_in_its_metadata() {
    let world = World::new().await;
    let workload = "apiVersion: kedge.dev/v1alpha1\nkind: HostWorkload\nmetadata:\n  name: hello\n  annotations:\n    version: \"4.1.0\"\nspec:\n  debs:\n  - {name: nginx, version: \"1\"}\n";
    world.app.commit("dev", &[("hello/host-workload.yaml", Item::File(workload))]);
    let packed = world.pack(&host("line", "hello-a", "hello", ("platform-config.sh", "export A=\"1\"\n"))).await;
    assert_eq!(apply(&packed, "line", "hello-a").version.as_deref(), Some("4.1.0"));
}

#[tokio::test]
async fn names_of_any_length_are_packed() {
    let world = World::new().await;
    world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE))]);
    let name = format!("{}-{}", "w".repeat(60), "t".repeat(60));
    let files: Vec<(String, String)> = kubernetes("drone", &name, "hello", "1")
        .into_iter()
        .map(|(path, text)| (path, text.replace(&format!("dev-drone-{name}"), "short")))
        .collect();
    let packed = world.pack(&files).await;
    assert_eq!(apply(&packed, "drone", &name).workload.repo, APP);
}
