//! A long life in any order: whatever happens to the host, what the hub put together says what the host says.

use kedge_model::wire::Envelope;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Tell(u8, u8),
    Gone(u8),
    Warn(u8),
    Seal,
    /// The process ends without a flush.
    Restart,
    /// The power goes at an operation of the next flush, and one of the disks that may be left is found.
    Cut(u64, prop::sample::Index),
    Pass(i64),
    /// Somebody sets the clock, by so many minutes.
    Set(i64),
    /// The host starts with its clock at 1970.
    Start,
    Contact,
}

/// What the hub does with documents, as `docs/wire.md` says it.
#[derive(Default)]
struct Hub {
    epoch: u64,
    histories: Vec<Envelope>,
}

impl Hub {
    fn take(&mut self, envelope: Envelope) -> Status {
        let status = kedge_status::read(&envelope, &Limits::default()).unwrap();
        assert!(status.epoch >= self.epoch, "an older epoch after a newer one");
        if status.epoch > self.epoch {
            self.histories.clear();
        }
        self.epoch = status.epoch;
        // Another nonce for the same epoch is refused here: a clone.
        self.histories.push(envelope);
        let merged = kedge_status::read_all(&self.histories.iter().collect::<Vec<_>>(), &Limits::default()).unwrap();
        self.histories.drain(..self.histories.len() - 1);
        merged
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u8, 0..4_u8).prop_map(|(assignment, condition)| Step::Tell(assignment, condition)),
        1 => (0..3_u8).prop_map(Step::Gone),
        1 => (0..3_u8).prop_map(Step::Warn),
        3 => Just(Step::Seal),
        1 => Just(Step::Restart),
        2 => (1..16_u64, any::<prop::sample::Index>()).prop_map(|(nth, left)| Step::Cut(nth, left)),
        2 => (1..400_000_i64).prop_map(Step::Pass),
        1 => (-600..600_i64).prop_map(Step::Set),
        1 => Just(Step::Start),
        1 => Just(Step::Contact),
    ]
}

fn condition(number: u8) -> Condition {
    match number {
        0 => Condition::Converged,
        1 => Condition::Converging,
        2 => failed("Timeout", "slow"),
        _ => failed("HealthCheck", "port 80"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_hub_and_the_host_agree_after_each_sync(steps in prop::collection::vec(step(), 1..120)) {
        let (mut disk, clock, mut hub) = (FakeDisk::new(), HandClock::at(NOON), Hub::default());
        let (mut reporter, _) = open(&disk, &clock);
        for step in steps {
            match step {
                Step::Tell(assignment, number) => {
                    reporter.tell(&assignment_status(&format!("a{assignment}"), condition(number), clock.now()));
                }
                Step::Gone(assignment) => {
                    reporter.tell(&Told::Gone { assignment: format!("a{assignment}"), at: clock.now() });
                }
                Step::Warn(number) => reporter.warn("DiskFull", Severity::Warning, &format!("{number} bytes left")),
                Step::Restart => reporter = open(&disk, &clock).0,
                Step::Cut(nth, left) => {
                    disk.cut_at(nth);
                    _ = reporter.flush();
                    let survivors = disk.survivors();
                    disk = survivors[left.index(survivors.len())].clone();
                    reporter = open(&disk, &clock).0;
                }
                Step::Pass(milliseconds) => clock.pass(milliseconds),
                Step::Set(minutes) => clock.set((clock.now().0 + minutes * 60_000).max(0)),
                Step::Start => {
                    clock.start(7_000);
                    reporter = open(&disk, &clock).0;
                }
                Step::Contact => reporter.contact(Timestamp(NOON + 1_000 * HOUR)),
                Step::Seal => {
                    let merged = hub.take(reporter.seal(&key()).unwrap());
                    prop_assert_eq!(&merged.reports, &reporter.document.reports());
                    prop_assert_eq!(&merged.warnings, &reporter.document.warnings());
                    prop_assert_eq!(merged.heads(), reporter.heads());
                    for report in merged.reports.values() {
                        prop_assert!(report.since <= report.observed_at);
                    }
                }
            }
        }
    }
}
