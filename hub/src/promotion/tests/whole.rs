//! A whole hub: a commit of main goes through two environments, rollouts and all, with no more than Git in its hands.

use std::time::Duration;

use tokio::sync::watch;

use kedge_rollout::PromotionPhase;

use crate::config::Config;
use crate::git::testing::git;
use crate::platform::testing::{Scene, base, environment, gitops};
use crate::run::Hub;
use crate::store::promotion::evidence::EvidenceFilter;

const POLICY: &str = "apiVersion: kedge.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: fleet}
spec:
  environments:
    - {name: dev, soak: 0s, gate: {empty: pass}}
    - {name: prod, soak: 0s, gate: {empty: pass}}
";

/// Git is asked every second; a busy machine needs some of them.
const PATIENCE: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_goes_through_all_environments_of_a_running_hub() {
    let scene = Scene::new().await;
    let url = scene.control_plane.path();
    let prod = environment("prod", &url, "prod");
    scene.gitops.commit("prod", &[("README.md", "gitops")]);
    let main = |value: &str| {
        let common = crate::platform::testing::config("common", "COUNT", value);
        scene.main(&[(".environments/prod.yaml", &prod), ("policy.yaml", POLICY), ("common.yaml", &common)])
    };
    let first = main("1");
    for name in ["dev", "prod"] {
        let (base, target) = (base("main", &url, "main", Some(&first)), gitops(name, &scene.gitops.path(), name));
        scene.control_plane.commit(name, &[("base-repo.yaml", &base), ("gitops-repo.yaml", &target)]);
    }
    let mut config = Config::default_at(&scene.path().join("data"));
    config.git = crate::git::testing::settings(&url);
    config.git.poll = Duration::from_secs(1);
    config.api.listen = "127.0.0.1:0".parse().unwrap();
    config.agents.listen = "127.0.0.1:0".parse().unwrap();
    let hub = Hub::start(config).await.unwrap();
    let store = hub.store.clone();
    let reached = async |commit: &str| loop {
        let row = store.promotion("prod").await.unwrap();
        let standing = row.as_ref().map(|row| &row.standing);
        let passed = standing.and_then(|standing| standing.promotion(commit)).map(|known| known.phase.clone());
        if passed == Some(PromotionPhase::Passed) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    // The policy adopts what is there; the next commit is gated.
    while store.promotions().await.unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let second = main("2");
    let late = tokio::time::timeout(PATIENCE, reached(&second)).await;
    assert!(late.is_ok(), "{:#?} {:#?}", store.promotions().await.unwrap(), store.policies().await.unwrap());
    for name in ["dev", "prod"] {
        let text = git(&scene.control_plane.bare, &["show", &format!("{name}:base-repo.yaml")]);
        assert!(text.contains(&second), "{text}");
        let tracked = git(&scene.gitops.bare, &["show", &format!("{name}:.github/tracking/Promoted_Commit_Id")]);
        assert_eq!(tracked, second);
    }
    let filter = EvidenceFilter { commit: Some(second), limit: 10, ..EvidenceFilter::default() };
    let kept = store.evidence(&filter).await.unwrap();
    let passed: Vec<&str> =
        kept.iter().filter(|row| row.event == "passed").map(|row| row.environment.as_str()).collect();
    assert_eq!(passed, ["prod", "dev"]);
    let (_, body) = store.one_evidence(kept[0].id).await.unwrap().unwrap();
    super::super::verify(body.as_bytes(), &hub.keys.every_key()).unwrap();
    let (stop, stopped) = watch::channel(false);
    stop.send_replace(true);
    hub.finish(stopped).await.unwrap();
}
