//! Hold documents: the hub's reach the cluster with a poll, a technician's reach the hub by any carrier.

use kedge_hub::agents::Changes;
use kedge_hub::store::agents::holds::HoldWriter;
use kedge_hub::store::now;
use kedge_model::wire::{ClusterId, Envelope, HoldDocument, HoldEntry, HubHolds, Lift, SiteHolds, Timestamp};

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
        let document = document(cluster, sequence, names);
        let holds = SiteHolds { document, key: writer.identity.key.public(), lasts: Default::default() };
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

#[tokio::test]
async fn the_hub_lifts_what_a_stolen_agent_holds_and_tells_so_with_a_poll() {
    let hub = Hub::start().await;
    let (mut thief, mut target) = (hub.agent().await, hub.agent().await);
    let (by, cluster) = (thief.identity.cluster, target.identity.cluster);
    let names: Vec<String> = (0..12).map(|number| format!("invented-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lasts = [("invented-1".to_owned(), u64::MAX)].into();
    let holds = SiteHolds { document: document(cluster, 1, &names), key: thief.identity.key.public(), lasts };
    let signed = Envelope::sign(&holds, &thief.identity.key).unwrap();
    thief.send_status(&signed).await.unwrap();
    let held = async || {
        hub.store.hold_documents(&cluster).await.unwrap().iter().map(|(_, one)| one.holds.len()).sum::<usize>()
    };
    assert_eq!(held().await, 12);
    hub.change(async |fleet, tx| {
        let ended = fleet.lift(tx, &cluster, "invented-7", "anna", "stolen").await.unwrap();
        assert!(ended.len() == 1 && ended[0].starts_with("paul@"), "{ended:?}");
        assert!(fleet.lift(tx, &cluster, "nothing", "anna", "").await.unwrap().is_empty());
    })
    .await;
    assert_eq!(held().await, 11);
    let told = target.poll().await.unwrap().holds.unwrap();
    let told: HubHolds = told.open(&target.keys.trusted()).unwrap();
    assert_eq!((told.lifted.len(), told.lifted[0].by.as_str(), told.lifted[0].writer), (1, "anna", by));
    // Its key is refused from now on, and so is all that it ever held or will hold.
    hub.change(async |fleet, tx| drop(fleet.revoke(tx, &by).await.unwrap())).await;
    assert_eq!(held().await, 0);
    let told: HubHolds = target.poll().await.unwrap().holds.unwrap().open(&target.keys.trusted()).unwrap();
    assert_eq!((told.lifted.len(), told.lifted[0].through), (1, Lift::EVERYTHING));
}

#[tokio::test]
async fn a_hold_from_another_cluster_ends_by_itself_on_the_hub_too() {
    let hub = Hub::start().await;
    let (mut writer, target) = (hub.agent().await, hub.agent().await);
    let cluster = target.identity.cluster;
    let document = document(cluster, 1, &["short", "week"]);
    let lasts = [("short".to_owned(), 60)].into();
    let holds = SiteHolds { document, key: writer.identity.key.public(), lasts };
    writer.send_status(&Envelope::sign(&holds, &writer.identity.key).unwrap()).await.unwrap();
    let names = async || {
        let documents = hub.store.hold_documents(&cluster).await.unwrap();
        documents.into_iter().flat_map(|(_, one)| one.holds).map(|hold| hold.assignment).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["short", "week"]);
    for (past, left) in [(61_000, vec!["week"]), (8 * 86_400_000, vec![])] {
        let sql = "UPDATE holds SET received_at = $1";
        sqlx::query(sql).bind(now().0 - past).execute(hub.store.pool()).await.unwrap();
        assert_eq!(names().await, left);
    }
}
