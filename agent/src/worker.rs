//! The applier's thread: all changes of the host happen here, one after the other, so that apt may take its time while the loop goes
//! on talking to the hub. `run` gives it jobs and hears what became true. It survives a panic: the applier is made again and
//! recovers from its journal.

pub mod pulse;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kedge_model::wire::{Generation, Membership, Packages, Timestamp};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::engine::{Desired, Scope, Tended};
use crate::record::Failure;
use crate::told::Told;
use pulse::Pulse;

/// What a job does to the host: the transaction engine, or a fake.
pub trait Applier: Send {
    /// Brings every transaction that was cut to its end, and reports the status of everything.
    fn recover(&mut self);
    /// What is wanted from now on.
    fn desire(&mut self, desired: BTreeMap<String, Desired>);
    fn apply(&mut self, wishes: Vec<Wish>);
    fn remove(&mut self, assignment: &str);
    fn forget(&mut self, assignment: &str);
    /// What failed may be tried again at once.
    fn retry(&mut self, assignment: &str);
    /// Looks whether what was applied is still so, and repairs what isn't held. The time at which to look again, if a repair waits.
    fn look(&mut self, scope: &Scope, held: &BTreeSet<String>) -> Option<Timestamp>;
    /// Between jobs: looks after changes that wait for something.
    fn tend(&mut self) -> Tended {
        Tended::default()
    }
}

/// Makes an applier that tells through the sender: at start, and again after a panic.
pub type Make = Box<dyn FnMut(&UnboundedSender<Told>) -> Result<Box<dyn Applier>, String> + Send>;

/// An entry to be applied.
#[derive(Clone, Debug)]
pub struct Wish {
    pub assignment: String,
    pub packages: Packages,
    pub restart: u64,
    pub generation: Generation,
    pub membership: Arc<Membership>,
    /// Why its content isn't on the disk: remembered and told like every failure. None: it is.
    pub failure: Option<Failure>,
}

#[derive(Clone, Debug)]
pub enum Job {
    Desire(BTreeMap<String, Desired>),
    /// Those that came together know of each other.
    Apply(Vec<Wish>),
    Remove(String),
    Forget(String),
    Retry(String),
    Look {
        scope: Scope,
        held: BTreeSet<String>,
    },
}

/// What comes back.
#[derive(Debug)]
pub enum Heard {
    /// What was cut is whole again; jobs are taken.
    Ready,
    Told(Told),
    /// A job has ended, however it went.
    Done {
        assignments: Vec<String>,
        looked: Option<Scope>,
        again: Option<Timestamp>,
    },
    /// A change that waited between jobs has ended.
    Tended,
    /// The applier broke down in this job, or can't be made: it is made again.
    Broke {
        assignments: Vec<String>,
        why: String,
    },
}

/// The loop's end of it.
#[derive(Debug)]
pub struct Worker {
    jobs: Option<mpsc::Sender<Job>>,
    told: UnboundedReceiver<Told>,
    heard: UnboundedReceiver<Heard>,
    pulse: Arc<Pulse>,
    thread: Option<JoinHandle<()>>,
}

/// The engine nests little; the default of 2 MiB is address space only, but some of it becomes resident.
const STACK: usize = 512 * 1024;
/// After a breakdown, doubled each time…
const FIRST_REST: Duration = Duration::from_secs(1);
/// …up to this.
const LONGEST_REST: Duration = Duration::from_secs(300);

impl Worker {
    pub fn start(pulse: Arc<Pulse>, make: Make) -> io::Result<Worker> {
        let (jobs, taken) = mpsc::channel();
        let ((tell, told), (say, heard)) = (unbounded_channel(), unbounded_channel());
        let bench = Bench { jobs: taken, tell, say, pulse: Arc::clone(&pulse), make };
        let thread = thread::Builder::new().name("applier".to_owned()).stack_size(STACK);
        let thread = thread.spawn(move || bench.work())?;
        Ok(Worker { jobs: Some(jobs), told, heard, pulse, thread: Some(thread) })
    }

