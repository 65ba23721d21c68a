//! Certificates: renewed, expired, revoked, foreign.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_model::wire::RenewRequest;
use kedge_tests::agent::identity::Identity;
use kedge_tests::agent::link::Link;
use kedge_tests::agent::trust::{Trust, settings};
use kedge_tests::agent::{Agent, AgentError, body, read};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::hub::Hub;

#[tokio::test]
async fn a_certificate_is_renewed_for_the_same_key() {
    let hub = Hub::with(|config| config.wait = Duration::from_millis(50)).await;
    let mut agent = hub.agent().await;
    let before = agent.certificate.clone();
    agent.renew().await.unwrap();
    assert_ne!(agent.certificate, before);
    agent.poll().await.unwrap();
}

#[tokio::test]
async fn a_renewal_for_another_key_is_refused() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let request = body(&RenewRequest { csr: Identity::generate().request() });
    let refused = read::<serde_json::Value>(agent.post("/agent/v1/renew", &request).await.unwrap()).unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(403), Some("WrongKey")));
}

#[tokio::test]
async fn an_expired_certificate_may_renew_and_nothing_else() {
    let hub = Hub::with(|config| {
        config.certificate_lifetime = Duration::from_secs(1);
        config.wait = Duration::from_millis(50);
    })
    .await;
    let mut agent = hub.agent().await;
    let remaining = agent.certificate_until().0 - kedge_hub::store::now().0;
    tokio::time::sleep(Duration::from_millis(u64::try_from(remaining.max(0)).unwrap() + 50)).await;
    for path in ["/agent/v1/poll", "/agent/v1/status", "/agent/v1/proof"] {
        let refused = read::<serde_json::Value>(agent.post(path, b"{}").await.unwrap()).unwrap_err();
        assert_eq!((refused.status(), refused.reason()), (Some(403), Some("CertificateExpired")), "{path}");
        agent.disconnect();
    }
    agent.renew().await.unwrap();
    agent.poll().await.unwrap();
}

#[tokio::test]
async fn a_cluster_that_was_silent_for_too_long_renews_only_after_a_person_let_it_in() {
    let year = Duration::from_secs(365 * 86_400);
    let hub = Hub::with(|config| {
        config.longest_silence = Some(year);
        config.wait = Duration::from_millis(50);
    })
    .await;
    let mut agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    let silent = async |days: i64| {
        let heard = kedge_hub::store::now().0 - days * 86_400_000;
        let sql = "UPDATE clusters SET last_contact = $1";
        sqlx::query(sql).bind(heard).execute(hub.store.pool()).await.unwrap();
    };
    silent(364).await;
    agent.renew().await.unwrap();
    silent(366).await;
    let refused = agent.renew().await.unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(403), Some("ReadmissionNeeded")));
    hub.change(async |fleet, tx| fleet.readmit(tx, &cluster).await.unwrap()).await;
    agent.renew().await.unwrap();
    agent.poll().await.unwrap();
}

#[tokio::test]
async fn asking_to_join_again_is_no_way_around_the_person_who_lets_a_silent_cluster_in() {
    let hub = Hub::with(|config| config.longest_silence = Some(Duration::from_secs(86_400))).await;
    let (token, other) = (hub.token(1).await, hub.token(1).await);
    let identity = Arc::new(Identity::generate());
    let agent = Agent::join_as(Arc::clone(&identity), &token, "drone-1", None).await.unwrap();
    sqlx::query("UPDATE clusters SET last_contact = 1").execute(hub.store.pool()).await.unwrap();
    for token in [&token, &other] {
        let refused = Agent::join_as(Arc::clone(&identity), token, "drone-1", None).await.unwrap_err();
        assert_eq!((refused.status(), refused.reason()), (Some(403), Some("ReadmissionNeeded")));
    }
    assert_eq!(hub.store.join_token(&other.id).await.unwrap().unwrap().uses_left, 1);
    hub.change(async |fleet, tx| fleet.readmit(tx, &agent.identity.cluster).await.unwrap()).await;
    Agent::join_as(identity, &token, "drone-1", None).await.unwrap();
}

