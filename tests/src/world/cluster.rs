//! A simulated cluster as tests see it: blocking, with a status document of its own.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kedge_model::wire::{Envelope, Generation, JoinToken, Mode, PackageRef, PollAnswer, Timestamp};
use kedge_status::{Condition, Nonce, Report, StatusDocument};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::SOON;
use crate::agent::identity::Identity;
use crate::agent::{Agent, AgentError};

/// No single exchange of a test takes longer, a held poll included.
const EXCHANGE_WITHIN: Duration = Duration::from_secs(60);

/// An agent and what it says of itself.
#[derive(Debug)]
pub struct Cluster {
    pub agent: Agent,
    pub document: StatusDocument,
}

/// A poll that is held in the background.
#[derive(Debug)]
pub struct Held(JoinHandle<(Cluster, Result<PollAnswer, AgentError>)>);

/// The runtime of all clusters of a test's process.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    runtime().block_on(work)
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
}

/// What `kedge token create` printed.
pub fn token(text: &str) -> JoinToken {
    text.trim().parse().unwrap_or_else(|e| panic!("{e}: {text}"))
}

impl Cluster {
    #[track_caller]
    pub fn join(token: &JoinToken, name: &str) -> Cluster {
        Cluster::try_join(token, name).unwrap_or_else(|e| panic!("{name} joins: {e}"))
    }

    pub fn try_join(token: &JoinToken, name: &str) -> Result<Cluster, AgentError> {
        Cluster::join_as(Arc::new(Identity::generate()), token, name)
    }

    pub fn join_as(identity: Arc<Identity>, token: &JoinToken, name: &str) -> Result<Cluster, AgentError> {
        let agent = within(Agent::join_as(identity, token, name, None))?;
        let document = StatusDocument::new(agent.identity.key.public(), 1, Nonce([1; 16]));
        Ok(Cluster { agent, document })
    }

    pub fn poll(&mut self) -> Result<PollAnswer, AgentError> {
        self.agent.heads = self.document.heads();
        within(self.agent.poll())
    }

    /// Asks for an answer at once.
    pub fn look(&mut self) -> Result<PollAnswer, AgentError> {
        self.agent.wait = Some(0);
        let answer = self.poll();
        self.agent.wait = None;
        answer
    }

    /// Polls until it has at least this generation.
    #[track_caller]
    pub fn await_generation(&mut self, generation: u64) {
        let began = Instant::now();
        while self.agent.generation < Generation(generation) {
            assert!(began.elapsed() < SOON, "generation {generation} is not there, but {}", self.agent.generation);
            self.poll().unwrap_or_else(|e| panic!("a poll for generation {generation}: {e}"));
        }
    }

    /// Polls in the background until the hub answers.
    pub fn hold(mut self) -> Held {
        self.agent.heads = self.document.heads();
        Held(runtime().spawn(async move {
            let answer = self.agent.poll().await;
            (self, answer)
        }))
    }

    /// Every package of the state that it has.
    pub fn packages(&self) -> Vec<PackageRef> {
        let entries = self.agent.state.iter().flat_map(|state| &state.entries);
        let applied = entries.filter_map(|entry| match &entry.mode {
            Mode::Apply(packages) => Some([packages.platform.clone(), packages.workload.clone()]),
            Mode::Observe(_) => None,
        });
        applied.flatten().collect()
    }

    /// Fetches a blob; its bytes.
    #[track_caller]
    pub fn fetch(&mut self, package: &PackageRef) -> Vec<u8> {
        let reply = within(self.agent.fetch(&package.digest, 0)).unwrap();
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        reply.body
    }

    /// Writes the condition of every assignment of its state into the document.
    pub fn set_all(&mut self, condition: &Condition) {
        let state = self.agent.state.clone().expect("it has a state");
        for entry in &state.entries {
            let key = entry.packages_key();
            let running = (*condition == Condition::Converged).then_some(key);
            self.set(&entry.assignment, report(condition.clone(), Some(key), running, state.generation));
        }
    }

    pub fn set(&mut self, assignment: &str, report: Report) {
        self.document.set_report(assignment, &report).unwrap();
    }

    /// The document as it is now, signed.
    pub fn seal(&mut self) -> Envelope {
        self.document.seal(&self.agent.identity.key, now(), None).unwrap()
    }

    /// Sends the document as it is now.
    pub fn send(&mut self) -> Result<(), AgentError> {
        let envelope = self.seal();
        self.carry(&envelope)
    }

    /// Sends any document.
    pub fn carry(&mut self, envelope: &Envelope) -> Result<(), AgentError> {
        within(self.agent.send_status(envelope))
    }

    /// Says that everything it should run does.
    #[track_caller]
    pub fn converge(&mut self) {
        self.set_all(&Condition::Converged);
        self.send().unwrap();
    }
}

impl Held {
    /// The answer, once it is there.
    pub fn answer(self, within: Duration) -> (Cluster, Result<PollAnswer, AgentError>) {
        let ended = block_on(async { tokio::time::timeout(within, self.0).await });
        ended.unwrap_or_else(|_| panic!("the held poll is still held after {within:?}")).unwrap()
    }

    pub fn is_answered(&self) -> bool {
        self.0.is_finished()
    }
}

/// A report of now.
pub fn report(
    condition: Condition,
    desired: Option<kedge_model::wire::PackagesKey>,
    running: Option<kedge_model::wire::PackagesKey>,
    generation: Generation,
) -> Report {
    let (since, observed_at) = (now(), now());
    Report { desired, generation, running, version: None, condition, since, observed_at, drift: None, clock: 0 }
}

pub fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp(i64::try_from(since.as_millis()).unwrap())
}

/// An exchange that must not hang.
pub fn within<T>(work: impl Future<Output = Result<T, AgentError>>) -> Result<T, AgentError> {
    block_on(async { tokio::time::timeout(EXCHANGE_WITHIN, work).await })
        .unwrap_or_else(|_| panic!("no answer within {EXCHANGE_WITHIN:?}"))
}
