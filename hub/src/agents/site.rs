//! What one agent asks for its site: signs of life of those that it carries for, each signed by its own cluster, against each
//! one's news. Nothing is believed for having been carried: what a poll would check is checked here too, and the time at which
//! a cluster said that it lives counts, not the one at which it came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use http::StatusCode;
use hyper::body::Incoming;
use kedge_hub_types::state::Issued;
use kedge_hub_types::status::Carrier;
use kedge_model::wire::site::{MAX_MEMBERS, MAX_STATE};
use kedge_model::wire::{
    ClusterId, Envelope, Generation, MemberAnswer, Presence, SiteAnswer, SiteRequest, Stream, Timestamp, Turn,
    VerifyingKey,
};
use serde::Deserialize;

use super::answer::{Answer, Refusal, json};
use super::poll::{Has, Passing, believable, catch_up, holds, membership, takes_states};
use super::request::{SITE, malformed};
use super::roster::{Member, Standing};
use super::route::{Caller, Known};
use super::silence::REASON;
use crate::status::{Carried, Contact};
use crate::store::agents::ClusterState;
use crate::store::now;

/// A sign of life as it came.
enum Sign {
    Of(Box<Presence>),
    /// It names a cluster that didn't sign it.
    Forged(ClusterId),
    /// Nobody knows whose it is.
    Unreadable,
}

/// One that is carried for, and may be told its news.
struct Carry {
    presence: Box<Presence>,
    member: Arc<Member>,
    has: Has,
}

/// Whose an envelope claims to be.
#[derive(Deserialize)]
struct Claim {
    key: VerifyingKey,
}

/// A sign of life comes every two minutes: two of them may be lost, and the last needs its time to the hub.
const CHECK_IN_MS: i64 = 6 * 60 * 1000;
/// Clocks of one site and the hub's differ by less.
const AHEAD_MS: i64 = 5 * 60 * 1000;
/// States of one answer have so many bytes, or are one; the others come with the next.
const STATES: usize = 4 * 1024 * 1024;
/// Who left a site since the last question; the others come with the next.
const GONE: i64 = 64;
/// Seconds after which the carrier asks again: the others' holds and memberships come no faster than this.
const NEXT: std::ops::RangeInclusive<u64> = 25..=35;

pub async fn carry(caller: &Caller, known: &Known, body: Incoming) -> Result<Answer, Refusal> {
    let service = &caller.service;
    let request: SiteRequest = service.reading.json(caller.owner(), body, SITE).await?;
    if request.presences.len() > MAX_MEMBERS {
        return Err(malformed(format!("a site has at most {MAX_MEMBERS} members")));
    }
    let carrier = known.member.standing();
    let active = carrier.state == ClusterState::Active;
    let Some(site) = carrier.site.clone().filter(|site| active && !site.is_empty()) else {
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "NoSite", "this cluster belongs to no site");
        return Err(refusal.hint("give it a site: `kedge cluster set NAME --site SITE`"));
    };
    let signs = open_all(request.presences).await?;
    let unreadable = signs.iter().filter(|sign| matches!(sign, Sign::Unreadable)).count();
    if unreadable > 0 {
        tracing::info!(carrier = %known.peer.cluster, site = &*site, unreadable, "a site brings what nobody can read");
    }
    let mut members: BTreeMap<ClusterId, MemberAnswer> = BTreeMap::new();
    let mut newest: BTreeMap<ClusterId, Box<Presence>> = BTreeMap::new();
    for sign in signs {
        match sign {
            Sign::Of(presence) => match newest.get(&presence.cluster()) {
                Some(other) if other.at >= presence.at => {}
                _ => _ = newest.insert(presence.cluster(), presence),
            },
            Sign::Forged(cluster) => _ = members.insert(cluster, refused(cluster, "Forged")),
            Sign::Unreadable => {}
        }
    }
    let asked: Vec<ClusterId> = newest.keys().copied().collect();
    let heard = service.store.last_contacts(&asked).await?;
    let mut carried = Vec::with_capacity(newest.len());
    for (cluster, presence) in newest {
        let last = heard.get(&cluster).copied().unwrap_or_default();
        match admit(caller, &site, presence, last).await? {
            Ok(carry) => carried.push(carry),
            Err(answer) => _ = members.insert(cluster, answer),
        }
    }
    let mut answer = SiteAnswer {
        time: now(),
        next: rand::random_range(NEXT),
        key_sets: Vec::new(),
        states: Vec::new(),
        members: Vec::new(),
        tick: request.since,
    };
    let after = i64::try_from(request.since).unwrap_or(i64::MAX);
    for gone in service.store.gone_from_site(&site, after, GONE).await? {
        answer.tick = u64::try_from(gone.tick).unwrap_or(request.since);
        let membership = Some(stored(&gone.membership)?);
        members.insert(gone.id, MemberAnswer { membership, ..refused(gone.id, word(gone.state)) });
    }
    if let Some(lowest) = carried.iter().map(|carry| carry.has.key_set).min() {
        answer.key_sets = service.keys.key_sets_after(lowest);
    }
    let told = join_all(carried.iter().map(|carry| news(caller, known, &carrier, carry))).await;
    let (mut given, mut room) = (BTreeSet::<Arc<Stream>>::new(), STATES);
    for told in told {
        let (member, state) = told?;
        if let Some((stream, issued)) = state
            && room > 0
            && given.insert(stream)
        {
            room = room.saturating_sub(issued.envelope.len());
            answer.states.push(stored(&issued.envelope)?);
        }
        members.insert(member.cluster, member);
    }
    answer.members = members.into_values().collect();
    Ok(json(StatusCode::OK, &answer))
}

