//! A cluster as a host of the transaction engine: objects are applied, removed, compared and waited for through the API server. It decides
//! nothing. It lives in the applier's thread; its requests run on the loop's runtime.

mod account;
mod compare;
mod fields;
mod foreign;
mod health;
mod look;
mod put;
pub mod ready;
mod recreate;
mod refusal;
mod remove;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use kedge_model::wire::Digest;
use tokio::runtime::Handle;

use super::Host;
use crate::cluster::Cluster;
use crate::cluster::kinds::Discovered;
use crate::cluster::retry::Gate;
use crate::cluster::watches::Watches;
use crate::goal::{Check, ObjectGoal, Probe};
use crate::objects::Objects;
use crate::observed::{Observed, Subjects};
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::Failure;
use crate::step::Step;
use crate::trace::Tracer;
use account::{Account, Made};
use health::Readied;

pub struct KubernetesApplier {
    context: ApplyContext,
    runtime: Handle,
    readied: Readied,
}

/// What the parts share.
struct ApplyContext {
    cluster: Cluster,
    kinds: Arc<Discovered>,
    watches: Watches,
    objects: Objects,
    gate: Arc<Gate>,
    accounts: Made,
}

/// What became of one object of a step, beside that it is done.
type Note = Option<String>;

/// Requests of one step that are under way together; the server shares its time fairly beyond that.
const BESIDE: usize = 16;
/// More names of a step are only counted.
const SHOWN: usize = 3;

impl KubernetesApplier {
    /// `gate` is false while another agent leads or this one stops: then nothing is written.
    pub fn new(
        cluster: Cluster,
        kinds: Arc<Discovered>,
        watches: Watches,
        objects: Objects,
        runtime: Handle,
        gate: Arc<Gate>,
    ) -> KubernetesApplier {
        let context = ApplyContext { cluster, kinds, watches, objects, gate, accounts: Made::default() };
        KubernetesApplier { context, runtime, readied: Readied::default() }
    }

    fn put(&self, objects: &[ObjectGoal], trace: &mut Tracer<'_>) -> Result<(), Failure> {
        self.context.watch(objects.iter().map(|goal| &goal.id));
        let line = trace.begin(format!("apply {}", names(objects)));
        let all = stream::iter(objects).map(|goal| async move { (goal, self.put_one(goal).await) });
        let done = self.runtime.block_on(all.buffer_unordered(BESIDE).collect::<Vec<_>>());
        tell(line, done, "apply", trace)
    }

    async fn put_one(&self, goal: &ObjectGoal) -> Result<Note, Failure> {
        if self.context.make_account(goal).await? == Account::NoNamespace {
            let namespace = goal.id.namespace.as_deref().unwrap_or_default();
            let message =
                format!("{}: the namespace {namespace} isn't there; the platform package can bring it", goal.id);
            return Err(Failure::new("Rejected", message));
        }
        self.context.watches.seen().expect(&goal.id);
        let put = self.context.put(goal).await;
        self.context.watches.seen().give_up(&goal.id);
        let (live, note) = put?;
        self.readied.note(&goal.id, &live);
        Ok(note)
    }

    fn remove(&self, objects: &[ObjectGoal], trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let line = trace.begin(format!("remove {}", names(objects)));
        let all = stream::iter(objects).map(|goal| async move { (goal, self.context.remove(goal).await) });
        let done = self.runtime.block_on(all.buffer_unordered(BESIDE).collect::<Vec<_>>());
        objects.iter().for_each(|goal| self.readied.forget(&goal.id));
        tell(line, done, "remove", trace)
    }
}

impl Host for KubernetesApplier {
    fn look(&self, subjects: &Subjects) -> Result<Observed, Failure> {
        let objects = self.runtime.block_on(self.context.look(&subjects.objects))?;
        Ok(Observed { objects, ..Observed::default() })
    }

    fn prepare_debs(&mut self, _: &DebWish, _: &mut Tracer<'_>) -> Result<DebPlan, Failure> {
        Err(unsupported("debs"))
    }

    fn keep(&mut self, _: &str) -> Result<Digest, Failure> {
        Err(unsupported("files"))
    }

    fn execute(&mut self, step: &Step, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        match step {
            Step::PutObjects { objects } => self.put(objects, trace),
            Step::RemoveObjects { objects } => self.remove(objects, trace),
            _ => Err(unsupported("anything but objects")),
        }
    }

    fn check(&mut self, check: &Check) -> Result<(), Failure> {
        match &check.probe {
            Probe::Objects(ids) => self.readied.check(ids, &self.context, &self.runtime),
            _ => Err(unsupported("checks of a host")),
        }
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn repair(&mut self, _: &mut Tracer<'_>) -> Result<(), Failure> {
        Ok(())
    }
}

impl fmt::Debug for KubernetesApplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KubernetesApplier({:?})", self.context.cluster)
    }
}

fn unsupported(what: &str) -> Failure {
    Failure::new("Unsupported", format!("a cluster has no {what}"))
}

fn names(objects: &[ObjectGoal]) -> String {
    let shown: Vec<String> = objects.iter().take(SHOWN).map(|goal| goal.id.to_string()).collect();
    match objects.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The step's line with what is worth saying, and one line for each object that failed. One failure speaks for the step: one that doesn't
/// pass, if there is such a one.
fn tell(
    line: crate::trace::Line,
    done: Vec<(&ObjectGoal, Result<Note, Failure>)>,
    verb: &str,
    trace: &mut Tracer<'_>,
) -> Result<(), Failure> {
    let (mut notes, mut failures) = (Vec::new(), Vec::new());
    for (goal, result) in done {
        match result {
            Ok(None) => {}
            Ok(Some(note)) => {
                tracing::info!(object = %goal.id, note, "{verb}");
                notes.push(format!("{} {note}", goal.id));
            }
            Err(failure) => {
                let of = trace.begin(format!("{verb} {}", goal.id));
                trace.fail(of, &failure, "");
                failures.push(failure);
            }
        }
    }
    if failures.is_empty() || !notes.is_empty() {
        trace.end(line, &notes.join("\n"));
    }
    failures.sort_by_key(|failure| failure.passes);
    let mut failures = failures.into_iter();
    let Some(mut first) = failures.next() else { return Ok(()) };
    let rest: Vec<String> = failures.map(|failure| failure.message).collect();
    for message in rest.iter().take(SHOWN) {
        first.message.push_str("; ");
        first.message.push_str(message);
    }
    if rest.len() > SHOWN {
        first.message.push_str(&format!("; and {} more", rest.len() - SHOWN));
    }
    Err(first)
}
