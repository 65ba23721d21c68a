//! Pages of workloads, rollouts, history and comparison: who sees what, whole and escaped.

use axum::http::StatusCode;
use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Person, Say, Word};
use serde_json::json;

use super::browser::Browser;
use crate::api::tests::fixture::Hub;
use crate::api::tests::rollouts::{COMMIT, apply_entry, fleet, govern, rolls, run};
use crate::store::api::audit::AuditEntry;

const EVIL: &str = "\"><img src=x onerror=alert(1)>";

/// Those that everybody may look at.
const PAGES: [&str; 16] = [
    "/workloads",
    "/workloads/hello",
    "/workloads?environment=dev&workspace=harbour&namePrefix=h",
    "/assignments/dev/drone/hello-functional-test",
    "/assignments/dev/large/hello-functional-test",
    "/rollouts",
    "/rollouts?environment=dev&state=Active&workload=hello",
    "/rollouts/7",
    "/compare",
    "/compare?left=dev&right=dev/drone&all=true",
    "/compare?left=dev&right=dev",
    "/plan",
    "/plan?environment=dev&revision=main",
    "/history",
    "/history?environment=dev&kind=audit&since=7d",
    "/drift",
];

/// Those of the platform's promotion.
const PROMOTION: [&str; 5] = ["/promotions/dev", "/policy", "/evidence", "/evidence?environment=dev", "/evidence/41"];

async fn filled() -> Hub {
    let hub = Hub::new().await;
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    fleet(&hub).await;
    hub.state(3, &apply_entry()).await;
    let statement = json!({"_type": "https://in-toto.io/Statement/v1", "subject": EVIL});
    use base64::Engine as _;
    let payload = base64::engine::general_purpose::STANDARD.encode(statement.to_string());
    let body = json!({"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": []}).to_string();
    let sql = "INSERT INTO evidence (id, environment, commit_id, kind, rollout, event, body, created_at) \
               VALUES (41, 'dev', $1, 'promotion', NULL, 'passed', $2, 1000)";
    run(&hub, sql, &[COMMIT, &body]).await;
    hub
}

fn check(path: &str, page: &str) {
    assert_eq!(page.matches("<h1").count(), 1, "{path} has one title");
    assert!(!page.contains("style=") && !page.contains("<style") && !page.contains("onclick"), "{path}");
    assert!(page.len() < 50_000, "{path} has {} bytes", page.len());
    for cell in page.split("<td").skip(1) {
        let head = cell.split('>').next().unwrap_or_default();
        assert!(head.contains("data-label") || head.contains("class=\"whole"), "{path}: <td{head}>");
    }
}

#[tokio::test]
async fn each_page_is_shown_to_everybody_who_may_look() {
    let hub = filled().await;
    for token in [&hub.platform, &hub.viewer, &hub.team] {
        let mut browser = Browser::of(&hub, token).await;
        for path in PAGES {
            check(path, &browser.page(path).await);
        }
    }
    for token in [&hub.platform, &hub.viewer] {
        let mut browser = Browser::of(&hub, token).await;
        for path in PROMOTION {
            check(path, &browser.page(path).await);
        }
    }
    let mut team = Browser::of(&hub, &hub.team).await;
    for path in PROMOTION {
        assert_eq!(team.get(path).await.status, StatusCode::FORBIDDEN, "{path}");
    }
}

