//! What the API asks of the other modules, done by them. Made by `run`.

mod change;
mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use kedge_api::clusters::WarningSummary;
use kedge_api::conditions::AssignmentCondition;
use kedge_api::counts::CountSummary;
use kedge_api::holds::HoldSummary;
use kedge_api::operations::WrittenFile;
use kedge_api::plans::PlanDetail;
use kedge_hub_types::status::warnings::about;
use kedge_model::Labels;
use kedge_model::kinds::RepoRef;
use kedge_model::wire::{ClusterId, Digest, Envelope, HoldEntry, Stream, Timestamp};
use kedge_status::{Condition, Hold, Report, Status};

use crate::agents::{Changes, Fleet, FleetError, SignOrder, Signed, TokenOrder};
use crate::airgap::{AirGap, Export, Import, Order};
use crate::api::{
    ApiError, Caller, CountQuery, JoinTokenSeen, JoinWish, MadeToken, MoveWish, ReportedStatus, Services, SignWish,
    SignedRequest,
};
use crate::git::webhook::{self, HookError};
use crate::git::{Mirrors, Trust};
use crate::pack::configurations::Rendered;
use crate::pack::{Configurations, Delivered};
use crate::preview::{Audience, Previews, Wish};
use crate::promotion::{At, BranchError, Branches, Edit, Wrote};
use crate::publish::{PublishError, Publisher, shown_repo};
use crate::signal::Nudge;
use crate::status::StatusIntake;
use crate::store::agents::tokens::TokenRow;
use crate::store::catalog::Visible;
use crate::store::status::counts::CountFilter;
use crate::store::{Store, Tx};

/// The modules that people's requests reach.
#[derive(Debug)]
pub struct People {
    pub store: Store,
    pub fleet: Fleet,
    pub intake: StatusIntake,
    pub air_gap: AirGap,
    pub mirrors: Mirrors,
    pub publisher: Arc<Publisher>,
    pub branches: Branches,
    pub previews: Previews,
    pub configurations: Configurations,
    /// Wakes who moves rollouts.
    pub rollouts: Nudge,
    /// Read anew for each webhook, so that it can be changed.
    pub webhook_secret: Option<PathBuf>,
}

#[async_trait]
impl Services for People {
    async fn create_join_token(&self, tx: &mut Tx, wish: JoinWish) -> Result<MadeToken, ApiError> {
        let order = TokenOrder {
            environment: wish.environment,
            cluster_type: wish.cluster_type,
            labels: wish.labels,
            site: wish.site,
            replaces: wish.replaces,
            uses: wish.uses,
            expires_at: wish.expires_at,
            created_by: wish.created_by,
        };
        let made = self.fleet.create_join_token(tx, order).await.map_err(refuse)?;
        Ok(MadeToken { text: made.to_string(), id: made.id })
    }

    async fn join_tokens(
        &self,
        before: Option<(Timestamp, String)>,
        limit: i64,
    ) -> Result<Vec<JoinTokenSeen>, ApiError> {
        let before = before.as_ref().map(|(time, id)| (*time, id.as_str()));
        Ok(self.fleet.join_tokens(before, limit).await?.into_iter().map(seen).collect())
    }

    async fn revoke_join_token(&self, tx: &mut Tx, id: &str) -> Result<bool, ApiError> {
        Ok(self.fleet.revoke_join_token(tx, id).await?)
    }

    async fn move_cluster(&self, tx: &mut Tx, cluster: &ClusterId, to: &MoveWish) -> Result<(), ApiError> {
        let (environment, cluster_type) = (to.environment.as_deref(), to.cluster_type.as_deref());
        let moved = self.fleet.relocate(tx, cluster, environment, cluster_type, to.ring.as_deref()).await;
        moved.map(|_| ()).map_err(refuse)
    }

    async fn relabel_cluster(&self, tx: &mut Tx, cluster: &ClusterId, labels: Labels) -> Result<(), ApiError> {
        let changes = Changes { labels: Some(labels), ..Changes::default() };
        self.fleet.relabel(tx, cluster, changes).await.map(|_| ()).map_err(refuse)
    }

    async fn sign_request(&self, tx: &mut Tx, request: &Envelope, wish: SignWish) -> Result<SignedRequest, ApiError> {
        let SignWish { environment, cluster_type, labels, site, name } = wish;
        let order = SignOrder { environment, cluster_type, labels, site, name };
        let signed = self.fleet.sign_request(tx, request, order).await.map_err(files::unsigned)?;
        let Signed { cluster, name, again, answer } = signed;
        Ok(SignedRequest { cluster, name, again, answer })
    }