    /// Queues a job. Without effect once `stop` was called.
    pub fn give(&self, job: Job) {
        // A thread that has ended was told to.
        _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// None: the thread has ended. What became true comes before the end of its job.
    pub async fn hear(&mut self) -> Option<Heard> {
        tokio::select! {
            biased;
            Some(told) = self.told.recv() => Some(Heard::Told(told)),
            heard = self.heard.recv() => heard,
        }
    }

    /// What became true already, without waiting.
    pub fn told_already(&mut self) -> Option<Told> {
        self.told.try_recv().ok()
    }

    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// The step under way is finished; the journal keeps the rest. Hear until None, then `join`.
    pub fn stop(&mut self) {
        self.pulse.stop();
        self.jobs = None;
    }

    /// Waits for the thread.
    pub fn join(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic that reached the end of the thread was told.
            _ = thread.join();
        }
    }
}

/// The thread's end of it.
struct Bench {
    jobs: mpsc::Receiver<Job>,
    tell: UnboundedSender<Told>,
    say: UnboundedSender<Heard>,
    pulse: Arc<Pulse>,
    make: Make,
}

impl Bench {
    fn work(mut self) {
        let mut rest = FIRST_REST;
        while !self.pulse.is_stopping() {
            self.pulse.begin();
            let begun = self.begin();
            self.pulse.end();
            let (assignments, why) = match begun {
                Ok(mut applier) => {
                    self.say(Heard::Ready);
                    match self.serve(&mut *applier, &mut rest) {
                        None => return,
                        Some(broke) => broke,
                    }
                }
                Err(why) => (Vec::new(), why),
            };
            self.say(Heard::Broke { assignments, why });
            self.pulse.rest(rest);
            rest = (rest * 2).min(LONGEST_REST);
        }
    }

    fn begin(&mut self) -> Result<Box<dyn Applier>, String> {
        let (make, tell) = (&mut self.make, &self.tell);
        let begun = catch_unwind(AssertUnwindSafe(|| {
            let mut applier = make(tell)?;
            applier.recover();
            Ok(applier)
        }));
        begun.unwrap_or_else(|panic| Err(words(&*panic)))
    }

    /// Does jobs until there are none to come; what it broke down in otherwise.
    fn serve(&self, applier: &mut dyn Applier, rest: &mut Duration) -> Option<(Vec<String>, String)> {
        loop {
            let tended = match self.guard(|| applier.tend()) {
                Ok(tended) => tended,
                Err(why) => return Some((Vec::new(), why)),
            };
            if tended.ended {
                self.say(Heard::Tended);
            }
            let job = match tended.next {
                None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(gap) => self.jobs.recv_timeout(gap),
            };
            let job = match job {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return None,
            };
            if self.pulse.is_stopping() {
                return None;
            }
            let (assignments, looked) = (job.assignments(), job.scope());
            match self.guard(|| job.run(applier)) {
                Ok(again) => self.say(Heard::Done { assignments, looked, again }),
                Err(why) => return Some((assignments, why)),
            }
            *rest = FIRST_REST;
        }
    }

    /// Shows that something is under way, and survives its panic.
    fn guard<T>(&self, work: impl FnOnce() -> T) -> Result<T, String> {
        self.pulse.begin();
        let done = catch_unwind(AssertUnwindSafe(work));
        self.pulse.end();
        done.map_err(|panic| words(&*panic))
    }

    fn say(&self, heard: Heard) {
        // The loop may have gone before us.
        _ = self.say.send(heard);
    }
}

impl Job {
    fn assignments(&self) -> Vec<String> {
        match self {
            Job::Apply(wishes) => wishes.iter().map(|wish| wish.assignment.clone()).collect(),
            Job::Remove(assignment) | Job::Forget(assignment) | Job::Retry(assignment) => vec![assignment.clone()],
            Job::Desire(_) | Job::Look { .. } => Vec::new(),
        }
    }

