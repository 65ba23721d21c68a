//! A hub's API with a small platform in its catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use kedge_api::conditions::AssignmentCondition;
use kedge_api::counts::CountSummary;
use kedge_api::operations::WrittenFile;
use kedge_api::plans::PlanDetail;
use kedge_model::Labels;
use kedge_model::wire::{
    ClusterId, DesiredState, Digest, Envelope, Generation, HoldEntry, PlatformSource, SigningKey, Stream, Timestamp,
};
use kedge_scheduler::ConfigFile;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::airgap::{Export, Import, Imported, Order, Outcome, What};
use crate::api::{
    ApiError, ApiState, Caller, CountQuery, JoinTokenSeen, JoinWish, MadeToken, MoveWish, ReportedStatus, Services,
    SignWish, SignedRequest, router,
};
use crate::catalog::testing;
use crate::catalog::{self, CatalogNotes};
use crate::config;
use crate::connections::proxies::Proxies;
use crate::metrics::Metrics;
use crate::pack::Delivered;
use crate::pack::configurations::Rendered;
use crate::preview::{Audience, Wish};
use crate::store::tokens::Role;
use crate::store::{Store, Term, Tx, test_database};

pub struct Hub {
    pub store: Store,
    pub router: Router,
    pub services: Arc<FakeServices>,
    pub stop: watch::Sender<bool>,
    pub platform: String,
    pub administrator: String,
    pub viewer: String,
    /// Of the workspace `harbour`.
    pub team: String,
    _folder: Option<TempDir>,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
    pub text: String,
}

/// Remembers what was asked of it.
#[derive(Default)]
pub struct FakeServices {
    pub asked: Mutex<Vec<String>>,
    /// What every cluster says, instead of that all is well.
    pub told: Mutex<Option<ReportedStatus>>,
    /// What every assignment's configuration was in a commit.
    pub rendered: Mutex<BTreeMap<String, String>>,
    /// The configuration inside platform packages, by their digests.
    pub delivered: Mutex<BTreeMap<Digest, String>>,
    /// Whether the one commit is the other one's ancestor.
    pub behind: Mutex<BTreeMap<(String, String), bool>>,
}

impl Hub {
    pub async fn new() -> Hub {
        Hub::with(|_| {}).await
    }

    pub async fn with_rates(per_token: u32, per_address: u32) -> Hub {
        Hub::with(|config| (config.rate_per_token, config.rate_per_address) = (per_token, per_address)).await
    }

    /// With other settings of its listener.
    pub async fn with(change: impl FnOnce(&mut config::Api)) -> Hub {
        let (folder, store) = test_database::sqlite().await;
        Hub::over(store, Some(folder), change).await
    }

    /// None, and the test says that it is skipped, where there is no PostgreSQL.
    pub async fn on_postgres() -> Option<Hub> {
        Some(Hub::over(test_database::postgres().await?, None, |_| {}).await)
    }

    async fn over(store: Store, folder: Option<TempDir>, change: impl FnOnce(&mut config::Api)) -> Hub {
        let scheduler = testing::scheduler();
        catalog::update(&store, Term(0), "dev", &scheduler, None, &testing::notes()).await.unwrap();
        let services = Arc::new(FakeServices::default());
        let (stop, shutdown) = watch::channel(false);
        let mut config = config::Api {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            tls: None,
            allow_plain: false,
            rate_per_token: 100_000,
            rate_per_address: 100_000,
            public_url: None,
            trusted_proxies: Proxies::default(),
        };
        change(&mut config);
        let state = ApiState::new(store.clone(), services.clone(), Arc::new(Metrics::new()), &config, shutdown);
        let token = async |name: &str, role, workspaces: &[String]| {
            store.add_api_token(name, role, workspaces, None).await.unwrap().1
        };
        let platform = token("anna", Role::Platform, &[]).await;
        let administrator = token("root", Role::Administrator, &[]).await;
        let viewer = token("victor", Role::Viewer, &[]).await;
        let team = token("harbour", Role::Application, &["harbour".to_owned()]).await;
        let router = router(state.clone()).merge(crate::web::router(state));
        Hub { router, store, services, stop, platform, administrator, viewer, team, _folder: folder }
    }

