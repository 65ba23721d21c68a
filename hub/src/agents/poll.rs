//! The poll: tells the hub how far a cluster is, and waits for news of its stream, its membership or the hub's keys. News is
//! written once and shared by all who wait for it; the database is asked only for what is a single cluster's own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONNECTION, HeaderValue};
use hyper::body::Incoming;
use kedge_model::wire::{ClusterId, Envelope, Generation, PollAnswer, PollRequest, Sequence, Timestamp};
use tokio::time::Instant;

use super::Counted;
use super::answer::{Answer, Content, Refusal, with_type};
use super::fleet::FleetError;
use super::pace::{Load, Pace};
use super::request::{POLL, malformed};
use super::roster::{Member, Standing};
use super::route::{Caller, Known, refuse_shut_out};
use crate::metrics::PollOutcome;
use crate::permits::UpdatePermit;
use crate::status::Contact;
use crate::store::agents::ClusterState;
use crate::store::agents::holds::HoldWriter;
use crate::store::now;

/// What the agent has, as far as holding needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Has {
    pub key_set: u64,
    pub membership: Sequence,
    pub generation: Generation,
    pub holds: u64,
}

/// How a poll gets past a ring whose clusters change a few at a time.
#[derive(Default)]
pub(super) struct Passing {
    /// It stands in the queue.
    asked: Option<UpdatePermit>,
    /// It may be told the states up to this one.
    until: Generation,
    /// The database was away when the ring's limit was looked up.
    again: bool,
}

/// What it is told.
struct News {
    answer: PollAnswer,
    /// The state's envelope as stored, shared.
    state: Option<Bytes>,
}

/// Whoever must prove a generation comes back after this, if it couldn't.
const PROVE_AGAIN: u64 = 30;
/// A ring's limit that couldn't be looked up is looked up again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The update limiter answers within a few commits.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Above what the hub knows that it issued. A database that was put back has forgotten moves, and at most a few leaps of
/// `kedge-hub restore`, each of a million.
const FORGOTTEN: u64 = 1 << 22;
/// Whoever can't bring its document must not ask again and again.
const AFTER_STATUS: std::ops::RangeInclusive<u64> = 2..=6;
/// After a stop: time for a restart, or for another hub.
const AFTER_STOP: std::ops::RangeInclusive<u64> = 1..=8;

pub async fn poll(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let told = tell(caller, known, body).await;
    let outcome = match &told {
        Ok((_, true)) => PollOutcome::News,
        Ok((_, false)) => PollOutcome::Idle,
        Err(refusal) if refusal.status.is_server_error() => PollOutcome::Unavailable,
        Err(_) => PollOutcome::Refused,
    };
    caller.service.metrics.polls.get_or_create(&outcome.into()).inc();
    told.map(|(answer, _)| answer)
}

/// The answer, and whether there is news in it.
async fn tell(caller: &Caller, known: &Known, body: Incoming) -> Result<(Answer, bool), Refusal> {
    let service = &caller.service;
    let request: PollRequest = service.reading.json(caller.owner(), body, POLL).await?;
    let load = Load {
        held: usize::try_from(service.metrics.polls_held.get()).unwrap_or(0),
        profile: request.profile,
        asked: request.wait,
        roll: rand::random_range(0.0..1.0),
    };
    let pace = Pace::choose(&service.config, load);
    let has = Has::of(&request);
    let want_status = service.intake.wants(&known.peer.cluster, &request.status);
    let check_in_deadline =
        now().0.saturating_add(i64::try_from(pace.check_in_within().as_millis()).unwrap_or(i64::MAX));
    let contact = Contact {
        generation: request.generation,
        look_age: request.look_age,
        check_in_deadline: Timestamp(check_in_deadline),
        heads: request.status,
        carried: None,
    };
    service.intake.contact(&known.peer.cluster, contact).await;
    if has.membership > known.member.standing().sequence {
        catch_up(caller, &known.peer.cluster, &known.member, has).await?;
    }
    if unknown_generation(caller, known, has).await? {
        let mut answer = blank(PROVE_AGAIN);
        answer.want_proof = true;
        answer.want_status = want_status;
        return Ok((written(News { answer, state: None }, true)?, true));
    }
    let news = Box::pin(hold(caller, known, has, pace, want_status)).await?;
    let PollAnswer { membership, key_sets, holds, .. } = &news.answer;
    let is_news = news.state.is_some() || membership.is_some() || !key_sets.is_empty() || holds.is_some();
    Ok((written(news, pace.keep && !*caller.shutdown.borrow())?, is_news))
}

