//! A package of 2 MB that no packer makes smaller, from the hub to every host of the site.

use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

use kedge_tests::lab::chance::Chance;
use kedge_tests::world::plant::{LINE, assignment, workload};

use super::{Hall, LOOK_AGAIN, LOST};

const SIZE: usize = 2_000_000;
const TEXT: &str = "version 2";

pub struct Spread {
    /// From the hub's desired state until the last host has changed.
    pub seconds: f64,
    /// Bytes over the uplink, both ways and with all heads, until the last host has changed; of the package's.
    pub ratio: f64,
    /// The same until the hub knows of all: every host's reports are in it.
    pub with_reports: f64,
    /// From a host's change until the hub knows that it is Converged, the longest.
    pub told: f64,
}

pub fn measure(hall: &Hall) -> Spread {
    let plant = &hall.plant;
    let generation = plant.world.api.generation("dev", LINE).unwrap();
    let before = hall.traffic().uplink;
    let mut chance = Chance::seeded(7);
    let bytes = (0..SIZE / 8).flat_map(|_| chance.draw().to_le_bytes()).collect();
    let mut change = workload(assignment("dev"), TEXT);
    let path = format!("/srv/{}/model.bin", assignment("dev"));
    change.files.push(format!("{{path: {path}, file: model.bin}}"));
    change.content.insert("model.bin".to_owned(), bytes);
    plant.push_workload("dev", &change);
    plant.world.await_generation("dev", LINE, generation + 1);

    let began = Instant::now();
    let names: Vec<String> = plant.boxes("dev").map(str::to_owned).collect();
    let (mut changed, mut told) = (BTreeMap::new(), BTreeMap::new());
    let mut passed = None;
    while told.len() < hall.hosts {
        for name in names.iter().filter(|name| !changed.contains_key(*name)).collect::<Vec<_>>() {
            if plant.text_on(name).as_deref() == Some(TEXT) {
                changed.insert(name.clone(), Instant::now());
            }
        }
        if changed.len() == hall.hosts {
            passed.get_or_insert_with(|| hall.traffic().uplink - before);
        }
        for row in hall.rows() {
            let name = row["clusterName"].as_str().unwrap_or_default();
            let is_true = row["condition"] == "Converged" && row["reality"] == "asDesired";
            if is_true && changed.contains_key(name) && !told.contains_key(name) {
                told.insert(name.to_owned(), Instant::now());
            }
        }
        let lacking: Vec<&String> = names.iter().filter(|name| !changed.contains_key(*name)).collect();
        assert!(began.elapsed() < LOST, "the hub knows of {}; {lacking:?} lack it", told.len());
        thread::sleep(LOOK_AGAIN);
    }
    let last = changed.values().max().unwrap();
    let late = changed.iter().map(|(name, at)| told[name].saturating_duration_since(*at).as_secs_f64());
    Spread {
        seconds: last.duration_since(began).as_secs_f64(),
        ratio: passed.unwrap_or_default() as f64 / SIZE as f64,
        with_reports: (hall.traffic().uplink - before) as f64 / SIZE as f64,
        told: late.fold(0.0, f64::max),
    }
}
