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
    let token = hub.first_token.clone().unwrap();
    assert!(std::fs::read_to_string(&token).unwrap().starts_with("kedge_"));
    let keys = hub.keys.key_set();
    assert!(get(hub.api, "/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(get(hub.api, "/metrics").await.contains("# EOF"));
    let (stop, stopped) = watch::channel(false);
    stop.send_replace(true);
    hub.finish(stopped).await.unwrap();
    let again = Hub::start(config(&folder)).await.unwrap();
    assert_eq!(again.first_token, None);
    assert_eq!(again.keys.key_set(), keys);
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
    let token = std::fs::read_to_string(hub.first_token.clone().unwrap()).unwrap();
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
