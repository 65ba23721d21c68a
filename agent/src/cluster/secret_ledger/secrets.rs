//! The secret store of a real cluster: Secrets in the agent's namespace. Requests run on the thread that talks to the API server; whoever
//! asks waits here for their end, also from within another runtime.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::Client;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::super::asking::{self, AskError};
use super::names::{KEY, LABEL};
use super::{Kept, SecretStore, SecretStoreError};

#[derive(Clone)]
pub struct Secrets {
    client: Client,
    handle: Handle,
    namespace: String,
}

/// A write of a megabyte to a slow server takes its time; a longer one would keep the loop from everything else.
const LIMIT: Duration = Duration::from_secs(5);
/// Secrets of one page: what is in memory at once stays small.
const PAGE: usize = 20;
/// Tells the secret store's Secrets from others in lists by people.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kedge-agent");

impl Secrets {
    /// `handle` is the runtime that the client was made in; it must be another thread's than the callers'.
    pub fn new(client: Client, handle: Handle, namespace: String) -> Secrets {
        Secrets { client, handle, namespace }
    }

    fn collection(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, AskError>> + Send + 'static,
    ) -> Result<T, SecretStoreError> {
        let (done, end) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // Whoever asked may be gone.
            _ = done.send(work.await);
        });
        match end.recv() {
            Ok(result) => result.map_err(SecretStoreError::from),
            Err(_) => Err(SecretStoreError::Away("the thread of the API server has ended".to_owned())),
        }
    }
}

impl SecretStore for Secrets {
    fn list(&self) -> Result<Vec<Kept>, SecretStoreError> {
        let (client, collection) = (self.client.clone(), self.collection());
        self.wait(async move {
            let (mut all, mut next) = (Vec::new(), String::new());
            loop {
                let page = format!("{collection}?labelSelector={LABEL}&limit={PAGE}{next}");
                let list = asking::get(&client, &page, LIMIT).await?;
                let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                all.extend(items.iter().map(read));
                match list["metadata"]["continue"].as_str() {
                    Some(token) if !token.is_empty() => next = format!("&continue={token}"),
                    _ => return Ok(all),
                }
            }
        })
    }

    fn get(&self, name: &str) -> Result<Option<Kept>, SecretStoreError> {
        let (client, address) = (self.client.clone(), format!("{}/{name}", self.collection()));
        self.wait(async move {
            match asking::get(&client, &address, LIMIT).await {
                Ok(secret) => Ok(Some(read(&secret))),
                Err(AskError::Missing(_)) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn put(&self, kept: &Kept) -> Result<String, SecretStoreError> {
        let (client, collection) = (self.client.clone(), self.collection());
        let (name, version) = (kept.name.clone(), kept.version.clone());
        let mut body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": kept.name,
                "namespace": self.namespace,
                "labels": {LABEL: kept.word, MANAGED_BY.0: MANAGED_BY.1},
                "annotations": kept.annotations,
            },
            "data": {KEY: BASE64.encode(&kept.value)},
        });
        self.wait(async move {
            let written = if version.is_empty() {
                asking::create(&client, &collection, &body, LIMIT).await?
            } else {
                body["metadata"]["resourceVersion"] = Value::from(version);
                asking::replace(&client, &format!("{collection}/{name}"), &body, LIMIT).await?
            };
            Ok(version_of(&written))
        })
    }

    fn mark(&self, name: &str, version: &str, annotation: (&str, &str)) -> Result<String, SecretStoreError> {
        let (client, address) = (self.client.clone(), format!("{}/{name}", self.collection()));
        let body = json!({"metadata": {"resourceVersion": version, "annotations": {annotation.0: annotation.1}}});
        self.wait(async move { Ok(version_of(&asking::patch(&client, &address, &body, LIMIT).await?)) })
    }

    fn remove(&self, name: &str, version: &str) -> Result<(), SecretStoreError> {
        let (client, address) = (self.client.clone(), format!("{}/{name}", self.collection()));
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": version},
        });
        self.wait(async move {
            match asking::delete(&client, &address, &body, LIMIT).await {
                Ok(_) | Err(AskError::Missing(_)) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }
}

fn read(secret: &Value) -> Kept {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let annotations = secret["metadata"]["annotations"].as_object();
    let annotations: BTreeMap<String, String> =
        annotations.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect();
    Kept {
        name: text(&secret["metadata"]["name"]),
        word: text(&secret["metadata"]["labels"][LABEL]),
        annotations,
        // What isn't base64 has another digest than it says.
        value: BASE64.decode(text(&secret["data"][KEY])).unwrap_or_default(),
        version: version_of(secret),
    }
}

fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

impl From<AskError> for SecretStoreError {
    fn from(error: AskError) -> SecretStoreError {
        match error {
            // One that was there is gone: somebody else did that.
            AskError::Conflict(why) | AskError::Missing(why) => SecretStoreError::Conflict(why),
            AskError::Refused(why) => SecretStoreError::Refused(why),
            AskError::Away(why) => SecretStoreError::Away(why),
        }
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.namespace)
    }
}