    async fn export(&self, order: &Order) -> Result<Export, ApiError> {
        self.air_gap.export(order).await.map_err(files::unexported)
    }

    async fn import(&self, file: Bytes) -> Result<Import, ApiError> {
        self.air_gap.import(file).await.map_err(files::unimported)
    }

    async fn set_cluster(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        site: Option<String>,
        relay: bool,
    ) -> Result<(), ApiError> {
        let changes = Changes { site: Some(site), relay: Some(relay), ..Changes::default() };
        self.fleet.relabel(tx, cluster, changes).await.map(|_| ()).map_err(refuse)
    }

    async fn retire_cluster(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError> {
        self.fleet.retire(tx, cluster).await.map(|_| ()).map_err(refuse)
    }

    fn longest_silence(&self, environment: &str) -> Option<std::time::Duration> {
        self.fleet.silence().longest(environment)
    }

    async fn readmit_cluster(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError> {
        self.fleet.readmit(tx, cluster).await.map_err(refuse)
    }

    async fn revoke_cluster(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError> {
        self.fleet.revoke(tx, cluster).await.map(|_| ()).map_err(refuse)
    }

    async fn cluster_changed(&self, _cluster: &ClusterId) {
        self.fleet.refresh().await;
    }

    async fn counts(&self, query: &CountQuery) -> Result<Vec<CountSummary>, ApiError> {
        let filter = CountFilter {
            environment: &query.environment,
            cluster_type: query.cluster_type.as_deref(),
            ring: query.ring.as_deref(),
            assignment: query.assignment.as_deref(),
            packages: None,
            running: query.packages.as_deref(),
        };
        // What is desired is counted apart in the database; who asks what runs wants the sum.
        let mut sums: BTreeMap<(Stream, String, String, &'static str), u64> = BTreeMap::new();
        for count in self.store.counts(&filter).await? {
            let key = (count.stream, count.assignment, count.running, count.condition.as_str());
            *sums.entry(key).or_default() += u64::try_from(count.count).unwrap_or(0);
        }
        let shown = sums.into_iter().map(|((stream, assignment, packages, condition), count)| CountSummary {
            cluster_type: stream.cluster_type,
            ring: stream.ring,
            assignment,
            packages,
            condition: condition.to_owned(),
            count,
        });
        Ok(shown.collect())
    }

    async fn hold(&self, tx: &mut Tx, cluster: &ClusterId, entry: HoldEntry) -> Result<(), ApiError> {
        self.fleet.hold(tx, cluster, entry).await.map_err(refuse)
    }

    async fn release(&self, tx: &mut Tx, cluster: &ClusterId, assignment: &str) -> Result<bool, ApiError> {
        self.fleet.release(tx, cluster, assignment).await.map_err(refuse)
    }

    async fn lift(
        &self,
        tx: &mut Tx,
        cluster: &ClusterId,
        assignment: &str,
        by: &str,
        reason: &str,
    ) -> Result<Vec<String>, ApiError> {
        self.fleet.lift(tx, cluster, assignment, by, reason).await.map_err(refuse)
    }

    async fn reported_status(&self, cluster: &ClusterId) -> Result<ReportedStatus, ApiError> {
        let status = self.intake.status(cluster).await?;
        let holds = self.holds(cluster, status.as_ref()).await?;
        let Some(status) = status else { return Ok(ReportedStatus { holds, ..ReportedStatus::default() }) };
        let rows = self.store.clusters_named(&Visible::All, &cluster.to_string()).await?;
        let unknown_since = rows.first().and_then(|row| row.unknown_since);
        let conditions =
            status.reports.iter().map(|(assignment, report)| condition(&status, assignment, report, unknown_since));
        let warnings = status.warnings.iter().map(|(code, warning)| WarningSummary {
            code: code.clone(),
            severity: format!("{:?}", warning.severity),
            message: warning.message.clone(),
            hint: about(code).way_out.to_owned(),
            since: moment(status.true_time(warning.clock, warning.since).0.0),
        });
        Ok(ReportedStatus { conditions: conditions.collect(), warnings: warnings.collect(), holds })
    }

    async fn confirm_publish(&self, caller: &Caller, environment: &str, cluster_type: &str) -> Result<(), ApiError> {
        let entry = caller.did("publish.confirm", cluster_type, environment, serde_json::Value::Null);
        match self.publisher.confirm(environment, cluster_type, &caller.name, Some(&entry)).await {
            Ok(_) => Ok(()),
            Err(error @ PublishError::NothingWaits { .. }) => {
                Err(ApiError::new(StatusCode::NOT_FOUND, "NothingWaits", error.to_string()))
            }
            Err(PublishError::Store(error)) => Err(error.into()),
            Err(error) => Err(ApiError::conflict("NotConfirmed", error.to_string())),
        }
    }

    fn spoken(&self) {
        self.rollouts.nudge();
    }

    async fn write_branch(
        &self,
        environment: &str,
        file: &str,
        text: &str,
        message: &str,
    ) -> Result<WrittenFile, ApiError> {
        let known = self.store.good_environments().await?;
        let Some(environment) = known.get(environment) else {
            return Err(ApiError::not_found(format!("environment {environment}")));
        };
        let RepoRef { repo, branch, path } = &environment.control_plane;
        let folder = path.trim_matches(['.', '/']);
        let file = if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        let edit = Edit::File { path: file.clone(), text: Some(text.to_owned()) };
        let wrote = self.branches.write(At { repo, branch }, &edit, message).await;
        let commit = match wrote.map_err(|error| unwritten(error, &file))? {
            Wrote::Pushed(commit) => Some(commit),
            Wrote::Unchanged => None,
        };
        match &commit {
            Some(commit) => self.mirrors.announce(repo, branch, commit).await,
            None => _ = self.mirrors.nudge(repo),
        }
        Ok(WrittenFile { repo: shown_repo(repo), branch: branch.clone(), file, commit })
    }

    async fn rendered(
        &self,
        repo: &str,
        branch: &str,
        commit: &str,
        folders: &[String],
    ) -> Result<Option<BTreeMap<String, Option<Rendered>>>, ApiError> {
        if let Err(error) = self.mirrors.commit(repo, Some(branch), commit, Trust::Platform).await {
            tracing::debug!(repo, commit, %error, "a commit that a comparison asks for can't be had");
            return Ok(None);
        }
        let (mirrors, repo, commit) = (self.mirrors.clone(), repo.to_owned(), commit.to_owned());
        let folders = folders.to_vec();
        let reading = tokio::task::spawn_blocking(move || change::published(&mirrors, &repo, &commit, folders));
        reading.await.map_err(|_| ApiError::unavailable("the hub stops"))
    }

    async fn is_behind(&self, environment: &str, older: &str, newer: &str) -> Result<Option<bool>, ApiError> {
        let known = self.store.good_environments().await?;
        let Some(environment) = known.get(environment) else { return Ok(None) };
        let (mirrors, repo) = (self.mirrors.clone(), environment.control_plane.repo.clone());
        let (older, newer) = (older.to_owned(), newer.to_owned());
        let looking = tokio::task::spawn_blocking(move || {
            let opened = mirrors.open(&repo, Trust::Platform)?;
            let (older, newer) = (opened.commit(&older).ok()?.commit, opened.commit(&newer).ok()?.commit);
            Some(older == newer || opened.is_behind(older, newer))
        });
        looking.await.map_err(|_| ApiError::unavailable("the hub stops"))
    }

    async fn delivered(&self, packages: &BTreeSet<Digest>) -> Result<BTreeMap<Digest, Delivered>, ApiError> {
        Ok(self.configurations.read(packages).await)
    }

    async fn plan(&self, wish: Wish, audience: Audience) -> Result<PlanDetail, ApiError> {
        self.previews.plan(wish, audience).await.map_err(change::refuse)
    }

    fn fetch(&self, url: &str) {
        // A repository that nobody follows isn't fetched because a webhook names it.
        self.mirrors.nudge(url);
    }

    fn webhook(&self, headers: &HeaderMap, body: &[u8]) -> Result<Vec<String>, ApiError> {
        let Some(file) = &self.webhook_secret else {
            let off = ApiError::new(StatusCode::NOT_FOUND, "HookOff", "this hub takes no webhooks");
            return Err(off.hint("set `webhook_secret_file` in [git] of the hub's configuration"));
        };
        let secret = std::fs::read_to_string(file).map_err(|error| {
            tracing::error!(%error, file = %file.display(), "the webhooks' secret can't be read");
            ApiError::unavailable("the hub can't check webhooks just now")
        })?;
        let pushed = webhook::parse(headers, body, secret.trim_end().as_bytes()).map_err(|error| {
            let status = match error {
                HookError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
                HookError::Unsigned | HookError::Forged => StatusCode::FORBIDDEN,
                HookError::Malformed => StatusCode::BAD_REQUEST,
            };
            ApiError::new(status, "BadHook", error.to_string())
        })?;
        if pushed.reference.is_none() {
            pushed.urls.iter().for_each(|url| self.mirrors.tell(url));
        }
        Ok(pushed.urls)
    }
}

impl People {
    /// The hub's holds, the technicians' here and at other clusters of the site, and what the cluster says that it obeys.
    async fn holds(&self, cluster: &ClusterId, status: Option<&Status>) -> Result<Vec<HoldSummary>, ApiError> {
        let obeyed: Vec<&Hold> = status.iter().flat_map(|status| status.holds.values()).collect();
        let mut seen = Vec::new();
        for (writer, document) in self.store.hold_documents(cluster).await? {
            seen.extend(document.holds.into_iter().map(|entry| HoldSummary {
                obeyed:
                    obeyed.iter().any(|hold| hold.assignment == entry.assignment && user(&hold.by) == user(&entry.by)),
                assignment: entry.assignment,
                by: entry.by,
                reason: entry.reason,
                since: moment(entry.since.0),
                writer: writer.as_str().to_owned(),
            }));
        }
        Ok(seen)
    }
}

/// Without the host or the cluster behind it: those are the writer's, and the hub knows them better.
fn user(by: &str) -> &str {
    by.split('@').next().unwrap_or(by).trim()
}

fn condition(status: &Status, assignment: &str, report: &Report, unknown_since: Option<i64>) -> AssignmentCondition {
    let time = |at| status.true_time(report.clock, at).0.0;
    let (reason, message) = match &report.condition {
        Condition::Failed { reason, message } => (Some(reason.clone()), Some(message.clone())),
        _ => (None, None),
    };
    let known = AssignmentCondition {
        assignment: assignment.to_owned(),
        condition: report.condition.word().to_owned(),
        last_known: None,
        reason,
        message: message.filter(|text| !text.is_empty()),
        desired: report.desired.as_ref().map(ToString::to_string),
        running: report.running.as_ref().map(ToString::to_string),
        since: moment(time(report.since)),
        observed_at: Some(moment(time(report.observed_at))),
        version: report.version.clone(),
        drift: report.drift.clone(),
    };
    match unknown_since {
        // Nothing stays green by silence: what was last heard is the message.
        Some(since) => AssignmentCondition {
            condition: Condition::Unknown.word().to_owned(),
            reason: Some("Silent".to_owned()),
            message: Some(format!("last heard: {}", known.condition)),
            last_known: Some(known.condition.clone()),
            since: moment(since),
            ..known
        },
        None => known,
    }
}

fn seen(row: TokenRow) -> JoinTokenSeen {
    JoinTokenSeen {
        id: row.id,
        environment: row.environment,
        cluster_type: row.cluster_type,
        labels: row.labels,
        site: row.site,
        replaces: row.replaces,
        uses: row.uses,
        uses_left: row.uses_left,
        expires_at: row.expires_at,
        created_by: row.created_by,
        created_at: row.created_at,
        revoked_at: row.revoked_at,
    }
}

fn refuse(error: FleetError) -> ApiError {
    match error {
        FleetError::Store(error) => error.into(),
        FleetError::Unknown(id) => ApiError::not_found(format!("cluster {id}")),
        FleetError::WrongState(_) => ApiError::conflict("WrongState", error.to_string()),
        FleetError::BadOrder(why) => ApiError::invalid("BadOrder", why),
        FleetError::RingGiven { .. } => ApiError::conflict("RingFollowsPolicy", error.to_string())
            .hint("give the cluster labels that the other ring selects: `kedge cluster relabel`, or change the policy"),
        FleetError::Sign(_) | FleetError::NoRandom => {
            let shown = &error as &dyn std::error::Error;
            tracing::error!(error = shown, "a change of a cluster can't be signed");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", error.to_string())
        }
    }
}

/// Why an environment's branch doesn't have what was asked for.
fn unwritten(error: BranchError, file: &str) -> ApiError {
    let hint = error.hint();
    let refused = match &error {
        BranchError::Protected { .. } => ApiError::conflict("BranchProtected", error.to_string())
            .hint(format!("write {file} there yourself, through a pull request")),
        BranchError::NoBranch { .. } | BranchError::Unclear(_) => ApiError::conflict("NotWritten", error.to_string()),
        _ => {
            let shown = &error as &dyn std::error::Error;
            tracing::warn!(error = shown, file, "an environment's branch can't be written");
            ApiError::unavailable(error.to_string())
        }
    };
    match (hint, refused.hint.is_some()) {
        (Some(hint), false) => refused.hint(hint),
        _ => refused,
    }
}

fn moment(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |moment| moment.to_string())
}