/// The cluster has a newer membership than this hub knows. Another hub's is known within a second; one that a restored backup
/// has forgotten is issued again, above it.
pub(super) async fn catch_up(caller: &Caller, cluster: &ClusterId, member: &Member, has: Has) -> Result<(), Refusal> {
    let fleet = &caller.service.fleet;
    fleet.refresh().await;
    if has.membership <= member.standing().sequence {
        return Ok(());
    }
    if !believable(caller, member, has).await? {
        return Err(malformed(format!("membership {} is beyond what this hub could have issued", has.membership)));
    }
    let mut tx = caller.service.store.write().await?;
    fleet.reissue(&mut tx, cluster, has.membership).await.map_err(|error| match error {
        FleetError::Store(error) => error.into(),
        other => {
            tracing::error!(%cluster, error = %other, "a membership can't be issued again");
            Refusal::internal()
        }
    })?;
    tx.commit().await?;
    fleet.refresh().await;
    Ok(())
}

/// Whether the hub can have issued the membership: what nobody issued would be the floor of all numbers after the next restore.
pub(super) async fn believable(caller: &Caller, member: &Member, has: Has) -> Result<bool, Refusal> {
    let known = member.standing().sequence;
    if has.membership <= known {
        return Ok(true);
    }
    let floor = caller.service.store.floor().await?;
    Ok(has.membership.0 <= known.0.max(floor).saturating_add(FORGOTTEN))
}

/// Whether the cluster is ahead of everything that the hub ever wrote: a restored backup has forgotten it.
async fn unknown_generation(caller: &Caller, known: &Known, has: Has) -> Result<bool, Refusal> {
    let standing = known.member.standing();
    if standing.sequence != has.membership || standing.state != ClusterState::Active {
        return Ok(false);
    }
    let shown =
        caller.service.desired_states.watch(&standing.stream).borrow().as_ref().map_or(0, |issued| issued.generation.0);
    if has.generation.0 <= shown {
        return Ok(false);
    }
    // Another hub may have issued it within this second.
    Ok(has.generation.0 > caller.service.store.newest_generation(&standing.stream).await?)
}

/// Waits until there is something to say, the time is over, or the hub stops.
async fn hold(caller: &Caller, known: &Known, has: Has, pace: Pace, want_status: bool) -> Result<News, Refusal> {
    let service = &caller.service;
    let _held = Counted::one(&service.metrics.polls_held);
    let mut shutdown = caller.shutdown.clone();
    let until = Instant::now() + pace.hold;
    let mut over = want_status || pace.hold.is_zero();
    let turn = known.member.take_turn();
    let (mut passing, mut followed) = (Passing::default(), None);
    loop {
        let mut changed = std::pin::pin!(known.member.changed());
        changed.as_mut().enable();
        let standing = known.member.standing();
        refuse_shut_out(&known.member)?;
        let mut states = service.desired_states.watch(&standing.stream);
        let rotated = service.keys.changed();
        let version = service.keys.key_set().version;
        let current = states.borrow_and_update().clone();
        let mut state = current.filter(|issued| has.generation < issued.generation && takes_states(&standing, has));
        if followed.as_ref().is_some_and(|before| *before != standing.stream) {
            passing = Passing::default();
        }
        followed = Some(Arc::clone(&standing.stream));
        if let Some(issued) = &state
            && !passing.may(caller, &known.peer.cluster, &standing, has, issued.generation, !over).await
        {
            state = None;
        }
        let held = standing.holds > has.holds;
        if version > has.key_set || standing.sequence > has.membership || held || state.is_some() {
            let mut answer = blank(pace.news);
            answer.key_sets = service.keys.key_sets_after(has.key_set);
            answer.membership = membership(caller, &known.peer.cluster, &standing, has).await?;
            answer.holds = if held { holds(caller, &known.peer.cluster).await? } else { None };
            // A new membership may name another stream: the cluster says next how far it is there.
            if answer.membership.is_some() {
                answer.next = 0;
            }
            answer.want_status = want_status;
            return Ok(News { answer, state: state.map(|issued| issued.envelope.clone()) });
        }
        let (stops, superseded) = (*shutdown.borrow_and_update(), !known.member.has_turn(turn));
        if over || stops || superseded {
            let next = match (want_status, stops, superseded) {
                // The document comes at once, the next poll after it.
                (true, ..) => rand::random_range(AFTER_STATUS).max(pace.news),
                (_, true, _) => rand::random_range(AFTER_STOP).max(pace.idle),
                // Two hosts with one identity would else end each other's polls all the time.
                (_, _, true) => service.config.wait.as_secs().max(1),
                _ => pace.idle,
            };
            let mut answer = blank(next);
            answer.want_status = want_status;
            return Ok(News { answer, state: None });
        }
        let pause = if passing.again { until.min(Instant::now() + LOOK_AGAIN) } else { until };
        tokio::select! {
            () = changed => {}
            _ = states.changed() => {}
            () = rotated => {}
            () = passing.passed() => {}
            stop = shutdown.changed() => over |= stop.is_err(),
            () = tokio::time::sleep_until(pause) => over |= Instant::now() >= until,
        }
    }
}