#[tokio::test]
async fn an_environment_without_a_limit_is_never_silent_for_too_long() {
    let hub = Hub::with(|config| {
        config.longest_silence = Some(Duration::from_secs(86_400));
        config.unlimited_silence = vec!["dev".to_owned()];
    })
    .await;
    let mut agent = hub.agent().await;
    sqlx::query("UPDATE clusters SET last_contact = 1").execute(hub.store.pool()).await.unwrap();
    agent.renew().await.unwrap();
}

#[tokio::test]
async fn a_revoked_cluster_is_refused_at_once_also_where_it_waits() {
    let hub = Hub::with(|config| config.wait = Duration::from_secs(60)).await;
    let mut agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    let begun = Instant::now();
    let (held, ()) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        hub.change(async |fleet, tx| drop(fleet.revoke(tx, &cluster).await.unwrap())).await;
    });
    let held = held.unwrap_err();
    assert_eq!((held.status(), held.reason()), (Some(403), Some("Revoked")));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(agent.poll().await.unwrap_err().reason(), Some("Revoked"));
    assert_eq!(agent.renew().await.unwrap_err().reason(), Some("Revoked"));
}

#[tokio::test]
async fn another_hubs_revocation_counts_within_a_second() {
    let hub = Hub::with(|config| config.wait = Duration::from_secs(60)).await;
    let mut agent = hub.agent().await;
    let cluster = agent.identity.cluster;
    let (held, ()) = tokio::join!(agent.poll(), async {
        hub.held(1).await;
        // What another hub does: the same rows, and no word to this one.
        let mut tx = hub.store.write().await.unwrap();
        hub.fleet.revoke(&mut tx, &cluster).await.unwrap();
        tx.commit().await.unwrap();
    });
    assert_eq!(held.unwrap_err().reason(), Some("Revoked"));
}

#[tokio::test]
async fn without_a_certificate_there_is_nothing_but_the_join() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    let config = settings(Trust::Authorities(agent.keys.authorities.clone()), None);
    let mut link = Link::open(&agent.hub, config).await.unwrap();
    for path in ["/agent/v1/poll", "/agent/v1/renew", "/agent/v1/status", "/agent/v1/proof"] {
        let reply = link.post(path, b"").await.unwrap();
        let refused = read::<serde_json::Value>(reply).unwrap_err();
        assert_eq!((refused.status(), refused.reason()), (Some(401), Some("CertificateMissing")), "{path}");
    }
}

/// A certificate for a key, from an authority of the test's own.
fn foreign(identity: &Identity, name: &str) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "kedge authority");
    let issuer = Issuer::new(params, key);
    let mut own = CertificateParams::default();
    own.distinguished_name = rcgen::DistinguishedName::new();
    own.distinguished_name.push(DnType::CommonName, name);
    own.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    own.signed_by(&identity.pair(), &issuer).unwrap().pem()
}

#[tokio::test]
async fn a_foreign_authoritys_certificate_ends_the_connection() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    let name = agent.identity.cluster.to_string();
    agent.use_certificate(foreign(&agent.identity, &name));
    let error = agent.poll().await.unwrap_err();
    assert!(matches!(&error, AgentError::Link(_)), "{error:?}");
}

#[tokio::test]
async fn a_good_certificate_with_another_key_is_no_identity() {
    let hub = Hub::start().await;
    let agent = hub.agent().await;
    let thief = Arc::new(Identity::generate());
    // rustls itself refuses to pair them; who does it by hand fails at the signature.
    let made = std::panic::catch_unwind(|| {
        settings(Trust::Authorities(agent.keys.authorities.clone()), Some((&agent.certificate, &thief)))
    });
    assert!(made.is_err());
}