/// The API takes no cookie, and an application team opens neither promotions nor the history of a commit of main.
#[tokio::test]
async fn no_page_links_to_what_its_reader_cannot_open() {
    let hub = filled().await;
    let cluster = hub.get(&hub.team, "/clusters").await.ok().body["items"][0]["id"].as_str().unwrap().to_owned();
    let more = [format!("/clusters/{cluster}"), "/types/dev/drone".to_owned(), "/environments/dev".to_owned()];
    for token in [&hub.platform, &hub.team] {
        let mut browser = Browser::of(&hub, token).await;
        for path in PAGES.into_iter().map(str::to_owned).chain(more.clone()) {
            let page = browser.page(&path).await;
            assert!(!page.contains("href=\"/api/"), "{path}");
            if token == &hub.team {
                assert!(!page.contains("href=\"/promotions/") && !page.contains("href=\"/history?commit="), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn a_new_hub_says_what_to_do_first() {
    let hub = Hub::new().await;
    let mut browser = Browser::of(&hub, &hub.platform).await;
    assert!(browser.page("/rollouts").await.contains("No PromotionPolicy is on"));
    assert!(browser.page("/rollouts").await.contains("No rollout yet"));
    assert!(browser.page("/drift").await.contains("No cluster has reported anything yet"));
    assert!(browser.page("/evidence").await.contains("There is no evidence yet"));
    assert!(browser.page("/policy").await.contains("nothing is promoted by itself"));
    assert!(browser.page("/commits/0123456").await.contains("Nothing is recorded about"));
}

#[tokio::test]
async fn a_rollout_shows_its_rings_with_numbers_and_what_they_wait_for() {
    let hub = filled().await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    for path in ["/rollouts", "/rollouts/7", "/workloads/hello"] {
        let page = browser.page(path).await;
        assert!(page.contains("2 of 4 minutes soaked"), "{path}");
        assert!(page.contains("66 Converged") && page.contains("1 Failed") && page.contains("4 Unknown"), "{path}");
        assert!(page.contains("1f0e0d0"), "{path} has the commit's chip");
    }
    let page = browser.page("/rollouts/7").await;
    assert!(page.contains("1.4.2") && page.contains("Ada &#60;ada@example.org&#62;"), "{page}");
    assert!(page.contains("/conditions?environment=dev&#38;clusterType=drone&#38;assignment=hello-functional-test"));
}

#[tokio::test]
async fn an_assignment_says_where_each_value_comes_from_and_hides_secrets() {
    let hub = filled().await;
    let path = "/assignments/dev/drone/hello-functional-test";
    let mut browser = Browser::of(&hub, &hub.platform).await;
    let page = browser.page(path).await;
    assert!(page.contains("hunter2"), "the platform team sees secrets");
    assert!(page.contains("REGION") && page.contains("overrides 1") && page.contains("nowhere"));
    let link = "https://git.example/platform/control-plane/src/commit/1f0e0d0c0b0a/all.yaml#L";
    assert!(page.contains(link), "{page}");
    assert!(page.contains("functional-test</strong> selected targets"), "why it was chosen");
    for token in [&hub.viewer, &hub.team] {
        let page = Browser::of(&hub, token).await.page(path).await;
        assert!(!page.contains("hunter2") && !page.contains("4711"));
        assert!(page.contains("shown to the platform team only"));
        let page = Browser::of(&hub, token).await.page("/workloads/hello").await;
        assert!(!page.contains("hunter2") && page.contains("DB_PASSWORD"));
    }
    let page = browser.page("/assignments/dev/large/hello-functional-test").await;
    assert!(page.contains("Quarantined:"), "{page}");
    let page = browser.page("/workloads/hello").await;
    assert!(page.contains("hunter2") && page.contains("<code>west</code>"), "{page}");
}

#[tokio::test]
async fn another_teams_things_are_not_shown() {
    let hub = filled().await;
    let cause = "UPDATE rollout_items SET assignment = 'spy-functional-test', workload = 'spy'";
    run(&hub, cause, &[]).await;
    let mut team = Browser::of(&hub, &hub.team).await;
    for path in ["/workloads", "/rollouts", "/drift", "/history", "/compare?left=dev&right=dev/drone&all=true"] {
        let page = team.page(path).await;
        assert!(!page.contains("spy") && !page.contains("intelligence"), "{path}");
    }
    for path in ["/workloads/spy", "/assignments/dev/drone/spy-functional-test", "/rollouts/7", "/rollouts/7/approve"] {
        assert_eq!(team.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(!team.page("/rollouts").await.contains("rollout 7"));
}

#[tokio::test]
async fn of_a_rollout_that_moves_others_too_a_team_sees_its_part() {
    let hub = filled().await;
    let sql = "INSERT INTO rollout_items (rollout, cluster_type, assignment, workload, commit_id, body) \
               SELECT rollout, cluster_type, 'spy-functional-test', 'spy', commit_id, body FROM rollout_items";
    run(&hub, sql, &[]).await;
    let waits = "UPDATE rollouts SET body = REPLACE(body, '2 of 4 minutes soaked', 'drone/spy: 1 of 9 converged')";
    run(&hub, waits, &[]).await;
    let mut viewer = Browser::of(&hub, &hub.viewer).await;
    assert!(viewer.page("/rollouts/7").await.contains("drone/spy: 1 of 9 converged"));
    let mut team = Browser::of(&hub, &hub.team).await;
    for path in ["/rollouts", "/rollouts/7", "/rollouts/7/approve", "/workloads/hello"] {
        let page = team.page(path).await;
        assert!(!page.contains("spy") && !page.contains("1 of 9"), "{path}");
    }
    assert!(team.page("/rollouts/7").await.contains("which looks at other teams"));
}

#[tokio::test]
async fn what_others_write_stays_text() {
    let hub = Hub::new().await;
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.cause.subject = EVIL.to_owned();
        rollout.cause.author = EVIL.to_owned();
        rollout.rings[0].waits_for = vec![EVIL.to_owned()];
        rollout.words.push(Word {
            who: EVIL.to_owned(),
            person: Person::new(EVIL, &[EVIL]),
            role: EVIL.to_owned(),
            at: Timestamp(1000),
            reason: EVIL.to_owned(),
            say: Say::Approve { ring: Some(EVIL.to_owned()) },
            new_token: true,
        });
    })
    .await;
    fleet(&hub).await;
    hub.state(3, &apply_entry()).await;
    let inside = EVIL.replace('"', "\\\"");
    for (table, column, plain) in [
        ("catalog", "body", "harbour"),
        ("catalog", "body", "purpose"),
        ("catalog", "detail", "all.yaml"),
        ("catalog", "detail", "region=west"),
        ("catalog_values", "body", "west"),
        ("catalog_values", "body", "common"),
        ("rollout_items", "body", "1.4.2"),
    ] {
        run(&hub, &format!("UPDATE {table} SET {column} = REPLACE({column}, $1, $2)"), &[plain, &inside]).await;
    }
    let entry = AuditEntry {
        token: "t".to_owned(),
        person: EVIL.to_owned(),
        who: EVIL.to_owned(),
        role: "platform".to_owned(),
        action: "cluster.move".to_owned(),
        object: EVIL.to_owned(),
        environment: "dev".to_owned(),
        detail: json!({"to": EVIL}),
        address: String::new(),
        result: "done".to_owned(),
    };
    hub.store.audit(&entry).await.unwrap();
    let mut browser = Browser::of(&hub, &hub.platform).await;
    for path in PAGES.into_iter().chain(["/promotions/dev", "/policy", "/rollouts/7/approve", "/rollouts/7/rollback"]) {
        let page = browser.page(path).await;
        assert!(!page.contains("<img"), "{path}");
    }
    let page = browser.page("/rollouts/7").await;
    assert!(page.contains("&#60;img src=x"), "it is shown as it is");
    for query in ["environment", "workload", "commit", "who", "since", "cursor", "left"] {
        let value = crate::web::links::part(EVIL);
        for path in ["/history", "/rollouts", "/drift", "/workloads", "/compare?right=dev&x=1", "/plan?revision=x"] {
            let separator = if path.contains('?') { '&' } else { '?' };
            let answer = browser.get(&format!("{path}{separator}{query}={value}")).await;
            assert!(!answer.text.contains("<img"), "{path} {query}");
            assert!(!answer.status.is_server_error(), "{path} {query}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn a_wrong_filter_is_told_with_the_way_out() {
    let hub = filled().await;
    let mut browser = Browser::of(&hub, &hub.viewer).await;
    for (path, said) in [
        ("/history?since=nonsense", "as a time"),
        ("/history?kind=nonsense", "unknown kind"),
        ("/history?cursor=nonsense", "cursor"),
        ("/history?who=nobody", "there is no person"),
        ("/rollouts?state=Nonsense", "Clear all filters"),
        ("/workloads?namePrefix=zzz", "Clear all filters"),
        ("/workloads?cursor=nonsense", "cursor"),
        ("/drift?workload=zzz", "Clear all filters"),
        ("/compare?left=nowhere&right=dev", "nowhere"),
        ("/compare?left=dev@tomorrow&right=dev", "tomorrow"),
        ("/evidence?commit=zzz", "there is no commit"),
    ] {
        let answer = browser.get(path).await;
        assert!(!answer.status.is_server_error(), "{path}");
        assert!(answer.text.contains(said), "{path}: {}", answer.text);
    }
}