    pub async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(Method::GET, token, path, None, &[]).await
    }

    pub async fn post(&self, token: &str, path: &str, body: Value) -> Answer {
        self.send(Method::POST, token, path, Some(body), &[]).await
    }

    pub async fn patch(&self, token: &str, path: &str, body: Value) -> Answer {
        self.send(Method::PATCH, token, path, Some(body), &[]).await
    }

    pub async fn delete(&self, token: &str, path: &str) -> Answer {
        self.send(Method::DELETE, token, path, None, &[]).await
    }

    pub async fn send(
        &self,
        method: Method,
        token: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(header::HeaderName, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        if !token.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let body = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        self.call(request.body(body).unwrap()).await
    }

    pub async fn call(&self, mut request: Request<Body>) -> Answer {
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 7], 4711))));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer { status: parts.status, headers: parts.headers, body, text }
    }

    /// A cluster that is a member.
    pub async fn cluster(&self, number: u8, name: &str, cluster_type: &str, labels: &str) -> ClusterId {
        let id = ClusterId::of_public_key(&[number; 32]);
        let mut tx = self.store.write().await.unwrap();
        let tick = tx.tick().await.unwrap();
        let query = sqlx::query(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, \
             membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, generation, \
             tick) VALUES ($1, $2, 'dev', $3, 'all', $4, $5, $6, 'active', 1, $5, 1000, 't', 's', 2000, 1500, 1600, 7, $7)",
        );
        let query = query.bind(id.to_string()).bind(name).bind(cluster_type).bind(labels);
        let facts = r#"{"agentVersion":"0.1.0","architecture":"x86_64","system":"Debian 12"}"#;
        query.bind(vec![number; 32]).bind(facts).bind(tick).execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    pub async fn state(&self, generation: u64, entries: &str) {
        let entries = serde_json::from_str(entries).unwrap();
        self.state_of("dev", "drone", generation, 5000, &entries).await;
    }

    /// A generation of a stream, made at that time.
    pub async fn state_of(&self, environment: &str, cluster_type: &str, generation: u64, at: i64, entries: &Value) {
        let state = DesiredState {
            stream: Stream::new(environment, cluster_type, Stream::ALL),
            generation: Generation(generation),
            created_at: Timestamp(at),
            confirmed: 2,
            entries: serde_json::from_value(entries.clone()).unwrap(),
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: Some(PlatformSource {
                repo: "https://git.example/gitops".to_owned(),
                branch: environment.to_owned(),
                path: ".".to_owned(),
                commit: "head".to_owned(),
            }),
            turns: false,
            requires: Vec::new(),
        };
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let envelope = Envelope::sign(&state, &key).unwrap().to_json().unwrap();
        let mut tx = self.store.write().await.unwrap();
        let tick = tx.tick().await.unwrap();
        let query = sqlx::query(
            "INSERT INTO states (environment, cluster_type, ring, generation, content, envelope, created_at, tick) \
             VALUES ($1, $2, 'all', $3, 'sha256:00', $4, $5, $6)",
        );
        let query = query.bind(environment).bind(cluster_type).bind(i64::try_from(generation).unwrap());
        let query = query.bind(envelope).bind(at).bind(tick);
        query.execute(tx.connection()).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub async fn update(&self, scheduler: &kedge_scheduler::Scheduler, delta: Option<&kedge_scheduler::Delta>) {
        catalog::update(&self.store, Term(0), "dev", scheduler, delta, &CatalogNotes::default()).await.unwrap();
    }
}

impl Answer {
    #[track_caller]
    pub fn ok(self) -> Answer {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        self
    }

    #[track_caller]
    pub fn refused(self, status: u16, reason: &str) -> Answer {
        assert_eq!((self.status.as_u16(), self.body["code"].as_str()), (status, Some(reason)), "{}", self.text);
        self
    }

    pub fn names(&self) -> Vec<&str> {
        self.body["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
    }

    pub fn tick(&self) -> i64 {
        self.headers["kedge-tick"].to_str().unwrap().parse().unwrap()
    }
}

impl FakeServices {
    fn note(&self, text: String) {
        self.asked.lock().unwrap().push(text);
    }

    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[async_trait]
impl Services for FakeServices {
    async fn create_join_token(&self, _: &mut Tx, wish: JoinWish) -> Result<MadeToken, ApiError> {
        self.note(format!("join token for {} {} x{}", wish.environment, wish.cluster_type, wish.uses));
        Ok(MadeToken { id: "j1".to_owned(), text: "kedge-join-1.secret".to_owned() })
    }

