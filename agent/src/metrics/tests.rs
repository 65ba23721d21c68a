//! The text as a scraper reads it, the listener with real sockets, and the agent's part of `docs/metrics.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use kedge_model::wire::Timestamp;

use super::request::{self, Asked, MAX_HEAD};
use super::text::{FAMILIES, Kind, Room, Seen, write};
use super::*;
use crate::clock::Time;
use crate::config::Endpoint;
use crate::paths::Paths;

fn seen() -> Seen {
    let mut seen =
        Seen { certificate_ends: Some(Timestamp(100_000)), disk: Some(Room { free: 5, size: 10 }), ..Seen::default() };
    seen.overview.hub.last_contact = Some(Time(Timestamp(30_000)));
    seen
}

#[test]
fn every_family_is_in_the_text_in_the_form_of_openmetrics() {
    let text = write(&seen(), Timestamp(90_000));
    for family in FAMILIES {
        let series = format!("\n{}{}", family.name, family.kind.ending());
        assert!(text.contains(&series), "{series} isn't in\n{text}");
        assert!(!family.help.contains('\n'));
        assert!(family.unit.is_empty() || family.name.ends_with(family.unit), "{}", family.name);
    }
    for line in [
        "kedge_agent_contact_age_seconds 60",
        "kedge_agent_certificate_left_seconds 10",
        "kedge_agent_disk_free_bytes 5",
        "kedge_agent_assignments{condition=\"converged\"} 0",
        "kedge_agent_joined 0",
        "# UNIT kedge_agent_downloaded_bytes bytes",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} isn't in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn only_places_of_this_host_are_taken() {
    assert_eq!(Endpoint::of("127.0.0.1:7481"), Some(Endpoint::Tcp("127.0.0.1:7481".parse().unwrap())));
    assert!(Endpoint::of("[::1]:7481").is_some());
    assert_eq!(Endpoint::of("unix:/run/x.sock"), Some(Endpoint::Unix("/run/x.sock".into())));
    for wrong in ["0.0.0.0:7481", "10.0.0.1:7481", "localhost:7481", "unix:x.sock", "7481", ""] {
        assert_eq!(Endpoint::of(wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn a_socket_is_served_beside_one_that_hangs_and_after_one_that_was_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let task = tokio::spawn(serve(Endpoint::Unix(path.clone()), Paths::below(folder.path())));
    let asked = tokio::task::spawn_blocking(move || {
        let connect = || loop {
            match UnixStream::connect(&path) {
                Ok(stream) => return stream,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let gone = connect();
        drop(gone);
        let ask = |line: &str| {
            let mut stream = connect();
            write!(stream, "{line}\r\nHost: x\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        [ask("GET /metrics HTTP/1.1"), ask("GET / HTTP/1.1"), ask("POST /metrics HTTP/1.1"), ask("hello")]
    });
    let [metrics, elsewhere, posted, odd] = asked.await.unwrap();
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"), "{metrics}");
    assert!(metrics.contains("kedge_agent_joined 0\n") && metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
    assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
    assert!(odd.starts_with("HTTP/1.1 400"), "{odd}");
    task.abort();
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    std::fs::write(&path, "x").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let served = runtime.block_on(async {
        let serve = serve(Endpoint::Unix(path.clone()), Paths::below(folder.path()));
        tokio::time::timeout(Duration::from_millis(50), serve).await
    });
    assert!(served.is_err(), "it tries again");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
}

/// `KEDGE_UPDATE=1` writes the agent's part anew.
#[test]
fn the_page_of_metrics_is_what_the_code_has() {
    const BEGIN: &str = "<!-- agent: made by a test of kedge-agent -->\n";
    const END: &str = "<!-- end of agent -->\n";
    let mut table = String::from("| metric | type | unit | label | what it says |\n|---|---|---|---|---|\n");
    for family in FAMILIES {
        let kind = match family.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Info => "info",
        };
        let label = if family.label.is_empty() { String::new() } else { format!("`{}`", family.label) };
        let name = format!("{}{}", family.name, family.kind.ending());
        table.push_str(&format!("| `{name}` | {kind} | {} | {label} | {} |\n", family.unit, family.help));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("KEDGE_UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
        return;
    }
    assert!(page == made, "docs/metrics.md differs from the code: run this test with KEDGE_UPDATE=1");
}

proptest::proptest! {
    #[test]
    fn no_head_makes_the_reader_panic_or_grow(head in proptest::collection::vec(proptest::num::u8::ANY, 0..64), line in "[A-Z]{0,5} ?/[a-z?]{0,9} ?HTTP/1.1") {
        _ = request::read(&head);
        let whole = format!("{line}\r\n\r\n");
        proptest::prop_assert!(request::read(whole.as_bytes()).is_some());
        proptest::prop_assert_eq!(request::read(&vec![b'x'; MAX_HEAD + 1]), Some(Asked::NotHttp));
    }
}
