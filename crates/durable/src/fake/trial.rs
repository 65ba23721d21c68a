//! Some work, tried with a power cut or a failure at every operation that it makes, however many those are.

use std::io;
use std::sync::Arc;

use super::FakeDisk;
use crate::disk::Disk;

/// When the power went, for a check of `every_cut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// In the middle: the work was not acknowledged.
    Cut,
    /// After the work said that it was done.
    CutAfterwards,
}

/// Cuts the power at every operation of some work, and afterwards, and gives each disk that may be found then to a check.
/// `prepare` makes the disk before the work; what it wrote is on the medium. Answers how many disks were checked.
pub fn every_cut<E: std::fmt::Debug>(
    prepare: impl Fn(&FakeDisk),
    work: impl Fn(Arc<dyn Disk>) -> Result<(), E>,
    check: impl Fn(&FakeDisk, Power),
) -> usize {
    let prepared = FakeDisk::new();
    prepare(&prepared);
    let mut checked = 0;
    for nth in 1.. {
        let disk = prepared.settled_copy();
        disk.cut_at(nth);
        let done = work(Arc::new(disk.clone()));
        // Work that shrugs off a failure (tidying up) may end well although the power went: then nothing was promised.
        let cut = disk.state().off;
        let power = if done.is_ok() { Power::CutAfterwards } else { Power::Cut };
        for survivor in disk.survivors() {
            check(&survivor, power);
            checked += 1;
        }
        if !cut {
            assert!(done.is_ok(), "the work fails without a power cut: {done:?}");
            return checked;
        }
    }
    checked
}

/// Lets every operation of some work fail, one at a time, as a full or broken disk does, and gives the disk to a check with whether
/// the work says that it was done. Answers how many operations failed.
pub fn every_failure<E: std::fmt::Debug>(
    kind: io::ErrorKind,
    prepare: impl Fn(&FakeDisk),
    work: impl Fn(Arc<dyn Disk>) -> Result<(), E>,
    check: impl Fn(&FakeDisk, bool),
) -> usize {
    let prepared = FakeDisk::new();
    prepare(&prepared);
    for nth in 1.. {
        let disk = prepared.settled_copy();
        disk.fail_at(nth, kind);
        let done = work(Arc::new(disk.clone()));
        let reached = disk.operations() >= nth;
        disk.repair();
        check(&disk, done.is_ok());
        if !reached {
            assert!(done.is_ok(), "the work fails on a disk that doesn't: {done:?}");
            return usize::try_from(nth - 1).unwrap_or(usize::MAX);
        }
    }
    0
}