impl Has {
    pub(super) fn of(request: &PollRequest) -> Has {
        Has {
            key_set: request.key_set,
            membership: request.membership,
            generation: request.generation,
            holds: request.holds,
        }
    }
}

impl Passing {
    /// Whether a newer state may be told now. A ring without a limit costs nothing; else the poll stands in its queue.
    pub(super) async fn may(
        &mut self,
        caller: &Caller,
        cluster: &ClusterId,
        standing: &Standing,
        has: Has,
        newest: Generation,
        patient: bool,
    ) -> bool {
        let update_limiter = &caller.service.update_limiter;
        self.again = false;
        if self.until >= newest {
            return true;
        }
        match update_limiter.permits().limit_of(&standing.stream, newest).await {
            Ok(None) => return true,
            Ok(Some(_)) => {}
            // Where no policy is in force there never is a limit, whether the database can say so or not.
            Err(_) if !caller.service.fleet.is_governed(&standing.stream.environment) => return true,
            Err(_) => {
                self.again = true;
                return false;
            }
        }
        if self.asked.is_none() {
            let stream = Arc::clone(&standing.stream);
            let mut pass = update_limiter.ask(*cluster, stream, has.generation, patient);
            if !patient {
                // Who can't wait for a permit hears at least whether one is free.
                let answer = tokio::time::timeout(ANSWER_WITHIN, &mut pass).await;
                return matches!(answer, Ok(Ok(Some(generation))) if generation >= newest);
            }
            self.asked = Some(pass);
        }
        false
    }

    /// Ends when the update limiter lets the poll through.
    async fn passed(&mut self) {
        let Some(pass) = &mut self.asked else { return std::future::pending().await };
        let answer = pass.await;
        self.asked = None;
        if let Ok(Some(generation)) = answer {
            self.until = generation;
        }
    }
}

/// Whether the generation that it told is one of this stream, and it should run anything at all.
pub(super) fn takes_states(standing: &Standing, has: Has) -> bool {
    standing.state == ClusterState::Active && standing.sequence == has.membership
}

pub(super) async fn membership(
    caller: &Caller,
    cluster: &ClusterId,
    standing: &Standing,
    has: Has,
) -> Result<Option<Envelope>, Refusal> {
    if standing.sequence <= has.membership {
        return Ok(None);
    }
    let stored = caller.service.store.membership(cluster).await?;
    stored.map(|json| Envelope::from_json(&json)).transpose().map_err(|error| {
        tracing::error!(%cluster, %error, "a stored membership can't be read");
        Refusal::internal()
    })
}

pub(super) async fn holds(caller: &Caller, cluster: &ClusterId) -> Result<Option<Envelope>, Refusal> {
    let stored = caller.service.store.hold_document(cluster, HoldWriter::Hub).await?;
    Ok(stored.map(|(envelope, _)| envelope))
}

fn blank(next: u64) -> PollAnswer {
    PollAnswer {
        time: now(),
        next,
        promise: Pace::promise(next),
        key_sets: Vec::new(),
        membership: None,
        state: None,
        want_status: false,
        want_proof: false,
        holds: None,
    }
}

/// The state goes in as it is stored, without being copied or read.
fn written(news: News, keep: bool) -> Result<Answer, Refusal> {
    let mut json = serde_json::to_vec(&news.answer).map_err(|error| {
        tracing::error!(%error, "a poll's answer can't be written");
        Refusal::internal()
    })?;
    let content = match news.state {
        None => Content::Whole(json.into()),
        Some(state) => {
            json.pop();
            json.extend_from_slice(br#","state":"#);
            Content::Pieces([json.into(), state, Bytes::from_static(b"}")])
        }
    };
    let mut answer = with_type(StatusCode::OK, content);
    if !keep {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use kedge_model::wire::{DesiredState, SigningKey, Stream};

    use super::*;

    #[tokio::test]
    async fn a_shared_state_is_read_back_as_a_part_of_the_answer() {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let state = DesiredState {
            stream: Stream::new("dev", "drone", Stream::ALL),
            generation: Generation(3),
            created_at: Timestamp(1),
            confirmed: 0,
            entries: Vec::new(),
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: None,
            turns: false,
            requires: Vec::new(),
        };
        let envelope = Envelope::sign(&state, &key).unwrap();
        let shared = Bytes::from(envelope.to_json().unwrap());
        let answer = written(News { answer: blank(4), state: Some(shared) }, true).unwrap();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let read: PollAnswer = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((read.state, read.next), (Some(envelope), 4));
    }

    #[tokio::test]
    async fn an_idle_answer_is_below_a_hundred_bytes() {
        let answer = written(News { answer: blank(0), state: None }, true).unwrap();
        assert!(answer.into_body().collect().await.unwrap().to_bytes().len() < 100);
    }
}
