//! The pages that look at the fleet: they render for everybody, show a team its own, and lead on from wrong filters.

use axum::http::StatusCode;
use kedge_api::conditions::AssignmentCondition;
use kedge_model::wire::{ClusterId, Stream};
use kedge_status::{Condition, Severity};

use super::browser::Browser;
use crate::api::ReportedStatus;
use crate::api::tests::answers::{HELLO, Newcomer, SPY, Standing, drones, failed, join, join_warning, report, wanted};
use crate::api::tests::fixture::Hub;
use crate::catalog;
use crate::store::Term;

/// One that is well, one that failed, one that is silent, one that is only there.
async fn fleet(hub: &Hub) -> ClusterId {
    wanted(hub, 8).await;
    let well = || report(Condition::Converged, "new");
    let clusters = [
        ("drone-1", Standing::InContact, Some(vec![(HELLO, well()), (SPY, well())])),
        ("drone-2", Standing::InContact, Some(vec![(HELLO, report(failed(), "old")), (SPY, well())])),
        ("drone-3", Standing::Silent, Some(vec![(HELLO, well())])),
        ("drone-4", Standing::InContact, None),
    ];
    let mut ids = Vec::new();
    for (number, (name, standing, told)) in (1..).zip(clusters) {
        ids.push(join(hub, Newcomer { number, name, stream: drones(), standing, told }).await);
    }
    ids[1]
}

fn paths(cluster: &ClusterId) -> Vec<String> {
    let one = format!("/clusters/{cluster}");
    let fixed = [
        "/",
        "/environments/dev",
        "/types/dev/drone",
        "/clusters",
        "/clusters?environment=dev&condition=Unknown",
        "/conditions",
        "/conditions?environment=dev&condition=Failed",
        "/problems",
        "/problems?state=warning",
        "/search?q=drone",
        "/search",
    ];
    fixed.into_iter().map(str::to_owned).chain([one]).collect()
}

#[tokio::test]
async fn every_page_renders_for_every_role() {
    let hub = Hub::new().await;
    let cluster = fleet(&hub).await;
    for token in [&hub.platform, &hub.viewer, &hub.team] {
        let mut browser = Browser::of(&hub, token).await;
        for path in paths(&cluster) {
            let page = browser.page(&path).await;
            assert_eq!(page.matches("<h1").count(), 1, "{path}");
            assert!(page.len() < 50_000, "{path} has {} bytes", page.len());
            assert!(!page.contains("style=") && !page.contains(" onclick"), "{path}");
        }
    }
}

#[tokio::test]
async fn what_agents_warn_of_leads_from_the_problem_to_the_clusters() {
    let hub = Hub::new().await;
    for (number, name) in [(1, "drone-1"), (2, "drone-2")] {
        let told = Some(vec![(HELLO, report(Condition::Converged, "new"))]);
        let new = Newcomer { number, name, stream: drones(), standing: Standing::InContact, told };
        join_warning(&hub, new, &[("DiskLow", Severity::Error, "less than 16 MiB <b>of the disk</b> are free")]).await;
    }
    let told = Some(vec![(HELLO, report(Condition::Converged, "new"))]);
    join(&hub, Newcomer { number: 3, name: "drone-3", stream: drones(), standing: Standing::InContact, told }).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let page = browser.page("/problems?kind=clusters").await;
    let link = "/clusters?environment=dev&#38;state=active&#38;warning=DiskLow";
    for part in ["DiskLow", "2 clusters of dev warn: the disk is nearly full", "make room on the host", link, "since"] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert!(page.contains("16 MiB &#60;b&#62;of the disk"), "{page}");
    let list = browser.page("/clusters?environment=dev&state=active&warning=DiskLow").await;
    assert!(list.contains("drone-1") && list.contains("drone-2") && !list.contains("drone-3"), "{list}");
}

#[tokio::test]
async fn a_cluster_that_others_carry_for_shows_who_and_when() {
    let hub = Hub::new().await;
    let carrier = fleet(&hub).await;
    let mut tx = hub.store.write().await.unwrap();
    let query = sqlx::query("UPDATE clusters SET via = $1, site = 'harbour', relay = 1 WHERE name = 'drone-1'");
    query.bind(carrier.to_string()).execute(tx.connection()).await.unwrap();
    let query = sqlx::query("UPDATE clusters SET via = 'file' WHERE name = 'drone-4'");
    query.execute(tx.connection()).await.unwrap();
    tx.commit().await.unwrap();
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let list = browser.page("/clusters").await;
    assert!(list.contains("via drone-2") && list.contains("via file"), "{list}");
    let page = browser.page("/clusters/drone-1").await;
    let link = format!("via <a href=\"/clusters/{carrier}\">drone-2</a>, observed ");
    assert!(page.contains(&link) && page.contains("relay for its other streams"), "{page}");
    assert!(browser.page("/clusters/drone-4").await.contains("via a file, observed "));
}

