//! Hold documents: the hub's reach the cluster with a poll, a technician's reach the hub by any carrier.

use kedge_hub::agents::Changes;
use kedge_hub::store::agents::holds::HoldWriter;
use kedge_hub::store::now;
use kedge_model::wire::{ClusterId, Envelope, HoldDocument, HoldEntry, SiteHolds, Timestamp};

use crate::hub::Hub;

fn entry(assignment: &str, by: &str) -> HoldEntry {
    HoldEntry { assignment: assignment.to_owned(), by: by.to_owned(), reason: String::new(), since: now() }
}

fn document(cluster: ClusterId, sequence: u64, assignments: &[&str]) -> HoldDocument {
    let holds = assignments.iter().map(|assignment| entry(assignment, "paul")).collect();
    HoldDocument { cluster, sequence, written_at: Timestamp(1), holds }
}

#[tokio::test]
async fn a_hold_at_the_hub_ends_the_held_poll_and_a_release_replaces_it() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    let held = async {
        let mut tx = hub.store.write().await.unwrap();
        hub.fleet.hold(&mut tx, &cluster, entry("camera-line", "anna")).await.unwrap();
        tx.commit().await.unwrap();
        hub.fleet.refresh().await;
    };
    let (answer, ()) = tokio::join!(agent.poll(), held);
    let told: HoldDocument = answer.unwrap().holds.unwrap().open(&agent.keys.trusted()).unwrap();
    assert_eq!((told.cluster, told.holds.len(), told.holds[0].by.as_str()), (cluster, 1, "anna"));

    let mut tx = hub.store.write().await.unwrap();
    assert!(hub.fleet.release(&mut tx, &cluster, "camera-line").await.unwrap());
    assert!(!hub.fleet.release(&mut tx, &cluster, "camera-line").await.unwrap());
    tx.commit().await.unwrap();
    hub.fleet.refresh().await;
    let next: HoldDocument = agent.poll().await.unwrap().holds.unwrap().open(&agent.keys.trusted()).unwrap();
    assert!(next.holds.is_empty() && next.sequence > told.sequence);
}

#[tokio::test]
async fn a_technicians_document_is_taken_from_any_carrier_and_only_newer_ones() {
    let hub = Hub::start().await;
    let (mut carrier, owner) = (hub.agent().await, hub.agent().await);
    let cluster = owner.identity.cluster;
    let sealed = |sequence, names: &[&str]| Envelope::sign(&document(cluster, sequence, names), &owner.identity.key);
    carrier.send_status(&sealed(2, &["camera-line"]).unwrap()).await.unwrap();
    carrier.send_status(&sealed(1, &[]).unwrap()).await.unwrap();
    let (_, stored) = hub.store.hold_document(&cluster, HoldWriter::Cluster).await.unwrap().unwrap();
    assert_eq!((stored.sequence, stored.holds.len()), (2, 1));
}

#[tokio::test]
async fn a_hold_document_signed_by_somebody_else_is_forged() {
    let hub = Hub::start().await;
    let (mut agent, other) = (hub.agent().await, hub.agent().await);
    let forged = Envelope::sign(&document(other.identity.cluster, 1, &["x"]), &agent.identity.key).unwrap();
    let refused = agent.send_status(&forged).await.unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(403), Some("Forged")));
    assert!(hub.store.hold_document(&other.identity.cluster, HoldWriter::Cluster).await.unwrap().is_none());
}

#[tokio::test]
async fn a_hold_from_another_cluster_is_taken_if_both_share_a_site() {
    let hub = Hub::start().await;
    let (mut writer, target) = (hub.agent().await, hub.agent().await);
    let (by, cluster) = (writer.identity.cluster, target.identity.cluster);
    let sealed = |sequence, names: &[&str]| {
        let holds = SiteHolds { document: document(cluster, sequence, names), key: writer.identity.key.public() };
        Envelope::sign(&holds, &writer.identity.key).unwrap()
    };
    let (first, empty) = (sealed(1, &["camera-line"]), sealed(2, &[]));
    let mut forged = sealed(3, &[]);
    forged.payload[12] ^= 1;
    writer.send_status(&first).await.unwrap();
    let documents = hub.store.hold_documents(&cluster).await.unwrap();
    assert_eq!((documents[0].0, documents[0].1.holds.len(), documents.len()), (HoldWriter::Peer(by), 1, 1));
    assert!(writer.send_status(&forged).await.is_err());
    writer.send_status(&empty).await.unwrap();
    assert!(hub.store.hold_documents(&cluster).await.unwrap()[0].1.holds.is_empty());

    let mut tx = hub.store.write().await.unwrap();
    let changes = Changes { site: Some(Some("mill".to_owned())), ..Changes::default() };
    hub.fleet.relabel(&mut tx, &by, changes).await.unwrap();
    tx.commit().await.unwrap();
    let refused = writer.send_status(&first).await.unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(403), Some("WrongCluster")));
}
