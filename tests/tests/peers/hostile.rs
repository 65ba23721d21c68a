//! Others on the LAN: whom nothing is shared with, and who can't keep the site from its work.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use kedge_tests::world::cluster::{Cluster, block_on};
use kedge_tests::world::plant::LINE;
use kedge_tests::world::{Database, World};
use serde_json::Value;

use crate::hall::{Hall, name};
use crate::stranger::{Squatters, Stranger};

/// A message may take a minute, and it is looked every five seconds.
const CUT_OFF: Duration = Duration::from_secs(80);
/// Also on a busy machine; with every seat taken it was half a minute.
const SERVED: Duration = Duration::from_secs(20);
/// The uplink hears who left when it next carries.
const LEFT: Duration = Duration::from_secs(150);

fn join(world: &World, name: &str, more: &[&str]) -> Cluster {
    let mut cluster = Cluster::join(&world.token(LINE, more), name);
    cluster.await_generation(1);
    cluster
}

/// What an answer lists and gives, by kind.
fn kinds(answer: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    format!("{} {}", answer["have"], answer["give"])
}

#[test]
fn who_is_of_another_site_another_fleet_nobody_or_revoked_gets_nothing() {
    let Some(mut hall) = Hall::start(2) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1]);
    hall.site.enter_lan();
    let (world, to): (_, Vec<IpAddr>) = (&hall.plant.world, (0..2).map(|host| hall.site.address(host)).collect());
    let mut inside = join(world, "inside", &["--site", "hall-7"]);
    let mut elsewhere = join(world, "elsewhere", &["--site", "hall-8"]);
    let mut homeless = join(world, "homeless", &[]);
    let package = inside.packages().first().expect("it has one").digest;
    let blob = format!("/peer/v1/blobs/{package}");

    // The meter: one of the site and the stream gets it from either.
    let member = Stranger::member(&mut inside);
    for to in &to {
        hall.await_so("a member gets what is its own", Duration::from_secs(60), |_| {
            member.sync(*to).is_ok_and(|answer| kinds(&answer.body).contains("state"))
                && member.ask(*to, "GET", &blob, b"").is_ok_and(|answer| answer.status == 200)
        });
    }
    for other in [&mut elsewhere, &mut homeless] {
        let other = Stranger::member(other);
        for to in &to {
            let said = other.sync(*to).unwrap();
            let listed = kinds(&said.body);
            assert!(said.status == 200 && !listed.contains("state") && !listed.contains("status"), "{listed}");
            assert_eq!(other.ask(*to, "GET", &blob, b"").unwrap().status, 404);
        }
    }
    let Some(fleet) = World::start(Database::Sqlite) else { return };
    fleet.await_first_states();
    let foreign = Cluster::join(&fleet.token(LINE, &["--site", "hall-7"]), "foreign");
    let authorities = &inside.agent.keys.authorities;
    for to in &to {
        assert!(Stranger::foreign(authorities, &foreign).sync(*to).is_err(), "of another fleet");
        assert!(member.nobody().sync(*to).is_err(), "nobody");
    }

    // Its certificate is good for months.
    world.kedge.run(["cluster", "revoke", "inside"]);
    let took = hall.await_so("the revoked one gets nothing more", LEFT, |_| {
        to.iter().all(|to| {
            let content = member.ask(*to, "GET", &blob, b"");
            content.is_err() || content.is_ok_and(|answer| answer.status != 200)
        })
    });
    println!("the site knows after {took:?}");
    for to in &to {
        let listed = member.sync(*to).map(|answer| kinds(&answer.body)).unwrap_or_default();
        assert!(!listed.contains("state") && !listed.contains("status"), "{listed}");
    }
    assert!((0..2).all(|host| hall.is_converged(host)));
}

