//! Sites, and files across an air gap.

use axum::body::Body;
use axum::http::{Method, Request, header};
use kedge_model::wire::ClusterId;
use serde_json::json;

use super::fixture::Hub;

async fn carried(hub: &Hub, cluster: &ClusterId, via: &str) {
    let mut tx = hub.store.write().await.unwrap();
    let query = sqlx::query("UPDATE clusters SET via = $2, site = 'harbour' WHERE id = $1");
    query.bind(cluster.to_string()).bind(via).execute(tx.connection()).await.unwrap();
    tx.commit().await.unwrap();
}

async fn who_carries_for_a_cluster_is_shown_by_name_to_those_who_see_it(hub: Hub) {
    let own = hub.cluster(1, "drone-1", "drone", "{}").await;
    let carrier = hub.cluster(2, "other-1", "other", "{}").await;
    carried(&hub, &own, &carrier.to_string()).await;
    let whole = hub.get(&hub.viewer, "/clusters/drone-1").await.ok();
    assert_eq!(whole.body["via"], json!({"cluster": carrier.to_string(), "name": "other-1"}));
    let listed = hub.get(&hub.viewer, "/clusters?environment=dev").await.ok();
    assert_eq!(listed.body["items"][0]["via"]["name"], "other-1");
    let team = hub.get(&hub.team, "/clusters/drone-1").await.ok();
    assert_eq!(team.body["via"], json!({"name": "another cluster"}));
    carried(&hub, &own, "file").await;
    assert_eq!(hub.get(&hub.viewer, "/clusters/drone-1").await.ok().body["via"], json!({"name": "file"}));
    assert!(hub.get(&hub.viewer, "/clusters/other-1").await.ok().body.get("via").is_none());
}

async fn a_relay_needs_a_site_and_the_platform_team(hub: Hub) {
    let id = hub.cluster(1, "drone-1", "drone", "{}").await;
    let path = "/clusters/drone-1";
    hub.patch(&hub.viewer, path, json!({"relay": true})).await.refused(403, "Forbidden");
    hub.patch(&hub.platform, path, json!({})).await.refused(400, "NothingAsked");
    hub.patch(&hub.platform, path, json!({"relay": true})).await.refused(409, "NoSite");
    hub.patch(&hub.platform, path, json!({"site": "a\nb"})).await.refused(400, "BadSite");
    hub.services.asked();
    hub.patch(&hub.platform, path, json!({"site": "harbour", "relay": true})).await.ok();
    assert_eq!(hub.services.asked()[0], format!("set {id} Some(\"harbour\") true"));
    let audit = hub.get(&hub.platform, "/audit").await.ok();
    assert!(audit.text.contains("cluster.set"), "{}", audit.text);
}

async fn files_are_for_the_platform_team_and_in_the_audit_log(hub: Hub) {
    let request = json!({"payloadType": "x", "payload": "", "signatures": []});
    let body = json!({"request": request, "environment": "dev", "clusterType": "drone"});
    hub.post(&hub.viewer, "/clusters/sign", body.clone()).await.refused(403, "Forbidden");
    let signed = hub.post(&hub.platform, "/clusters/sign", body).await.ok();
    assert_eq!((&signed.body["name"], &signed.body["again"]), (&json!("press-7"), &json!(false)));
    let unknown = json!({"request": request, "environment": "dev", "clusterType": "toaster"});
    hub.post(&hub.platform, "/clusters/sign", unknown).await.refused(422, "UnknownClusterType");

    hub.cluster(1, "drone-1", "drone", "{}").await;
    hub.services.asked();
    hub.get(&hub.team, "/bundle?environment=dev&clusterType=drone").await.refused(403, "Forbidden");
    hub.get(&hub.platform, "/bundle?environment=dev").await.refused(400, "BadSelection");
    hub.get(&hub.platform, "/bundle?environment=prod&cluster=drone-1").await.refused(409, "OtherEnvironment");
    hub.get(&hub.platform, "/bundle?environment=dev&cluster=drone-1&since=soon").await.refused(400, "BadSince");
    hub.get(&hub.platform, "/bundle?environment=dev&cluster=drone-1&since=reported").await.refused(404, "NotFound");
    assert!(hub.services.asked()[0].contains("Reported"));

    let file = |token: &str, size: usize| {
        let request = Request::builder().method(Method::POST).uri("/api/v1/status/import");
        let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        request.body(Body::from(vec![0; size])).unwrap()
    };
    hub.call(file(&hub.viewer, 10)).await.refused(403, "Forbidden");
    hub.call(file(&hub.platform, 65 * 1024 * 1024)).await.refused(413, "TooLarge");
    let taken = hub.call(file(&hub.platform, 200_000)).await.ok();
    assert_eq!(hub.services.asked(), ["import 200000 bytes"]);
    let item = &taken.body["items"][0];
    assert_eq!(
        (&item["outcome"], &item["reason"], &item["what"]),
        (&json!("refused"), &json!("Forged"), &json!("status"))
    );
    let audit = hub.get(&hub.platform, "/audit").await.ok();
    assert!(audit.text.contains("cluster.sign") && audit.text.contains("status.import"), "{}", audit.text);
}

on_each_database! {
    who_carries_for_a_cluster_is_shown_by_name_to_those_who_see_it,
    a_relay_needs_a_site_and_the_platform_team,
    files_are_for_the_platform_team_and_in_the_audit_log,
}
