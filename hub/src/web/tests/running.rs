//! The pages of an assignment and of its workload show what runs, and what Git says beside it.

use kedge_model::kinds::Offline;
use kedge_status::{Condition, Report};

use super::browser::Browser;
use crate::api::tests::answers::{HELLO, Standing, failed};
use crate::api::tests::fixture::Hub;
use crate::api::tests::rollouts::{govern, rolls, run};
use crate::api::tests::running::{deliver, drone, entry, name, runs};

/// The part of a page that is about configuration values.
fn values(page: &str) -> &str {
    let (_, values) = page.split_once("id=\"values\"").unwrap();
    values.split_once("</tbody>").unwrap().0
}

#[tokio::test]
async fn the_pages_of_an_assignment_and_its_workload_show_what_runs_and_not_what_git_says() {
    let hub = Hub::new().await;
    deliver(&hub, "old", "south", "0815");
    deliver(&hub, "new", "west", "4711");
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    hub.state_of("dev", "drone", 2, 2_000_000, &entry("old")).await;
    name(&hub, "old").await;
    drone(&hub, 1, Standing::InContact, runs(Condition::Converged, "old")).await;
    for token in [&hub.platform, &hub.viewer, &hub.team] {
        let mut browser = Browser::of(&hub, token).await;
        let page = browser.page(&format!("/assignments/dev/drone/{HELLO}")).await;
        let table = values(&page);
        let (runs, git) = (table.find("south").expect("what runs"), table.find("west").expect("what Git says"));
        assert!(runs < git && table.contains("In Git:"), "{table}");
        assert!(page.contains("Git is ahead of what runs"), "{page}");
        assert_eq!(page.contains("0815"), token == &hub.platform, "{table}");
        let page = browser.page("/workloads/hello").await;
        let table = values(&page);
        assert!(table.contains("<code>south</code>") && table.contains("In Git:</span> <code>west"), "{table}");
    }
}

#[tokio::test]
async fn clusters_of_a_ring_that_run_different_ones_are_told_apart() {
    let hub = Hub::new().await;
    deliver(&hub, "old", "south", "0815");
    deliver(&hub, "new", "west", "4711");
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    hub.state_of("dev", "drone", 2, 2_000_000, &entry("new")).await;
    name(&hub, "old").await;
    drone(&hub, 1, Standing::InContact, runs(Condition::Converged, "new")).await;
    drone(&hub, 2, Standing::InContact, runs(failed(), "old")).await;
    drone(&hub, 3, Standing::Silent, runs(Condition::Converged, "old")).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let page = browser.page(&format!("/assignments/dev/drone/{HELLO}")).await;
    let table = values(&page);
    assert!(table.contains("all: 2 clusters, 1 of them offline") && table.contains("all: 1 cluster<"), "{table}");
    assert!(page.contains("1 of them offline since"), "{page}");
}

#[tokio::test]
async fn what_somebody_changed_on_a_cluster_is_not_called_desired() {
    let hub = Hub::new().await;
    deliver(&hub, "old", "south", "0815");
    hub.state_of("dev", "drone", 1, 1_000_000, &entry("old")).await;
    let edited = Some("platform-config.env was changed".to_owned());
    drone(&hub, 1, Standing::InContact, Report { drift: edited, ..runs(Condition::Converged, "old") }).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let page = browser.page(&format!("/assignments/dev/drone/{HELLO}")).await;
    assert!(page.contains("no: changed on drone-1") && page.contains("changed there: the values"), "{page}");
    assert!(page.contains("What runs was changed on all: 1 cluster (drone-1)"), "{page}");
    assert!(page.contains(">1 cluster</a> reports drift") && !page.contains("as in Git</a>"), "{page}");
    let fleet = browser.page("/").await;
    assert!(fleet.contains("1 assignment changed by hand in dev") && fleet.contains("reality=drifted"), "{fleet}");
}

#[tokio::test]
async fn what_git_does_not_describe_any_more_has_a_page_that_says_so() {
    let hub = Hub::new().await;
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    run(&hub, "UPDATE rollout_items SET assignment = 'hello-smoke-test'", &[]).await;
    let mut entries = entry("old");
    entries[0]["assignment"] = "hello-smoke-test".into();
    hub.state_of("dev", "drone", 1, 1_000_000, &entries).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    for path in ["/assignments/dev/drone/hello-smoke-test", "/workloads/hello"] {
        let page = browser.page(path).await;
        assert!(page.contains("describe it any more"), "{path}: {page}");
    }
}
