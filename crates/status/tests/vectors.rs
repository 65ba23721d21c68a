//! `docs/vectors/status.json`: a status document with a fixed key, actor and times. KEDGE_UPDATE=1 writes it again.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::path::PathBuf;

use kedge_model::wire::digest::hex;
use kedge_model::wire::{Digest, Envelope, Generation, PackagesKey, SigningKey, Timestamp};
use kedge_status::{Condition, Hold, Limits, Nonce, Report, Severity, StatusDocument, Warning, read, read_all};
use serde_json::{Value, json};

const SEED: [u8; 32] = [3; 32];
const TIME: i64 = 1_790_000_000_000;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/vectors/status.json")
}

fn packages(name: &str) -> PackagesKey {
    PackagesKey::of_packages(&Digest::of(b"platform"), &Digest::of(name.as_bytes()))
}

fn report(condition: Condition, running: &str, at: i64) -> Report {
    Report {
        desired: Some(packages("shop")),
        generation: Generation(17),
        running: Some(packages(running)),
        version: Some("1.4.2".to_owned()),
        condition,
        since: Timestamp(at),
        observed_at: Timestamp(at),
        drift: None,
        clock: 1,
    }
}

fn make() -> Value {
    let key = SigningKey::from_seed(&SEED).unwrap();
    let mut document = StatusDocument::new(key.public(), 3, Nonce([7; 16])).as_actor([9; 16]);
    let failed = Condition::Failed { reason: "HealthCheck".to_owned(), message: "unit shop.service failed".to_owned() };
    let warning = Warning {
        severity: Severity::Warning,
        message: "the disk is nearly full".to_owned(),
        since: Timestamp(TIME),
        clock: 1,
    };
    let hold = Hold {
        assignment: "shop-prod".to_owned(),
        by: "ada".to_owned(),
        reason: "line 3 is being rebuilt".to_owned(),
        since: Timestamp(TIME),
        clock: 1,
    };
    document.set_report("shop-prod", &report(Condition::Converging, "old-shop", TIME)).unwrap();
    document.set_report("shop-prod", &report(failed, "old-shop", TIME + 60_000)).unwrap();
    document.set_fact("kernel", "6.1.0", Timestamp(TIME)).unwrap();
    document.set_warning("DiskFull", &warning).unwrap();
    document.show_hold("hold-1", &hold).unwrap();
    document.set_clock(1, -7_200_000, Timestamp(TIME)).unwrap();
    let first = document.seal(&key, Timestamp(TIME + 61_000), Some(-7_200_000)).unwrap();
    document.set_report("shop-prod", &report(Condition::Converged, "shop", TIME + 120_000)).unwrap();
    let second = document.seal(&key, Timestamp(TIME + 121_000), Some(-7_200_000)).unwrap();
    let status = read(&second, &Limits::default()).unwrap();
    json!({
        "seed": hex(&SEED),
        "cluster": status.cluster,
        "heads": status.heads(),
        "older": first,
        "envelope": second,
        "reports": status.reports,
        "facts": status.facts,
        "warnings": status.warnings,
        "holds": status.holds,
        "events": status.events,
        "sinceInTheHubsTime": status.true_time(1, status.reports["shop-prod"].since).0,
    })
}

#[test]
fn the_status_vector_is_what_the_code_makes() {
    let text = format!("{}\n", serde_json::to_string_pretty(&make()).unwrap());
    if std::env::var_os("KEDGE_UPDATE").is_some() {
        std::fs::write(path(), &text).unwrap();
    }
    let known = std::fs::read_to_string(path()).unwrap_or_default();
    assert!(known == text, "docs/vectors/status.json is not what the code makes; KEDGE_UPDATE=1 writes it again");
}

#[test]
fn the_status_vector_reads_as_it_says() {
    let vector: Value = serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap();
    let envelope = |name: &str| serde_json::from_value::<Envelope>(vector[name].clone()).unwrap();
    let limits = Limits::default();
    let status = read(&envelope("envelope"), &limits).unwrap();
    assert_eq!(serde_json::to_value(&status.reports).unwrap(), vector["reports"]);
    assert_eq!(serde_json::to_value(&status.events).unwrap(), vector["events"]);
    assert_eq!(serde_json::to_value(status.heads()).unwrap(), vector["heads"]);
    assert_eq!(serde_json::to_value(status.cluster).unwrap(), vector["cluster"]);
    let older = read(&envelope("older"), &limits).unwrap();
    assert!(status.contains(&older.heads().heads) && !older.contains(&status.heads().heads));
    assert_eq!(read_all(&[&envelope("older"), &envelope("envelope")], &limits).unwrap(), status);
}
