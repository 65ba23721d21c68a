//! kill -9 of the agent at every step of a transaction: before each write that reaches the API server, and after it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use kedge_tests::lab::kubernetes::{Request, Verdict};
use kedge_tests::world::harbour::Harbour;
use kedge_tests::world::harbour::manifests::{Manifests, config_map};

/// A transaction has fewer writes; more would be a loop.
const MOST: u32 = 60;

/// The n-th write comes within this, or there is none.
const COMES_WITHIN: Duration = Duration::from_secs(15);

/// Everything but the Lease, which is renewed all the time.
fn is_step(request: &Request) -> bool {
    request.is_write() && !request.path.contains("/leases") && !request.path.contains("dryRun=All")
}

/// Two contents that differ in everything that a transaction can do: change, make and prune.
fn content(round: u32) -> Manifests {
    let other = if round.is_multiple_of(2) { "even" } else { "odd" };
    Manifests::web(&round.to_string()).with(&config_map(other, "round", &round.to_string())).with(&config_map(
        "always",
        "round",
        &round.to_string(),
    ))
}

/// Upgrades again and again, each time with a kill at the next of this share of the steps.
fn upgrades_with_kills(first: u32, stride: usize, hold: fn() -> Verdict) {
    let Some(mut harbour) = Harbour::start(&[("shop", content(0))]) else { return };
    harbour.await_converged("shop");
    let mut killed = 0;
    for (round, step) in (first..MOST).step_by(stride).enumerate() {
        let round = u32::try_from(round).unwrap() + 1;
        let (reached, comes) = mpsc::channel();
        let counted = AtomicU32::new(0);
        harbour.proxy.judge(move |request| {
            if is_step(request) && counted.fetch_add(1, Ordering::SeqCst) == step {
                // The test may be over.
                let _ = reached.send(request.path.clone());
                return hold();
            }
            Verdict::Pass
        });
        harbour.push("shop", &content(round));
        let reached = comes.recv_timeout(COMES_WITHIN).ok();
        if reached.is_some() {
            harbour.agents[0].kill();
            harbour.proxy.pass_all();
            harbour.agents[0].start();
            killed += 1;
        }
        harbour.proxy.pass_all();
        harbour.await_converged("shop");
        let exists = |name: &str| harbour.kubernetes.exists(&harbour.path("shop", "/api/v1", "configmaps", name));
        let (wanted, gone) = if round.is_multiple_of(2) { ("even", "odd") } else { ("odd", "even") };
        let at = format!("killed at step {step}: {reached:?}");
        assert_eq!(harbour.version("shop", "web"), Some(round.to_string()), "{at}");
        assert!(exists("always") && exists(wanted) && !exists(gone), "{at}");
        if reached.is_none() {
            break;
        }
    }
    eprintln!("{killed} kills");
    assert!(killed > 0, "no step was reached");
}

#[test]
fn killed_before_any_first_or_later_write_it_ends_as_if_it_had_not_been() {
    upgrades_with_kills(0, 2, || Verdict::HoldBefore);
}

#[test]
fn killed_before_any_second_or_later_write_it_ends_as_if_it_had_not_been() {
    upgrades_with_kills(1, 2, || Verdict::HoldBefore);
}

#[test]
fn killed_after_a_write_that_it_was_not_told_of_it_ends_as_if_it_had_not_been() {
    upgrades_with_kills(0, 2, || Verdict::HoldAfter);
}
