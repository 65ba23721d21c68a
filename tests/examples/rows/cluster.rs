//! The row that a cluster leaves in the hub's database when it joins, with a signed membership: benchmarks write many of them while no
//! hub runs.

use kedge_hub::keys::Keys;
use kedge_hub::store::agents::{CertificateNote, ClusterRow, ClusterState, NewCluster};
use kedge_hub::store::{Tx, now};
use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Membership, Sequence, Stream, Timestamp};

/// No check-in is missed during a measurement.
pub const PROMISE: i64 = 24 * 3600 * 1000;

/// Rows in one transaction.
pub const BATCH: usize = 2_000;

/// Adds the cluster `cluster-NUMBER` with this key to a stream; its next check-in is due `promise` milliseconds from now.
pub async fn add(
    tx: &mut Tx,
    keys: &Keys,
    number: usize,
    public: &[u8; 32],
    stream: Stream,
    labels: Labels,
    promise: i64,
) {
    let (id, at, name) = (ClusterId::of_public_key(public), now(), format!("cluster-{number:06}"));
    let membership = Membership {
        cluster: id,
        name: name.clone(),
        stream: stream.clone(),
        labels: labels.clone(),
        site: None,
        sequence: Sequence(1),
        issued_at: at,
        remove: Vec::new(),
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    };
    let row = ClusterRow {
        id,
        name,
        stream,
        labels,
        site: None,
        relay: false,
        machine: None,
        state: ClusterState::Active,
        sequence: Sequence(1),
        membership: keys.sign(&membership).unwrap().to_json().unwrap(),
        token: "bench".to_owned(),
    };
    let certificate = CertificateNote { serial: format!("{number:x}"), until: Timestamp(at.0 + PROMISE) };
    let new = NewCluster {
        row: &row,
        public_key: public,
        facts: r#"{"agentVersion":"bench","architecture":"arm64","system":"Debian 12"}"#,
        certificate: &certificate,
        joined_at: at,
        check_in_deadline: Timestamp(at.0 + promise),
    };
    assert!(tx.add_cluster(new).await.unwrap());
}