#[test]
fn who_trickles_never_ends_or_says_nothing_is_cut_off_and_others_are_served_meanwhile() {
    let Some(mut hall) = Hall::start(3) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1, 2]);
    hall.site.enter_lan();
    let to: Vec<IpAddr> = (0..3).map(|host| hall.site.address(host)).collect();
    let member = Stranger::member(&mut join(&hall.plant.world, "inside", &["--site", "hall-7"]));
    let memory: Vec<u64> = hall.plant.agents.iter_mut().map(|agent| agent.memory()).collect();

    // A body that never ends is refused at its bound.
    for to in &to {
        let sent = endless(&member, *to);
        assert!(sent < 8 << 20, "{sent} bytes were taken");
    }
    // Slow bytes on as many connections as one may have, and silence on more than there are seats.
    let began = Instant::now();
    let slow: Vec<_> = to.iter().flat_map(|to| std::iter::repeat_n(*to, 6)).map(|to| trickle(&member, to)).collect();
    let squatters = Squatters::start(to.clone(), 100);
    hall.plant.push_app("dev", "version 2");
    hall.await_text(&[0, 1, 2], "version 2");
    let served = began.elapsed();
    println!("all served after {served:?}");
    assert!(served < SERVED, "they were kept waiting by the slow ones: {served:?}");
    drop(squatters);
    for thread in slow {
        let lasted = thread.join().unwrap();
        assert!(lasted < CUT_OFF, "a slow one lasted {lasted:?}");
    }
    hall.await_converged(&[0, 1, 2]);
    for (agent, before) in hall.plant.agents.iter_mut().zip(memory) {
        let (name, after) = (agent.name().to_owned(), agent.memory());
        assert!(after < before + 8 * 1024, "{name} had {before} KiB and has {after}");
        println!("{name} had {before} KiB and has {after}");
    }
    hall.await_via(1, 0);
}

/// How many bytes of an endless message were taken.
fn endless(member: &Stranger, to: IpAddr) -> usize {
    let mut link = member.open(to).unwrap();
    let head = b"POST /peer/v1/sync HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    let piece = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    block_on(async {
        link.write(head).await.unwrap();
        let mut sent = 0;
        while sent < 64 << 20 {
            let written = tokio::time::timeout(CUT_OFF, link.write(&piece)).await;
            if !matches!(written, Ok(Ok(()))) {
                break;
            }
            sent += piece.len();
        }
        sent
    })
}

/// A byte of a message every second, until it is cut off; how long that took.
fn trickle(member: &Stranger, to: IpAddr) -> std::thread::JoinHandle<Duration> {
    let member = member.clone();
    std::thread::spawn(move || {
        let began = Instant::now();
        let Ok(mut link) = member.open(to) else { return began.elapsed() };
        block_on(async {
            let head = b"POST /peer/v1/sync HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n";
            let mut open = link.write(head).await.is_ok();
            while open && began.elapsed() < 2 * CUT_OFF {
                open = link.write(b" ").await.is_ok() && !link.closes_within(Duration::from_secs(1)).await;
            }
        });
        began.elapsed()
    })
}

#[test]
fn a_wrong_blob_under_a_right_digest_is_refused_and_said_and_comes_from_another() {
    let Some(mut hall) = Hall::start(3) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1, 2]);
    hall.plant.agents[2].stop();
    hall.plant.push_app("dev", "version 2");
    hall.await_text(&[0, 1], "version 2");
    // The disk of the one that carries has changed a bit of everything that the state names.
    let spoiled = spoil(&hall, 0);
    assert!(spoiled > 0, "it has packages");
    hall.plant.agents[1].stop();
    hall.plant.agents[2].start_again();
    hall.await_so("it says who lied", Duration::from_secs(60), |hall| {
        let peers = hall.peers(2)["peers"].as_array().cloned().unwrap_or_default();
        peers.iter().any(|peer| peer["name"] == name(0) && peer["lies"].to_string().contains("sha256:"))
    });
    assert_ne!(hall.plant.text_on(&name(2)).as_deref(), Some("version 2"), "nothing came of it");
    assert!(hall.on(2, &["status"]).stdout.contains("PeerLied"), "{:?}", hall.on(2, &["status"]));
    hall.plant.agents[1].start_again();
    hall.await_text(&[2], "version 2");
}

/// Changes a bit of every object of a box that the state names; how many.
fn spoil(hall: &Hall, host: usize) -> usize {
    let entry = hall.plant.entry("dev", LINE, "all").expect("it has a state").1.to_string();
    let folder = hall.plant.agents[host].root().join("var/lib/kedge-agent/objects");
    let named = |file: &std::path::PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        entry.contains(name.trim_start_matches("sha256-"))
    };
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).filter(named).collect();
    for file in &files {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[0] ^= 1;
        std::fs::remove_file(file).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
    files.len()
}
