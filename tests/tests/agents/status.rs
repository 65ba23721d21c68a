//! Documents: handed on with who brought them, and answered as the intake says.

use kedge_hub_types::status::TakeError;

use crate::hub::Hub;

#[tokio::test]
async fn a_document_is_handed_on_with_its_carrier() {
    let hub = Hub::start().await;
    let (mut agent, other) = (hub.agent().await, hub.agent().await);
    let own = agent.identity.sign("application/vnd.kedge.status.v1", b"own".to_vec());
    let carried = other.identity.sign("application/vnd.kedge.status.v1", b"carried".to_vec());
    agent.send_status(&own).await.unwrap();
    agent.send_status(&carried).await.unwrap();
    let carrier = agent.identity.cluster;
    assert_eq!(*hub.services.documents.lock().unwrap(), [(carrier, own), (carrier, carried)]);
}

#[tokio::test]
async fn a_refused_document_is_told_why() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let document = agent.identity.sign("application/vnd.kedge.status.v1", b"x".to_vec());
    let message = "the signature does not fit".to_owned();
    *hub.services.refusal.lock().unwrap() = Some(TakeError::Forged(message));
    let refused = agent.send_status(&document).await.unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(403), Some("Forged")));
}

#[tokio::test]
async fn without_the_database_a_document_is_asked_for_again_later() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let document = agent.identity.sign("application/vnd.kedge.status.v1", b"x".to_vec());
    *hub.services.refusal.lock().unwrap() = Some(TakeError::Unavailable);
    let refused = agent.send_status(&document).await.unwrap_err();
    assert!(matches!(refused, kedge_tests::agent::AgentError::Refused { status: 503, retry_after: Some(5..=15), .. }));
    agent.send_status(&document).await.unwrap();
}
