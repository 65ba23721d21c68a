//! Packages: whole, in parts, and only one's own.

use kedge_tests::agent::{Agent, read};

use crate::hub::{Hub, drones, entry};

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|number| u8::try_from(number % 251).unwrap()).collect()
}

async fn with_package(length: usize) -> (Hub, Agent, Vec<u8>, kedge_model::wire::BlobRef) {
    let hub = Hub::start().await;
    let bytes = content(length);
    let (platform, workload) = (hub.put(b"platform"), hub.put(&bytes));
    hub.issue(&drones(), 1, vec![entry("app", &platform, &workload, Vec::new())]).await;
    let agent = hub.agent().await;
    (hub, agent, bytes, workload)
}

#[tokio::test]
async fn a_package_arrives_whole() {
    let (_hub, mut agent, bytes, blob) = with_package(300_000).await;
    let reply = agent.fetch(&blob.digest, 0).await.unwrap();
    assert_eq!((reply.status, reply.body == bytes), (200, true));
    assert_eq!(reply.header("etag"), Some(format!("\"{}\"", blob.digest).as_str()));
    assert_eq!(reply.header("accept-ranges"), Some("bytes"));
}

#[tokio::test]
async fn a_download_goes_on_where_it_broke_off() {
    let (_hub, mut agent, bytes, blob) = with_package(300_000).await;
    let reply = agent.fetch(&blob.digest, 123_456).await.unwrap();
    assert_eq!((reply.status, reply.body == bytes[123_456..]), (206, true));
    assert_eq!(reply.header("content-range"), Some("bytes 123456-299999/300000"));
}

#[tokio::test]
async fn a_part_past_the_end_is_not_satisfiable() {
    let (_hub, mut agent, _, blob) = with_package(1000).await;
    let reply = agent.fetch(&blob.digest, 1000).await.unwrap();
    assert_eq!((reply.status, reply.header("content-range")), (416, Some("bytes */1000")));
}

#[tokio::test]
async fn if_range_with_another_tag_gives_the_whole() {
    let (_hub, mut agent, bytes, blob) = with_package(1000).await;
    let path = format!("/agent/v1/blobs/{}", blob.digest);
    let other = agent.get(&path, &[("range", "bytes=10-19"), ("if-range", "\"other\"")]).await.unwrap();
    assert_eq!((other.status, other.body.len()), (200, 1000));
    let tag = format!("\"{}\"", blob.digest);
    let same = agent.get(&path, &[("range", "bytes=10-19"), ("if-range", &tag)]).await.unwrap();
    assert_eq!((same.status, same.body), (206, bytes[10..20].to_vec()));
    let known = agent.get(&path, &[("if-none-match", &tag)]).await.unwrap();
    assert_eq!(known.status, 304);
}

#[tokio::test]
async fn head_tells_the_size_alone() {
    let (_hub, mut agent, _, blob) = with_package(5000).await;
    let path = format!("/agent/v1/blobs/{}", blob.digest);
    let link = agent.connect().await.unwrap();
    let reply = link.send("HEAD", &path, &[], &[]).await.unwrap();
    assert_eq!((reply.status, reply.header("content-length"), reply.body.len()), (200, Some("5000"), 0));
    assert_eq!(link.send("GET", &path, &[], &[]).await.unwrap().body.len(), 5000);
}

#[tokio::test]
async fn artifacts_and_the_state_before_are_served_and_nothing_older() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let blobs = [b"zero", b"once", b"twos", b"tres"].map(|text| hub.put(text));
    let model = hub.put(b"model");
    for (generation, blob) in (1..).zip(&blobs[..3]) {
        hub.issue(&drones(), generation, vec![entry("app", blob, blob, vec![model.clone()])]).await;
    }
    let mut status = async |blob: &kedge_model::wire::BlobRef| agent.fetch(&blob.digest, 0).await.unwrap().status;
    assert_eq!(status(&blobs[2]).await, 200);
    assert_eq!(status(&blobs[1]).await, 200);
    assert_eq!(status(&blobs[0]).await, 404);
    assert_eq!(status(&blobs[3]).await, 404);
    assert_eq!(status(&model).await, 200);
}

#[tokio::test]
async fn a_cluster_of_another_stream_gets_nothing_of_it() {
    let (hub, _agent, _, blob) = with_package(100).await;
    let token = hub.token_for("truck", 1, std::time::Duration::from_secs(60)).await;
    let mut truck = Agent::join(&token, "truck-1").await.unwrap();
    let refused = read::<serde_json::Value>(truck.fetch(&blob.digest, 0).await.unwrap()).unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(404), Some("NotFound")));
}

#[tokio::test]
async fn a_path_that_climbs_is_no_digest() {
    let (_hub, mut agent, _, _) = with_package(10).await;
    for path in
        ["/agent/v1/blobs/../../etc/passwd", "/agent/v1/blobs/", "/agent/v1/blobs/sha256:ABC", "/agent/v1/state"]
    {
        assert_eq!(agent.get(path, &[]).await.unwrap().status, 404, "{path}");
        agent.disconnect();
    }
}
