//! Several pods of one cluster: one works, and another takes over with the same identity, ledger and inventory.

use std::time::{Duration, Instant};

use kedge_tests::world::harbour::manifests::{Manifests, config_map};
use kedge_tests::world::harbour::{CHANGED_WITHIN, Harbour};

/// The Lease's duration, and some for a busy machine.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(25);

/// Who holds the Lease.
fn holder(harbour: &Harbour) -> Option<String> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", harbour.own_namespace());
    let leases = harbour.kubernetes.get(&path)?;
    let holder = leases["items"][0]["spec"]["holderIdentity"].as_str()?;
    (!holder.is_empty()).then(|| holder.to_owned())
}

pub fn await_holder(harbour: &Harbour, number: usize) {
    let name = harbour.agents[number].name();
    harbour.await_so(&format!("{name} holds the Lease"), TAKEN_OVER_WITHIN, |harbour| {
        holder(harbour).is_some_and(|holder| holder.contains(name))
    });
}

/// One member, whoever speaks for it.
fn clusters(harbour: &Harbour) -> usize {
    harbour.world.api.list("/api/v1/clusters?environment=dev").len()
}

#[test]
fn a_killed_leader_is_replaced_by_one_that_knows_all_it_knew() {
    let manifests = Manifests::web("1").with(&config_map("old", "key", "value"));
    let Some(mut harbour) = Harbour::start(&[("shop", manifests)]) else { return };
    await_holder(&harbour, 0);
    harbour.add_agent();
    harbour.await_converged("shop");
    let before = harbour.seen("shop").unwrap();

    harbour.agents[0].kill();
    let began = Instant::now();
    await_holder(&harbour, 1);
    eprintln!("the other took over after {:?}", began.elapsed());
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    assert_eq!(harbour.version("shop", "web").as_deref(), Some("2"));
    assert!(
        !harbour.kubernetes.exists(&harbour.path("shop", "/api/v1", "configmaps", "old")),
        "the inventory was known"
    );
    assert_eq!(clusters(&harbour), 1, "it didn't join again");
    assert_eq!(before.condition, "Converged");

    // The old one comes back on another node: it stands by, and knows all when its turn comes.
    harbour.agents[0].forget();
    harbour.agents[0].start();
    harbour.agents[1].stop();
    let began = Instant::now();
    await_holder(&harbour, 0);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "a Lease that was given back is taken at once: {:?}",
        began.elapsed()
    );
    harbour.push("shop", &Manifests::web("3"));
    harbour.await_converged("shop");
    assert_eq!((harbour.version("shop", "web").as_deref(), clusters(&harbour)), (Some("3"), 1));
}

#[test]
fn a_leader_that_hung_writes_nothing_when_it_wakes() {
    let Some(mut harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    harbour.await_converged("shop");
    harbour.add_agent();
    harbour.agents[0].freeze();
    await_holder(&harbour, 1);
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    harbour.agents[0].thaw();
    harbour.push("shop", &Manifests::web("3"));
    harbour.await_converged("shop");
    assert!(holder(&harbour).unwrap().contains(harbour.agents[1].name()));
    assert!(harbour.agents[0].is_running(), "it stands by");
    harbour.agents[1].stop();
    await_holder(&harbour, 0);
    harbour.kubectl("shop", &["delete", "deployment", "web", "--wait=false"]);
    harbour.await_so("it repairs", CHANGED_WITHIN, |harbour| harbour.version("shop", "web").as_deref() == Some("3"));
}
