//! Clients that are slow, silent, many or senseless, on both listeners: the hub goes on answering the others.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use kedge_tests::lab::await_true;
use kedge_tests::world::{Database, World, platform_token};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Idle connections of one client, on each listener.
const IDLE: usize = 2000;

/// An answer of the hub under strain.
const AT_ONCE: Duration = Duration::from_secs(5);

fn raise_file_limit() {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
}

/// From another address of the loopback, as another host would.
fn connect_from(own: [u8; 4], address: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((own, 0).into())?;
        socket.connect(address).await?.into_std()
    });
    let stream = connected.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Connections to the API's listener that are open now.
fn open_connections(world: &World) -> f64 {
    let text = world.api.ask(http::Method::GET, "/metrics", None, &[]).text;
    let line = text.lines().find(|line| line.starts_with("kedge_hub_connections{listener=\"api\"}"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

fn still_answers(world: &World) {
    let began = Instant::now();
    assert_eq!(world.api.status_of("/readyz"), 200);
    assert_eq!(world.api.status_of("/api/v1/whoami"), 200);
    let mut drone = world.join("drone", &format!("drone-{}", began.elapsed().as_nanos()));
    drone.look().unwrap();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

#[test]
fn thousands_of_idle_connections_on_both_listeners_keep_nobody_out() {
    let Some(mut world) = World::prepare(Database::Sqlite, |_, _| {}) else { return };
    raise_file_limit();
    world.hub.start_again();
    world.meet();
    world.await_first_states();
    let (api, agents) = (world.hub.places().api, world.hub.places().agents);
    let open = |address: SocketAddr| (0..IDLE).map(move |_| connect_from([127, 0, 0, 2], address));
    let held: Vec<TcpStream> = open(api).chain(open(agents)).collect();
    still_answers(&world);
    drop(held);
    still_answers(&world);
}

#[test]
fn a_client_that_takes_no_answers_is_cut() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    let before = open_connections(&world);
    let token = platform_token(&world.hub);
    // Answers of some 100 MB, and nobody reads them.
    let ask =
        format!("GET /api/v1/openapi.json HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n").repeat(400);
    let mut deaf: Vec<TcpStream> = Vec::new();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(world.hub.places().api).unwrap();
        stream.write_all(ask.as_bytes()).unwrap();
        deaf.push(stream);
    }
    await_true("they are served", AT_ONCE, || open_connections(&world) >= before + 5.0);
    await_true("they are cut", Duration::from_secs(60), || open_connections(&world) <= before);
}

#[test]
fn senseless_bytes_and_headers_are_refused_and_cost_nothing() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let (api, agents) = (world.hub.places().api, world.hub.places().agents);
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(5000));
    let senseless: [&[u8]; 7] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost x\r\n\r\n",
        b"POST /hooks/git HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in senseless {
        for address in [api, agents] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            // The hub may hang up while we still write: that is an answer too.
            let _ = stream.write_all(bytes);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let text = String::from_utf8_lossy(&answer);
            assert!(!text.starts_with("HTTP/1.1 2"), "{text}");
        }
    }
    still_answers(&world);
}

#[test]
fn a_client_that_never_finishes_is_cut_and_delays_nobody() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let slow = |address: SocketAddr, bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(bytes).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(45))).unwrap();
        stream
    };
    let (api, agents) = (world.hub.places().api, world.hub.places().agents);
    let head = slow(api, b"GET /api/v1/clusters HTTP/1.1\r\nhost: x\r\nx-half: ");
    let content = slow(api, b"POST /hooks/git HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{");
    let hello = slow(agents, b"\x16\x03\x01");
    still_answers(&world);
    for mut stream in [head, content, hello] {
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        assert!(ended.is_ok() || !answer.is_empty(), "still open: {ended:?}");
    }
}
