//! Who leads when: decisions over made-up Leases and clocks.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::cluster::fake::{Fake, Reply};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn lease(holder: &str, renewed: u64, transitions: u64) -> Seen {
    Seen {
        holder: holder.to_owned(),
        renewed: renewed.to_string(),
        duration: DURATION,
        transitions,
        version: renewed.to_string(),
    }
}

#[test]
fn the_first_one_makes_it_and_goes_on_renewing_it() {
    let mut a = Candidate::new("a");
    assert_eq!(a.decide(seconds(0), None), Next::Create { term: 1 });
    a.took(1);
    assert_eq!(a.decide(seconds(3), Some(&lease("a", 0, 1))), Next::Renew);
}

#[test]
fn a_silent_holder_loses_it_after_its_time_by_the_watchers_own_clock() {
    let mut b = Candidate::new("b");
    assert_eq!(b.decide(seconds(100), Some(&lease("a", 1, 1))), Next::Wait(LOOK_EVERY));
    // It was renewed: its time begins anew, whatever the holder's clock says.
    assert_eq!(b.decide(seconds(104), Some(&lease("a", 2, 1))), Next::Wait(LOOK_EVERY));
    let last = seconds(104) + DURATION;
    assert_eq!(b.decide(last - seconds(1), Some(&lease("a", 2, 1))), Next::Wait(seconds(1)));
    assert_eq!(b.decide(last, Some(&lease("a", 2, 1))), Next::Take { term: 2 });
}

#[test]
fn what_was_given_back_is_taken_at_once() {
    let mut b = Candidate::new("b");
    assert_eq!(b.decide(seconds(1), Some(&lease("", 5, 7))), Next::Take { term: 8 });
}

#[test]
fn a_restarted_container_takes_its_own_lease_in_a_new_term() {
    let mut a = Candidate::new("a");
    assert_eq!(a.decide(seconds(0), Some(&lease("a", 5, 7))), Next::Take { term: 8 });
    a.took(8);
    // Somebody else had it in between: that one's term is over too.
    assert_eq!(a.decide(seconds(9), Some(&lease("a", 6, 10))), Next::Take { term: 11 });
}

#[test]
fn a_holder_that_sees_another_has_lost_it() {
    let mut a = Candidate::new("a");
    a.took(1);
    assert_eq!(a.decide(seconds(60), Some(&lease("b", 9, 2))), Next::Wait(LOOK_EVERY));
    assert_eq!(a.term(), None);
}

#[test]
fn an_absurd_duration_is_bounded() {
    let mut b = Candidate::new("b");
    let forever = Seen { duration: Duration::MAX, ..lease("a", 1, 1) };
    b.decide(seconds(0), Some(&forever));
    assert_eq!(b.decide(MOST_DURATION, Some(&forever)), Next::Take { term: 2 });
}

#[test]
fn a_gate_is_open_for_a_while_after_a_renewal_only() {
    let gate = Gate::default();
    assert!(!gate.is_held());
    gate.open_since(Instant::now());
    assert!(gate.is_held());
    gate.close();
    assert!(!gate.is_held());
}

#[test]
fn what_is_offered_goes_with_the_lease_and_ends_with_it() {
    let (offer, offered) = watch::channel(None);
    let text = || "x".to_owned();
    let place = Place { namespace: text(), lease: text(), holder: "a".to_owned(), offer: offered };
    assert_eq!(place.offered("a"), None);
    offer.send_replace(Some(Offer { address: ([10, 0, 0, 7], 7444).into(), mark: "3f0c".to_owned() }));
    assert_eq!(place.offered("a").as_deref(), Some("10.0.0.7:7444 3f0c"));
    assert_eq!(place.offered(""), None, "it is given back");
}

#[tokio::test]
async fn one_that_stands_by_learns_who_leads_and_what_it_offers() {
    let lease = json!({
        "metadata": {"resourceVersion": "7", "annotations": {offer::ANNOTATION: "10.0.0.7:7444 3f0c"}},
        "spec": {"holderIdentity": "b", "leaseDurationSeconds": 9, "leaseTransitions": 3, "renewTime": "now"},
    });
    let fake =
        Fake::start(move |_, _| Reply::Whole(200, "Content-Type: application/json\r\n", lease.to_string())).await;
    let (_offer, offered) = watch::channel(None);
    let text = || "x".to_owned();
    let place = Place { namespace: text(), lease: text(), holder: "a".to_owned(), offer: offered };
    let (tell, mut standing) = watch::channel(Standing::By { holder: None, offer: None });
    let (_stop, stopped) = watch::channel(false);
    tokio::select! {
        () = keep(fake.cluster.client().clone(), place, Arc::default(), tell, stopped) => panic!("nobody stopped it"),
        changed = standing.changed() => changed.unwrap(),
    }
    let offer = Offer { address: ([10, 0, 0, 7], 7444).into(), mark: "3f0c".to_owned() };
    assert_eq!(*standing.borrow(), Standing::By { holder: Some("b".to_owned()), offer: Some(offer) });
}

/// One agent of the simulation.
struct Agent {
    candidate: Candidate,
    /// Until when its gate is open.
    sure: Duration,
    wakes: Duration,
}

proptest! {
    /// Agents that sleep, stop and miss renewals as they like: at no time two of them are sure.
    #[test]
    fn never_two_are_sure_at_once(rests in prop::collection::vec((0_usize..3, 1_u64..20_000), 1..200)) {
        let names = ["a", "b", "c"];
        let mut agents: Vec<Agent> = names
            .iter()
            .map(|name| Agent { candidate: Candidate::new(name), sure: Duration::ZERO, wakes: Duration::ZERO })
            .collect();
        let (mut stored, mut now): (Option<Seen>, Duration) = (None, Duration::ZERO);
        for (who, rest) in rests {
            now += Duration::from_millis(rest % 2_000);
            let agent = &mut agents[who];
            if agent.wakes > now {
                continue;
            }
            agent.wakes = now + Duration::from_millis(rest);
            let next = agent.candidate.decide(now, stored.as_ref());
            let term = match next {
                Next::Wait(_) => {
                    agent.sure = Duration::ZERO;
                    continue;
                }
                Next::Create { term } | Next::Take { term } => term,
                Next::Renew => agent.candidate.term().unwrap(),
            };
            agent.candidate.took(term);
            agent.sure = now + SURE_FOR;
            let renewed = now.as_millis().to_string();
            let version = renewed.clone();
            stored = Some(Seen { holder: names[who].to_owned(), renewed, duration: DURATION, transitions: term, version });
            let sure = agents.iter().filter(|agent| agent.sure > now).count();
            prop_assert_eq!(sure, 1);
        }
    }
}
