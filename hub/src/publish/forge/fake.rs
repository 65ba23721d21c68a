//! A forge for tests: the few calls of GitHub and Gitea that we make, over real HTTP, with faults on demand.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::super::fixture::git;
use crate::config::{Forge, ForgeKind};

#[derive(Debug)]
pub struct Fake {
    pub kind: ForgeKind,
    pub address: String,
    inner: Arc<Mutex<Inner>>,
}

/// Status, headers, body.
type Fault = (u16, Vec<(&'static str, String)>, Vec<u8>);

#[derive(Debug, Default)]
pub struct Inner {
    pub pulls: Vec<Value>,
    pub labels: Vec<Value>,
    /// By commit, each with its context; the newest last.
    pub statuses: Vec<(String, Value)>,
    /// `METHOD path`, in order.
    pub calls: Vec<String>,
    pub authorization: String,
    /// So many calls are answered before the faults come.
    pub skip: usize,
    /// Answers that come instead of the next ones.
    pub faults: VecDeque<Fault>,
    /// Where branches are.
    pub origin: Option<PathBuf>,
}

pub const REPO: &str = "https://forge.example/team/gitops.git";

impl Fake {
    pub async fn start(kind: ForgeKind) -> Fake {
        let inner = Arc::new(Mutex::new(Inner::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state((kind, Arc::clone(&inner)));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Fake { kind, address, inner }
    }

    pub fn config(&self) -> Forge {
        Forge { prefix: "https://forge.example/".to_owned(), kind: self.kind, api: Some(self.address.clone()) }
    }

    pub fn state(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub fn fail(&self, status: u16, headers: &[(&'static str, &str)], body: &str) {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.state().faults.push_back((status, headers, body.into()));
    }

    pub fn set(&self, number: usize, changes: Value) {
        let mut state = self.state();
        let pull = state.pulls[number - 1].as_object_mut().unwrap();
        pull.extend(changes.as_object().unwrap().clone());
    }

    pub fn labels_of(&self, number: usize) -> Vec<String> {
        let labels = self.state().pulls[number - 1]["labels"].clone();
        labels.as_array().unwrap().iter().map(|label| label["name"].as_str().unwrap().to_owned()).collect()
    }

    /// What was asked since the last time.
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state().calls)
    }
}

type Shared = (ForgeKind, Arc<Mutex<Inner>>);

async fn answer(
    State((kind, inner)): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut state = inner.lock().unwrap();
    state.calls.push(format!("{method} {}", uri.path()));
    state.authorization = headers["authorization"].to_str().unwrap().to_owned();
    let skipped = state.skip > 0;
    state.skip = state.skip.saturating_sub(1);
    let fault = if skipped { None } else { state.faults.pop_front() };
    if let Some((status, headers, body)) = fault {
        let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
        for (name, value) in headers {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        return response;
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = uri.path().strip_prefix("/repos/team/gitops/").unwrap_or_default().to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    let page = |all: Vec<Value>| page(uri.query().unwrap_or_default(), all);
    state.refresh();
    let found = match (method.as_str(), parts.as_slice()) {
        ("GET", ["pulls"]) => {
            let all = state.pulls.iter().filter(|pull| pull["state"] == "open").cloned().collect();
            Ok(page(all))
        }
        ("POST", ["pulls"]) => state.open(kind, &body),
        ("GET", ["pulls", number]) => state.pull(number).map(|pull| pull.clone()),
        ("PATCH", ["pulls", number]) => state.pull(number).map(|pull| {
            pull.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            pull.clone()
        }),
        ("GET", ["pulls", number, "commits"]) => state.pull(number).map(|pull| pull["fake_commits"].clone()),
        ("POST", ["statuses", commit]) => {
            let word = if kind == ForgeKind::GitHub { "state" } else { "status" };
            let told = json!({"context": body["context"], "description": body["description"], word: body["state"]});
            state.statuses.retain(|(known, old)| known != commit || old["context"] != told["context"]);
            state.statuses.push(((*commit).to_owned(), told.clone()));
            Ok(told)
        }
        ("GET", ["commits", commit, "status"]) => {
            let all: Vec<Value> =
                state.statuses.iter().filter(|(known, _)| known == commit).map(|(_, told)| told.clone()).collect();
            Ok(json!({"state": "x", "statuses": page(all)}))
        }
        ("GET", ["labels"]) => Ok(page(state.labels.clone())),
        ("POST", ["labels"]) => {
            let label = json!({"id": state.labels.len() + 100, "name": body["name"], "color": body["color"]});
            state.labels.push(label.clone());
            Ok(label)
        }
        ("POST", ["issues", number, "labels"]) => state.put_labels(kind, number, &body),
        ("DELETE", ["issues", number, "labels", which]) => state.pull(number).map(|pull| {
            let labels = pull["labels"].as_array_mut().unwrap();
            let id = which.parse::<i64>().ok();
            labels.retain(|label| id.is_none_or(|id| label["id"] != id) && label["name"] != **which);
            Value::Null
        }),
        _ => Err(404),
    };
    match found {
        Ok(value) => axum::Json(value).into_response(),
        Err(status) => (StatusCode::from_u16(status).unwrap(), axum::Json(json!({"message": "no"}))).into_response(),
    }
}

/// Honours `page` and `limit` or `per_page`.
fn page(query: &str, all: Vec<Value>) -> Value {
    let number = |name: &str| {
        let found = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
        found.and_then(|(_, value)| value.parse::<usize>().ok())
    };
    let size = number("limit").or_else(|| number("per_page")).unwrap();
    all.into_iter().skip((number("page").unwrap() - 1) * size).take(size).collect()
}

impl Inner {
    fn pull(&mut self, number: &str) -> Result<&mut Value, u16> {
        let number: usize = number.parse().map_err(|_| 404u16)?;
        self.pulls.get_mut(number.wrapping_sub(1)).ok_or(404)
    }

    /// Open pull requests show their branch's head.
    fn refresh(&mut self) {
        let Some(origin) = self.origin.clone() else { return };
        for pull in self.pulls.iter_mut().filter(|pull| pull["state"] == "open") {
            let branch = format!("refs/heads/{}", pull["head"]["ref"].as_str().unwrap());
            let sha = git(&origin, &["for-each-ref", "--format=%(objectname)", &branch]);
            pull["head"]["sha"] = json!(sha);
        }
    }

    fn open(&mut self, kind: ForgeKind, body: &Value) -> Result<Value, u16> {
        let same = |pull: &Value| {
            pull["state"] == "open" && pull["head"]["ref"] == body["head"] && pull["base"]["ref"] == body["base"]
        };
        if self.pulls.iter().any(same) {
            return Err(if kind == ForgeKind::GitHub { 422 } else { 409 });
        }
        let number = self.pulls.len() + 1;
        let repo = json!({"full_name": "team/gitops"});
        self.pulls.push(json!({
            "number": number, "html_url": format!("https://forge.example/team/gitops/pulls/{number}"), "state": "open",
            "merged": false, "title": body["title"], "body": body["body"], "labels": [],
            "head": {"ref": body["head"], "sha": "", "repo": repo}, "base": {"ref": body["base"], "repo": repo},
        }));
        self.refresh();
        Ok(self.pulls[number - 1].clone())
    }

    fn put_labels(&mut self, kind: ForgeKind, number: &str, body: &Value) -> Result<Value, u16> {
        let wanted = body["labels"].as_array().unwrap().clone();
        let field = if kind == ForgeKind::GitHub { "name" } else { "id" };
        let found: Vec<Value> = self.labels.iter().filter(|label| wanted.contains(&label[field])).cloned().collect();
        if found.len() != wanted.len() {
            return Err(422);
        }
        let labels = self.pull(number)?["labels"].as_array_mut().unwrap();
        labels.extend(found);
        Ok(json!(labels))
    }
}
