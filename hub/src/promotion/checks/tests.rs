//! Questions over real HTTP: asked while a ring rolls, told to rollouts, kept for the next leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use kedge_model::kinds::{EnvironmentPolicy, Probe};
use kedge_model::wire::Timestamp;
use kedge_rollout::Cause;

use super::*;
use crate::promotion::testing::{Fakes, TERM, World};

/// A server that answers by path, and how often it was asked.
async fn server() -> (String, Arc<AtomicUsize>) {
    async fn answer(State(asked): State<Arc<AtomicUsize>>, uri: Uri) -> Response {
        asked.fetch_add(1, Ordering::SeqCst);
        match uri.path() {
            "/ok" => axum::Json(serde_json::json!({"status": "ok"})).into_response(),
            "/here" => Redirect::temporary("/ok").into_response(),
            "/away" => Redirect::temporary("http://localhost:1/ok").into_response(),
            "/long" => vec![b' '; 2 << 20].into_response(),
            "/slow" => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                StatusCode::OK.into_response()
            }
            "/api/v1/query" => {
                let result = serde_json::json!([{"metric": {}, "value": [1, "3"]}]);
                let data = serde_json::json!({"resultType": "vector", "result": result});
                axum::Json(serde_json::json!({"status": "success", "data": data})).into_response()
            }
            _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::clone(&asked));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, asked)
}

fn http(name: &str, url: String) -> Check {
    let probe = Probe::Http { url, pointer: "/status".to_owned(), equals: "ok".to_owned() };
    Check { name: name.to_owned(), probe, every: Duration::from_secs(60), timeout: Duration::from_millis(500) }
}

/// A rollout whose only ring rolls and asks these.
fn rolling(checks: Vec<Check>) -> Rollout {
    let mut policy = EnvironmentPolicy::new("dev", Vec::new());
    policy.rings[0].gate.checks = checks;
    let cause = Cause::of_commit("c");
    let mut rollout =
        Rollout::new(RolloutId(7), "dev", Lane::Platform, cause, Arc::new(policy), Arc::from([]), Timestamp(0));
    rollout.rings[0].state = RingState::Rolling;
    rollout
}

const NO_POLICY: &str = "";

#[tokio::test]
async fn every_kind_of_answer_is_a_word() {
    let (address, _) = server().await;
    let world = World::new(&[], NO_POLICY).await;
    let about = About { repo: world.url.clone(), commit: "c".to_owned() };
    for (path, ok, said) in [
        ("/ok", true, "/status is \"ok\""),
        ("/here", true, "/status is \"ok\""),
        ("/away", false, "it can't be asked: it redirects to another host"),
        ("/long", false, "its answer is longer than we read"),
        ("/slow", false, "no answer within 500ms"),
        ("/gone", false, "it answers 503"),
    ] {
        let fact = ask(&http("x", format!("{address}{path}")), &about, &world.controller.branches).await;
        assert_eq!((fact.ok, fact.said.as_str()), (ok, said), "{path}");
    }
    let probe = Probe::Prometheus { url: address, query: "up".to_owned() };
    let fact = ask(&Check { probe, ..http("x", String::new()) }, &about, &world.controller.branches).await;
    assert_eq!((fact.ok, fact.said.as_str()), (true, "the query gives 3"));
    let probe = Probe::CommitStatus { context: "ci".to_owned() };
    let fact = ask(&Check { probe, ..http("x", String::new()) }, &about, &world.controller.branches).await;
    assert!(!fact.ok && fact.said.contains("no server that is configured"), "{}", fact.said);
}

#[tokio::test]
async fn a_check_is_asked_while_its_ring_rolls_and_its_answer_outlives_the_leader() {
    let (address, asked) = server().await;
    let world = World::new(&[], NO_POLICY).await;
    let fakes = Arc::new(Fakes::default());
    let asker = Asker { outcomes: Arc::clone(&fakes) as Arc<dyn Outcomes>, ..world.controller.asker.clone() };
    let mut rung = asker.nudge.listen();
    *fakes.rollouts.lock().unwrap() = vec![rolling(vec![http("smoke", format!("{address}/ok"))])];
    let task = tokio::spawn(asker.clone().lead(TERM));
    rung.changed().await.unwrap();
    assert!(asker.said.of(RolloutId(7))["all"]["smoke"].ok);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    task.abort();
    let kept = world.store.check_facts(RolloutId(7)).await.unwrap();
    assert!(kept[&("all".to_owned(), "smoke".to_owned())].ok);

    // The next leader has the answer before it asks.
    let next = Asker { said: Checks::default(), ..asker };
    next.refresh(&mut CheckQueue::default()).await.unwrap();
    assert!(next.said.of(RolloutId(7))["all"]["smoke"].ok);

    // Nobody rolls any more: nothing is asked, and nothing is kept in memory.
    let mut queue = CheckQueue::default();
    next.refresh(&mut queue).await.unwrap();
    fakes.rollouts.lock().unwrap().clear();
    next.refresh(&mut queue).await.unwrap();
    assert!(queue.questions.is_empty() && next.said.of(RolloutId(7)).is_empty());
}

#[tokio::test]
async fn a_status_of_the_commit_on_its_forge_is_an_answer() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("team");
    std::fs::create_dir_all(&folder).unwrap();
    let origin = crate::git::testing::Remote::new(&folder, "gitops");
    let fake = crate::publish::forge::fake::Fake::start(crate::config::ForgeKind::Gitea).await;
    let url = format!("{}/team/gitops.git", crate::git::testing::Server::start(root.path()).address);
    let prefix = url.trim_end_matches("/team/gitops.git").to_owned();
    let forge = crate::config::Forge { prefix, ..fake.config() };
    let world = World::over(root, origin, url.clone(), vec![forge], &[], NO_POLICY).await;
    let probe = Probe::CommitStatus { context: "ci/e2e".to_owned() };
    let check = Check { probe, timeout: Duration::from_secs(5), ..http("x", String::new()) };
    let about = About { repo: url, commit: "c0ffee".to_owned() };
    let said = async || {
        let fact = ask(&check, &about, &world.controller.branches).await;
        (fact.ok, fact.said)
    };
    assert_eq!(said().await, (false, "ci/e2e isn't set on the commit".to_owned()));
    for (state, ok) in [("pending", false), ("success", true), ("failure", false)] {
        let told = serde_json::json!({"context": "ci/e2e", "status": state});
        fake.state().statuses = vec![("c0ffee".to_owned(), told)];
        assert_eq!(said().await, (ok, format!("ci/e2e is {state}")));
    }
}
