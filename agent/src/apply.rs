//! How the transaction engine changes a host: everything outside it is behind `Host`, which decides nothing. `host` is the real one.

use std::collections::BTreeMap;

use kedge_model::wire::Digest;

use crate::goal::{Check, DebGoal};
use crate::observed::{Observed, Subjects};
use crate::record::{DebOriginal, Failure};
use crate::step::{DebsStep, Step};
use crate::trace::Tracer;

pub mod host;
pub mod kubernetes;

pub trait Host: Send {
    /// What is true now of these.
    fn look(&self, subjects: &Subjects) -> Result<Observed, Failure>;
    /// Resolves and downloads: the archives of both directions are objects afterwards. Nothing is changed.
    fn prepare_debs(&mut self, wish: &DebWish, trace: &mut Tracer<'_>) -> Result<DebPlan, Failure>;
    /// Keeps the content of a file of the host as an object.
    fn keep(&mut self, path: &str) -> Result<Digest, Failure>;
    fn execute(&mut self, step: &Step, trace: &mut Tracer<'_>) -> Result<(), Failure>;
    /// One try of one health check.
    fn check(&mut self, check: &Check) -> Result<(), Failure>;
    /// Whether other changes may go on while one waits for its health.
    fn is_patient(&self) -> bool {
        false
    }
    /// Everything that was done is on the disk.
    fn settle(&mut self) -> Result<(), Failure>;
    /// Bytes that these folders hold on the disk; none: it can't be told here.
    fn usage(&self, _folders: &[&str]) -> Result<Option<u64>, Failure> {
        Ok(None)
    }
    /// At start: an interrupted dpkg is finished, leftovers of steps are cleared.
    fn repair(&mut self, trace: &mut Tracer<'_>) -> Result<(), Failure>;
}

/// What an assignment wants of dpkg.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebWish {
    pub want: Vec<DebGoal>,
    /// No longer needed by anybody: each returns to what it was before Kedge.
    pub give_back: BTreeMap<String, DebOriginal>,
    /// Versions that other assignments run, with whose they are: not ours to change.
    pub others: BTreeMap<String, (String, String)>,
    /// `rollback: never`: a change without a way back is allowed.
    pub no_rollback: bool,
}

/// One dpkg transaction and its way back; both are empty when nothing differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebPlan {
    pub forward: DebsStep,
    pub back: DebsStep,
    /// What each deb that changes was, also those that apt adds.
    pub originals: BTreeMap<String, DebOriginal>,
}
