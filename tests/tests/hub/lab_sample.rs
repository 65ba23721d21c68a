//! The sample platform on a Git server is the one that `kedge init` made: it renders, and one value touches one assignment.

use kedge_tests::lab::git_server::GitServer;
use kedge_tests::world::kedge::Kedge;
use kedge_tests::world::sample::Sample;

#[test]
fn the_sample_renders_from_the_server_and_one_value_touches_one_assignment() {
    let git = GitServer::start();
    let Some(sample) = Sample::on_server(&git) else { return };
    let kedge = Kedge::new("").unwrap();
    let before = sample.render(&kedge, &git, "dev");
    let text: Vec<_> = before.keys().map(String::as_str).collect();
    assert!(text.contains(&"drone/hello-functional-test/reconciler.yaml"), "{text:?}");
    let reconciler = String::from_utf8(before["drone/hello-functional-test/reconciler.yaml"].clone()).unwrap();
    assert!(reconciler.contains(&git.url("hello-gitops")), "{reconciler}");
    sample.change_drones("Quadcopter");
    let after = sample.render(&kedge, &git, "dev");
    let changed: Vec<_> = after.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes)).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(before.len(), after.len());
}

#[test]
fn the_grown_sample_has_every_target_on_every_type_and_one_value_touches_one() {
    let git = GitServer::start();
    let Some(sample) = Sample::on_server(&git) else { return };
    sample.grow(8);
    let kedge = Kedge::new("").unwrap();
    let before = sample.render(&kedge, &git, "dev");
    assert_eq!(before.keys().filter(|path| path.ends_with("/reconciler.yaml")).count(), 64);
    sample.commit_one_value("second");
    sample.control_plane.push("dev");
    let after = sample.render(&kedge, &git, "dev");
    let changed: Vec<_> = after.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes)).collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
}
