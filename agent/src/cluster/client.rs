//! How the API server is reached: from inside the cluster by the pod's service account, or by a kubeconfig. `run` connects once, and
//! everybody has a clone.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

/// Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    namespace: Arc<str>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("the kubeconfig {path} can't be used")]
    Kubeconfig { path: String, source: Box<KubeconfigError> },
    #[error("this isn't a pod with a service account, and no kubeconfig was named")]
    Pod(#[source] Box<kube::config::InClusterError>),
    #[error("the API server's address, certificates or credentials can't be used")]
    Settings(#[source] Box<kube::Error>),
}

/// Between two bursts of changes few connections are worth their memory.
const IDLE_CONNECTIONS: usize = 2;
/// Longer than the gap between a lease's renewals, so that those use one connection.
const IDLE_TIME: Duration = Duration::from_secs(20);
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// A watch may be silent for a minute; a peer that has gone is found by the kernel.
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_GAP: Duration = Duration::from_secs(10);
const KEEPALIVE_TRIES: u32 = 3;

impl Cluster {
    /// Must be called in the runtime that the requests will run on.
    pub async fn connect(kubeconfig: Option<&Path>) -> Result<Cluster, ClusterError> {
        let config = match kubeconfig {
            None => Config::incluster().map_err(|error| ClusterError::Pod(Box::new(error)))?,
            Some(path) => {
                let wrong =
                    |source| ClusterError::Kubeconfig { path: path.display().to_string(), source: Box::new(source) };
                let file = Kubeconfig::read_from(path).map_err(wrong)?;
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(wrong)?
            }
        };
        Cluster::new(&config).map_err(|error| ClusterError::Settings(Box::new(error)))
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Of the service account, or of the kubeconfig's context.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// HTTP/1 with few idle connections. Nothing is retried and nothing logged in here: `request` does both where it knows why.
    fn new(config: &Config) -> kube::Result<Cluster> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIME));
        connector.set_keepalive(Some(KEEPALIVE));
        connector.set_keepalive_interval(Some(KEEPALIVE_GAP));
        connector.set_keepalive_retries(Some(KEEPALIVE_TRIES));
        let connector = config.rustls_https_connector_with_connector(connector)?;
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build(connector);
        let service = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from)
            .service(http);
        let client = Client::new(service, config.default_namespace.clone());
        Ok(Cluster { client, namespace: config.default_namespace.as_str().into() })
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({})", self.namespace)
    }
}
