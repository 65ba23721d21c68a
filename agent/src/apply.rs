//! How the transaction engine changes a host: everything outside it is behind `Host`, which decides nothing. `host` is the real one.

use kedge_model::wire::Digest;

use crate::goal::Check;
use crate::observed::{Observed, Subjects};
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::Failure;
use crate::step::Step;
use crate::trace::Tracer;

#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "kubernetes")]
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