    fn scope(&self) -> Option<Scope> {
        match self {
            Job::Look { scope, .. } => Some(scope.clone()),
            _ => None,
        }
    }

    fn run(self, applier: &mut dyn Applier) -> Option<Timestamp> {
        match self {
            Job::Desire(desired) => applier.desire(desired),
            Job::Apply(wishes) => applier.apply(wishes),
            Job::Remove(assignment) => applier.remove(&assignment),
            Job::Forget(assignment) => applier.forget(&assignment),
            Job::Retry(assignment) => applier.retry(&assignment),
            Job::Look { scope, held } => return applier.look(&scope, &held),
        }
        None
    }
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").finish_non_exhaustive()
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "for an unknown reason".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Panics when it should remove `bad`; waits in a look until it is told to stop.
    struct Fragile(UnboundedSender<Told>, Arc<Pulse>);

    impl Applier for Fragile {
        fn recover(&mut self) {}
        fn desire(&mut self, _: BTreeMap<String, Desired>) {}
        fn apply(&mut self, _: Vec<Wish>) {}
        fn remove(&mut self, assignment: &str) {
            assert_ne!(assignment, "bad", "a bad day");
            _ = self.0.send(Told::WarningOver { code: assignment.to_owned() });
        }
        fn forget(&mut self, _: &str) {}
        fn retry(&mut self, _: &str) {}
        fn look(&mut self, _: &Scope, _: &BTreeSet<String>) -> Option<Timestamp> {
            self.1.rest(Duration::from_secs(60));
            None
        }
    }

    fn start(made: &Arc<AtomicUsize>) -> Worker {
        let (pulse, made) = (Arc::new(Pulse::default()), Arc::clone(made));
        let shared = Arc::clone(&pulse);
        let make: Make = Box::new(move |tell| {
            made.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(Fragile(tell.clone(), Arc::clone(&shared))))
        });
        Worker::start(pulse, make).unwrap()
    }

    fn remove(name: &str) -> Job {
        Job::Remove(name.to_owned())
    }

    #[tokio::test]
    async fn a_panic_is_told_and_the_next_job_is_done_by_a_new_applier() {
        let made = Arc::new(AtomicUsize::new(0));
        let mut worker = start(&made);
        ["good", "bad", "other"].iter().for_each(|name| worker.give(remove(name)));
        let mut said = Vec::new();
        while said.len() < 7 {
            said.push(format!("{:?}", worker.hear().await.unwrap()));
        }
        // What became true is heard as early as possible, so it may come before what it came from.
        let (told, rest): (Vec<String>, Vec<String>) = said.into_iter().partition(|line| line.starts_with("Told"));
        assert!(told.len() == 2 && told[0].contains("good") && told[1].contains("other"), "{told:?}");
        let words: Vec<&str> = rest.iter().filter_map(|line| line.split([' ', '(', '{']).next()).collect();
        assert_eq!(words, ["Ready", "Done", "Broke", "Ready", "Done"]);
        assert!(rest[2].contains("a bad day") && rest[2].contains("\"bad\""), "{rest:?}");
        assert_eq!(made.load(Ordering::SeqCst), 2);
        worker.join();
    }

    #[tokio::test]
    async fn stopping_ends_a_wait_and_leaves_the_queue() {
        let mut worker = start(&Arc::default());
        worker.give(Job::Look { scope: Scope::All, held: BTreeSet::new() });
        worker.give(remove("never"));
        assert!(matches!(worker.hear().await, Some(Heard::Ready)));
        worker.stop();
        let mut said = Vec::new();
        while let Some(heard) = worker.hear().await {
            said.push(format!("{heard:?}"));
        }
        assert!(said.iter().all(|line| !line.contains("never")), "{said:?}");
        worker.join();
    }
}
