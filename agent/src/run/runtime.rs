//! What the loop has at hand on this host, with or without a hub: the applier's thread, the watch on what it applied, signals and
//! systemd. It gives looks when they are due; nobody else does.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::service::Service;
use crate::clock::Clock;
use crate::drift::{Noticed, Places, Subject, Watch};
use crate::engine::Scope;
use crate::paths::Paths;
use crate::record::Record;
use crate::worker::{Heard, Job, Worker};

/// What the process is told from outside.
#[derive(Clone, Debug)]
pub struct Signals {
    /// True: end the step under way and stop.
    pub shutdown: watch::Receiver<bool>,
    /// Look at everything now.
    pub look: Arc<Notify>,
}

/// What tells of changes beside the host's own files: the watches on a cluster's objects.
pub(super) struct Outside {
    /// Assignments at whose objects something happened.
    pub noticed: UnboundedReceiver<BTreeSet<String>>,
    /// Listens to what these records name from now on.
    pub follow: Box<Follow>,
}

pub(super) type Follow = dyn FnMut(&BTreeMap<String, Record>);

pub(super) struct AgentRuntime {
    pub worker: Worker,
    pub service: Service,
    watch: Watch,
    outside: Option<Outside>,
    signals: Signals,
    look_interval: Duration,
    look_at: Instant,
    /// A full look was given and hasn't ended.
    looking: bool,
    /// Another one was asked for since: what it was given with may be old.
    asked: bool,
    /// Assignments at which something happened.
    touched: BTreeSet<String>,
    /// Jobs that haven't ended.
    jobs: usize,
}

/// What happened on this host.
#[derive(Debug)]
pub(super) enum Event {
    Stop,
    Heard(Heard),
    /// The thread has ended, and nobody told it to.
    Deserted,
    Noticed(BTreeSet<Subject>),
    /// Some time has come.
    Time,
}

impl AgentRuntime {
    pub(super) fn new(
        worker: Worker,
        signals: Signals,
        service: Service,
        look_interval: Duration,
        outside: Option<Outside>,
    ) -> io::Result<AgentRuntime> {
        Ok(AgentRuntime {
            worker,
            service,
            watch: Watch::new()?,
            outside,
            signals,
            look_interval,
            look_at: Instant::now(),
            looking: false,
            asked: false,
            touched: BTreeSet::new(),
            jobs: 0,
        })
    }

    pub(super) fn give(&mut self, job: Job) {
        self.jobs += 1;
        self.worker.give(job);
    }

    /// Waits for what happens next, until `wake` at the latest.
    pub(super) async fn event(&mut self, wake: Option<Instant>) -> Event {
        let times = [wake, self.service.due(), (!self.looking).then_some(self.look_at)];
        let wake = times.into_iter().flatten().min();
        tokio::select! {
            biased;
            () = stopped(&mut self.signals.shutdown) => Event::Stop,
            heard = self.worker.hear() => match heard {
                Some(heard) => self.heard(heard),
                None => Event::Deserted,
            },
            noticed = self.watch.next() => self.noticed(noticed),
            assignments = next_outside(&mut self.outside) => {
                let subjects = assignments.iter().cloned().map(Subject::Assignment).collect();
                self.touched.extend(assignments);
                Event::Noticed(subjects)
            }
            () = self.signals.look.notified() => {
                self.look_soon();
                Event::Time
            }
            () = at(wake) => Event::Time,
        }
    }

    /// Gives what is due: a sign of life, a look at what was touched, a look at everything.
    pub(super) fn keep_up(&mut self, held: &BTreeSet<String>) {
        self.service.beat(self.worker.pulse().is_alive());
        if !self.looking && Instant::now() >= self.look_at {
            (self.looking, self.asked) = (true, false);
            self.touched.clear();
            self.give(Job::Look { scope: Scope::All, held: held.clone() });
        }
        // The applier's own changes are touches too: they are looked at once it has ended.
        if self.jobs == 0 && !self.touched.is_empty() {
            let scope = Scope::Only(std::mem::take(&mut self.touched));
            self.give(Job::Look { scope, held: held.clone() });
        }
    }

    /// They are looked at once the applier has nothing else to do.
    pub(super) fn touch(&mut self, assignments: impl IntoIterator<Item = String>) {
        self.touched.extend(assignments);
    }

    pub(super) fn look_soon(&mut self) {
        self.look_at = Instant::now();
        self.asked = true;
    }

    /// A repair waits until then.
    pub(super) fn look_again(&mut self, at: Timestamp, clock: &dyn Clock) {
        self.look_at = self.look_at.min(instant(at, clock));
        self.asked = true;
    }

    /// Listens to what these assignments have on the host, and to the agent's own doors.
    pub(super) fn follow(&mut self, records: &BTreeMap<String, Record>, paths: &Paths) {
        let mut places = Places::doors(paths);
        for (assignment, record) in records {
            if let Some(running) = &record.running {
                places.add_goal(assignment, &running.goal, paths);
            }
        }
        if let Some(outside) = &mut self.outside {
            (outside.follow)(records);
        }
        if let Err(error) = self.watch.follow(&places) {
            tracing::warn!(%error, "not everything can be watched; the full look finds the rest");
        }
    }