/// Checking hundreds of signatures is work for a processor.
async fn open_all(envelopes: Vec<Envelope>) -> Result<Vec<Sign>, Refusal> {
    let opened = tokio::task::spawn_blocking(move || envelopes.iter().map(Sign::open).collect());
    opened.await.map_err(|error| {
        tracing::error!(%error, "a site's signs of life can't be read");
        Refusal::internal()
    })
}

impl Sign {
    fn open(envelope: &Envelope) -> Sign {
        if let Ok(presence) = Presence::open(envelope) {
            return Sign::Of(Box::new(presence));
        }
        match serde_json::from_slice::<Claim>(&envelope.payload) {
            Ok(claim) => Sign::Forged(ClusterId::of_public_key(claim.key.as_bytes())),
            Err(_) => Sign::Unreadable,
        }
    }
}

fn word(state: ClusterState) -> &'static str {
    match state {
        ClusterState::Active => "Active",
        ClusterState::Retired => "Retired",
        ClusterState::Revoked => "Revoked",
        ClusterState::Replaced => "Replaced",
    }
}

fn refused(cluster: ClusterId, why: &str) -> MemberAnswer {
    let refused = Some(why.to_owned());
    MemberAnswer { cluster, membership: None, holds: None, turn: None, want_status: false, refused }
}

/// Who may be carried for: an active member of the carrier's own site that the hub hasn't heard later by another way.
async fn admit(
    caller: &Caller,
    site: &str,
    presence: Box<Presence>,
    last: Timestamp,
) -> Result<Result<Carry, MemberAnswer>, Refusal> {
    let service = &caller.service;
    let cluster = presence.cluster();
    let Some(member) = service.fleet.roster().find(&service.store, &cluster).await? else {
        return Ok(Err(refused(cluster, "UnknownCluster")));
    };
    let (standing, has) = (member.standing(), Has::of(&presence.poll));
    if standing.state.is_shut_out() {
        // Its peers should hear that.
        let membership = membership(caller, &cluster, &standing, has).await?;
        return Ok(Err(MemberAnswer { membership, ..refused(cluster, word(standing.state)) }));
    }
    if standing.site.as_deref() != Some(site) {
        return Ok(Err(refused(cluster, "OtherSite")));
    }
    if standing.state == ClusterState::Retired {
        // It should hear that, wherever it is.
        let membership = membership(caller, &cluster, &standing, has).await?;
        return Ok(Err(MemberAnswer { membership, ..refused(cluster, word(standing.state)) }));
    }
    if presence.at.0 > now().0.saturating_add(AHEAD_MS) {
        return Ok(Err(refused(cluster, "AheadOfTime")));
    }
    if !believable(caller, &member, has).await? {
        return Ok(Err(refused(cluster, "Malformed")));
    }
    if service.fleet.silence().over(&service.store, &standing.stream.environment, &cluster).await? {
        return Ok(Err(refused(cluster, REASON)));
    }
    if presence.at < last {
        return Ok(Err(refused(cluster, "TooOld")));
    }
    Ok(Ok(Carry { presence, member, has }))
}

