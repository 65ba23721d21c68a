//! Which of a cluster's agents works: the one that holds the Lease. `Candidate` decides without a clock or a network; `keep` is the
//! task that asks the API server and does what it says. `run` waits for its `Standing`, the applier and the secret ledger ask its `Gate`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::asking::{self, Answer, AskError};
pub use offer::Offer;

mod offer;
#[cfg(test)]
mod tests;

/// Whose the Lease is, as this agent knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Another one works, or nobody knows yet who. It may offer its content.
    By { holder: Option<String>, offer: Option<Offer> },
    /// This one works, in this term: each has a higher number than the one before.
    Holds { term: u64 },
}

/// Whether a change may be made now: the Lease was renewed so lately that nobody else can have it.
#[derive(Debug)]
pub struct Gate {
    began: Instant,
    /// Milliseconds since `began`; 0: not held.
    until: AtomicU64,
}

/// Where the Lease is, and under which name this agent holds it.
#[derive(Clone, Debug)]
pub struct Place {
    pub namespace: String,
    pub lease: String,
    pub holder: String,
    /// What is written beside it while it is held.
    pub offer: watch::Receiver<Option<Offer>>,
}

/// The Lease as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Empty: it was given back.
    pub holder: String,
    /// As its holder wrote it; only compared with itself, since clocks differ.
    pub renewed: String,
    pub duration: Duration,
    pub transitions: u64,
    pub version: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nobody ever had it.
    Create { term: u64 },
    /// Its holder gave it back or is silent for too long.
    Take { term: u64 },
    /// It is ours.
    Renew,
    /// Another's: look again after this.
    Wait(Duration),
}

/// One who wants the Lease. Times are since some moment, by a clock that only goes on.
#[derive(Debug)]
pub struct Candidate {
    name: String,
    /// What another holder wrote last, and when that was first seen here.
    observed: Option<(Seen, Duration)>,
    /// The term in which it is held by this process.
    term: Option<u64>,
}

/// A holder that is silent for so long has lost it. A standby sees a renewal two seconds late at worst, so that it has taken over
/// within fifteen seconds.
pub const DURATION: Duration = Duration::from_secs(9);
/// Two renewals may fail before it is lost.
const RENEW_EVERY: Duration = Duration::from_secs(3);
/// A standby looks so often.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// After this without a renewal nothing is changed any more: a request that is on its way must end before another begins.
const SURE_FOR: Duration = Duration::from_secs(7);
/// A request that takes longer is tried again.
const LIMIT: Duration = Duration::from_secs(4);
/// After a request that failed.
const AGAIN: Duration = Duration::from_secs(1);

impl Candidate {
    pub fn new(name: &str) -> Candidate {
        Candidate { name: name.to_owned(), observed: None, term: None }
    }

    pub fn term(&self) -> Option<u64> {
        self.term
    }

    /// The Lease was read at `now`; none: there is none.
    pub fn decide(&mut self, now: Duration, seen: Option<&Seen>) -> Next {
        let Some(seen) = seen else {
            self.term = None;
            return Next::Create { term: 1 };
        };
        if seen.holder == self.name && self.term == Some(seen.transitions) {
            return Next::Renew;
        }
        self.term = None;
        let term = seen.transitions.saturating_add(1);
        // A container that was started again has its pod's name, and the one before it is gone.
        if seen.holder.is_empty() || seen.holder == self.name {
            return Next::Take { term };
        }
        let same = |before: &Seen| (&before.holder, &before.renewed) == (&seen.holder, &seen.renewed);
        let since = match &self.observed {
            Some((before, since)) if same(before) => *since,
            _ => {
                self.observed = Some((seen.clone(), now));
                now
            }
        };
        let expires = since.saturating_add(seen.duration.min(MOST_DURATION));
        if now >= expires { Next::Take { term } } else { Next::Wait((expires - now).min(LOOK_EVERY)) }
    }

    /// Writing went well.
    pub fn took(&mut self, term: u64) {
        (self.term, self.observed) = (Some(term), None);
    }
}

/// A Lease that somebody wrote by hand must not stop a cluster for a day.
const MOST_DURATION: Duration = Duration::from_secs(60);

impl Default for Gate {
    fn default() -> Gate {
        Gate { began: Instant::now(), until: AtomicU64::new(0) }
    }
}

impl Gate {
    pub fn is_held(&self) -> bool {
        self.millis(self.began.elapsed()) < self.until.load(Ordering::Acquire)
    }

    /// A renewal that was asked for at this moment went well.
    fn open_since(&self, asked: Instant) {
        let until = asked.saturating_duration_since(self.began).saturating_add(SURE_FOR);
        self.until.store(self.millis(until), Ordering::Release);
    }

    pub fn close(&self) {
        self.until.store(0, Ordering::Release);
    }

    fn millis(&self, time: Duration) -> u64 {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Place {
    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace)
    }

    fn address(&self) -> String {
        format!("{}/{}", self.collection(), self.lease)
    }

    /// What is written beside it; none takes away what the holder before wrote.
    fn offered(&self, holder: &str) -> Option<String> {
        self.offer.borrow().as_ref().filter(|_| !holder.is_empty()).map(ToString::to_string)
    }
}

