//! What `api` asks of the other modules: to sign, to count, to publish, to fetch. `run` gives the real ones, tests a fake.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use axum::http::HeaderMap;
use bytes::Bytes;
use kedge_api::clusters::WarningSummary;
use kedge_api::conditions::AssignmentCondition;
use kedge_api::counts::CountSummary;
use kedge_api::holds::HoldSummary;
use kedge_api::operations::WrittenFile;
use kedge_api::plans::PlanDetail;
use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Digest, Envelope, HoldEntry, Timestamp};

use super::answer::ApiError;
use super::caller::Caller;
use crate::airgap::{Export, Import, Order};
use crate::pack::Delivered;
use crate::pack::configurations::Rendered;
use crate::preview::{Audience, Wish};
use crate::store::Tx;

/// A token for clusters that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinWish {
    pub environment: String,
    pub cluster_type: String,
    pub labels: Labels,
    pub site: Option<String>,
    /// The new cluster takes this one's place.
    pub replaces: Option<ClusterId>,
    pub uses: u64,
    pub expires_at: Timestamp,
    pub created_by: String,
}

/// A token that was just made. Its text is shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct MadeToken {
    pub id: String,
    pub text: String,
}

/// A join token as a list shows it: everything but the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinTokenSeen {
    pub id: String,
    pub environment: String,
    pub cluster_type: String,
    pub labels: Labels,
    pub site: Option<String>,
    pub replaces: Option<ClusterId>,
    pub uses: u64,
    pub uses_left: u64,
    pub expires_at: Timestamp,
    pub created_by: String,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

/// A host's request that is to be signed: where the host should belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignWish {
    pub environment: String,
    pub cluster_type: String,
    pub labels: Labels,
    pub site: Option<String>,
    pub name: Option<String>,
}

/// A host that became a member by file, and the file for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRequest {
    pub cluster: ClusterId,
    pub name: String,
    /// It was a member already.
    pub again: bool,
    pub answer: Envelope,
}

/// Where a cluster should belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveWish {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
}

/// Which counts; what isn't named is counted apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountQuery {
    pub environment: String,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    pub assignment: Option<String>,
    pub packages: Option<String>,
}

/// What a cluster last said, and what people said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedStatus {
    pub conditions: Vec<AssignmentCondition>,
    pub holds: Vec<HoldSummary>,
    pub warnings: Vec<WarningSummary>,
}

/// Every write is done in the transaction that also holds the audit's entry.
#[async_trait]
pub trait Services: Send + Sync + 'static {
    async fn create_join_token(&self, tx: &mut Tx, wish: JoinWish) -> Result<MadeToken, ApiError>;
    /// Newest first: those before a moment and an id.
    async fn join_tokens(
        &self,
        before: Option<(Timestamp, String)>,
        limit: i64,
    ) -> Result<Vec<JoinTokenSeen>, ApiError>;
    /// False: there is no such token, or it is revoked already.
    async fn revoke_join_token(&self, tx: &mut Tx, id: &str) -> Result<bool, ApiError>;
    async fn move_cluster(&self, tx: &mut Tx, cluster: &ClusterId, to: &MoveWish) -> Result<(), ApiError>;
    async fn relabel_cluster(&self, tx: &mut Tx, cluster: &ClusterId, labels: Labels) -> Result<(), ApiError>;
    async fn sign_request(&self, tx: &mut Tx, request: &Envelope, wish: SignWish) -> Result<SignedRequest, ApiError>;
    /// A bundle for clusters without a network.
    async fn export(&self, order: &Order) -> Result<Export, ApiError>;
    /// What an agent without a network wrote.
    async fn import(&self, file: Bytes) -> Result<Import, ApiError>;
    async fn set_cluster(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        site: Option<String>,
        relay: bool,
    ) -> Result<(), ApiError>;
    async fn retire_cluster(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError>;
    /// After so long without a sign of life a person lets a cluster of this environment in again; none: never.
    fn longest_silence(&self, environment: &str) -> Option<std::time::Duration>;
    async fn readmit_cluster(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError>;
    async fn revoke_cluster(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError>;
    /// Holds an assignment on a cluster, by a person, until it is released.
    async fn hold(&self, tx: &mut Tx, cluster: &ClusterId, entry: HoldEntry) -> Result<(), ApiError>;
    /// False: the hub doesn't hold it.
    async fn release(&self, tx: &mut Tx, cluster: &ClusterId, assignment: &str) -> Result<bool, ApiError>;
    /// Ends what other clusters of the site hold of an assignment there; whose holds those were.
    async fn lift(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        assignment: &str,
        by: &str,
        reason: &str,
    ) -> Result<Vec<String>, ApiError>;
    /// After a change of a cluster is committed: those who hold its poll hear of it at once.
    async fn cluster_changed(&self, cluster: &ClusterId);

    async fn counts(&self, query: &CountQuery) -> Result<Vec<CountSummary>, ApiError>;
    async fn reported_status(&self, cluster: &ClusterId) -> Result<ReportedStatus, ApiError>;

    /// A person says that this many removals are meant.
    async fn confirm_publish(&self, caller: &Caller, environment: &str, cluster_type: &str) -> Result<(), ApiError>;

    /// A person spoke about a rollout or a promotion: who moves them looks at once.
    fn spoken(&self);

    /// Writes a file to an environment's branch of the control plane: what should last is in Git.
    async fn write_branch(
        &self,
        environment: &str,
        file: &str,
        text: &str,
        message: &str,
    ) -> Result<WrittenFile, ApiError>;

    /// The configuration that was published for assignments (`<cluster type>/<target>`) in a commit of a GitOps branch; none
    /// when that commit can't be had.
    async fn rendered(
        &self,
        repo: &str,
        branch: &str,
        commit: &str,
        folders: &[String],
    ) -> Result<Option<BTreeMap<String, Option<Rendered>>>, ApiError>;

    /// Whether the one commit of the control plane is the other one's ancestor, or the same. None: one of them isn't known.
    async fn is_behind(&self, environment: &str, older: &str, newer: &str) -> Result<Option<bool>, ApiError>;

    /// The configuration inside platform packages.
    async fn delivered(&self, packages: &BTreeSet<Digest>) -> Result<BTreeMap<Digest, Delivered>, ApiError>;

    /// What a change would do. Reads, and writes nothing.
    async fn plan(&self, wish: Wish, audience: Audience) -> Result<PlanDetail, ApiError>;

    /// Fetches a repository at once.
    fn fetch(&self, url: &str);

    /// A webhook's addresses after its signature is checked.
    fn webhook(&self, headers: &HeaderMap, body: &[u8]) -> Result<Vec<String>, ApiError>;
}

impl std::fmt::Debug for MadeToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeToken").field("id", &self.id).finish_non_exhaustive()
    }
}
