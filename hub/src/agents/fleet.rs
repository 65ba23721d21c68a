//! What people do to clusters and join tokens. Each change is made inside the caller's transaction, so that an audit entry can
//! go with it; after the commit `refresh` makes it count at once on this hub, and other hubs follow within a second.

use std::sync::Arc;
use std::time::Duration;

use kedge_hub_types::history::{Entry, Place, What};
use kedge_model::Labels;
use kedge_model::wire::{
    ClusterId, DesiredState, Envelope, EnvelopeError, JoinToken, Membership, Payload, Sequence, Stream, Timestamp,
};

use super::rings;
use super::roster::Roster;
use super::silence::Silence;
use super::token::TokenOrder;
use crate::config;
use crate::keys::Keys;
use crate::permits::UpdatePermits;
use crate::rollout::policy::Policies;
use crate::state::{DesiredStateCache, Parting, parting};
use crate::store::agents::tokens::TokenRow;
use crate::store::agents::{ClusterRow, ClusterState};
use crate::store::{Store, StoreError, Tx, now};

/// The members of all streams, for those who may change them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fleet {
    store: Store,
    keys: Keys,
    desired_states: Arc<DesiredStateCache>,
    permits: UpdatePermits,
    policies: Policies,
    roster: Arc<Roster>,
    /// Where agents reach the hub: it is in every join token.
    address: Arc<str>,
    certificate_lifetime: Duration,
    silence: Silence,
}

