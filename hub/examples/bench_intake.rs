//! How many status documents a second the hub takes in: signatures checked, counts kept, SQLite with a sync at each
//! commit. `cargo run --release -p kedge-hub --example bench_intake -- [FOLDER] [CLUSTERS] [SENDERS]`; the last line is JSON.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a bench stops where it fails")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kedge_hub::status::{Contact, StatusIntake, Taken};
use kedge_hub::store::status::counts::CountFilter;
use kedge_hub::store::{Store, now};
use kedge_model::wire::{ClusterId, Digest, Envelope, Generation, Heads, PackagesKey, SigningKey, Stream, Timestamp};
use kedge_status::{Condition, Nonce, Report, StatusDocument};
use tokio::sync::watch;
use tokio::task::JoinSet;

const CHANGES: usize = 50;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let mut number = |default: usize| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (clusters, senders) = (number(3000), number(256));
    let folder = tempfile::tempdir_in(folder).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(bench(&format!("sqlite:{}", folder.path().join("hub.db").display()), clusters, senders));
}

async fn bench(url: &str, clusters: usize, senders: usize) {
    let store = Store::open(url).await.unwrap();
    let keys: Vec<SigningKey> = (0..clusters).map(key).collect();
    join(&store, &keys).await;
    let (stop, shutdown) = watch::channel(false);
    let (intake, mut tasks) = StatusIntake::start(store.clone(), shutdown).await.unwrap();
    let mut documents: Vec<StatusDocument> =
        keys.iter().map(|key| StatusDocument::new(key.public(), 1, Nonce([1; 16]))).collect();

    let first = write(&mut documents, &keys, "one");
    let bytes: usize = first.iter().map(|(_, envelope)| envelope.payload.len()).sum::<usize>() / clusters;
    let (new_per_s, _) = send(&intake, first, senders).await;
    for (index, document) in documents.iter_mut().enumerate() {
        *document = document.next_epoch(2, Nonce([2; 16]), Timestamp(index as i64)).unwrap();
    }
    let second = write(&mut documents, &keys, "two");
    let (changed_per_s, cpu_us) = send(&intake, second.clone(), senders).await;
    let (known_per_s, known_cpu_us) = send(&intake, second, senders).await;

    let begin = Instant::now();
    let asked =
        CountFilter { environment: "dev", running: Some(&packages("two", 0).to_string()), ..CountFilter::default() };
    let counted: i64 = store.counts(&asked).await.unwrap().iter().map(|count| count.count).sum();
    let count_ms = begin.elapsed().as_secs_f64() * 1000.0;
    assert_eq!(counted, clusters as i64);

    for key in &keys {
        let contact = Contact {
            generation: Generation(1),
            look_age: 5,
            check_in_deadline: Timestamp(now().0 + 90_000),
            heads: Heads::default(),
            carried: None,
        };
        intake.contact(&ClusterId::of_public_key(key.public().as_bytes()), contact).await;
    }
    let begin = Instant::now();
    stop.send(true).unwrap();
    while tasks.join_next().await.is_some() {}
    let contacts_per_s = clusters as f64 / begin.elapsed().as_secs_f64();
    println!(
        "{{\"documents\":{clusters},\"changes\":{CHANGES},\"bytes\":{bytes},\"intake_per_s\":{changed_per_s:.0},\"cpu_us\":{cpu_us:.0},\"known_cpu_us\":{known_cpu_us:.0},\
         \"first_per_s\":{new_per_s:.0},\"known_per_s\":{known_per_s:.0},\"contacts_per_s\":{contacts_per_s:.0},\
         \"count_ms\":{count_ms:.2}}}"
    );
}

fn key(number: usize) -> SigningKey {
    SigningKey::from_seed(Digest::of(&number.to_le_bytes()).as_bytes()).unwrap()
}

fn packages(round: &str, assignment: usize) -> PackagesKey {
    PackagesKey::of_observed(&Digest::of(format!("{round}{assignment}").as_bytes()))
}

/// A document of 50 changes for each cluster; one report in fifty is an exception.
fn write(documents: &mut [StatusDocument], keys: &[SigningKey], round: &str) -> VecDeque<(ClusterId, Envelope)> {
    let mut out = VecDeque::new();
    for (index, (document, key)) in documents.iter_mut().zip(keys).enumerate() {
        for assignment in 0..CHANGES {
            let packages = packages(round, assignment);
            let condition = if assignment == index % CHANGES {
                Condition::Failed { reason: "HealthCheck".to_owned(), message: "one of two pods is ready".to_owned() }
            } else {
                Condition::Converged
            };
            let report = Report {
                desired: Some(packages),
                generation: Generation(1),
                running: Some(packages),
                version: Some("1.4.2".to_owned()),
                condition,
                since: Timestamp(now().0 - 1000),
                observed_at: Timestamp(now().0 - 1000),
                drift: None,
                clock: 0,
            };
            document.set_report(&format!("shop-{assignment}-functional-test"), &report).unwrap();
        }
        let id = ClusterId::of_public_key(key.public().as_bytes());
        out.push_back((id, document.seal(key, now(), None).unwrap()));
    }
    out
}

/// Documents a second, and microseconds of processor time for each.
async fn send(intake: &StatusIntake, documents: VecDeque<(ClusterId, Envelope)>, senders: usize) -> (f64, f64) {
    let (count, left) = (documents.len(), Arc::new(Mutex::new(documents)));
    let (begin, busy) = (Instant::now(), processor_time());
    let mut tasks = JoinSet::new();
    for _ in 0..senders {
        let (intake, left) = (intake.clone(), Arc::clone(&left));
        tasks.spawn(async move {
            loop {
                let next = left.lock().unwrap().pop_front();
                let Some((cluster, envelope)) = next else { return };
                match intake.take(Some(&cluster), envelope).await {
                    Ok(Taken::Stored | Taken::AlreadyKnown) => {}
                    other => panic!("{other:?}"),
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let per_second = count as f64 / begin.elapsed().max(Duration::from_millis(1)).as_secs_f64();
    (per_second, (processor_time() - busy) * 1e6 / count as f64)
}

/// Seconds that this process has used processors, so that figures of a busy machine can be judged.
fn processor_time() -> f64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).unwrap();
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

async fn join(store: &Store, keys: &[SigningKey]) {
    let stream = Stream::new("dev", "drone", Stream::ALL);
    let mut tx = store.write().await.unwrap();
    for key in keys {
        let id = ClusterId::of_public_key(key.public().as_bytes());
        sqlx::query(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, \
             membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, generation, \
             tick) VALUES ($1, $1, 'dev', 'drone', 'all', '{}', $2, '{}', 'active', 1, $2, 0, 't', 's', 0, 0, $3, 0, 0)",
        )
        .bind(id.to_string())
        .bind(key.public().as_bytes().as_slice())
        .bind(now().0 + 3_600_000)
        .execute(tx.connection())
        .await
        .unwrap();
        tx.place_cluster(&id, None, Some(&stream)).await.unwrap();
    }
    tx.commit().await.unwrap();
}
