//! Thousands of agents in one process: they join, hold their polls, and tell when the last one has a generation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_model::wire::{Generation, JoinToken};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{Agent, AgentError};

/// A running crowd.
#[derive(Debug)]
pub struct Crowd {
    seen: Vec<watch::Receiver<Generation>>,
    /// Of the one that is furthest.
    newest: watch::Receiver<Generation>,
    tasks: JoinSet<()>,
}

/// Handshakes that run at one time: a hub on the same two cores takes no more.
const AT_ONCE: usize = 64;
/// After a connection that broke.
const AGAIN: Duration = Duration::from_millis(500);

impl Crowd {
    /// Joins so many with one token, named by their number.
    pub async fn join(token: &JoinToken, count: usize) -> Result<Vec<Agent>, AgentError> {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut joins = JoinSet::new();
        for number in 0..count {
            let (token, room) = (token.clone(), Arc::clone(&room));
            joins.spawn(async move {
                let _place = room.acquire_owned().await;
                Agent::join(&token, &format!("simulated-{number:05}")).await
            });
        }
        let mut agents = Vec::with_capacity(count);
        while let Some(joined) = joins.join_next().await {
            agents.push(joined.expect("a join's task")?);
        }
        Ok(agents)
    }

    /// Lets all poll from now on, each as its answers say.
    pub fn start(agents: Vec<Agent>) -> Crowd {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut tasks = JoinSet::new();
        let (furthest, newest) = watch::channel(Generation(0));
        let furthest = Arc::new(furthest);
        let seen = agents
            .into_iter()
            .map(|agent| {
                let (sender, receiver) = watch::channel(agent.generation);
                tasks.spawn(live(agent, sender, Arc::clone(&furthest), Arc::clone(&room)));
                receiver
            })
            .collect();
        Crowd { seen, newest, tasks }
    }

    /// How many have at least this generation.
    pub fn reached(&self, generation: Generation) -> usize {
        self.seen.iter().filter(|seen| *seen.borrow() >= generation).count()
    }

    /// The moment at which anybody has it.
    pub async fn first_reaches(&mut self, generation: Generation) -> Instant {
        let mut newest = self.newest.clone();
        // The crowd itself holds the sender.
        let _ = newest.wait_for(|has| *has >= generation).await;
        Instant::now()
    }

    /// Waits until all have it; how long the last one took.
    pub async fn all_reach(&mut self, generation: Generation, since: Instant) -> Duration {
        for seen in &mut self.seen {
            if seen.wait_for(|has| *has >= generation).await.is_err() {
                return Duration::MAX;
            }
        }
        since.elapsed()
    }

    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// A process of its own: joins, holds, and prints a line for each step: `holding`, then `reached GENERATION SECONDS` with the
/// time since the first of the crowd had it. Ends when its input ends.
pub async fn run(token: &JoinToken, count: usize) -> Result<(), AgentError> {
    let agents = Crowd::join(token, count).await?;
    println!("joined {count}");
    let mut crowd = Crowd::start(agents);
    let mut next = Generation(1);
    let input = tokio::task::spawn_blocking(|| std::io::stdin().lines().for_each(drop));
    let watched = async {
        loop {
            let first = crowd.first_reaches(next).await;
            let took = crowd.all_reach(next, first).await;
            println!("reached {next} {:.3}", took.as_secs_f64());
            next.0 += 1;
        }
    };
    tokio::select! {
        () = watched => {}
        _ = input => {}
    }
    crowd.stop().await;
    Ok(())
}

async fn live(
    mut agent: Agent,
    seen: watch::Sender<Generation>,
    furthest: Arc<watch::Sender<Generation>>,
    room: Arc<Semaphore>,
) {
    loop {
        if agent.is_disconnected() {
            let _place = room.acquire().await;
            let _ = agent.connect().await;
        }
        match agent.poll().await {
            Ok(answer) => {
                seen.send_replace(agent.generation);
                furthest.send_if_modified(|known| {
                    let further = *known < agent.generation;
                    *known = agent.generation.max(*known);
                    further
                });
                // What was verified isn't needed again: a crowd stays small.
                (agent.state, agent.state_envelope) = (None, None);
                tokio::time::sleep(Duration::from_secs(answer.next)).await;
            }
            Err(_) => {
                agent.disconnect();
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}
