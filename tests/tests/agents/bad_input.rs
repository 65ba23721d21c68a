//! What no agent would send: the listener refuses it, closes, and goes on serving.

use std::time::{Duration, Instant};

use kedge_tests::agent::Agent;
use kedge_tests::agent::link::{Link, Reply};
use kedge_tests::agent::trust::{Trust, settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::hub::Hub;

async fn link(agent: &Agent) -> Link {
    Link::open(&agent.hub, agent.config()).await.unwrap()
}

/// From another address of the loopback, as another host would.
async fn connect_from(address: [u8; 4], port: u16) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((address, 0).into()).unwrap();
    socket.connect(([127, 0, 0, 1], port).into()).await.unwrap()
}

async fn raw(agent: &Agent, bytes: &[u8]) -> Option<Reply> {
    let mut link = link(agent).await;
    link.write(bytes).await.unwrap();
    link.answer(false).await.ok()
}

fn reason(reply: &Reply) -> String {
    serde_json::from_slice::<serde_json::Value>(&reply.body).unwrap()["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_body_above_its_limit_is_refused_before_it_is_read() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    for (path, size) in
        [("poll", 20_000), ("status", 1_000_000), ("renew", 10_000), ("proof", 20_000_000), ("join", 100_000)]
    {
        let head = format!("POST /agent/v1/{path} HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n");
        let reply = raw(&agent, head.as_bytes()).await.unwrap();
        assert_eq!((reply.status, reason(&reply)), (413, "TooLarge".to_owned()), "{path}");
        assert_eq!(reply.header("connection"), Some("close"));
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_cut_at_its_limit() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    let mut link = link(&agent).await;
    link.write(b"POST /agent/v1/poll HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
    let chunk = [b"1000\r\n".as_slice(), &[b' '; 4096], b"\r\n"].concat();
    for _ in 0..5 {
        link.write(&chunk).await.unwrap();
    }
    assert_eq!(link.answer(false).await.unwrap().status, 413);
}

#[tokio::test]
async fn a_truncated_body_is_malformed_and_does_no_harm() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let reply = agent.post("/agent/v1/poll", br#"{"keySet":1,"membership":"#).await.unwrap();
    assert_eq!((reply.status, reason(&reply)), (400, "Malformed".to_owned()));
    let mut cut = link(&agent).await;
    cut.write(b"POST /agent/v1/status HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{\"payloadType\":")
        .await
        .unwrap();
    drop(cut);
    assert!(hub.services.documents.lock().unwrap().is_empty());
    assert_eq!(agent.post("/agent/v1/poll", b"[]").await.unwrap().status, 400);
}

#[tokio::test]
async fn malformed_heads_are_answered_with_400_or_closed() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(200));
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000));
    let heads: [&[u8]; 7] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /agent/v1/poll HTTP/1.1\r\ncontent-length: minus\r\n\r\n",
        b"POST /agent/v1/poll HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        many.as_bytes(),
        long.as_bytes(),
    ];
    for head in heads {
        if let Some(reply) = raw(&agent, head).await {
            assert!((400..=431).contains(&reply.status), "{} for {head:?}", reply.status);
        }
    }
    assert_eq!(raw(&agent, b"GET /agent/v1/poll HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap().status, 405);
    assert_eq!(raw(&agent, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap().status, 404);
}

#[tokio::test]
async fn who_speaks_no_tls_is_closed() {
    let hub = Hub::start().await;
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", hub.port)).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut bytes)).await.unwrap();
    assert!(!bytes.starts_with(b"HTTP"));
}

#[tokio::test]
async fn who_never_finishes_the_handshake_is_closed_after_ten_seconds() {
    let hub = Hub::start().await;
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", hub.port)).await.unwrap();
    let begun = Instant::now();
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(15), socket.read_to_end(&mut bytes)).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(9));
}

#[tokio::test]
async fn a_body_that_trickles_is_cut_after_its_time() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    let mut link = link(&agent).await;
    link.write(b"POST /agent/v1/poll HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n").await.unwrap();
    let begun = Instant::now();
    let trickle = async {
        while link.write(b" ").await.is_ok() && begun.elapsed() < Duration::from_secs(16) {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        link.answer(false).await
    };
    let reply = trickle.await.unwrap();
    assert_eq!((reply.status, reason(&reply)), (408, "TooSlow".to_owned()));
}

#[tokio::test]
async fn past_the_bound_of_connections_new_ones_are_closed_and_old_ones_go_on() {
    let hub = Hub::with(|config| {
        config.max_connections = 5;
        config.wait = Duration::from_millis(50);
    })
    .await;
    let mut agent = hub.agent().await;
    agent.poll().await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(tokio::net::TcpStream::connect(("127.0.0.1", hub.port)).await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(Link::open(&agent.hub, agent.config()).await.is_err());
    agent.poll().await.unwrap();
    drop(idle);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(Link::open(&agent.hub, agent.config()).await.is_ok());
}

#[tokio::test]
async fn an_empty_and_a_strange_join_are_malformed() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    let config = settings(Trust::Authorities(agent.keys.authorities.clone()), None);
    let mut link = Link::open(&agent.hub, config).await.unwrap();
    let token = hub.token(1).await;
    let strange = format!(
        r#"{{"tokenId":"{}","secret":"{}","csr":"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n","name":"x"}}"#,
        token.id, token.secret
    );
    assert_eq!(link.post("/agent/v1/join", b"").await.unwrap().status, 400);
    assert_eq!(link.post("/agent/v1/join", b"{}").await.unwrap().status, 400);
    let reply = link.post("/agent/v1/join", strange.as_bytes()).await.unwrap();
    assert_eq!((reply.status, reason(&reply)), (400, "BadCertificateRequest".to_owned()));
    assert_eq!(hub.store.join_token(&token.id).await.unwrap().unwrap().uses_left, 1);
}

#[tokio::test]
async fn one_address_without_a_certificate_leaves_room_for_others() {
    let hub = Hub::with(|config| {
        config.max_connections = 400;
        config.wait = Duration::from_millis(50);
    })
    .await;
    let mut agent = hub.agent().await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(connect_from([127, 0, 0, 2], hub.port).await);
    }
    agent.poll().await.unwrap();
    let open = hub.metrics.connections.get_or_create(&kedge_hub::metrics::At::Agents.into()).get();
    assert!(open <= 400 / 8 + 2, "{open} are open");
}

#[tokio::test]
async fn thousands_of_idle_connections_hold_up_nobody_and_go_after_ten_seconds() {
    let hub = Hub::with(|config| {
        config.max_connections = 3000;
        config.wait = Duration::from_millis(50);
    })
    .await;
    let mut agent = hub.agent().await;
    let mut idle = Vec::new();
    for _ in 0..2000 {
        idle.push(connect_from([127, 0, 0, 2], hub.port).await);
    }
    let begun = Instant::now();
    agent.poll().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(3));
    let connections = || hub.metrics.connections.get_or_create(&kedge_hub::metrics::At::Agents.into()).get();
    while connections() > 10 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} are open", connections());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    agent.poll().await.unwrap();
}
