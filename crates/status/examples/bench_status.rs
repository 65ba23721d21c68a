//! What a document costs: bytes and microseconds for documents of 50 and 200 changes. `cargo run --release --example
//! bench_status`.
#![allow(clippy::unwrap_used, reason = "a bench stops where it fails")]

use std::time::Instant;

use kedge_model::wire::{Digest, Generation, PackagesKey, SigningKey, Timestamp};
use kedge_status::{Condition, Limits, Nonce, Report, StatusDocument, read};

fn main() {
    let key = SigningKey::from_seed(&[1; 32]).unwrap();
    for (assignments, changes) in [(1, 50), (10, 50), (50, 50), (50, 200), (500, 500)] {
        let mut document = StatusDocument::new(key.public(), 1, Nonce([7; 16]));
        for round in 0..changes {
            let running = PackagesKey::of_observed(&Digest::of(&i64::to_le_bytes(round)));
            let report = Report {
                desired: Some(running),
                generation: Generation(round.unsigned_abs()),
                running: Some(running),
                version: Some("1.4.2".to_owned()),
                condition: Condition::Converged,
                since: Timestamp(1_790_000_000_000 + round),
                observed_at: Timestamp(1_790_000_000_000 + round),
                drift: None,
                clock: 0,
            };
            document.set_report(&format!("shop-{}-functional-test", round % assignments), &report).unwrap();
        }
        let sealed = document.seal(&key, Timestamp(1), None).unwrap();
        let rounds = 200;
        let begin = Instant::now();
        for _ in 0..rounds {
            read(&sealed, &Limits::default()).unwrap();
        }
        let micros = begin.elapsed().as_micros() / rounds;
        let bytes = sealed.payload.len();
        println!("assignments={assignments} changes={changes} payload={bytes} B read={micros} µs");
    }
}
