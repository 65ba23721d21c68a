//! Text that a repository or an agent controls comes out as text, wherever it stands.

use kedge_api::clusters::WarningSummary;
use kedge_api::conditions::AssignmentCondition;
use kedge_api::environments::{PublishSummary, WaitingRemovals};
use kedge_api::findings::Finding;
use kedge_api::holds::HoldSummary;
use kedge_api::repositories::{RepositoryFailure, RepositorySummary};
use kedge_api::source::{InputCommit, SourceLocation};
use kedge_status::{Condition, Report};

use super::browser::Browser;
use crate::api::ReportedStatus;
use crate::api::tests::answers::{HELLO, Newcomer, Standing, drones, join, report};
use crate::api::tests::fixture::Hub;
use crate::catalog::{self, CatalogNotes, testing};
use crate::store::Term;

const EVIL: &str = "\"><img src=x onerror=alert(1)>'&{{7*7}}";

fn evil() -> String {
    EVIL.to_owned()
}

async fn describe(hub: &Hub) {
    let place = || SourceLocation { repo: evil(), revision: Some(evil()), file: evil(), line: Some(1), column: None };
    let finding = |severity: &str, code: &str| Finding {
        severity: severity.to_owned(),
        code: format!("{code}{EVIL}"),
        message: evil(),
        hint: Some(evil()),
        origin: Some(place()),
        related: vec![place()],
        stage: evil(),
    };
    let failing = RepositoryFailure { error: evil(), hint: Some(evil()), since: evil(), next_try: Some(evil()) };
    let repository = |url: &str, failing| RepositorySummary {
        url: format!("{url}{EVIL}"),
        failing,
        forced: vec![evil()],
        ..RepositorySummary::default()
    };
    let notes = CatalogNotes {
        inputs: Some(vec![InputCommit { repo: evil(), commit: evil() }]),
        repositories: Some(vec![
            repository("https://git.example/", Some(failing)),
            repository("javascript:alert(1)//", None),
        ]),
        published: Some(PublishSummary {
            outcome: evil(),
            commit: Some(evil()),
            link: Some("javascript:alert(1)".to_owned()),
            message: Some(evil()),
        }),
        waiting: Some(vec![WaitingRemovals { cluster_type: evil(), removed: vec![evil()], confirmed: 1 }]),
        notices: Some(vec![finding("error", "a"), finding("warning", "b")]),
        ..CatalogNotes::default()
    };
    catalog::update(&hub.store, Term(0), "dev", &testing::scheduler(), None, &notes).await.unwrap();
}

fn told() -> ReportedStatus {
    let condition = |assignment: &str, condition: &str| AssignmentCondition {
        assignment: format!("{assignment}{EVIL}"),
        condition: condition.to_owned(),
        last_known: Some(evil()),
        reason: Some(evil()),
        message: Some(evil()),
        desired: None,
        running: Some(evil()),
        since: evil(),
        observed_at: None,
        version: Some(evil()),
        drift: Some(evil()),
    };
    let hold = |writer: &str| HoldSummary {
        assignment: evil(),
        by: evil(),
        reason: evil(),
        since: evil(),
        writer: writer.to_owned(),
        obeyed: false,
    };
    let words = ["Converged", "Converging", "Failed", "Unknown", EVIL];
    ReportedStatus {
        conditions: words.iter().map(|word| condition(word, word)).collect(),
        holds: vec![hold("hub"), hold("cluster")],
        warnings: vec![WarningSummary { code: evil(), severity: evil(), message: evil(), hint: evil(), since: evil() }],
    }
}

#[tokio::test]
async fn names_and_messages_from_outside_come_out_as_text() {
    let hub = Hub::new().await;
    describe(&hub).await;
    let failed = Condition::Failed { reason: evil(), message: evil() };
    let said = Report { version: Some(evil()), drift: Some(evil()), ..report(failed, "old") };
    let told_by = Some(vec![(HELLO, said)]);
    let new = Newcomer { number: 1, name: EVIL, stream: drones(), standing: Standing::InContact, told: told_by };
    let cluster = join(&hub, new).await;
    let labels = serde_json::json!({EVIL: EVIL}).to_string();
    let mut tx = hub.store.write().await.unwrap();
    let facts = serde_json::json!({"agentVersion": EVIL, "architecture": EVIL, "system": EVIL}).to_string();
    sqlx::query("UPDATE clusters SET labels = $1, site = $2, facts = $3")
        .bind(labels)
        .bind(EVIL)
        .bind(facts)
        .execute(tx.connection())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    *hub.services.told.lock().unwrap() = Some(told());
    let coded = crate::web::links::part(EVIL);
    let paths = [
        "/".to_owned(),
        "/environments/dev".to_owned(),
        "/types/dev/drone".to_owned(),
        "/clusters".to_owned(),
        format!("/clusters?site={coded}&namePrefix={coded}&ring={coded}"),
        format!("/clusters/{cluster}"),
        format!("/clusters/{cluster}/hold?assignment={coded}"),
        format!("/clusters/{cluster}/release?assignment={coded}"),
        "/conditions".to_owned(),
        format!("/conditions?condition={coded}&workload={coded}&reason={coded}"),
        "/problems".to_owned(),
        format!("/environments/dev/confirm/{coded}"),
        format!("/search?q={coded}"),
        format!("/clusters/{coded}"),
        format!("/environments/{coded}"),
    ];
    for token in [&hub.platform, &hub.viewer, &hub.team] {
        let mut browser = Browser::of(&hub, token).await;
        for path in &paths {
            let page = browser.get(path).await.text;
            assert!(
                !page.contains("<img") && !page.contains("\">'") && !page.contains("href=\"javascript:"),
                "{path}: {page}"
            );
        }
    }
    let mut browser = Browser::of(&hub, &hub.platform).await;
    for path in ["/problems".to_owned(), format!("/clusters/{cluster}"), "/clusters".to_owned()] {
        assert!(browser.page(&path).await.contains("&#60;img"), "{path} shows the text itself");
    }
}
