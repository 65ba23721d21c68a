//! The lab: each module starts one real part on loopback, on a port of its own and with its files in a temporary folder, and
//! stops it when dropped. A test that fails shows the log of every part it had. All of it is blocking: tests call it from
//! plain threads, never from inside a tokio runtime.

pub mod apt_repository;
pub mod artifact_server;
pub mod browser;
pub mod chance;
pub mod flux;
pub mod git;
pub mod git_server;
pub mod gitea;
pub mod host;
pub mod http;
pub mod hub;
pub mod image;
pub mod inbox;
pub mod kubernetes;
pub mod part;
pub mod pod_agent;
pub mod port;
pub mod postgres;
pub mod prometheus;
pub mod relay;
pub mod root_agent;
pub mod site;
pub mod user;

use std::thread;
use std::time::{Duration, Instant};

/// How often a condition that announces itself by nothing is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Asking a hub, Git or a cluster costs more than a look at a file.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Tells the runner that this test can't run here, and why; the test then returns.
pub fn skip(reason: &str) {
    println!("KEDGE-SKIP {}: {reason}", thread::current().name().unwrap_or("test"));
}

/// Looks again and again until there is an answer; after `within` the test fails with `what` it waited for.
pub fn await_some<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < within, "{what}: not after {within:?}");
        thread::sleep(LOOK_AGAIN);
    }
}

/// The same for a condition without a value.
pub fn await_true(what: &str, within: Duration, mut look: impl FnMut() -> bool) {
    await_some(what, within, || look().then_some(()));
}

/// Looks until it is so; after `within` the test fails with what is known then. For questions that cost more than a look at a file.
#[track_caller]
pub fn await_or_tell(what: &str, within: Duration, story: impl Fn() -> String, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while !look() {
        assert!(began.elapsed() <= within, "{what}: not after {within:?}\n{}", story());
        thread::sleep(ASK_AGAIN);
    }
}

/// It stays so for a while: what must not happen doesn't.
#[track_caller]
pub fn stays_or_tell(what: &str, during: Duration, story: impl Fn() -> String, mut look: impl FnMut() -> bool) {
    let began = Instant::now();
    while began.elapsed() < during {
        assert!(look(), "{what}: no longer after {:?}\n{}", began.elapsed(), story());
        thread::sleep(ASK_AGAIN);
    }
}
