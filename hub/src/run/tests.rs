//! A whole hub on SQLite, started and stopped in this process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::data::DataError;
use super::*;

fn config(folder: &tempfile::TempDir) -> Config {
    let mut config = Config::default_at(&folder.path().join("data"));
    config.api.listen = "127.0.0.1:0".parse().unwrap();
    config.agents.listen = "127.0.0.1:0".parse().unwrap();
    config
}

async fn get(address: SocketAddr, path: &str) -> String {
    get_with(address, path, "").await
}

async fn get_with(address: SocketAddr, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: hub\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_first_start_makes_everything_and_a_second_one_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&folder)).await.unwrap();
    let tokens = hub.first_tokens.clone().unwrap();
    assert!(std::fs::read_to_string(&tokens.administrator).unwrap().starts_with("kedge_"));
    assert!(std::fs::read_to_string(&tokens.platform).unwrap().starts_with("kedge_"));
    let keys = hub.keys.key_set();
    assert!(get(hub.api, "/healthz").await.starts_with("HTTP/1.1 200"));
    let sent = format!("authorization: Bearer {}\r\n", std::fs::read_to_string(&tokens.platform).unwrap().trim());
    assert!(get_with(hub.api, "/metrics", &sent).await.contains("# EOF"));
    assert!(get(hub.api, "/metrics").await.starts_with("HTTP/1.1 401"));
    assert_eq!(hub.metrics_address, None);
    let (stop, stopped) = watch::channel(false);
    stop.send_replace(true);
    hub.finish(stopped).await.unwrap();
    let again = Hub::start(config(&folder)).await.unwrap();
    assert_eq!(again.first_tokens, None);
    assert_eq!(again.keys.key_set(), keys);
}

#[tokio::test]
async fn metrics_have_a_listener_of_their_own_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder);
    config.metrics.listen = Some("127.0.0.1:0".parse().unwrap());
    let hub = Hub::start(config).await.unwrap();
    let own = hub.metrics_address.unwrap();
    assert!(get(own, "/metrics").await.contains("# EOF"));
    assert!(get(own, "/api/v1/openapi.json").await.starts_with("HTTP/1.1 404"));
    assert!(get(own, "/login").await.starts_with("HTTP/1.1 404"));
    assert!(get(hub.api, "/metrics").await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn one_address_leaves_room_for_others_unless_it_is_a_proxy_of_ours() {
    let router = || axum::Router::new().route("/", axum::routing::get(async || "served"));
    let (address, _stop, _served) = listen(None, router()).await;
    let (behind, _stop, _served) = listen_behind("127.0.0.2", router()).await;
    let mut held = Vec::new();
    for _ in 0..700 {
        held.push((connect_from([127, 0, 0, 2], address).await, connect_from([127, 0, 0, 2], behind).await));
    }
    let (mut refused, mut served) = held.pop().unwrap();
    let mut answer = String::new();
    // Closed without a word, or reset.
    let _ = refused.read_to_string(&mut answer).await;
    assert_eq!(answer, "");
    served.write_all(b"GET / HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n").await.unwrap();
    served.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("served"), "{answer}");
    assert!(get(address, "/").await.ends_with("served"), "another address");
}

#[tokio::test]
async fn whom_a_request_comes_from_is_believed_of_our_proxies_alone() {
    use axum::extract::ConnectInfo;
    let router = || {
        let say = async |ConnectInfo(client): ConnectInfo<SocketAddr>| client.ip().to_string();
        axum::Router::new().route("/", axum::routing::get(say))
    };
    let (address, _stop, _served) = listen(None, router()).await;
    let (behind, _stop, _served) = listen_behind("127.0.0.1", router()).await;
    let forwarded = "x-forwarded-for: 9.9.9.9, 203.0.113.7\r\n";
    assert!(get_with(address, "/", forwarded).await.ends_with("127.0.0.1"));
    assert!(get_with(behind, "/", forwarded).await.ends_with("203.0.113.7"));
    assert!(get(behind, "/").await.ends_with("127.0.0.1"));
}

#[tokio::test]
async fn idle_connections_end_at_once_when_the_hub_stops() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&folder)).await.unwrap();
    let mut idle = TcpStream::connect(hub.api).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: hub\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    stop.send_replace(true);
    let begun = std::time::Instant::now();
    hub.finish(stopped).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test]
async fn a_second_hub_on_the_same_data_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _hub = Hub::start(config(&folder)).await.unwrap();
    let error = Hub::start(config(&folder)).await.unwrap_err();
    assert!(matches!(error, RunError::Data(DataError::InUse { .. })), "{error}");
}

