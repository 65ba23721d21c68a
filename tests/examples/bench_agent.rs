//! `./tests/bench agent`: what the agent's own .deb costs on a booted Debian host with ten assignments: memory, processor, traffic on
//! the wire, and its part of a change. Progress on stderr, one line of JSON on stdout. `KEDGE_BENCH_SCALE` (1 by default) shortens
//! the times for which it is watched.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kedge_tests::lab::apt_repository::Deb;
use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::world::line::{FIRST, Line};
use kedge_tests::world::workload::Workload;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What a host of a factory line may run.
const ASSIGNMENTS: usize = 10;
/// After the last change: buffers are given back, the link is held.
const SETTLED: f64 = 20.0;
/// Longer than the interval of full looks; it begins and ends with the end of a held poll, so that whole ones are counted.
const WATCHED: f64 = 600.0;
/// More than a lone ARP exchange, less than a poll's answer and the next question.
const POLL_BYTES: f64 = 400.0;
/// Of Ethernet, IP and TCP with its timestamps.
const HEADERS: f64 = 14.0 + 20.0 + 32.0;
/// Contacts of the profile `low` that are weighed, and how far apart they are here; the hub's default is four hours. Far enough that
/// the hub doesn't keep the connection in between, as it doesn't for hours.
const CONTACTS: f64 = 6.0;
const CONTACT_EVERY: f64 = 40.0;
const LOW_INTERVAL: f64 = 4.0 * 3600.0;
const MONTH: f64 = 30.0 * 86_400.0;
/// Changes whose processor time is taken together: the kernel counts hundredths of a second.
const CHANGES: usize = 10;
const LARGE_DEB: usize = 200 << 20;

fn main() {
    let scale = env::var("KEDGE_BENCH_SCALE").map_or(1.0, |text| text.parse().expect("KEDGE_BENCH_SCALE is a number"));
    let deb = fs::metadata(env::var_os("KEDGE_AGENT_DEB").expect("KEDGE_AGENT_DEB names the package")).unwrap().len();
    let line = Line::start_with(Network::cable(), |settings, _| {
        settings.wait = "4m".to_owned();
        settings.agents.push(format!("low_interval = \"{CONTACT_EVERY}s\""));
    });
    let line = line.expect("what is missing was said above");
    line.await_converged(FIRST);
    for number in 1..ASSIGNMENTS {
        let name = format!("hello-bench-{number}");
        line.add_target(&name, &Workload::tool(&name, "1.0"));
        line.await_converged(&name);
    }
    let agent = Agent::of(&line.host);
    rest(SETTLED * scale);
    let idle_memory = agent.memory();
    eprintln!("idle with {ASSIGNMENTS} assignments: {idle_memory:.2} MiB");

    after_a_poll(&line.host);
    let (cpu, before, began) = (agent.processor(), held(&line.host), Instant::now());
    rest(WATCHED * scale);
    after_a_poll(&line.host);
    let elapsed = began.elapsed().as_secs_f64();
    let idle_cpu = (agent.processor() - cpu) / elapsed * 100.0;
    let after = held(&line.host);
    assert_eq!(before.port, after.port, "one connection is kept while nothing happens");
    let normal = (after.bytes - before.bytes) / elapsed * MONTH / 1e6;
    eprintln!("watched for {elapsed:.0} s: {idle_cpu:.3} % of a core, {normal:.2} MB a month in the profile normal");

    let (apply, fsyncs) = changes(&line, &agent);
    eprintln!("a change: {apply:.1} ms of our own, {fsyncs:?} syncs");

    let peak = large(&line, &agent);
    eprintln!("peak while a deb of {} MB is installed: {peak:.2} MiB", LARGE_DEB >> 20);

    let low = low(&line, scale);
    eprintln!("{low:.3} MB a month in the profile low");
    println!(
        "{{\"deb_mb\": {:.2}, \"pss_idle_mib\": {idle_memory:.2}, \"pss_peak_mib\": {peak:.2}, \"idle_cpu_percent\": {idle_cpu:.3}, \
         \"idle_mb_per_month\": {low:.3}, \"normal_mb_per_month\": {normal:.2}, \"apply_ms\": {apply:.1}, \"fsyncs\": {}}}",
        deb as f64 / 1e6,
        fsyncs.map_or_else(|| "null".to_owned(), |count| count.to_string()),
    );
}

/// The agent's process, as it is numbered here.
struct Agent(u32);

impl Agent {
    fn of(host: &DebianHost) -> Agent {
        Agent(host.pid_of("kedge-agent").expect("the agent runs"))
    }

    /// Its share of memory now, in MiB.
    fn memory(&self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0)).unwrap();
        let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    }

    /// Seconds of its own and its children's.
    fn processor(&self) -> f64 {
        self.ticks(13..17)
    }

    /// Seconds of its own alone.
    fn own_processor(&self) -> f64 {
        self.ticks(13..15)
    }

    fn ticks(&self, fields: std::ops::Range<usize>) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap();
        let rest = text.rsplit_once(')').unwrap().1;
        let ticks = rest.split_whitespace().skip(fields.start - 2).take(fields.len());
        // A hundred a second, on every Linux that programs see.
        ticks.map(|text| text.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }
}

