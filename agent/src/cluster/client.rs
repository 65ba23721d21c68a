//! How the API server is reached: one HTTP client over the connection that `access` describes. `run` connects once, and everybody has
//! a clone.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Request, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Client;
use kube::client::Body;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tower::{BoxError, ServiceBuilder};

use super::access::{Access, AccessError};

/// Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    namespace: Arc<str>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("the kubeconfig {path} can't be used")]
    Kubeconfig { path: String, source: AccessError },
    #[error("the API server can't be found")]
    Pod(#[source] AccessError),
    #[error("the API server's certificates or credentials can't be used")]
    Settings(#[source] rustls::Error),
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
        let access = match kubeconfig {
            None => Access::of_pod().map_err(ClusterError::Pod)?,
            Some(path) => Access::of_kubeconfig(path)
                .map_err(|source| ClusterError::Kubeconfig { path: path.display().to_string(), source })?,
        };
        Cluster::new(access).map_err(ClusterError::Settings)
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Of the service account, or of the kubeconfig's context.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// HTTP/1 with few idle connections. Nothing is retried and nothing logged in here: `request` does both where it knows why.
    fn new(access: Access) -> Result<Cluster, rustls::Error> {
        let Access { server, authorities, identity, token, namespace, server_name } = access;
        let token = Arc::new(token);
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match identity {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
            None => builder.with_no_client_auth(),
        };
        let http = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build::<_, Body>(connector(config, server_name)?);
        let service = ServiceBuilder::new()
            .map_request(move |mut request: Request<Body>| {
                *request.uri_mut() = whole(&server, request.uri());
                if let Some(value) = token.header() {
                    request.headers_mut().insert(AUTHORIZATION, value);
                }
                request
            })
            .map_err(BoxError::from)
            .service(http);
        let client = Client::new(service, namespace.as_str());
        Ok(Cluster { client, namespace: namespace.into() })
    }
}

fn connector(config: ClientConfig, name: Option<String>) -> Result<HttpsConnector<HttpConnector>, rustls::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIME));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_GAP));
    connector.set_keepalive_retries(Some(KEEPALIVE_TRIES));
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
    if let Some(name) = name {
        let wrong = |_| rustls::Error::General(format!("`{}` can't be the name of a server", name.escape_debug()));
        let name = ServerName::try_from(name.clone()).map_err(wrong)?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_http1().wrap_connector(connector))
}

/// The server's address, with what is asked for below its path.
fn whole(server: &Uri, asked: &Uri) -> Uri {
    let mut parts = server.clone().into_parts();
    let below = server.path().trim_end_matches('/');
    let asked = asked.path_and_query().map_or("/", |asked| asked.as_str());
    parts.path_and_query = format!("{below}{asked}").parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| server.clone())
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({})", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_below_the_servers_path() {
        let whole =
            |server: &'static str, asked| whole(&Uri::from_static(server), &Uri::from_static(asked)).to_string();
        assert_eq!(whole("https://10.0.0.1:6443", "/api/v1/pods?limit=1"), "https://10.0.0.1:6443/api/v1/pods?limit=1");
        assert_eq!(whole("https://rancher/k8s/clusters/c-1/", "/apis"), "https://rancher/k8s/clusters/c-1/apis");
    }
}