#[tokio::test]
async fn another_teams_objects_do_not_show() {
    let hub = Hub::new().await;
    let cluster = fleet(&hub).await;
    let mut browser = Browser::of(&hub, &hub.team).await;
    for path in paths(&cluster) {
        let page = browser.page(&path).await;
        for foreign in ["spy", "intelligence", "git.example/secret", "gitops.git"] {
            assert!(!page.contains(foreign), "{path} shows {foreign}: {page}");
        }
    }
    let fleet = browser.page("/").await;
    assert!(fleet.contains("1 Failed in dev") && fleet.contains("1 of 3 Converged"), "{fleet}");
    let all = Browser::of(&hub, &hub.viewer).await.page("/").await;
    assert!(all.contains("3 of 5 Converged"), "{all}");
}

#[tokio::test]
async fn every_number_leads_to_its_list() {
    let hub = Hub::new().await;
    let cluster = fleet(&hub).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let fleet = browser.page("/").await;
    for link in [
        "/conditions?environment=dev&#38;condition=Failed",
        "/clusters?environment=dev&#38;condition=Unknown&#38;state=active",
        "/problems#repositories",
        "/types/dev/drone",
    ] {
        assert!(fleet.contains(link), "no {link}: {fleet}");
    }
    let failed = browser.page("/conditions?environment=dev&condition=Failed").await;
    assert!(failed.contains(&format!("/clusters/{cluster}")), "{failed}");
    assert!(failed.contains("HealthCheck") && failed.contains("still running 1.0-old"), "{failed}");
    let silent = browser.page("/conditions?condition=Unknown").await;
    assert!(silent.contains("offline since") && silent.contains("last known: running 1.0-new"), "{silent}");
    let clusters = browser.page("/clusters").await;
    assert!(clusters.contains(">1 assignment</a>") && clusters.contains("nothing is reported yet"), "{clusters}");
    assert!(clusters.contains("last known: all Converged"), "{clusters}");
}

#[tokio::test]
async fn problems_are_never_green_while_something_fails() {
    let hub = Hub::new().await;
    fleet(&hub).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let page = browser.page("/problems").await;
    assert!(!page.contains("Nothing needs attention"), "{page}");
    for told in
        ["AssignmentFailed", "ClusterOffline", "kedge get clusters -e dev --condition Unknown", "PublishWaiting"]
    {
        assert!(page.contains(told), "no {told}: {page}");
    }
    let total = hub.get(&hub.viewer, "/problems").await.ok().body["total"].as_u64().unwrap();
    let counter = format!("Problems <span class=\"tag failed\">{total}</span>");
    for path in ["/", "/problems", "/clusters"] {
        let page = browser.page(path).await;
        assert!(page.contains(&counter) && page.contains(&format!("<title>({total}) ")), "{path}: {page}");
    }
    // Only what fits is counted as nothing.
    let none = browser.page("/problems?kind=approvals").await;
    assert!(none.contains("Nothing needs attention here"), "{none}");
    let findings = browser.page("/problems?code=HandEdit").await;
    assert!(findings.contains("was edited by hand"), "{findings}");
}

#[tokio::test]
async fn a_cluster_that_is_offline_shows_what_was_last_known() {
    let hub = Hub::new().await;
    wanted(&hub, 9).await;
    let told = Some(vec![(HELLO, report(Condition::Converged, "new"))]);
    let new = Newcomer { number: 7, name: "away", stream: drones(), standing: Standing::Silent, told };
    let id = join(&hub, new).await;
    let seen = AssignmentCondition {
        assignment: HELLO.to_owned(),
        condition: "Unknown".to_owned(),
        last_known: Some("Converged".to_owned()),
        reason: None,
        message: None,
        desired: None,
        running: Some("p".to_owned()),
        since: "2026-11-01T00:00:00Z".to_owned(),
        observed_at: None,
        version: Some("1.4.1".to_owned()),
        drift: None,
    };
    *hub.services.told.lock().unwrap() = Some(ReportedStatus { conditions: vec![seen], ..ReportedStatus::default() });
    let page = Browser::of(&hub, &hub.viewer).await.page(&format!("/clusters/{id}")).await;
    assert!(page.contains("last known: Converged, running 1.4.1") && !page.contains("not yet"), "{page}");
    assert!(page.contains("<dt>Last heard</dt>") && page.contains("<dt>Missed check-in</dt>"), "{page}");
}