    async fn join_tokens(&self, _: Option<(Timestamp, String)>, _: i64) -> Result<Vec<JoinTokenSeen>, ApiError> {
        Ok(vec![JoinTokenSeen {
            id: "j1".to_owned(),
            environment: "dev".to_owned(),
            cluster_type: "drone".to_owned(),
            labels: Labels::new(),
            site: None,
            replaces: None,
            uses: 1,
            uses_left: 0,
            expires_at: Timestamp(i64::from(u32::MAX) * 1000),
            created_by: "anna".to_owned(),
            created_at: Timestamp(1000),
            revoked_at: None,
        }])
    }

    async fn revoke_join_token(&self, _: &mut Tx, id: &str) -> Result<bool, ApiError> {
        Ok(id == "j1")
    }

    async fn move_cluster(&self, _: &mut Tx, cluster: &ClusterId, to: &MoveWish) -> Result<(), ApiError> {
        self.note(format!("move {cluster} to {:?}", to.cluster_type));
        Ok(())
    }

    async fn relabel_cluster(&self, _: &mut Tx, cluster: &ClusterId, labels: Labels) -> Result<(), ApiError> {
        self.note(format!("relabel {cluster} {labels:?}"));
        Ok(())
    }

    async fn sign_request(&self, _: &mut Tx, _: &Envelope, wish: SignWish) -> Result<SignedRequest, ApiError> {
        self.note(format!("sign for {} {}", wish.environment, wish.cluster_type));
        let answer = Envelope { payload_type: "answer".to_owned(), payload: Vec::new(), signatures: Vec::new() };
        let cluster = ClusterId::of_public_key(&[9; 32]);
        Ok(SignedRequest { cluster, name: "press-7".to_owned(), again: false, answer })
    }

    async fn export(&self, order: &Order) -> Result<Export, ApiError> {
        self.note(format!("export {order:?}"));
        Err(ApiError::not_found("bundle here"))
    }

    async fn import(&self, file: bytes::Bytes) -> Result<Import, ApiError> {
        self.note(format!("import {} bytes", file.len()));
        let writer = ClusterId::of_public_key(&[9; 32]);
        let outcome = Outcome::Refused { reason: "Forged", message: "not its own".to_owned() };
        let refused = Imported { cluster: None, what: What::Status, observed_at: None, outcome };
        Ok(Import { writer, written_at: Timestamp(1000), items: vec![refused] })
    }

    async fn set_cluster(
        &self,
        _: &mut Tx,
        cluster: &ClusterId,
        site: Option<String>,
        relay: bool,
    ) -> Result<(), ApiError> {
        self.note(format!("set {cluster} {site:?} {relay}"));
        Ok(())
    }

