//! An API server that is away, slow, or asks to wait; watches that expire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use kedge_tests::lab::kubernetes::{Kubernetes, Verdict};
use kedge_tests::world::harbour::manifests::Manifests;
use kedge_tests::world::harbour::{CHANGED_WITHIN, Harbour, Terms};
use nix::sys::signal::Signal;

const MINUTE: Duration = Duration::from_secs(60);

const EXPIRED: &str = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}";

#[test]
fn a_minute_without_the_api_server_delays_a_change_and_breaks_nothing() {
    let Some(kubernetes) = Kubernetes::start() else { return };
    let targets = [("shop", Manifests::web("1"))];
    // The controllers too were away: they look again after gaps that have grown.
    let terms = Terms::default().timeout("2m");
    let Some(mut harbour) = Harbour::prepare(kubernetes, &terms, &targets, |_, _| {}) else { return };
    harbour.add_agent();
    harbour.await_converged("shop");
    harbour.kubernetes.control_plane().stop_api_server(Signal::SIGKILL);
    harbour.push("shop", &Manifests::web("2"));
    thread::sleep(MINUTE);
    assert!(harbour.agents[0].is_running());
    harbour.kubernetes.control_plane().start_api_server();
    harbour.await_version("shop", "web", "2");
    harbour.await_converged("shop");
    // Its watches had expired (410): what happens now is seen all the same.
    harbour.kubectl("shop", &["delete", "deployment", "web", "--wait=false"]);
    harbour.await_so("drift is seen and repaired", CHANGED_WITHIN, |harbour| {
        harbour.deployment("shop", "web").is_some_and(|web| web["metadata"]["deletionTimestamp"].is_null())
    });
    harbour.await_converged("shop");
}

#[test]
fn expired_watches_are_begun_again_and_nothing_is_missed() {
    let Some(harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    harbour.await_converged("shop");
    let refused = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&refused);
    harbour.proxy.judge(move |request| {
        match request.is_watch()
            && !request.path.contains("sendInitialEvents")
            && count.fetch_add(1, Ordering::Relaxed) < 3
        {
            true => Verdict::Answer(410, None, EXPIRED.to_owned()),
            false => Verdict::Pass,
        }
    });
    harbour.proxy.cut();
    // Nobody watches at this moment.
    harbour.kubectl("shop", &["delete", "deployment", "web", "--wait=false"]);
    harbour.proxy.mend();
    harbour
        .await_so("what was missed is repaired", CHANGED_WITHIN, |harbour| harbour.deployment("shop", "web").is_some());
    assert!(refused.load(Ordering::Relaxed) > 0, "no watch was begun again");
    harbour.await_converged("shop");
}

#[test]
fn an_api_server_that_asks_to_wait_or_answers_slowly_is_waited_for() {
    let Some(harbour) = Harbour::start_with(&Terms::default().timeout("60s"), &[("shop", Manifests::web("1"))]) else {
        return;
    };
    harbour.await_converged("shop");
    let counted = AtomicU32::new(0);
    harbour.proxy.judge(move |request| {
        if !request.changes_objects() {
            return Verdict::Pass;
        }
        match counted.fetch_add(1, Ordering::Relaxed) % 5 {
            0 => Verdict::Answer(429, Some(1), "{}".to_owned()),
            1 => Verdict::Answer(
                500,
                None,
                "{\"kind\":\"Status\",\"message\":\"etcdserver: leader changed\",\"code\":500}".to_owned(),
            ),
            2 => Verdict::Break,
            3 => Verdict::Answer(503, None, "{}".to_owned()),
            _ => Verdict::Pass,
        }
    });
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    assert_eq!(harbour.version("shop", "web").as_deref(), Some("2"));
    harbour.proxy.judge(|request| match request.is_watch() {
        true => Verdict::Pass,
        false => Verdict::Delay(Duration::from_millis(1500)),
    });
    harbour.push("shop", &Manifests::web("3"));
    harbour.await_converged("shop");
    assert_eq!(harbour.version("shop", "web").as_deref(), Some("3"));
}