/// What a person changes of a cluster in its place; what isn't said stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub labels: Option<Labels>,
    pub name: Option<String>,
    pub site: Option<Option<String>>,
    pub relay: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no cluster {0}")]
    Unknown(ClusterId),
    #[error("the cluster is {}", .0.as_str())]
    WrongState(ClusterState),
    #[error("the membership can't be read or signed")]
    Sign(#[from] EnvelopeError),
    #[error("the system gives no random numbers")]
    NoRandom,
    #[error("{0}")]
    BadOrder(&'static str),
    #[error("the rings of {environment} follow its promotion policy, which puts this cluster into `{ring}`")]
    RingGiven { environment: String, ring: String },
}

/// More uses than a fleet has clusters is a mistake.
const MAX_USES: u64 = 1_000_000;

impl Fleet {
    pub(super) fn new(
        store: &Store,
        keys: &Keys,
        desired_states: &Arc<DesiredStateCache>,
        permits: UpdatePermits,
        policies: Policies,
        config: &config::Agents,
    ) -> Fleet {
        Fleet {
            store: store.clone(),
            keys: keys.clone(),
            desired_states: Arc::clone(desired_states),
            permits,
            policies,
            roster: Arc::default(),
            address: config.address.as_str().into(),
            certificate_lifetime: config.certificate_lifetime,
            silence: Silence::of(config),
        }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn certificate_lifetime(&self) -> Duration {
        self.certificate_lifetime
    }

    pub fn silence(&self) -> &Silence {
        &self.silence
    }

    pub(super) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Call it after the commit. A database that is away now is asked again within a second.
    pub async fn refresh(&self) {
        if let Err(error) = self.roster.refresh(&self.store).await {
            tracing::warn!(%error, "a change of a cluster is committed and counts in a moment");
        }
        // Who went elsewhere left its permit.
        self.permits.freed();
    }

    /// The token for a person to hand over; its secret can't be seen again.
    pub async fn create_join_token(&self, tx: &mut Tx, order: TokenOrder) -> Result<JoinToken, FleetError> {
        let at = now();
        if order.uses == 0 || order.uses > MAX_USES {
            return Err(FleetError::BadOrder("a token has 1 to 1,000,000 uses"));
        }
        if order.expires_at <= at {
            return Err(FleetError::BadOrder("a token can't have expired already"));
        }
        if let Some(old) = &order.replaces {
            if order.uses != 1 {
                return Err(FleetError::BadOrder("one cluster is replaced by one"));
            }
            self.find(tx, old).await?;
        }
        let made = order.make(at).map_err(|_| FleetError::NoRandom)?;
        tx.add_join_token(&made.row).await?;
        Ok(JoinToken {
            hub: self.address.to_string(),
            authority: self.keys.authority().fingerprint(),
            id: made.row.id,
            secret: made.secret,
        })
    }

    pub async fn join_tokens(
        &self,
        before: Option<(Timestamp, &str)>,
        limit: i64,
    ) -> Result<Vec<TokenRow>, StoreError> {
        self.store.join_tokens(before, limit).await
    }

    /// False: there is no such token, or it is revoked already.
    pub async fn revoke_join_token(&self, tx: &mut Tx, id: &str) -> Result<bool, StoreError> {
        tx.revoke_join_token(id, now()).await
    }

    /// Whether the policy in force names the environment.
    pub(super) fn is_governed(&self, environment: &str) -> bool {
        self.policies.of(environment).is_some()
    }

    /// Where a cluster belongs in a place: its ring follows the policy in force, if that names the environment.
    pub(super) fn stream_of(&self, place: &Stream, cluster: &ClusterId, labels: &Labels) -> Stream {
        let rules = self.policies.all();
        match rules.contains_key(&place.environment) {
            true => rings::stream_of(&rules, place, cluster, labels),
            false => place.clone(),
        }
    }

    /// To another environment, cluster type or ring, as a person says; what isn't said stays. In a governed environment the
    /// ring follows the policy, and another one can't be named.
    pub async fn relocate(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        environment: Option<&str>,
        cluster_type: Option<&str>,
        ring: Option<&str>,
    ) -> Result<ClusterRow, FleetError> {
        let row = self.active(tx, cluster).await?;
        let environment = environment.unwrap_or(&row.stream.environment);
        let cluster_type = cluster_type.unwrap_or(&row.stream.cluster_type);
        let kept = ring.unwrap_or(&row.stream.ring);
        let mut stream = Stream::new(environment, cluster_type, kept);
        if self.policies.of(environment).is_some() {
            stream = self.stream_of(&stream, cluster, &row.labels);
            if let Some(named) = ring
                && named != stream.ring
            {
                return Err(FleetError::RingGiven { environment: environment.to_owned(), ring: stream.ring });
            }
        } else if environment != row.stream.environment && ring.is_none() {
            // Another environment's ring is none of this one's.
            Stream::ALL.clone_into(&mut stream.ring);
        }
        self.move_to(tx, cluster, stream).await
    }

    /// To another stream; what the old one delivered and the new one doesn't know is removed.
    pub async fn move_to(&self, tx: &mut Tx, cluster: &ClusterId, stream: Stream) -> Result<ClusterRow, FleetError> {
        let row = self.active(tx, cluster).await?;
        let parting = self.parting(&row, &stream)?;
        tx.place_cluster(cluster, Some(&row.stream), Some(&stream)).await?;
        let news = moved(&row, &stream);
        let row = self.change(tx, ClusterRow { stream, ..row }, parting).await?;
        tx.record(news).await?;
        Ok(row)
    }

    /// Other labels, name, site or relay, in the same stream unless the policy's rings tell by labels.
    pub async fn relabel(&self, tx: &mut Tx, cluster: &ClusterId, changes: Changes) -> Result<ClusterRow, FleetError> {
        let mut row = self.active(tx, cluster).await?;
        row.labels = changes.labels.unwrap_or(row.labels);
        row.name = changes.name.unwrap_or(row.name);
        row.site = changes.site.unwrap_or(row.site);
        row.relay = changes.relay.unwrap_or(row.relay);
        // Other labels may mean another ring.
        let stream = self.stream_of(&row.stream, cluster, &row.labels);
        if stream != row.stream {
            let parting = self.parting(&row, &stream)?;
            tx.place_cluster(cluster, Some(&row.stream), Some(&stream)).await?;
            let news = moved(&row, &stream);
            let row = self.change(tx, ClusterRow { stream, ..row }, parting).await?;
            tx.record(news).await?;
            return Ok(row);
        }
        let parting = said_before(&row)?;
        self.change(tx, row, parting).await
    }

    /// It should stop, what runs stays, and it counts nowhere.
    pub async fn retire(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<ClusterRow, FleetError> {
        let row = self.active(tx, cluster).await?;
        tx.place_cluster(cluster, Some(&row.stream), None).await?;
        let parting = said_before(&row)?;
        let row = self.change(tx, ClusterRow { state: ClusterState::Retired, ..row }, parting).await?;
        self.lift_all_of(tx, cluster).await?;
        tx.record(vec![left(&row)]).await?;
        Ok(row)
    }

    /// A person lets a cluster in again that has been silent for too long.
    pub async fn readmit(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), FleetError> {
        self.active(tx, cluster).await?;
        tx.readmit(cluster).await?;
        Ok(())
    }

    /// Its key is refused from now on, also on connections that are open.
    pub async fn revoke(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<ClusterRow, FleetError> {
        let row = self.find(tx, cluster).await?;
        self.shut_out(tx, row, ClusterState::Revoked).await
    }

    /// Its key is refused for good, and it counts nowhere any more; its membership says so to the peers of its site.
    pub(super) async fn shut_out(
        &self,
        tx: &mut Tx,
        row: ClusterRow,
        state: ClusterState,
    ) -> Result<ClusterRow, FleetError> {
        if row.state == ClusterState::Active {
            tx.place_cluster(&row.id, Some(&row.stream), None).await?;
        }
        let parting = said_before(&row)?;
        let row = self.change(tx, ClusterRow { state, ..row }, parting).await?;
        self.lift_all_of(tx, &row.id).await?;
        tx.record(vec![left(&row)]).await?;
        Ok(row)
    }

    /// The membership as it is, above a sequence that a restored backup has forgotten.
    pub(super) async fn reissue(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        above: Sequence,
    ) -> Result<ClusterRow, FleetError> {
        let row = self.find(tx, cluster).await?;
        tracing::warn!(%cluster, known = %row.sequence, told = %above, "a forgotten membership is issued again");
        let parting = said_before(&row)?;
        let sequence = row.sequence.max(above);
        self.change(tx, ClusterRow { sequence, ..row }, parting).await
    }

    pub(super) fn sign<T: Payload>(&self, message: &T) -> Result<Envelope, EnvelopeError> {
        self.keys.sign(message)
    }

    /// Signs the membership that a row says.
    pub(super) fn seal(&self, row: &mut ClusterRow, at: Timestamp, parting: Parting) -> Result<(), EnvelopeError> {
        let membership = Membership {
            cluster: row.id,
            name: row.name.clone(),
            stream: row.stream.clone(),
            labels: row.labels.clone(),
            site: row.site.clone(),
            sequence: row.sequence,
            issued_at: at,
            remove: parting.remove,
            unmanage: parting.unmanage,
            relay: row.relay,
            retired: row.state != ClusterState::Active,
            requires: Vec::new(),
        };
        row.membership = self.keys.sign(&membership)?.to_json()?;
        Ok(())
    }

    async fn change(&self, tx: &mut Tx, mut row: ClusterRow, parting: Parting) -> Result<ClusterRow, FleetError> {
        // A backup that was restored has forgotten numbers: none is given twice.
        let floor = u64::try_from(tx.floor().await?).unwrap_or(0);
        row.sequence = Sequence(row.sequence.0.max(floor) + 1);
        self.seal(&mut row, now(), parting)?;
        tx.change_cluster(&row).await?;
        Ok(row)
    }

    async fn find(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<ClusterRow, FleetError> {
        tx.cluster(cluster).await?.ok_or(FleetError::Unknown(*cluster))
    }

    pub(super) async fn active(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<ClusterRow, FleetError> {
        let row = self.find(tx, cluster).await?;
        match row.state {
            ClusterState::Active => Ok(row),
            other => Err(FleetError::WrongState(other)),
        }
    }

    /// What leaving its stream for another takes away from a cluster.
    pub(super) fn parting(&self, row: &ClusterRow, to: &Stream) -> Result<Parting, FleetError> {
        let (old, new) = (self.newest(&row.stream), self.newest(to));
        let same_place = (&row.stream.environment, &row.stream.cluster_type) == (&to.environment, &to.cluster_type);
        if same_place && new.is_none() {
            // A ring without a state yet says nothing: it begins with what the other rings have.
            return said_before(row);
        }
        Ok(parting(&last(row)?, old.as_ref(), new.as_ref()))
    }

    fn newest(&self, stream: &Stream) -> Option<DesiredState> {
        let issued = self.desired_states.watch(stream).borrow().clone()?;
        let envelope = Envelope::from_json(&issued.envelope).ok()?;
        serde_json::from_slice(&envelope.payload).ok()
    }
}

/// A cluster that came in, also again, as history has it.
pub(super) fn joined(row: &ClusterRow, at: Timestamp) -> Entry {
    Entry::new(at, Place::cluster(&row.stream, row.id), What::Joined { name: row.name.clone() })
}

/// Told in each environment that it concerns.
fn moved(row: &ClusterRow, to: &Stream) -> Vec<Entry> {
    if row.stream == *to {
        return Vec::new();
    }
    let entry = |stream: &Stream| {
        let what = What::Moved { from: Box::new((&row.stream).into()), to: Box::new(to.into()) };
        Entry::new(now(), Place::cluster(stream, row.id), what)
    };
    let mut told = vec![entry(to)];
    if row.stream.environment != to.environment {
        told.push(entry(&row.stream));
    }
    told
}

fn left(row: &ClusterRow) -> Entry {
    let what = What::Left { state: row.state.as_str().to_owned() };
    Entry::new(now(), Place::cluster(&row.stream, row.id), what)
}

/// The membership before, from our own database.
fn last(row: &ClusterRow) -> Result<Membership, FleetError> {
    let envelope = Envelope::from_json(&row.membership)?;
    Ok(serde_json::from_slice(&envelope.payload).map_err(EnvelopeError::Payload)?)
}

/// What an earlier move took away: the cluster may have been away since before it.
fn said_before(row: &ClusterRow) -> Result<Parting, FleetError> {
    let Membership { remove, unmanage, .. } = last(row)?;
    Ok(Parting { remove, unmanage })
}