/// Runs until `stop` says true; then the Lease is given back, so that another one needn't wait.
pub async fn keep(
    client: Client,
    place: Place,
    gate: Arc<Gate>,
    standing: watch::Sender<Standing>,
    mut stop: watch::Receiver<bool>,
) {
    let (mut candidate, began) = (Candidate::new(&place.holder), Instant::now());
    let mut version = None;
    let mut told: Option<String> = None;
    loop {
        let rest = match once(&client, &place, &gate, &standing, &mut candidate, &mut version, began).await {
            Ok(rest) => {
                if told.take().is_some() {
                    tracing::info!("the API server answers again");
                }
                rest
            }
            Err(error) => {
                version = None;
                let said = error.to_string();
                if told.as_ref() != Some(&said) {
                    tracing::warn!(error = said, held = gate.is_held(), "the Lease can't be kept; trying again");
                    told = Some(said);
                }
                AGAIN
            }
        };
        // Not all at the same moment.
        let rest = rest.mul_f64(rand::random_range(0.9..1.0));
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            stopped = stop.wait_for(|stop| *stop) => {
                gate.close();
                if let (Some(term), Ok(_)) = (candidate.term(), stopped) {
                    give_back(&client, &place, term, version.as_deref()).await;
                }
                return;
            }
        }
    }
}

/// One round: reads where that is needed, and writes what follows. How long to rest.
async fn once(
    client: &Client,
    place: &Place,
    gate: &Gate,
    standing: &watch::Sender<Standing>,
    candidate: &mut Candidate,
    version: &mut Option<String>,
    began: Instant,
) -> Result<Duration, AskError> {
    let asked = Instant::now();
    // While nobody else wrote it, the version of our own last write is the current one.
    if let (Some(term), Some(known)) = (candidate.term(), version.as_deref()) {
        match write(client, place, term, Some(known), &place.holder).await {
            Ok(next) => {
                gate.open_since(asked);
                *version = Some(next);
                return Ok(RENEW_EVERY);
            }
            Err(AskError::Conflict(_) | AskError::Missing(_)) => *version = None,
            Err(error) => return Err(error),
        }
    }
    let lease = match asking::get(client, &place.address(), LIMIT).await {
        Ok(lease) => Some(lease),
        Err(AskError::Missing(_)) => None,
        Err(error) => return Err(error),
    };
    let seen = lease.as_ref().map(read);
    let next = candidate.decide(began.elapsed(), seen.as_ref());
    let known = seen.as_ref().map(|seen| seen.version.as_str());
    let (term, known) = match next {
        Next::Wait(rest) => {
            gate.close();
            let holder = seen.map(|seen| seen.holder).filter(|holder| !holder.is_empty());
            let offer = lease.as_ref().and_then(Offer::of);
            standing.send_if_modified(|now| {
                let by = Standing::By { holder, offer };
                std::mem::replace(now, by.clone()) != by
            });
            return Ok(rest);
        }
        Next::Create { term } => (term, None),
        Next::Take { term } => (term, known),
        Next::Renew => (candidate.term().unwrap_or_default(), known),
    };
    let asked = Instant::now();
    match write(client, place, term, known, &place.holder).await {
        Ok(next) => {
            gate.open_since(asked);
            *version = Some(next);
            candidate.took(term);
            standing.send_if_modified(|now| {
                let holds = Standing::Holds { term };
                std::mem::replace(now, holds.clone()) != holds
            });
            Ok(RENEW_EVERY)
        }
        // Somebody was quicker.
        Err(AskError::Conflict(_) | AskError::Missing(_)) => Ok(Duration::ZERO),
        Err(error) => Err(error),
    }
}

/// Writes it, if it is still as `version` says. The version that it then has.
async fn write(
    client: &Client,
    place: &Place,
    term: u64,
    version: Option<&str>,
    holder: &str,
) -> Result<String, AskError> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let mut spec = json!({
        "holderIdentity": holder,
        "leaseDurationSeconds": DURATION.as_secs(),
        "leaseTransitions": term,
        "renewTime": now,
    });
    let answer: Answer = match version {
        None => {
            spec["acquireTime"] = spec["renewTime"].clone();
            let body = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": place.lease, "namespace": place.namespace},
                "spec": spec,
            });
            asking::create(client, &place.collection(), &body, LIMIT).await?
        }
        Some(version) => {
            let annotations = json!({offer::ANNOTATION: place.offered(holder)});
            let body = json!({"metadata": {"resourceVersion": version, "annotations": annotations}, "spec": spec});
            asking::patch(client, &place.address(), &body, LIMIT).await?
        }
    };
    Ok(text(&answer, "/metadata/resourceVersion"))
}

async fn give_back(client: &Client, place: &Place, term: u64, version: Option<&str>) {
    let Some(version) = version else { return };
    match write(client, place, term, Some(version), "").await {
        Ok(_) => tracing::info!("the Lease is given back"),
        Err(error) => {
            tracing::warn!(%error, "the Lease can't be given back; another agent takes it when it has expired")
        }
    }
}

fn read(lease: &Value) -> Seen {
    let number = |path: &str| lease.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    Seen {
        holder: text(lease, "/spec/holderIdentity"),
        renewed: text(lease, "/spec/renewTime"),
        duration: Duration::from_secs(number("/spec/leaseDurationSeconds")),
        transitions: number("/spec/leaseTransitions"),
        version: text(lease, "/metadata/resourceVersion"),
    }
}

fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}
