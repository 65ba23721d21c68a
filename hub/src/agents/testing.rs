//! A fleet on a database of its own, for tests of what people and policies do to clusters.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Sequence, Stream, Timestamp};
use tempfile::TempDir;

use super::Fleet;
use crate::config;
use crate::keys::Keys;
use crate::permits::UpdatePermits;
use crate::rollout::policy::Policies;
use crate::state::{DesiredStateCache, Parting};
use crate::store::agents::{CertificateNote, ClusterRow, ClusterState, NewCluster};
use crate::store::{Store, now, test_database};

pub struct World {
    pub store: Store,
    pub policies: Policies,
    pub fleet: Fleet,
    pub desired_states: Arc<DesiredStateCache>,
    _folder: TempDir,
}

pub async fn fleet() -> World {
    let (folder, store) = test_database::sqlite().await;
    let keys = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    let policies = Policies::new();
    let config = config::Agents {
        listen: ([127, 0, 0, 1], 0).into(),
        address: "https://hub.example".to_owned(),
        names: Vec::new(),
        wait: Duration::from_secs(1),
        low_interval: Duration::from_secs(900),
        certificate_lifetime: Duration::from_secs(86_400),
        longest_silence: None,
        unlimited_silence: Vec::new(),
        max_connections: 10,
    };
    let permits = UpdatePermits::new(store.clone());
    let desired_states = Arc::new(DesiredStateCache::default());
    let fleet = Fleet::new(&store, &keys, &desired_states, permits, policies.clone(), &config);
    World { store, policies, fleet, desired_states, _folder: folder }
}

impl World {
    /// A member of dev/drone/all with a label of its size.
    pub async fn member(&self, number: u8, size: &str) -> ClusterId {
        let id = ClusterId::of_public_key(&[number; 32]);
        let mut row = ClusterRow {
            id,
            name: format!("drone-{number}"),
            stream: Stream::new("dev", "drone", Stream::ALL),
            labels: Labels::from([("size".to_owned(), size.to_owned())]),
            site: None,
            relay: false,
            machine: None,
            state: ClusterState::Active,
            sequence: Sequence(1),
            membership: Vec::new(),
            token: "t".to_owned(),
        };
        self.fleet.seal(&mut row, now(), Parting::default()).unwrap();
        let certificate = CertificateNote { serial: "s".to_owned(), until: Timestamp(0) };
        let new = NewCluster {
            row: &row,
            public_key: &[number; 32],
            facts: "{}",
            certificate: &certificate,
            joined_at: now(),
            check_in_deadline: Timestamp(now().0 + 60_000),
        };
        let mut tx = self.store.write().await.unwrap();
        assert!(tx.add_cluster(new).await.unwrap());
        tx.place_cluster(&id, None, Some(&row.stream)).await.unwrap();
        tx.commit().await.unwrap();
        id
    }
}