/// Bytes on the host's cable, with TCP, IP and Ethernet.
fn wire(host: &DebianHost) -> f64 {
    let count = |what: &str| {
        let path = format!("/sys/class/net/ve-{}/statistics/{what}_bytes", host.name());
        fs::read_to_string(path).unwrap().trim().parse::<f64>().unwrap()
    };
    count("rx") + count("tx")
}

/// The connection that the agent keeps to the hub, and what went over it: TLS, TCP, IP and Ethernet, without the link's own ARP.
struct Held {
    port: String,
    bytes: f64,
}

/// As the host's kernel counts it.
fn held(host: &DebianHost) -> Held {
    let text = host.sh("ss -tinH state established");
    let figures = |name: &str| -> f64 {
        let figure = |word: &str| word.strip_prefix(name)?.strip_prefix(':')?.parse::<f64>().ok();
        text.split_whitespace().filter_map(figure).sum()
    };
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with([' ', '\t'])).collect();
    let [line] = lines[..] else { panic!("one connection is expected: {text}") };
    let port = line.split_whitespace().nth(2).unwrap().to_owned();
    let content = figures("bytes_sent") + figures("bytes_received");
    Held { port, bytes: content + (figures("segs_out") + figures("segs_in")) * HEADERS }
}

/// Returns when a held poll has just ended and the next has begun.
fn after_a_poll(host: &DebianHost) {
    let before = wire(host);
    while wire(host) - before < POLL_BYTES {
        rest(0.2);
    }
    rest(2.0);
}

/// Upgrades and downgrades: milliseconds of our own for each, and the syncs of one.
fn changes(line: &Line, agent: &Agent) -> (f64, Option<usize>) {
    let change = |number: usize| {
        line.deliver("hello-bench-1", &files_only("hello-bench-1", number));
        line.await_converged("hello-bench-1");
    };
    change(0);
    let before = agent.own_processor();
    (1..=CHANGES).for_each(change);
    let apply = (agent.own_processor() - before) * 1000.0 / CHANGES as f64;
    (apply, syncs(agent, || change(CHANGES + 1)))
}

/// A change without apt: files, and the restart of a unit.
fn files_only(assignment: &str, number: usize) -> Workload {
    let path = format!("/srv/{assignment}/number");
    Workload::tool(assignment, "1.0").file(&path, "number", &format!("{number}\n"), "")
}

/// Counted by strace, where it is.
fn syncs(agent: &Agent, work: impl FnOnce()) -> Option<usize> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut trace = Command::new("strace")
        .args(["-f", "-p", &agent.0.to_string(), "-e", "trace=fsync,fdatasync,syncfs,sync", "-o"])
        .arg(log.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    thread::sleep(Duration::from_secs(1));
    work();
    kill(Pid::from_raw(trace.id().cast_signed()), Signal::SIGINT).unwrap();
    trace.wait().unwrap();
    let text = fs::read_to_string(log.path()).unwrap();
    Some(text.lines().filter(|line| line.contains("sync") && !line.contains("resumed")).count())
}

/// The most memory that was seen while a large deb was fetched and installed.
fn large(line: &Line, agent: &Agent) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise: Vec<u8> = (0..LARGE_DEB / 8)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .collect();
    line.repository.add(&Deb::new("other", "1").file("/usr/lib/other/data", noise, 0o644));
    line.repository.copy_into(&line.host);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0.0_f64;
            while !done.load(Ordering::Acquire) {
                most = most.max(agent.memory());
                thread::sleep(Duration::from_millis(10));
            }
            most
        });
        line.deliver("hello-bench-1", &Workload::tool("hello-bench-1", "1.0").deb("other", "1"));
        line.await_converged("hello-bench-1");
        done.store(true, Ordering::Release);
        watcher.join().unwrap()
    })
}

/// Megabytes a month in the profile `low`: the weight of a contact, as often as the hub asks for one by default.
fn low(line: &Line, scale: f64) -> f64 {
    line.host.write("/etc/kedge/agent.toml", "traffic = \"low\"\n");
    line.host.sh("systemctl restart kedge-agent");
    rest(3.0 * CONTACT_EVERY);
    let contacts = (CONTACTS * scale).ceil();
    let connections = line.relay.as_ref().expect("a host with a cable").connections();
    let before = wire(&line.host);
    rest(contacts * CONTACT_EVERY);
    let made = (line.relay.as_ref().expect("it stays").connections() - connections).max(1);
    let each = (wire(&line.host) - before) / made as f64;
    eprintln!("{made} contacts of {each:.0} bytes on the wire");
    each * MONTH / LOW_INTERVAL / 1e6
}

fn rest(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}
