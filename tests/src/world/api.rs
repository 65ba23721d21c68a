//! The hub's API for people and programs, with one token: every answer is kept whole, so that tests can look at statuses and
//! headers.

use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::Value;

use crate::lab::http as lab_http;

/// A client with a token, or without one.
#[derive(Debug, Clone)]
pub struct Api {
    base: String,
    token: Option<String>,
    client: reqwest::blocking::Client,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Api {
    pub fn at(base: &str) -> Api {
        Api { base: base.to_owned(), token: None, client: lab_http::client() }
    }

    pub fn with_token(&self, token: &str) -> Api {
        Api { token: Some(token.to_owned()), ..self.clone() }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Asks, and fails only when nobody answers.
    pub fn ask(&self, method: Method, path: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> Answer {
        self.try_ask(method, path, body, headers).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Asks; no answer is an error.
    pub fn try_ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Result<Answer, String> {
        let mut request = self.client.request(method, self.url(path));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().map_err(|e| e.to_string())?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Ok(Answer { status, headers, text: answer.text().map_err(|e| e.to_string())? })
    }

    /// The JSON of a page that must be there.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, None, &[]).ok(path)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: Value) -> Value {
        self.ask(Method::POST, path, Some(&body), &[]).ok(path)
    }

    pub fn status_of(&self, path: &str) -> u16 {
        self.ask(Method::GET, path, None, &[]).status
    }

    /// All items of a list, through all its pages.
    #[track_caller]
    pub fn list(&self, path: &str) -> Vec<Value> {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let joint = if path.contains('?') { '&' } else { '?' };
            let page = match &cursor {
                Some(cursor) => self.get(&format!("{path}{joint}cursor={cursor}")),
                None => self.get(path),
            };
            found.extend(page["items"].as_array().unwrap_or_else(|| panic!("{path}: {page}")).iter().cloned());
            cursor = page["next"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return found;
            }
        }
    }

    /// The newest generation of a stream with the ring `all`; none when there is none yet or nobody answers.
    pub fn generation(&self, environment: &str, cluster_type: &str) -> Option<u64> {
        let path = format!("/api/v1/desired-states?environment={environment}&clusterType={cluster_type}");
        let answer = self.try_ask(Method::GET, &path, None, &[]).ok().filter(|answer| answer.status == 200)?;
        let items = answer.json();
        let items = items["items"].as_array()?;
        items.iter().filter_map(|state| state["generation"].as_u64()).max()
    }

    /// The signed envelope of a generation, as it is stored.
    #[track_caller]
    pub fn envelope(&self, environment: &str, cluster_type: &str, generation: u64) -> String {
        let path = format!("/api/v1/desired-states/{environment}/{cluster_type}/all/envelope?generation={generation}");
        let answer = self.ask(Method::GET, &path, None, &[]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.text
    }

    /// A generation, or the newest, as people see it.
    #[track_caller]
    pub fn state(&self, environment: &str, cluster_type: &str, generation: Option<u64>) -> Value {
        let asked = generation.map(|number| format!("?generation={number}")).unwrap_or_default();
        self.get(&format!("/api/v1/desired-states/{environment}/{cluster_type}/all{asked}"))
    }

    /// Why a repository whose URL contains this can't be read, and since when; none if it can.
    pub fn failing(&self, url: &str) -> Option<Value> {
        let repositories = self.list("/api/v1/repositories");
        let named = repositories.into_iter().filter(|item| item["url"].as_str().is_some_and(|text| text.contains(url)));
        named.map(|repository| repository["failing"].clone()).find(|failing| !failing.is_null())
    }

    /// How the last publish of an environment ended.
    pub fn publish(&self, environment: &str) -> Value {
        self.get(&format!("/api/v1/environments/{environment}"))["publish"].clone()
    }

    /// Cluster types whose publish waits for a person.
    pub fn waiting(&self, environment: &str) -> Vec<String> {
        let shown = self.get(&format!("/api/v1/environments/{environment}"));
        let waiting = shown["waiting"].as_array().cloned().unwrap_or_default();
        waiting.iter().filter_map(|one| one["clusterType"].as_str().map(str::to_owned)).collect()
    }

    /// Assignments of an environment that keep what is published until something is mended.
    pub fn quarantined(&self, environment: &str) -> Vec<String> {
        let found = self.list(&format!("/api/v1/assignments?environment={environment}&state=quarantined"));
        found.iter().filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
    }

    /// What is wrong, as the hub tells it.
    pub fn problems(&self) -> Vec<Value> {
        self.list("/api/v1/findings")
    }

    /// Whether a problem's text contains all of these.
    pub fn has_problem(&self, words: &[&str]) -> bool {
        let found = |problem: &Value| {
            let text = problem.to_string();
            words.iter().all(|word| text.contains(word))
        };
        self.problems().iter().any(found)
    }

    /// For requests that a test makes itself.
    pub fn client(&self) -> &reqwest::blocking::Client {
        &self.client
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap_or_default())
    }

    /// The stable word of a refusal.
    pub fn reason(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// How long the hub asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after").parse().ok().map(Duration::from_secs)
    }

    #[track_caller]
    fn ok(self, path: &str) -> Value {
        assert!((200..300).contains(&self.status), "{path}: {} {}", self.status, self.text);
        self.json()
    }
}