#[tokio::test]
async fn the_first_token_opens_the_api_and_a_wrong_one_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(config(&folder)).await.unwrap();
    let token = std::fs::read_to_string(hub.first_tokens.clone().unwrap().platform).unwrap();
    let ask = |token: String| {
        let address = hub.api;
        async move { get_with(address, "/api/v1/whoami", &format!("authorization: Bearer {token}\r\n")).await }
    };
    let answer = ask(token.trim().to_owned()).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("platform"), "{answer}");
    let wrong = ask(token.trim().replace(|c: char| c.is_ascii_digit(), "0")).await;
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
    assert!(get(hub.api, "/readyz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_answer_under_way_is_finished_when_the_hub_stops() {
    let (begun, mut begins) = tokio::sync::mpsc::channel::<()>(1);
    let (finish, finished) = watch::channel(false);
    let answer = move || {
        let (begun, mut finished) = (begun.clone(), finished.clone());
        async move {
            begun.send(()).await.unwrap();
            stopped(&mut finished).await;
            "whole"
        }
    };
    let router = axum::Router::new().route("/slow", axum::routing::get(answer));
    let (address, stop, served) = listen(None, router).await;
    let asked = tokio::spawn(async move { get(address, "/slow").await });
    begins.recv().await.unwrap();
    stop.send_replace(true);
    // Nobody new gets in, who is in gets the answer.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    finish.send_replace(true);
    assert!(asked.await.unwrap().ends_with("whole"));
    served.await.unwrap();
}

#[tokio::test]
async fn people_are_served_over_tls_with_the_operators_certificate_also_after_it_was_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let (_data, store) = crate::store::test_database::sqlite().await;
    let keys = Keys::open(&folder.path().join("keys"), &store).await.unwrap();
    let files = crate::config::TlsFiles { certificate: folder.path().join("c.pem"), key: folder.path().join("k.pem") };
    write_certificate(&keys, &files);
    let tls = listener::Tls::load(Some(&files)).unwrap().unwrap();
    let router = axum::Router::new().route("/", axum::routing::get(async || "over TLS"));
    let (address, _stop, _served) = listen(Some(tls.clone()), router).await;
    let first = get_tls(&keys, address).await;
    write_certificate(&keys, &files);
    let time = std::time::SystemTime::now() + Duration::from_secs(5);
    std::fs::File::options().write(true).open(&files.key).unwrap().set_modified(time).unwrap();
    tls.reload();
    let second = get_tls(&keys, address).await;
    assert_ne!(first, second, "the new certificate is served");
    std::fs::write(&files.certificate, "broken").unwrap();
    std::fs::File::options().write(true).open(&files.key).unwrap().set_modified(time + Duration::from_secs(5)).unwrap();
    tls.reload();
    assert_eq!(get_tls(&keys, address).await, second, "a broken one leaves it in place");
}

/// The server's certificate as a client sees it that trusts the authority.
async fn get_tls(keys: &Keys, address: SocketAddr) -> Vec<u8> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(keys.authority().certificate().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector =
        tokio_rustls::TlsConnector::from(Arc::new(client.with_root_certificates(roots).with_no_client_auth()));
    let name = rustls_pki_types::ServerName::try_from("hub.example").unwrap();
    let mut stream = connector.connect(name, TcpStream::connect(address).await.unwrap()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: hub.example\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("over TLS"), "{answer}");
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn write_certificate(keys: &Keys, files: &crate::config::TlsFiles) {
    use base64::Engine as _;
    let pem = |label: &str, der: &[u8]| {
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    };
    let (chain, key) = keys.authority().server_identity(&["hub.example".to_owned()]).unwrap();
    let chain: String = chain.iter().map(|certificate| pem("CERTIFICATE", certificate)).collect();
    std::fs::write(&files.certificate, chain).unwrap();
    std::fs::write(&files.key, pem("PRIVATE KEY", key.secret_der())).unwrap();
}

/// From another address of the loopback, as another host would.
async fn connect_from(own: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((own, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

type Listening = (SocketAddr, watch::Sender<bool>, tokio::task::JoinHandle<()>);

async fn listen(tls: Option<listener::Tls>, router: axum::Router) -> Listening {
    listen_as(listener::Served { tls, proxies: Arc::default(), router }).await
}

async fn listen_behind(proxy: &str, router: axum::Router) -> Listening {
    let proxies = Arc::new(crate::connections::proxies::Proxies::new(vec![proxy.parse().unwrap()]));
    listen_as(listener::Served { tls: None, proxies, router }).await
}

async fn listen_as(served: listener::Served) -> Listening {
    let listening = listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener::address(&listening).unwrap();
    let (stop, stopping) = watch::channel(false);
    let metrics = Arc::new(Metrics::new());
    (address, stop, tokio::spawn(listener::serve(listening, served, metrics, At::Api, stopping)))
}
