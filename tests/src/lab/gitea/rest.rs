//! What people and programs do at Gitea, over its REST API. Every answer that isn't a success ends the test with its text.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::Gitea;
use crate::lab::await_some;

/// Gitea decides in the background whether a pull request can be merged.
const MERGED_WITHIN: Duration = Duration::from_secs(30);

/// What the tests look at in a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub title: String,
    pub body: String,
    /// `open` or `closed`.
    pub state: String,
    pub merged: bool,
    /// The branch that asks, and its commit.
    pub head: String,
    pub commit: String,
    /// The branch that it asks to change.
    pub base: String,
    pub labels: Vec<String>,
}

impl Gitea {
    /// An empty private repository of the administrator's.
    pub fn create_repository(&self, name: &str) {
        self.post("/user/repos", json!({"name": name, "private": true, "default_branch": "main", "auto_init": false}));
    }

    /// Pull requests, oldest first; `state` is `open`, `closed` or `all`.
    pub fn pull_requests(&self, repository: &str, state: &str) -> Vec<PullRequest> {
        let found = self.get(&format!("{}/pulls?state={state}&sort=oldest&limit=50", self.at(repository)));
        let mut found: Vec<_> = items(&found).iter().map(PullRequest::from_json).collect();
        found.sort_by_key(|request| request.number);
        found
    }

    pub fn pull_request(&self, repository: &str, number: u64) -> PullRequest {
        PullRequest::from_json(&self.get(&format!("{}/pulls/{number}", self.at(repository))))
    }

    pub fn create_pull_request(&self, repository: &str, head: &str, base: &str, title: &str) -> PullRequest {
        let path = format!("{}/pulls", self.at(repository));
        PullRequest::from_json(&self.post(&path, json!({"head": head, "base": base, "title": title})))
    }

    /// Merges; `style` is `merge`, `squash` or `rebase`.
    pub fn merge(&self, repository: &str, number: u64, style: &str) {
        let path = format!("{}/pulls/{number}/merge", self.at(repository));
        await_some(&format!("pull request {number} is merged"), MERGED_WITHIN, || {
            let body = json!({"Do": style, "MergeTitleField": format!("Merge {number}")});
            match self.request(Method::POST, &path, Some(&body)) {
                Ok(_) => Some(()),
                // "Please try again later": it isn't decided yet.
                Err((405 | 409, _)) => None,
                Err((status, text)) => panic!("POST {path}: {status} {text}"),
            }
        });
    }

    /// Closes without merging: the change is declined.
    pub fn close(&self, repository: &str, number: u64) {
        self.patch(&format!("{}/pulls/{number}", self.at(repository)), json!({"state": "closed"}));
    }

    pub fn reopen(&self, repository: &str, number: u64) {
        self.patch(&format!("{}/pulls/{number}", self.at(repository)), json!({"state": "open"}));
    }

    pub fn comment(&self, repository: &str, number: u64, text: &str) {
        self.post(&format!("{}/issues/{number}/comments", self.at(repository)), json!({"body": text}));
    }

    /// The texts of a pull request's comments, oldest first.
    pub fn comments(&self, repository: &str, number: u64) -> Vec<String> {
        let found = self.get(&format!("{}/issues/{number}/comments", self.at(repository)));
        items(&found).iter().map(|comment| text(&comment["body"])).collect()
    }

    pub fn create_label(&self, repository: &str, name: &str) {
        self.post(&format!("{}/labels", self.at(repository)), json!({"name": name, "color": "#00aabb"}));
    }

    /// The labels that a repository has to give.
    pub fn labels(&self, repository: &str) -> Vec<String> {
        items(&self.get(&format!("{}/labels", self.at(repository)))).iter().map(|label| text(&label["name"])).collect()
    }

    /// Tells `url` of pushes and pull requests from now on.
    pub fn create_webhook(&self, repository: &str, url: &str, secret: &str) {
        let config = json!({"url": url, "secret": secret, "content_type": "json"});
        let hook = json!({"type": "gitea", "active": true, "events": ["push", "pull_request"], "config": config});
        self.post(&format!("{}/hooks", self.at(repository)), hook);
    }

    /// The states of a commit, as (context, state).
    pub fn statuses(&self, repository: &str, commit: &str) -> Vec<(String, String)> {
        let found = self.get(&format!("{}/commits/{commit}/statuses", self.at(repository)));
        items(&found).iter().map(|status| (text(&status["context"]), text(&status["status"]))).collect()
    }

    /// What a pipeline says of a commit: `pending`, `success`, `failure`.
    pub fn set_status(&self, repository: &str, commit: &str, context: &str, state: &str) {
        let path = format!("{}/statuses/{commit}", self.at(repository));
        self.post(&path, json!({"context": context, "state": state, "description": "the lab's pipeline"}));
    }

    /// From now on a branch changes by pull requests only.
    pub fn protect_branch(&self, repository: &str, branch: &str) {
        self.post(
            &format!("{}/branch_protections", self.at(repository)),
            json!({"rule_name": branch, "enable_push": false}),
        );
    }

    pub fn branches(&self, repository: &str) -> Vec<String> {
        let found = self.get(&format!("{}/branches", self.at(repository)));
        items(&found).iter().map(|branch| text(&branch["name"])).collect()
    }

    pub fn get(&self, path: &str) -> Value {
        self.expect(Method::GET, path, None)
    }

    pub fn post(&self, path: &str, body: Value) -> Value {
        self.expect(Method::POST, path, Some(&body))
    }

    pub fn patch(&self, path: &str, body: Value) -> Value {
        self.expect(Method::PATCH, path, Some(&body))
    }

    fn at(&self, repository: &str) -> String {
        format!("/repos/{}/{repository}", self.owner())
    }

    fn expect(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let asked = format!("{method} {path}");
        self.request(method, path, body).unwrap_or_else(|(status, text)| panic!("{asked}: {status} {text}"))
    }

    /// The answer's JSON (null if there is none), or the status and the text of a refusal.
    pub fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, (u16, String)> {
        let mut request = self.client.request(method, format!("{}/api/v1{path}", self.url()));
        request = request.header("authorization", format!("token {}", self.token()));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().map_err(|e| (0, e.to_string()))?;
        let status = answer.status();
        let text = answer.text().map_err(|e| (0, e.to_string()))?;
        if status.is_success() {
            return Ok(serde_json::from_str(&text).unwrap_or(Value::Null));
        }
        Err((status.as_u16(), text))
    }
}

impl PullRequest {
    fn from_json(value: &Value) -> PullRequest {
        PullRequest {
            number: value["number"].as_u64().expect("a pull request has a number"),
            title: text(&value["title"]),
            body: text(&value["body"]),
            state: text(&value["state"]),
            merged: value["merged"].as_bool().unwrap_or_default(),
            head: text(&value["head"]["ref"]),
            commit: text(&value["head"]["sha"]),
            base: text(&value["base"]["ref"]),
            labels: items(&value["labels"]).iter().map(|label| text(&label["name"])).collect(),
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
