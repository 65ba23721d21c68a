//! One agent that sends or takes slowly, on many connections and every route, while a thousand others poll: it is held to its
//! share and then ended, and nobody waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_tests::agent::Agent;
use kedge_tests::agent::crowd::Crowd;
use kedge_tests::agent::link::Link;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::hub::{Hub, drones, entry};

const POLLERS: usize = 1000;
/// Polls that are under way at one time, on the two cores that the hub has too.
const AT_ONCE: usize = 64;
/// A poll of a busy test machine; one that has to wait for a slow body takes fifteen seconds and is refused.
const FAST: Duration = Duration::from_secs(5);
/// By then a body that doesn't come is given up.
const ENDED_WITHIN: Duration = Duration::from_secs(20);

/// Every route with a body, and the most that it takes.
const ROUTES: [(&str, usize); 5] = [
    ("proof", 8 * 1024 * 1024),
    ("status", 384 * 1024),
    ("site", 512 * 1024),
    ("poll", 16 * 1024),
    ("renew", 8 * 1024),
];

/// Announces the largest body, sends little of it, and goes on byte by byte until it is ended. How that was said, if it was.
async fn send_slowly(agent: &Agent, route: &str, size: usize) -> Option<u16> {
    let mut link = Link::open(&agent.hub, agent.config()).await.ok()?;
    let head = format!("POST /agent/v1/{route} HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n{{");
    link.write(head.as_bytes()).await.ok()?;
    let begun = Instant::now();
    while link.write(b" ").await.is_ok() && begun.elapsed() < Duration::from_secs(12) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Some(link.answer(false).await.ok()?.status)
}

/// Lets all poll once; how long the slowest took.
async fn poll_once(agents: Vec<Agent>) -> (Vec<Agent>, Duration) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut polls = JoinSet::new();
    for mut agent in agents {
        let room = Arc::clone(&room);
        polls.spawn(async move {
            let _place = room.acquire_owned().await;
            let begun = Instant::now();
            agent.poll().await.unwrap();
            (agent, begun.elapsed())
        });
    }
    let done = polls.join_all().await;
    let slowest = done.iter().map(|(_, took)| *took).max().unwrap_or_default();
    (done.into_iter().map(|(agent, _)| agent).collect(), slowest)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_senders_of_one_agent_delay_none_of_a_thousand_polls() {
    let hub = Hub::with(|config| config.max_connections = 5000).await;
    let mut agents = Crowd::join(&hub.token(POLLERS as u64).await, POLLERS).await.unwrap();
    // Answered at once: what is measured is how long the hub takes to hear.
    agents.iter_mut().for_each(|agent| agent.wait = Some(0));
    let mut slow = hub.agent().await;
    slow.wait = Some(0);
    let slow = Arc::new(slow);
    for (connections, routes) in [(8, &ROUTES[..1]), (64, &ROUTES[..]), (400, &ROUTES[..])] {
        let mut senders = JoinSet::new();
        for number in 0..connections {
            let (slow, (route, size)) = (Arc::clone(&slow), routes[number % routes.len()]);
            senders.spawn(async move { send_slowly(&slow, route, size).await });
        }
        let begun = Instant::now();
        let mut ended = Vec::new();
        while begun.elapsed() < Duration::from_secs(2) || senders.len() > connections / 2 {
            let (same, took) = poll_once(agents).await;
            agents = same;
            assert!(took < FAST, "{connections} slow senders: a poll took {took:?}");
            while let Some(sender) = senders.try_join_next() {
                ended.push(sender.unwrap());
            }
        }
        let rest = tokio::time::timeout(ENDED_WITHIN, senders.join_all()).await;
        ended.extend(rest.unwrap_or_else(|_| panic!("{connections} slow senders aren't ended")));
        assert_eq!(ended.len(), connections);
        assert!(ended.iter().all(|said| matches!(said, None | Some(408 | 429))), "{ended:?}");
        assert!(ended.contains(&Some(408)), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_slow_senders_still_polls_itself() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    agent.wait = Some(0);
    let mut senders = JoinSet::new();
    for number in 0..40 {
        let (hub, config) = (agent.hub.clone(), agent.config());
        let (route, size) = ROUTES[number % 3];
        senders.spawn(async move {
            let mut link = Link::open(&hub, config).await.unwrap();
            let head = format!("POST /agent/v1/{route} HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n{{");
            link.write(head.as_bytes()).await.unwrap();
            link
        });
    }
    let _held = senders.join_all().await;
    let begun = Instant::now();
    agent.poll().await.unwrap();
    assert!(begun.elapsed() < FAST, "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn downloads_that_one_agent_leaves_standing_are_its_share_alone() {
    let hub = Hub::start().await;
    let (platform, workload) = (hub.put(b"platform"), hub.put(&vec![7; 20_000_000]));
    hub.issue(&drones(), 1, vec![entry("app", &platform, &workload, Vec::new())]).await;
    let (slow, mut other) = (hub.agent().await, Agent::join(&hub.token(1).await, "drone-2").await.unwrap());
    let ask = format!("GET /agent/v1/blobs/{} HTTP/1.1\r\nhost: x\r\n\r\n", workload.digest);
    let mut standing = Vec::new();
    for _ in 0..32 {
        let mut link = Link::open(&slow.hub, slow.config()).await.unwrap();
        link.write(ask.as_bytes()).await.unwrap();
        assert_eq!(link.head().await.unwrap().status, 200);
        standing.push(link);
    }
    let mut more = Link::open(&slow.hub, slow.config()).await.unwrap();
    more.write(ask.as_bytes()).await.unwrap();
    let refused = more.answer(false).await.unwrap();
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(other.fetch(&workload.digest, 0).await.unwrap().body.len(), 20_000_000);
    drop(standing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_agent_leave_room_for_others() {
    let hub = Hub::with(|config| config.max_connections = 300).await;
    let (greedy, mut other) = (hub.agent().await, Agent::join(&hub.token(1).await, "drone-2").await.unwrap());
    let mut held = Vec::new();
    for _ in 0..290 {
        // Past its share they are closed, at the latest with the first request.
        let Ok(mut link) = Link::open(&greedy.hub, greedy.config()).await else { continue };
        if link.post("/agent/v1/status", b"{}").await.is_ok() {
            held.push(link);
        }
    }
    assert!((100..=128).contains(&held.len()), "{}", held.len());
    other.wait = Some(0);
    other.poll().await.unwrap();
}