#[tokio::test]
async fn a_wrong_filter_is_told_where_it_can_be_changed() {
    let hub = Hub::new().await;
    fleet(&hub).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    for (path, way_out) in [
        ("/clusters?labelSelector=((", "/clusters"),
        ("/clusters?condition=Sleepy", "/clusters"),
        ("/clusters?cursor=%00", "/clusters"),
        ("/conditions?condition=Odd", "/conditions"),
        ("/conditions?cluster=nobody", "/conditions"),
        ("/conditions?reality=dream", "/conditions"),
        ("/problems?environment=nowhere", "/problems"),
        ("/clusters?environment=nowhere", "/clusters"),
        ("/conditions?environment=nowhere", "/conditions"),
        ("/drift?environment=nowhere", "/drift"),
        ("/rollouts?environment=nowhere", "/rollouts"),
    ] {
        let answer = browser.get(path).await;
        assert!(answer.status.is_client_error(), "{path}: {}", answer.status);
        let drop = format!("href=\"{way_out}\">clear all filters");
        assert!(answer.text.contains("role=\"alert\"") && answer.text.contains(&drop), "{path}: {}", answer.text);
    }
    let answer = browser.get("/clusters?colour=red").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(answer.text.contains("the address holds a filter that isn&#39;t one"), "{}", answer.text);
    let none = browser.page("/clusters?namePrefix=submarine").await;
    assert!(none.contains("No cluster matches these filters") && none.contains("href=\"/clusters\""), "{none}");
    for missing in ["/clusters/nobody", "/environments/nowhere", "/types/dev/nothing"] {
        assert_eq!(browser.get(missing).await.status, StatusCode::NOT_FOUND, "{missing}");
    }
}

#[tokio::test]
async fn an_empty_form_field_asks_for_nothing() {
    let hub = Hub::new().await;
    fleet(&hub).await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    let page = browser
        .page("/clusters?environment=&clusterType=&ring=&condition=&state=&namePrefix=&labelSelector=&site=")
        .await;
    assert!(page.contains("drone-4"), "{page}");
    let page =
        browser.page("/conditions?condition=&drift=&reality=&workload=&assignment=&cluster=&reason=&ring=").await;
    assert!(page.contains("drone-2"), "{page}");
}

#[tokio::test]
async fn lists_go_on_behind_their_first_page() {
    let hub = Hub::new().await;
    for number in 1..=90 {
        let name = format!("a-rather-long-name-of-a-cluster-in-hall-seven-{number:03}");
        let told = Some(vec![(HELLO, report(failed(), "old"))]);
        join(&hub, Newcomer { number, name: &name, stream: drones(), standing: Standing::InContact, told }).await;
    }
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    for path in ["/clusters?environment=dev", "/conditions?condition=Failed"] {
        let (mut seen, mut next) = (0, path.to_owned());
        for _ in 0..5 {
            let page = browser.page(&next).await;
            assert!(page.len() < 50_000, "{path} has {} bytes", page.len());
            seen += page.matches("<tr data-row").count();
            let Some(at) = page.find("\" rel=\"next\"") else { break };
            next = page[..at].rsplit('"').next().unwrap().replace("&#38;", "&");
        }
        assert_eq!(seen, 90, "{path}");
    }
}

#[tokio::test]
async fn a_new_hub_says_what_to_do_next() {
    let hub = Hub::new().await;
    catalog::forget(&hub.store, Term(0), "dev").await.unwrap();
    let platform = Browser::of(&hub, &hub.platform).await.page("/").await;
    assert!(platform.contains("no environment is described yet") && platform.contains("kedge init demo"), "{platform}");
    let viewer = Browser::of(&hub, &hub.viewer).await.page("/").await;
    assert!(viewer.contains("no environment is described yet") && !viewer.contains("kedge token"), "{viewer}");
    let team = Browser::of(&hub, &hub.team).await.page("/").await;
    assert!(team.contains("Nothing of harbour is described"), "{team}");
    let clusters = Browser::of(&hub, &hub.viewer).await.page("/clusters").await;
    assert!(clusters.contains("No cluster has joined yet"), "{clusters}");
}

#[tokio::test]
async fn rings_stand_from_top_to_bottom() {
    let hub = Hub::new().await;
    for (number, ring) in (1..).zip(["rest", "canary"]) {
        let told = Some(vec![(HELLO, report(Condition::Converging, "old"))]);
        let stream = Stream::new("dev", "drone", ring);
        join(&hub, Newcomer { number, name: ring, stream, standing: Standing::InContact, told }).await;
    }
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    for path in ["/", "/environments/dev", "/types/dev/drone"] {
        let page = browser.page(path).await;
        let place = |ring: &str| page.find(&format!("ring={ring}")).unwrap_or_else(|| panic!("{path}: {page}"));
        assert!(place("canary") < place("rest"), "{path}");
    }
}
