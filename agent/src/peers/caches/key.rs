//! The key that a cluster's agent and its caches share. The agent makes it once and keeps it in a Secret of its namespace; caches have
//! that Secret as files. Who has it gets the cluster's packages, and can give nothing that isn't what its digest says.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kedge_model::wire::ClusterId;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::cluster::asking::{self, AskError};
use crate::identity::IdentityError;
use crate::identity::key::HostKey;
use crate::link::mutual::Mutual;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct CacheKey {
    pub mutual: Mutual,
    /// Whom it stands for, on both ends.
    pub id: ClusterId,
}

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("the Secret of the caches can't be had")]
    Api(#[from] AskError),
    #[error("the key of the caches can't be read from {path}")]
    File { path: String, source: io::Error },
    #[error("the key of the caches can't be used")]
    Key(#[from] IdentityError),
    #[error("the key of the caches can't be used")]
    Settings(#[from] rustls::Error),
    #[error("the Secret {SECRET} has no {0}; delete it, and it is made anew")]
    Lacks(&'static str),
}

/// As Kubernetes names them in a Secret of this type.
const SECRET: &str = "kedge-cache";
const TYPE: &str = "kubernetes.io/tls";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const LIMIT: Duration = Duration::from_secs(10);

impl CacheKey {
    /// Both are PEM.
    pub fn of(certificate: &str, key: &str) -> Result<CacheKey, KeyError> {
        let key = HostKey::from_pem(key)?;
        Ok(CacheKey { mutual: Mutual::pinned(certificate, &key)?, id: key.cluster() })
    }

    /// The mounted Secret; none while it isn't there.
    pub fn in_folder(folder: &Path) -> Result<Option<CacheKey>, KeyError> {
        let read = |name: &str| match fs::read_to_string(folder.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(KeyError::File { path: folder.join(name).display().to_string(), source }),
        };
        match (read(CERTIFICATE)?, read(KEY)?) {
            (Some(certificate), Some(key)) => CacheKey::of(&certificate, &key).map(Some),
            _ => Ok(None),
        }
    }

    /// The Secret's, which is made where there is none. Must run where the API server is talked to.
    pub async fn of_cluster(cluster: &Cluster, namespace: &str) -> Result<CacheKey, KeyError> {
        let collection = format!("/api/v1/namespaces/{namespace}/secrets");
        let address = format!("{collection}/{SECRET}");
        let secret = match asking::get(cluster.client(), &address, LIMIT).await {
            Err(AskError::Missing(_)) => {
                let body = fresh(namespace)?;
                match asking::create(cluster.client(), &collection, &body, LIMIT).await {
                    // The agent before this one made it at its end.
                    Err(AskError::Conflict(_)) => asking::get(cluster.client(), &address, LIMIT).await?,
                    made => made?,
                }
            }
            found => found?,
        };
        let text = |name: &'static str| {
            let bytes = BASE64.decode(secret["data"][name].as_str()?).ok()?;
            String::from_utf8(bytes).ok()
        };
        CacheKey::of(&text(CERTIFICATE).ok_or(KeyError::Lacks(CERTIFICATE))?, &text(KEY).ok_or(KeyError::Lacks(KEY))?)
    }
}

fn fresh(namespace: &str) -> Result<Value, IdentityError> {
    let key = HostKey::generate()?;
    let (certificate, key) = (BASE64.encode(key.certificate()?), BASE64.encode(key.to_pem()));
    let labels = json!({"app.kubernetes.io/name": "kedge-agent", "app.kubernetes.io/managed-by": "kedge-agent"});
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret", "type": TYPE,
        "metadata": {"name": SECRET, "namespace": namespace, "labels": labels},
        "data": {CERTIFICATE: certificate, KEY: key},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_files_is_the_one_that_was_made() {
        let folder = tempfile::tempdir().unwrap();
        assert!(CacheKey::in_folder(folder.path()).unwrap().is_none(), "it isn't mounted yet");
        let secret = fresh("kedge-system").unwrap();
        for name in [CERTIFICATE, KEY] {
            let text = BASE64.decode(secret["data"][name].as_str().unwrap()).unwrap();
            fs::write(folder.path().join(name), text).unwrap();
        }
        let key = CacheKey::in_folder(folder.path()).unwrap().unwrap();
        assert!(!format!("{key:?}").contains("PRIVATE"));
        fs::write(folder.path().join(KEY), "no key").unwrap();
        assert!(CacheKey::in_folder(folder.path()).is_err());
    }
}