/// The newest of its stream, if it lacks it and the carrier may have it.
type State = Option<(Arc<Stream>, Arc<Issued>)>;

/// Notes that it lives, and what it lacks.
async fn news(
    caller: &Caller,
    known: &Known,
    carrier: &Standing,
    carry: &Carry,
) -> Result<(MemberAnswer, State), Refusal> {
    let (service, has) = (&caller.service, carry.has);
    let (cluster, Presence { at, poll, .. }) = (&carry.presence.cluster(), &*carry.presence);
    if has.membership > carry.member.standing().sequence {
        catch_up(caller, cluster, &carry.member, has).await?;
    }
    let standing = carry.member.standing();
    // A clock that is a little ahead says nothing that hasn't happened.
    let at = (*at).min(now());
    let contact = Contact {
        generation: poll.generation,
        look_age: poll.look_age,
        check_in_deadline: Timestamp(at.0.saturating_add(CHECK_IN_MS)),
        heads: poll.status.clone(),
        carried: Some(Carried { at, by: Carrier::Cluster(known.peer.cluster) }),
    };
    service.intake.contact(cluster, contact).await;
    let mut answer = MemberAnswer {
        cluster: *cluster,
        membership: membership(caller, cluster, &standing, has).await?,
        holds: if standing.holds > has.holds { holds(caller, cluster).await? } else { None },
        turn: None,
        want_status: service.intake.wants(cluster, &poll.status),
        refused: None,
    };
    let current = service.desired_states.watch(&standing.stream).borrow().clone();
    let Some(issued) = current.filter(|issued| has.generation < issued.generation && takes_states(&standing, has))
    else {
        return Ok((answer, None));
    };
    if standing.stream != carrier.stream && !carrier.relay {
        answer.refused = Some("NotARelay".to_owned());
        return Ok((answer, None));
    }
    // It would take a permit and never get the state: what is so large comes from the hub itself or on a stick.
    if issued.envelope.len() > MAX_STATE && stored(&issued.envelope)?.payload.len() > MAX_STATE {
        answer.refused = Some("TooLarge".to_owned());
        return Ok((answer, None));
    }
    let fresh = at.0.saturating_add(CHECK_IN_MS) > now().0;
    let may = may_change(caller, cluster, &standing, has, issued.generation, fresh).await;
    // One that asks for turns is of no use without, and its content can be fetched until then.
    if issued.turns && may {
        answer.turn = Some(turn(caller, &carry.presence, &standing, issued.generation)?);
    }
    let state = (may || issued.turns).then_some((standing.stream, issued));
    Ok((answer, state))
}

/// It counts from the sign of life that it answers: who is silent for longer has lost its permit.
fn turn(
    caller: &Caller,
    presence: &Presence,
    standing: &Standing,
    generation: Generation,
) -> Result<Envelope, Refusal> {
    let turn = Turn {
        cluster: presence.cluster(),
        stream: (*standing.stream).clone(),
        generation,
        issued_at: now(),
        asked: Some(presence.at),
    };
    caller.service.fleet.sign(&turn).map_err(|error| {
        tracing::error!(cluster = %turn.cluster, %error, "a turn can't be signed");
        Refusal::internal()
    })
}

/// The ring's limit is asked as for a poll that can't wait. Who may be gone since takes no permit from the others.
async fn may_change(
    caller: &Caller,
    cluster: &ClusterId,
    standing: &Standing,
    has: Has,
    newest: Generation,
    fresh: bool,
) -> bool {
    if !fresh {
        let limit = caller.service.update_limiter.permits().limit_of(&standing.stream, newest).await;
        return matches!(limit, Ok(None));
    }
    Passing::default().may(caller, cluster, standing, has, newest, false).await
}

fn stored(json: &[u8]) -> Result<Envelope, Refusal> {
    Envelope::from_json(json).map_err(|error| {
        tracing::error!(%error, "a stored document can't be read");
        Refusal::internal()
    })
}