    async fn retire_cluster(&self, _: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError> {
        self.note(format!("retire {cluster}"));
        Ok(())
    }

    fn longest_silence(&self, _: &str) -> Option<std::time::Duration> {
        Some(std::time::Duration::from_secs(365 * 24 * 3600))
    }

    async fn readmit_cluster(&self, tx: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError> {
        self.note(format!("readmit {cluster}"));
        Ok(tx.readmit(cluster).await?)
    }

    async fn revoke_cluster(&self, _: &mut Tx, cluster: &ClusterId) -> Result<(), ApiError> {
        self.note(format!("revoke {cluster}"));
        Ok(())
    }

    async fn cluster_changed(&self, cluster: &ClusterId) {
        self.note(format!("changed {cluster}"));
    }

    async fn counts(&self, query: &CountQuery) -> Result<Vec<CountSummary>, ApiError> {
        let count = |assignment: &str, condition: &str, count| CountSummary {
            cluster_type: "drone".to_owned(),
            ring: "all".to_owned(),
            assignment: assignment.to_owned(),
            packages: "p".to_owned(),
            condition: condition.to_owned(),
            count,
        };
        let all = vec![count("hello-functional-test", "Converged", 73), count("spy-functional-test", "Failed", 27)];
        let is = |wanted: &Option<String>, seen: &str| wanted.as_ref().is_none_or(|wanted| wanted == seen);
        let wanted = |seen: &CountSummary| {
            query.environment == "dev" && is(&query.ring, &seen.ring) && is(&query.assignment, &seen.assignment)
        };
        Ok(all.into_iter().filter(wanted).collect())
    }

    async fn hold(&self, _: &mut Tx, cluster: &ClusterId, entry: HoldEntry) -> Result<(), ApiError> {
        self.note(format!("{} holds {} on {cluster}", entry.by, entry.assignment));
        Ok(())
    }

    async fn lift(
        &self,
        _: &mut Tx,
        cluster: &ClusterId,
        assignment: &str,
        by: &str,
        _: &str,
    ) -> Result<Vec<String>, ApiError> {
        self.note(format!("{by} lifts {assignment} on {cluster}"));
        Ok((assignment == "hello-functional-test").then(|| "eve@gate-1".to_owned()).into_iter().collect())
    }

    async fn release(&self, _: &mut Tx, cluster: &ClusterId, assignment: &str) -> Result<bool, ApiError> {
        self.note(format!("release {assignment} on {cluster}"));
        Ok(assignment == "hello-functional-test")
    }

    async fn reported_status(&self, _: &ClusterId) -> Result<ReportedStatus, ApiError> {
        if let Some(told) = self.told.lock().unwrap().clone() {
            return Ok(told);
        }
        let seen = |assignment: &str| AssignmentCondition {
            assignment: assignment.to_owned(),
            condition: "Converged".to_owned(),
            last_known: None,
            reason: None,
            message: None,
            desired: None,
            running: None,
            since: String::new(),
            observed_at: None,
            version: None,
            drift: None,
        };
        let conditions = vec![seen("hello-functional-test"), seen("spy-functional-test")];
        Ok(ReportedStatus { conditions, ..ReportedStatus::default() })
    }

    async fn confirm_publish(&self, caller: &Caller, environment: &str, cluster_type: &str) -> Result<(), ApiError> {
        if cluster_type != "drone" {
            return Err(ApiError::new(StatusCode::NOT_FOUND, "NothingWaits", "nothing waits"));
        }
        self.note(format!("{} confirms {environment}/{cluster_type}", caller.name));
        Ok(())
    }

    fn spoken(&self) {
        self.asked.lock().unwrap().push("spoken".to_owned());
    }

    async fn write_branch(
        &self,
        environment: &str,
        file: &str,
        text: &str,
        message: &str,
    ) -> Result<WrittenFile, ApiError> {
        self.asked.lock().unwrap().push(format!("write {environment} {file}\n{text}\n{message}"));
        let (repo, branch) = ("https://git.example/control-plane".to_owned(), environment.to_owned());
        Ok(WrittenFile { repo, branch, file: file.to_owned(), commit: Some("c0ffee".to_owned()) })
    }

    async fn rendered(
        &self,
        _: &str,
        branch: &str,
        commit: &str,
        folders: &[String],
    ) -> Result<Option<BTreeMap<String, Option<Rendered>>>, ApiError> {
        self.note(format!("read {branch}@{commit}"));
        let texts = self.rendered.lock().unwrap();
        let Some(text) = texts.get(commit) else { return Ok(None) };
        let file = |folder: &String| (folder.clone(), Some(Rendered { file: ConfigFile::Yaml, text: text.clone() }));
        Ok(Some(folders.iter().map(file).collect()))
    }

    async fn is_behind(&self, _: &str, older: &str, newer: &str) -> Result<Option<bool>, ApiError> {
        Ok(self.behind.lock().unwrap().get(&(older.to_owned(), newer.to_owned())).copied())
    }

    async fn delivered(&self, packages: &BTreeSet<Digest>) -> Result<BTreeMap<Digest, Delivered>, ApiError> {
        let texts = self.delivered.lock().unwrap();
        let of = |digest: &Digest| match texts.get(digest) {
            Some(text) => Delivered::Read(Some(Arc::new(Rendered { file: ConfigFile::Yaml, text: text.clone() }))),
            None => Delivered::Gone,
        };
        Ok(packages.iter().map(|digest| (*digest, of(digest))).collect())
    }

    async fn plan(&self, wish: Wish, audience: Audience) -> Result<PlanDetail, ApiError> {
        let files: Vec<&String> = wish.files.keys().collect();
        self.note(format!("plan {} {:?} {:?} {files:?}", wish.environment, wish.revision, wish.part));
        Ok(PlanDetail {
            environment: wish.environment,
            summary: format!("{:?}", audience.visible),
            ..PlanDetail::default()
        })
    }

    fn fetch(&self, url: &str) {
        self.note(format!("fetch {url}"));
    }

    fn webhook(&self, headers: &HeaderMap, _: &[u8]) -> Result<Vec<String>, ApiError> {
        match headers.contains_key("x-hub-signature-256") {
            true => Ok(vec!["https://git.example/app".to_owned()]),
            false => Err(ApiError::new(StatusCode::UNAUTHORIZED, "BadSignature", "no signature")),
        }
    }
}
