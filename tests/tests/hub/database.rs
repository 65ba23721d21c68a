//! A database that goes away, a disk that is full, kills while documents arrive, a backup that is older than the fleet:
//! nothing that was acknowledged or issued is lost.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use http::Method;
use kedge_model::wire::JoinToken;
use kedge_status::Condition;
use kedge_tests::lab::postgres::{Fsync, Postgres};
use kedge_tests::lab::{await_some, await_true, skip};
use kedge_tests::world::cluster::{Cluster, report, within};
use kedge_tests::world::{Database, SOON, World};

use crate::each_database::on_each_database;
use kedge_tests::lab::chance::{Chance, rounds};

on_each_database![
    a_kill_while_documents_arrive_loses_none_that_was_acknowledged,
    a_restored_hub_never_issues_a_generation_again,
];

/// How long the database stays away.
const AWAY: Duration = Duration::from_secs(30);

#[test]
fn a_postgresql_that_is_away_for_thirty_seconds_costs_nothing_but_time() {
    let Some(mut postgres) = Postgres::start(Fsync::On) else { return };
    let url = postgres.create_database();
    let Some(world) = World::start_with(Database::Sqlite, |settings, _| settings.database = Some(url)) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    drone.set_all(&Condition::Converging);
    drone.send().unwrap();

    postgres.stop();
    let began = Instant::now();
    drone.set_all(&Condition::Converged);
    let mut asked = 0;
    while began.elapsed() < AWAY {
        let asking = Instant::now();
        let answer = world.api.ask(Method::GET, "/api/v1/environments", None, &[]);
        assert_eq!((answer.status, answer.retry_after().is_some()), (503, true), "{}", answer.text);
        assert!(asking.elapsed() < Duration::from_secs(15), "{:?} for an answer", asking.elapsed());
        let refused = drone.send().unwrap_err();
        assert_eq!(refused.status(), Some(503), "{refused}");
        if asked == 0 {
            world.sample.change_drones("Meanwhile");
        }
        asked += 1;
    }
    assert_eq!(world.api.status_of("/healthz"), 200);
    let ready = world.api.ask(http::Method::GET, "/readyz", None, &[]);
    assert_eq!((ready.status, ready.text.as_str()), (503, "no\n"), "a stranger learns nothing more");
    postgres.start_again();

    await_true("the hub answers again", SOON, || {
        world.api.ask(Method::GET, "/api/v1/environments", None, &[]).status == 200
    });
    await_true("the document is taken", SOON, || drone.send().is_ok());
    assert_eq!(world.count("hello-functional-test", "Converged"), 1);
    drone.await_generation(2);
    assert_eq!(world.api.status_of("/readyz"), 200);
}

/// Clusters that send documents until told to stop; each acknowledged message by the cluster's name.
fn senders(token: &JoinToken, count: usize, work: impl FnOnce()) -> BTreeMap<String, u64> {
    let stop = AtomicBool::new(false);
    let mut clusters: Vec<Cluster> =
        (0..count).map(|number| Cluster::join(token, &format!("drone-{number}"))).collect();
    clusters.iter_mut().for_each(|cluster| cluster.await_generation(1));
    thread::scope(|scope| {
        let sending: Vec<_> = clusters
            .into_iter()
            .map(|mut cluster| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut acknowledged = 0;
                    for number in 1.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let condition =
                            Condition::Failed { reason: "Test".into(), message: format!("number {number}") };
                        cluster.set("hello-functional-test", report(condition, None, None, cluster.agent.generation));
                        if cluster.document.needs_new_epoch() {
                            let epoch = cluster.document.epoch() + 1;
                            let nonce = kedge_status::Nonce([u8::try_from(epoch % 256).unwrap(); 16]);
                            cluster.document =
                                cluster.document.next_epoch(epoch, nonce, kedge_tests::world::cluster::now()).unwrap();
                        }
                        match cluster.send() {
                            Ok(()) => acknowledged = number,
                            Err(_) => {
                                cluster.agent.disconnect();
                                thread::sleep(Duration::from_millis(20));
                            }
                        }
                    }
                    (cluster.agent.membership.name.clone(), acknowledged)
                })
            })
            .collect();
        work();
        stop.store(true, Ordering::Relaxed);
        sending.into_iter().map(|sender| sender.join().unwrap()).collect()
    })
}

