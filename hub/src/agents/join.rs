//! The join: a token and a key become a member with a certificate. Asked again with the same key it gives the same membership
//! and uses the token no further; the token's use and the cluster's row are one transaction.

use kedge_model::name::{NameError, check_cluster_name};
use std::time::Instant;

use http::StatusCode;
use hyper::body::Incoming;
use kedge_model::wire::{ClusterId, Envelope, JoinAnswer, JoinRequest, Sequence, Stream, Timestamp};

use super::answer::{Answer, Refusal, json};
use super::entry::{Newcomer, Return, check_words, note};
use super::fleet::FleetError;
use super::request::{JOIN, malformed};
use super::route::Caller;
use super::token::{NoRandom, TokenRefusal, fitness, opens};
use crate::keys::authority::{self, AuthorityError, IssuedCertificate};
use crate::metrics::JoinOutcome;
use crate::store::agents::tokens::TokenRow;
use crate::store::agents::{ClusterRow, ClusterState};
use crate::store::{Tx, now};

/// What a join does with a cluster that is there already, or isn't.
enum Entry {
    New(ClusterRow),
    /// Nothing changes: an answer that was lost, or a second token for the same place.
    Same(ClusterRow),
    /// Retired before, as it was; now it becomes a member again.
    Back(ClusterRow),
}

/// The key that asks; it signed its request.
pub(super) struct Applicant {
    pub cluster: ClusterId,
    pub public_key: [u8; 32],
}

pub async fn join(caller: &Caller, body: Incoming) -> Result<Answer, Refusal> {
    let attempts = &caller.service.attempts;
    if let Err(seconds) = attempts.check(caller.address, Instant::now()) {
        let message = "too many joins from this address were refused";
        let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TooManyAttempts", message).closing();
        return Err(Refusal { retry_after: Some(seconds), ..refusal });
    }
    let request = caller.service.reading.json(caller.owner(), body, JOIN).await?;
    let answered = admit(caller, request).await;
    if let Err(refusal) = &answered
        && refusal.status.is_client_error()
    {
        attempts.refused(caller.address, Instant::now());
        tracing::info!(address = %caller.address, reason = refusal.reason, "a join was refused");
    }
    let outcome = match &answered {
        Ok((_, outcome)) => *outcome,
        Err(refusal) if refusal.status.is_client_error() => JoinOutcome::Refused,
        Err(_) => JoinOutcome::Unavailable,
    };
    caller.service.metrics.joins.get_or_create(&outcome.into()).inc();
    answered.map(|(answer, _)| answer)
}

async fn admit(caller: &Caller, request: JoinRequest) -> Result<(Answer, JoinOutcome), Refusal> {
    let service = &caller.service;
    check_words(&request.name, &request.facts).map_err(malformed)?;
    let applicant = Applicant::of(&request.csr)?;
    // The secret is checked before the one writer is taken, so that guessing holds nobody up.
    match service.store.join_token(&request.token_id).await? {
        Some(token) if opens(&token, &request.secret).map_err(no_random)? => {}
        _ => {
            let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "TokenUnknown", "the hub knows no such join token");
            return Err(refusal.hint("copy the whole token, or make a new one with `kedge token create`"));
        }
    }
    // Asking again is for an answer that was lost. It isn't a way around the person who lets a cluster in after a long silence.
    if let Some(known) = service.store.cluster(&applicant.cluster).await?
        && known.state == ClusterState::Active
    {
        service.fleet.silence().check(&service.store, &known.stream.environment, &known.id).await?;
    }
    let certificate = certify(caller, &request.csr, &applicant.cluster)?;
    let mut tx = service.store.write().await?;
    let at = now();
    let Some(token) = tx.join_token(&request.token_id).await? else {
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "TokenUnknown", "the hub knows no such join token"));
    };
    let replaced = match token.replaces {
        Some(old) => tx.cluster(&old).await?,
        None => None,
    };
    let entry = judge(&mut tx, caller, &request, &applicant, &token, replaced.as_ref(), at).await?;
    let outcome = match &entry {
        Entry::Same(_) => JoinOutcome::Again,
        Entry::New(_) | Entry::Back(_) => JoinOutcome::Joined,
    };
    let row = match entry {
        Entry::New(row) => {
            let (public_key, facts) = (&applicant.public_key, &request.facts);
            let newcomer = Newcomer { row, public_key, facts, certificate: &certificate };
            // The same key in two requests at once: the other one was quicker, the next try finds its row.
            let entered = service.fleet.enter(&mut tx, newcomer, at).await.map_err(failed)?;
            let row = entered.ok_or_else(Refusal::unavailable)?;
            if let Some(old) = replaced {
                service.fleet.shut_out(&mut tx, old, ClusterState::Replaced).await.map_err(failed)?;
            }
            row
        }
        Entry::Back(before) => {
            let to = Return {
                place: place(&token),
                labels: token.labels.clone(),
                site: token.site.clone(),
                token: token.id.clone(),
            };
            service.fleet.come_back(&mut tx, before, to, &certificate, at).await.map_err(failed)?
        }
        Entry::Same(row) => {
            tx.note_certificate(&row.id, &note(&certificate)).await?;
            row
        }
    };
    tx.commit().await?;
    tracing::info!(cluster = %row.id, name = row.name, stream = %row.stream, token = token.id, "a cluster joined");
    service.fleet.refresh().await;
    let membership = Envelope::from_json(&row.membership).map_err(|error| {
        tracing::error!(cluster = %row.id, %error, "a stored membership can't be read");
        Refusal::internal()
    })?;
    let answer =
        JoinAnswer { certificate: certificate.pem, key_sets: service.keys.key_sets_after(0), membership, time: at };
    Ok((json(StatusCode::OK, &answer), outcome))
}