    /// Ends the step under way. What is told meanwhile goes to `tell`.
    pub(super) async fn close(&mut self, mut tell: impl FnMut(Heard)) {
        self.service.stopping();
        self.worker.stop();
        loop {
            let wake = self.service.due();
            tokio::select! {
                heard = self.worker.hear() => match heard {
                    Some(heard) => tell(heard),
                    None => break,
                },
                () = at(wake) => self.service.beat(self.worker.pulse().is_alive()),
            }
        }
        self.worker.join();
    }

    fn end_look(&mut self) {
        self.looking = false;
        if !self.asked {
            self.look_at = Instant::now() + self.look_interval;
        }
    }

    fn heard(&mut self, heard: Heard) -> Event {
        match &heard {
            Heard::Ready => self.look_soon(),
            Heard::Told(_) | Heard::Tended => {}
            Heard::Done { looked, .. } => {
                self.jobs = self.jobs.saturating_sub(1);
                if *looked == Some(Scope::All) {
                    self.end_look();
                }
            }
            Heard::Broke { .. } => {
                self.jobs = self.jobs.saturating_sub(1);
                // It may have been the look; the next one comes with the new applier.
                self.end_look();
            }
        }
        Event::Heard(heard)
    }

    fn noticed(&mut self, noticed: io::Result<Noticed>) -> Event {
        match noticed {
            Ok(Noticed::Some(subjects)) => {
                for subject in &subjects {
                    if let Subject::Assignment(assignment) = subject {
                        self.touched.insert(assignment.clone());
                    }
                }
                Event::Noticed(subjects)
            }
            Ok(Noticed::Everything) => {
                self.look_soon();
                Event::Noticed([Subject::Holds, Subject::External, Subject::Identity, Subject::Inbox].into())
            }
            Err(error) => {
                tracing::warn!(%error, "inotify failed");
                self.look_soon();
                Event::Time
            }
        }
    }
}

/// When the wall clock will say this, if nobody sets it.
pub(super) fn instant(at: Timestamp, clock: &dyn Clock) -> Instant {
    let left = u64::try_from(at.0.saturating_sub(clock.now().0)).unwrap_or(0);
    Instant::now() + Duration::from_millis(left).min(Duration::from_secs(86_400))
}

pub(super) async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    if shutdown.wait_for(|stop| *stop).await.is_err() {
        // Nobody is left to say so.
        std::future::pending().await
    }
}

/// Events that come together are told together. Nobody outside: for ever.
async fn next_outside(outside: &mut Option<Outside>) -> BTreeSet<String> {
    let told = match outside {
        Some(outside) => outside.noticed.recv().await,
        None => None,
    };
    let (Some(mut assignments), Some(outside)) = (told, outside) else { return std::future::pending().await };
    while let Ok(more) = outside.noticed.try_recv() {
        assignments.extend(more);
    }
    assignments
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use std::sync::{Mutex, mpsc};

    use super::*;
    use crate::engine::Desired;
    use crate::worker::pulse::Pulse;
    use crate::worker::{Applier, Make, Wish};

    /// Looks as long as the test says, and notes what was held.
    struct SlowLooker(Arc<Mutex<mpsc::Receiver<()>>>, Arc<Mutex<Vec<usize>>>);

    impl Applier for SlowLooker {
        fn recover(&mut self) {}
        fn desire(&mut self, _: BTreeMap<String, Desired>) {}
        fn apply(&mut self, _: Vec<Wish>) {}
        fn remove(&mut self, _: &str) {}
        fn forget(&mut self, _: &str) {}
        fn retry(&mut self, _: &str) {}
        fn look(&mut self, _: &Scope, held: &BTreeSet<String>) -> Option<Timestamp> {
            _ = self.0.lock().unwrap().recv();
            self.1.lock().unwrap().push(held.len());
            None
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_is_asked_for_during_a_look_comes_after_it() {
        let (go, wait) = mpsc::channel();
        let (wait, looks) = (Arc::new(Mutex::new(wait)), Arc::new(Mutex::new(Vec::new())));
        let seen = Arc::clone(&looks);
        let make: Make = Box::new(move |_| Ok(Box::new(SlowLooker(Arc::clone(&wait), Arc::clone(&seen)))));
        let (_stop, shutdown) = watch::channel(false);
        let signals = Signals { shutdown, look: Arc::new(Notify::new()) };
        let worker = Worker::start(Arc::new(Pulse::default()), make).unwrap();
        let mut agent = AgentRuntime::new(worker, signals, Service::new(), Duration::from_secs(300), None).unwrap();
        let began = Instant::now();
        agent.keep_up(&["web".to_owned()].into());
        // The hold is taken back while the look is on its way.
        agent.look_soon();
        go.send(()).unwrap();
        go.send(()).unwrap();
        while looks.lock().unwrap().len() < 2 {
            agent.event(None).await;
            agent.keep_up(&BTreeSet::new());
        }
        assert_eq!(*looks.lock().unwrap(), [1, 0]);
        assert!(began.elapsed() < Duration::from_secs(60));
        drop(go);
        agent.close(|_| {}).await;
    }
}
