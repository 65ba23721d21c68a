//! Who becomes a member, and who doesn't.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Digest, JoinToken, Sequence};
use kedge_tests::agent::identity::Identity;
use kedge_tests::agent::{Agent, AgentError};

use crate::hub::{Hub, drones};

fn reason<T: std::fmt::Debug>(outcome: Result<T, AgentError>) -> String {
    outcome.unwrap_err().reason().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_token_buys_a_certificate_the_key_set_and_the_membership_it_is_bound_to() {
    let hub = Hub::start().await;
    let mut agent = hub.agent().await;
    assert_eq!(agent.membership.cluster, agent.identity.cluster);
    assert_eq!(agent.membership.stream, drones());
    assert_eq!(agent.membership.labels["region"], "north");
    assert_eq!(agent.membership.site.as_deref(), Some("harbour"));
    assert_eq!(agent.sequence(), Sequence(1));
    assert_eq!(agent.keys.version, 1);
    agent.wait = Some(0);
    agent.poll().await.unwrap();
}

#[tokio::test]
async fn a_lost_answer_is_given_again_and_uses_the_token_no_further() {
    let hub = Hub::start().await;
    let token = hub.token(1).await;
    let identity = Arc::new(Identity::generate());
    let first = Agent::join_as(Arc::clone(&identity), &token, "drone-1", None).await.unwrap();
    let again = Agent::join_as(identity, &token, "drone-1", None).await.unwrap();
    assert_eq!(first.membership, again.membership);
    let row = hub.store.join_token(&token.id).await.unwrap().unwrap();
    assert_eq!((row.uses, row.uses_left), (1, 0));
}

#[tokio::test]
async fn a_used_up_token_lets_nobody_else_in() {
    let hub = Hub::start().await;
    let token = hub.token(1).await;
    Agent::join(&token, "first").await.unwrap();
    let refused = Agent::join(&token, "second").await.unwrap_err();
    assert_eq!((refused.status(), refused.reason()), (Some(403), Some("TokenUsedUp")));
}

#[tokio::test]
async fn twenty_at_once_get_no_more_than_the_tokens_uses() {
    let hub = Hub::start().await;
    let token = hub.token(7).await;
    let joins = (0..20).map(|number| {
        let token = token.clone();
        tokio::spawn(async move { Agent::join(&token, &format!("drone-{number}")).await.is_ok() })
    });
    let mut joined = 0;
    for join in joins.collect::<Vec<_>>() {
        joined += usize::from(join.await.unwrap());
    }
    assert_eq!(joined, 7);
}

#[tokio::test]
async fn a_wrong_secret_and_an_unknown_token_look_the_same() {
    let hub = Hub::start().await;
    let token = hub.token(1).await;
    let wrong = JoinToken { secret: "guess".to_owned(), ..token.clone() };
    let unknown = JoinToken { id: "nothing".to_owned(), ..token };
    let (wrong, unknown) = (Agent::join(&wrong, "x").await.unwrap_err(), Agent::join(&unknown, "x").await.unwrap_err());
    assert_eq!((wrong.status(), wrong.reason()), (Some(401), Some("TokenUnknown")));
    assert_eq!(format!("{wrong:?}"), format!("{unknown:?}"));
}

#[tokio::test]
async fn an_expired_and_a_revoked_token_are_refused_by_name() {
    let hub = Hub::start().await;
    let short = hub.token_for("drone", 5, Duration::from_millis(50)).await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(reason(Agent::join(&short, "late").await), "TokenExpired");
    let revoked = hub.token(5).await;
    hub.change(async |fleet, tx| assert!(fleet.revoke_join_token(tx, &revoked.id).await.unwrap())).await;
    assert_eq!(reason(Agent::join(&revoked, "late").await), "TokenRevoked");
}

#[tokio::test]
async fn a_copy_of_the_disk_on_another_machine_must_join_anew() {
    let hub = Hub::start().await;
    let token = hub.token(5).await;
    let identity = Arc::new(Identity::generate());
    let machine = |text: &str| Some(Digest::of(text.as_bytes()));
    Agent::join_as(Arc::clone(&identity), &token, "drone-1", machine("one")).await.unwrap();
    let copied = Agent::join_as(identity, &token, "drone-1", machine("two")).await.unwrap_err();
    assert_eq!((copied.status(), copied.reason()), (Some(409), Some("MachineChanged")));
}

#[tokio::test]
async fn a_member_is_not_moved_by_a_token_of_another_type() {
    let hub = Hub::start().await;
    let identity = Arc::new(Identity::generate());
    Agent::join_as(Arc::clone(&identity), &hub.token(1).await, "drone-1", None).await.unwrap();
    let other = hub.token_for("truck", 1, Duration::from_secs(60)).await;
    assert_eq!(reason(Agent::join_as(identity, &other, "drone-1", None).await), "AlreadyAMember");
    assert_eq!(hub.store.join_token(&other.id).await.unwrap().unwrap().uses_left, 1);
}

#[tokio::test]
async fn a_hub_of_another_authority_is_not_joined() {
    let hub = Hub::start().await;
    let token = JoinToken { authority: Digest::of(b"another"), ..hub.token(1).await };
    assert!(matches!(Agent::join(&token, "x").await, Err(AgentError::Link(_))));
}

#[tokio::test]
async fn guessing_at_tokens_is_slowed_down_for_its_address() {
    let hub = Hub::start().await;
    let wrong = JoinToken { secret: "guess".to_owned(), ..hub.token(1).await };
    for _ in 0..20 {
        assert_eq!(reason(Agent::join(&wrong, "x").await), "TokenUnknown");
    }
    match Agent::join(&wrong, "x").await.unwrap_err() {
        AgentError::Refused { status: 429, problem, retry_after: Some(seconds) } => {
            assert_eq!(problem.reason, "TooManyAttempts");
            assert!(seconds > 0);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_name_with_control_characters_is_malformed() {
    let hub = Hub::start().await;
    let token = hub.token(1).await;
    for name in ["", "  ", "a\nb", "\u{1b}[31m", &"x".repeat(300)] {
        let refused = Agent::join(&token, name).await.unwrap_err();
        assert_eq!((refused.status(), refused.reason()), (Some(400), Some("Malformed")), "{name:?}");
    }
}