async fn judge(
    tx: &mut Tx,
    caller: &Caller,
    request: &JoinRequest,
    applicant: &Applicant,
    token: &TokenRow,
    replaced: Option<&ClusterRow>,
    at: Timestamp,
) -> Result<Entry, Refusal> {
    let used_before = tx.used_join_token(&token.id, &applicant.cluster).await?;
    let machine = request.machine.map(|digest| digest.to_string());
    let Some(row) = tx.cluster(&applicant.cluster).await? else {
        // Asked again, a cluster that joined with another name before keeps it; so does one that takes another's place.
        if replaced.is_none() {
            check_cluster_name(&request.name).map_err(bad_name)?;
        }
        take_use(tx, token, applicant, at).await?;
        // Who replaces another takes its whole place; the token's words count otherwise. The ring follows the policy.
        let place = replaced.map_or_else(|| place(token), |old| old.stream.clone());
        let labels = replaced.map_or_else(|| token.labels.clone(), |old| old.labels.clone());
        let row = ClusterRow {
            id: applicant.cluster,
            name: replaced.map_or_else(|| request.name.clone(), |old| old.name.clone()),
            stream: caller.service.fleet.stream_of(&place, &applicant.cluster, &labels),
            labels,
            site: replaced.map_or_else(|| token.site.clone(), |old| old.site.clone()),
            relay: replaced.is_some_and(|old| old.relay),
            machine,
            state: ClusterState::Active,
            sequence: Sequence(1),
            membership: Vec::new(),
            token: token.id.clone(),
        };
        return Ok(Entry::New(row));
    };
    if row.state.is_shut_out() {
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "Revoked", "this cluster's identity is revoked");
        return Err(refusal.hint("join with a new key"));
    }
    if let (Some(known), Some(told)) = (&row.machine, &machine)
        && known != told
    {
        let message = "this identity belongs to another machine: a copied disk must join as a cluster of its own";
        return Err(
            Refusal::new(StatusCode::CONFLICT, "MachineChanged", message).hint("join with a new key and a new token")
        );
    }
    if token.revoked_at.is_some() {
        return Err(refused(TokenRefusal::Revoked));
    }
    match row.state {
        ClusterState::Active if used_before => Ok(Entry::Same(row)),
        ClusterState::Active if token.replaces.is_some() || !is_of(token, &row.stream) => {
            let message = format!("this cluster is a member of {} already", row.stream);
            Err(Refusal::new(StatusCode::CONFLICT, "AlreadyAMember", message).hint("move it with `kedge cluster move`"))
        }
        ClusterState::Active => {
            take_use(tx, token, applicant, at).await?;
            Ok(Entry::Same(row))
        }
        _ if used_before => {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "Retired", "this cluster is retired");
            Err(refusal.hint("a new token lets it in again"))
        }
        _ => {
            take_use(tx, token, applicant, at).await?;
            Ok(Entry::Back(row))
        }
    }
}

async fn take_use(tx: &mut Tx, token: &TokenRow, applicant: &Applicant, at: Timestamp) -> Result<(), Refusal> {
    fitness(token, at).map_err(refused)?;
    match tx.use_join_token(&token.id, &applicant.cluster, at).await? {
        true => Ok(()),
        false => Err(refused(TokenRefusal::UsedUp)),
    }
}

fn bad_name(error: NameError) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "BadName", error.to_string())
        .hint("join with another one: `kedge-agent join --name NAME`")
}

fn failed(error: FleetError) -> Refusal {
    match error {
        FleetError::Store(error) => error.into(),
        other => {
            tracing::error!(error = %other, "a join failed");
            Refusal::internal()
        }
    }
}

/// Whatever its ring.
fn is_of(token: &TokenRow, stream: &Stream) -> bool {
    stream.environment == token.environment && stream.cluster_type == token.cluster_type
}

/// Before the policy is asked for the ring.
fn place(token: &TokenRow) -> Stream {
    Stream::new(&token.environment, &token.cluster_type, Stream::ALL)
}

impl Applicant {
    pub(super) fn of(csr: &str) -> Result<Applicant, Refusal> {
        let (cluster, public_key) = authority::requesting_cluster(csr).map_err(refuse_certificate)?;
        Ok(Applicant { cluster, public_key })
    }
}

pub(super) fn certify(caller: &Caller, csr: &str, cluster: &ClusterId) -> Result<IssuedCertificate, Refusal> {
    caller.service.fleet.certify(csr, cluster).map_err(refuse_certificate)
}

fn refuse_certificate(error: AuthorityError) -> Refusal {
    match error {
        AuthorityError::Request(_) => Refusal::new(StatusCode::BAD_REQUEST, "BadCertificateRequest", error.to_string())
            .hint("send a PKCS#10 request (PEM) for an Ed25519 key, signed with it"),
        AuthorityError::WrongKey { .. } => {
            Refusal::new(StatusCode::FORBIDDEN, "WrongKey", error.to_string()).hint("a new key needs a new join")
        }
        broken => {
            tracing::error!(error = &broken as &dyn std::error::Error, "a certificate can't be made");
            Refusal::internal()
        }
    }
}

fn no_random(NoRandom: NoRandom) -> Refusal {
    tracing::error!("the system gives no random numbers");
    Refusal::internal()
}

fn refused(why: TokenRefusal) -> Refusal {
    let (reason, message) = match why {
        TokenRefusal::Revoked => ("TokenRevoked", "the join token was revoked"),
        TokenRefusal::Expired => ("TokenExpired", "the join token has expired"),
        TokenRefusal::UsedUp => ("TokenUsedUp", "the join token is used up"),
    };
    Refusal::new(StatusCode::FORBIDDEN, reason, message).hint("make a new one with `kedge token create`")
}
