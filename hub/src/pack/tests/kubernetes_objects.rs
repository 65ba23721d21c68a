//! What an agent on Kubernetes couldn't apply stops in the hub.

use super::*;

/// An assignment of which the platform's file has this text.
fn with(file: &str, text: &str) -> Vec<(String, String)> {
    let mut files = kubernetes("drone", "hello", "hello", "1");
    files.retain(|(path, _)| !path.ends_with(file));
    files.push((format!("drone/hello/{file}"), text.to_owned()));
    files
}

#[tokio::test]
async fn platform_files_must_hold_objects() {
    let world = World::new().await;
    world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE))]);
    let long = format!("# first\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {}\n", "n".repeat(64));
    let late = long.replace(&"n".repeat(64), &format!("${{cluster.name}}-{}", "n".repeat(60)));
    for (file, text, expected) in [
        ("namespace.yaml", long.as_str(), Some("NamespaceTooLong")),
        ("namespace.yaml", late.as_str(), None),
        ("namespace.yaml", "a: [", Some("NotYaml")),
        (
            "namespace.yaml",
            "apiVersion: kedge.dev/v1alpha1\nkind: HostNamespace\nmetadata: {name: a}\nspec: {}\n",
            Some("KindNotAllowed"),
        ),
        ("platform-config.yaml", "A: 1\n", Some("NotAnObject")),
        ("platform-config.yaml", "# nothing\n", None),
        ("platform-config.yaml", "apiVersion: v1\nkind: ConfigMap\n", Some("NameMissing")),
    ] {
        let packed = world.pack(&with(file, text)).await;
        assert_eq!(codes(&packed).first().copied(), expected, "{text}: {:?}", packed.problems);
        assert_eq!(packed.types["drone"]["hello"] == PackedEntry::Quarantined, expected.is_some(), "{text}");
    }
    let packed = world.pack(&with("namespace.yaml", &long)).await;
    assert!(packed.problems[0].message.contains("has 64 characters"), "{:?}", packed.problems);
    assert_eq!(packed.problems[0].origin.as_ref().map(|origin| origin.line), Some(3));
}

#[tokio::test]
async fn lines_for_a_shell_reach_no_cluster_and_that_is_said() {
    let world = World::new().await;
    world.app.commit("dev", &[("hello/service.yaml", Item::File(SERVICE))]);
    let packed = world.pack(&with("platform-config.sh", "export A=\"1\"\n")).await;
    assert_eq!(codes(&packed), ["NotForKubernetes"]);
    apply(&packed, "drone", "hello");
}

#[test]
fn a_descriptor_that_a_program_wrote_is_not_delivered() {
    let origin = crate::pack::platform::origin("r", "b", "c", "hello");
    let descriptor = "apiVersion: hub.kalypso.io/v1alpha1\nkind: DeploymentDescriptor\nmetadata: {name: d}\nspec: {workloadVersion: {version: 1.2.3}}\n";
    let output = format!("{SERVICE}---\n{descriptor}---\n{DEPLOYMENT}");
    let Ok(made) = crate::pack::workload::kubernetes::rendered(output.into_bytes(), &origin) else { panic!() };
    assert_eq!(made.version.as_deref(), Some("1.2.3"));
    let text = String::from_utf8_lossy(&made.contents.files()["manifests/rendered.yaml"].bytes).into_owned();
    assert_eq!(text, format!("{SERVICE}---\n{DEPLOYMENT}"));
    let only = crate::pack::workload::kubernetes::rendered(descriptor.as_bytes().to_vec(), &origin);
    assert!(
        matches!(only, Err(crate::pack::fault::Fault::Quarantine(problems)) if problems[0].code == "NothingToDeliver")
    );
}
