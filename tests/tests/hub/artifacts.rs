//! A large artifact on its whole way: from a server, through the hub, to a real agent, which has little memory and writes it once.

use std::env;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kedge_tests::lab::artifact_server::{ArtifactServer, sha256_of};
use kedge_tests::world::Database;
use kedge_tests::world::plant::{LINE, Plant, assignment, workload};

/// Megabytes, unless `KEDGE_TEST_ARTIFACT_MB` names another number (2048 is a model of today).
const USUAL_MB: u64 = 64;

/// What an agent may take at its peak, beside the program itself (the one of the tests isn't optimized): a small host has little to give.
const MOST_MEMORY_MIB: f64 = 8.0;

/// What it writes beside the artifact: ledgers, its cache, files of the workload.
const WRITTEN_BESIDE: u64 = 8 << 20;

/// Slow disks and programs that aren't optimized: so many bytes a second at least.
const BYTES_PER_SECOND: u64 = 4 << 20;

#[test]
fn a_large_artifact_is_written_once_in_little_memory_and_switched_by_a_link() {
    let megabytes = env::var("KEDGE_TEST_ARTIFACT_MB").map_or(USUAL_MB, |text| text.parse().unwrap());
    let size = megabytes << 20;
    let within = Duration::from_secs(60 + size / BYTES_PER_SECOND);
    let server = ArtifactServer::start(size);
    let authority = server.authority();
    let Some(mut plant) = Plant::start_with(Database::Sqlite, None, |settings, _| {
        settings.packages.push(format!("hosts = [\"{}\"]", server.host()));
    }) else {
        return;
    };
    plant.world.hub.stop();
    plant.world.hub.set_environment("SSL_CERT_FILE", authority.to_str().unwrap());
    plant.world.hub.start_again();
    plant.add("dev", LINE, "", 1);
    plant.await_converged("dev");

    let name = assignment("dev");
    let (sum, began) = (server.sha256(), Instant::now());
    let mut large = workload(name, "version 2");
    large.artifacts.push(format!("{{path: /srv/{name}/model, url: {:?}, sha256: {sum}}}", server.url("model")));
    let pid = plant.agent("dev-factory-line-1").part().pid();
    let (written, idle) = (written_by(pid), memory_of(pid));
    let gitops = &plant.world.sample.hello_gitops;
    gitops.switch("dev");
    large.push(gitops, "line-test");

    let over = AtomicBool::new(false);
    let peak = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = 0f64;
            while !over.load(Ordering::Relaxed) {
                peak = peak.max(memory_of(pid));
                thread::sleep(Duration::from_millis(20));
            }
            peak
        });
        let link = plant.agents[0].root().join(format!("srv/{name}/model"));
        plant.await_so("the hub has the artifact", within, |_| server.sent() >= size);
        let at_hub = began.elapsed();
        plant.await_so("the link is there", within, |_| link.exists());
        plant.await_text(&["dev-factory-line-1"], "version 2");
        plant.await_converged("dev");
        over.store(true, Ordering::Relaxed);
        eprintln!("{megabytes} MB: at the hub after {at_hub:?}, on the host after {:?}", began.elapsed());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "switched by a link");
        assert_eq!(sha256_of(&link), sum);
        watch.join().unwrap()
    });
    let written = written_by(pid) - written;
    eprintln!("{megabytes} MB: peak of {peak:.1} MiB ({idle:.1} before), {} MiB written", written >> 20);
    assert!(peak < MOST_MEMORY_MIB, "the agent's peak was {peak:.1} MiB");
    assert!(written >= size && written < size + WRITTEN_BESIDE, "{written} bytes were written for {size}");
}

/// Its share of memory now, in MiB, without the files that are mapped into it.
fn memory_of(pid: u32) -> f64 {
    field(pid, "smaps_rollup", "Pss_Anon:") as f64 / 1024.0
}

/// What it gave the disk to write so far.
fn written_by(pid: u32) -> u64 {
    field(pid, "io", "write_bytes:")
}

fn field(pid: u32, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
