//! The join: a token and a key become a member with a certificate. Asked again with the same key it gives the same membership
//! and uses the token no further; the token's use and the cluster's row are one transaction.

use std::time::Instant;

use http::StatusCode;
use hyper::body::Incoming;
use kedge_model::wire::{ClusterId, Envelope, JoinAnswer, JoinRequest, Sequence, Stream, Timestamp};

use super::answer::{Answer, Refusal, json};
use super::fleet::{FleetError, joined, shut_out};
use super::request::{JOIN, malformed};
use super::route::Caller;
use super::token::{NoRandom, Unfit};
use crate::keys::authority::{self, AuthorityError, IssuedCertificate};
use crate::metrics::JoinOutcome;
use crate::state::Parting;
use crate::store::agents::tokens::TokenRow;
use crate::store::agents::{CertificateNote, ClusterRow, ClusterState, NewCluster};
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

/// Names are for people and file systems.
const MAX_NAME: usize = 253;
/// A host says a few words about itself.
const MAX_FACT: usize = 200;
/// The first poll should follow within this.
const FIRST_POLL_MILLIS: i64 = 5 * 60 * 1000;

pub async fn join(caller: &Caller, body: Incoming) -> Result<Answer, Refusal> {
    let attempts = &caller.service.attempts;
    if let Err(seconds) = attempts.check(caller.address, Instant::now()) {
        let message = "too many joins from this address were refused";
        let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TooManyAttempts", message).closing();
        return Err(Refusal { retry_after: Some(seconds), ..refusal });
    }
    let request = caller.service.reading.json(body, JOIN).await?;
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
    check_words(&request)?;
    let applicant = Applicant::of(&request.csr)?;
    // The secret is checked before the one writer is taken, so that guessing holds nobody up.
    match service.store.join_token(&request.token_id).await? {
        Some(token) if token.opens(&request.secret).map_err(no_random)? => {}
        _ => {
            let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "TokenUnknown", "the hub knows no such join token");
            return Err(refusal.hint("copy the whole token, or make a new one with `kedge token create`"));
        }
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
        Entry::New(mut row) => {
            seal(caller, &mut row, at, Parting::default())?;
            let facts = serde_json::to_string(&request.facts).map_err(|why| malformed(why.to_string()))?;
            let new = NewCluster {
                row: &row,
                public_key: &applicant.public_key,
                facts: &facts,
                certificate: &note(&certificate),
                joined_at: at,
                promise_until: Timestamp(at.0 + FIRST_POLL_MILLIS),
            };
            if !tx.add_cluster(new).await? {
                // The same key in two requests at once: the other one was quicker, the next try finds its row.
                return Err(Refusal::unavailable());
            }
            tx.place_cluster(&row.id, None, Some(&row.stream)).await?;
            if let Some(old) = replaced {
                shut_out(&mut tx, old, ClusterState::Replaced).await.map_err(failed)?;
            }
            tx.record(vec![joined(&row, at)]).await?;
            row
        }
        Entry::Back(before) => {
            let stream = service.fleet.stream_of(&place(&token), &before.id, &token.labels);
            let parting = service.fleet.parting(&before, &stream).map_err(failed)?;
            let sequence = Sequence(before.sequence.0 + 1);
            let (labels, site, state) = (token.labels.clone(), token.site.clone(), ClusterState::Active);
            let mut row = ClusterRow { stream, labels, site, state, sequence, token: token.id.clone(), ..before };
            seal(caller, &mut row, at, parting)?;
            tx.place_cluster(&row.id, None, Some(&row.stream)).await?;
            tx.change_cluster(&row).await?;
            tx.note_certificate(&row.id, &note(&certificate)).await?;
            tx.record(vec![joined(&row, at)]).await?;
            row
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
        return Err(unfit(Unfit::Revoked));
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
    token.fitness(at).map_err(unfit)?;
    match tx.use_join_token(&token.id, &applicant.cluster, at).await? {
        true => Ok(()),
        false => Err(unfit(Unfit::UsedUp)),
    }
}

/// Signs the membership that the row says.
fn seal(caller: &Caller, row: &mut ClusterRow, at: Timestamp, parting: Parting) -> Result<(), Refusal> {
    caller.service.fleet.seal(row, at, parting).map_err(|error| failed(error.into()))
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

pub(super) fn note(certificate: &IssuedCertificate) -> CertificateNote {
    CertificateNote { serial: certificate.serial.clone(), until: certificate.not_after }
}

/// The host's own words are shown to people: no line breaks, no escapes, no novels.
fn check_words(request: &JoinRequest) -> Result<(), Refusal> {
    let is_plain = |text: &str, most: usize| text.len() <= most && !text.chars().any(char::is_control);
    if request.name.trim().is_empty() || !is_plain(&request.name, MAX_NAME) {
        return Err(malformed(format!("a name has 1 to {MAX_NAME} printable characters")));
    }
    let facts = [&request.facts.agent_version, &request.facts.architecture, &request.facts.system];
    if !facts.iter().all(|fact| is_plain(fact, MAX_FACT)) {
        return Err(malformed(format!("a fact has at most {MAX_FACT} printable characters")));
    }
    Ok(())
}

impl Applicant {
    pub(super) fn of(csr: &str) -> Result<Applicant, Refusal> {
        let (cluster, public_key) = authority::requesting_cluster(csr).map_err(refuse_certificate)?;
        Ok(Applicant { cluster, public_key })
    }
}

/// The certificate for a request, with the authority's behind it.
pub(super) fn certify(caller: &Caller, csr: &str, cluster: &ClusterId) -> Result<IssuedCertificate, Refusal> {
    let authority = caller.service.keys.authority();
    let issued =
        authority.issue(csr, cluster, caller.service.config.certificate_lifetime).map_err(refuse_certificate)?;
    Ok(IssuedCertificate { pem: format!("{}{}", issued.pem, authority.certificate_pem()), ..issued })
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

fn unfit(why: Unfit) -> Refusal {
    let (reason, message) = match why {
        Unfit::Revoked => ("TokenRevoked", "the join token was revoked"),
        Unfit::Expired => ("TokenExpired", "the join token has expired"),
        Unfit::UsedUp => ("TokenUsedUp", "the join token is used up"),
    };
    Refusal::new(StatusCode::FORBIDDEN, reason, message).hint("make a new one with `kedge token create`")
}