fn a_kill_while_documents_arrive_loses_none_that_was_acknowledged(database: Database) {
    let Some(mut world) = World::start(database) else { return };
    world.await_first_states();
    let token = world.token("drone", &["--uses", "4"]);
    let mut chance = Chance::seeded(7);
    let hub = &mut world.hub;
    let acknowledged = senders(&token, 4, || {
        for _ in 0..rounds(5) {
            thread::sleep(Duration::from_millis(150 + chance.below(500)));
            hub.kill();
            hub.start_again();
        }
        thread::sleep(Duration::from_millis(300));
    });
    assert!(acknowledged.values().all(|number| *number > 0), "{acknowledged:?}");
    for (name, number) in acknowledged {
        let shown = world.api.get(&format!("/api/v1/clusters/{name}"));
        let message = shown["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
        let stored: u64 = message.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default();
        assert!(stored >= number, "{name}: {number} was acknowledged and {message:?} is stored: {shown}");
    }
    assert_eq!(world.count("hello-functional-test", "Failed"), 4);
}

/// A small file system of its own, so that a full disk is only this hub's.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, megabytes: u32) -> Option<SmallDisk> {
        fs::create_dir_all(at).unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(0o700)).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=0700"), "tmpfs"])
            .arg(at)
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            skip("a file system of a few MB can't be mounted here (it takes root)");
            return None;
        }
        Some(SmallDisk(at.to_owned()))
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let _ = Command::new("dd")
            .args(["if=/dev/zero", "bs=4k"])
            .arg(format!("of={}", self.0.join("filler").display()))
            .output();
    }

    fn clear(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: the hub may still have files open when a test fails.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_and_the_hub_recovers_when_there_is_space() {
    let Some(mut world) = World::prepare(Database::Sqlite, |_, _| {}) else { return };
    let Some(disk) = SmallDisk::mount(&world.hub.places().data, 32) else { return };
    world.hub.start_again();
    world.meet();
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    let head = world.git.head("gitops", "dev");

    disk.fill();
    drone.set_all(&Condition::Converged);
    let refused = await_some("a document can't be stored", SOON, || {
        // Some may still fit into pages that are there.
        drone.document = drone
            .document
            .next_epoch(drone.document.epoch() + 1, kedge_status::Nonce([3; 16]), kedge_tests::world::cluster::now())
            .unwrap();
        drone.send().err()
    });
    assert_eq!(refused.status(), Some(503), "{refused}");
    world.sample.change_drones("No room");
    await_true("the log says that the disk is full", SOON, || {
        let log = world.hub.log().to_lowercase();
        log.contains("no space left") || log.contains("disk is full") || log.contains("full")
    });
    assert!(world.hub.is_running(), "it goes on");
    assert_eq!(world.api.status_of("/healthz"), 200);
    assert_eq!(world.api.status_of("/api/v1/environments"), 200, "reading needs no space");
    drone.look().ok();

    disk.clear();
    await_true("the document is taken", SOON, || drone.send().is_ok());
    let mut patience = drone;
    patience.await_generation(2);
    world.await_commit("dev", head.as_deref());
    let published = world.sample.published("dev");
    assert!(world.rendered("dev").iter().all(|(path, bytes)| published.get(path) == Some(bytes)));
    world.hub.stop();
    drop(disk);
}

fn a_restored_hub_never_issues_a_generation_again(database: Database) {
    let Some(mut world) = World::start(database) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    drone.converge();

    // While it runs.
    let file = world.folder.path().join("backup.kedge");
    let made = world.hub.command("backup").arg("--output").arg(&file).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0, "it holds keys");

    // The fleet goes on, and then the hub's disk is gone.
    for (generation, name) in [(2, "Two"), (3, "Three")] {
        world.sample.change_drones(name);
        drone.await_generation(generation);
    }
    let third = drone.agent.state_envelope.clone().unwrap();
    world.hub.stop();
    let data = world.hub.places().data.clone();
    fs::rename(&data, data.with_extension("lost")).unwrap();
    let refused = world.hub.command("restore").arg(&file).output().unwrap();
    if database == Database::Postgres {
        assert!(!refused.status.success(), "a database that isn't empty is not overwritten");
        world.settings.database = Some(kedge_tests::lab::postgres::shared_database().unwrap());
        let settings = world.settings.clone();
        world.hub.configure(|places| settings.text(places));
        let restored = world.hub.command("restore").arg(&file).output().unwrap();
        assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    } else {
        assert!(refused.status.success(), "{}", String::from_utf8_lossy(&refused.stderr));
        let again = world.hub.command("restore").arg(&file).output().unwrap();
        assert!(!again.status.success(), "what is there is not overwritten");
    }
    world.hub.start_again();

    // The same identity and keys; the agent is ahead, gives its proof, and everything from here on is above it.
    drone.agent.disconnect();
    let answer = await_some("the hub asks for a proof, or is past it", SOON, || {
        drone.look().ok().filter(|answer| answer.want_proof || answer.state.is_some())
    });
    if answer.want_proof {
        within(drone.agent.prove(&third)).unwrap();
    }
    drone.await_generation(4);
    world.sample.change_drones("Four");
    drone.await_generation(5);
    let shown = world.api.state("dev", "drone", None);
    assert!(shown["generation"].as_u64().unwrap() >= 5, "{shown}");
    assert_eq!(world.count("hello-functional-test", "Converged") + world.count("hello-functional-test", "Unknown"), 1);
}
