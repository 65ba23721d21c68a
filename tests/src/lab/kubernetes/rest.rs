//! The API server's own words for a test that looks often: kubectl costs a tenth of a second of processor time each.

use std::fs;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::{ADMIN_TOKEN, AUDIT, Kubernetes};
use crate::lab::await_some;

/// What a controller does takes less, also on a busy machine.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// A request of a service account, as the API server wrote it down.
#[derive(Debug, Clone)]
pub struct Audited {
    /// `get`, `watch`, `patch`…
    pub verb: String,
    /// The path and the query.
    pub uri: String,
    /// `system:serviceaccount:…`
    pub user: String,
    pub user_agent: String,
    /// Whom the user acted for.
    pub impersonated: Option<String>,
    pub code: u64,
}

impl Kubernetes {
    /// What is at a path such as `/apis/apps/v1/namespaces/shop/deployments/web`; none when there is nothing.
    #[track_caller]
    pub fn get(&self, path: &str) -> Option<Value> {
        let (status, body) = self.ask(Method::GET, path, None);
        match status {
            404 => None,
            200 => Some(body),
            _ => panic!("GET {path}: {status} {body}"),
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// Looks until what is at the path is as `fits` says; it. The test fails with what is there at last.
    #[track_caller]
    pub fn await_object(&self, path: &str, what: &str, mut fits: impl FnMut(&Value) -> bool) -> Value {
        let mut last = None;
        let look = || {
            last = self.get(path);
            last.clone().filter(|object| fits(object))
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            await_some(&format!("{path}: {what}"), SEEN_WITHIN, look)
        }));
        result.unwrap_or_else(|_| panic!("{path}: {what}; it is {last:?}"))
    }

    /// Asks as the administrator.
    pub fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.try_ask(method, path, body).unwrap_or_else(|| panic!("{path}: nobody answers"))
    }

    /// The same; none when nobody answers.
    pub fn try_ask(&self, method: Method, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let mut request =
            self.client.request(method, format!("https://{}{path}", self.address)).bearer_auth(ADMIN_TOKEN);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().ok()?;
        Some((answer.status().as_u16(), answer.json().unwrap_or(Value::Null)))
    }

    /// A token of a service account, for some hours.
    #[track_caller]
    pub fn token(&self, namespace: &str, account: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let (status, body) = self.ask(Method::POST, &path, Some(&json!({"spec": {"expirationSeconds": 36_000}})));
        assert_eq!(status, 201, "{path}: {body}");
        body["status"]["token"].as_str().expect("the answer has it").to_owned()
    }

    /// Requests of service accounts whose name contains `user`, in the order in which they ended or began to be answered.
    pub fn audited(&self, user: &str) -> Vec<Audited> {
        let text = fs::read_to_string(self.folder.join(AUDIT)).unwrap_or_default();
        let of_user = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            let text = |pointer: &str| line.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            let name = text("/user/username").filter(|name| name.contains(user))?;
            // A watch is written down when it begins, and again when it ends.
            (line["stage"] != "ResponseStarted" || line["verb"] == "watch").then_some(())?;
            (line["stage"] != "ResponseComplete" || line["verb"] != "watch").then_some(())?;
            Some(Audited {
                verb: text("/verb")?,
                uri: text("/requestURI")?,
                user: name,
                user_agent: text("/userAgent").unwrap_or_default(),
                impersonated: text("/impersonatedUser/username"),
                code: line.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default(),
            })
        };
        text.lines().filter_map(of_user).collect()
    }
}

/// The text of a Secret's value.
pub fn decoded(value: &Value) -> String {
    use base64::Engine as _;
    let text = value.as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    String::from_utf8(bytes).unwrap()
}

impl Audited {
    /// Whether it would change something.
    pub fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb.as_str())
    }
}
