//! What must hold for every rollout, whatever is true of its clusters and whatever people say.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::kinds::{
    Amount, Approval, ApproverRole, Empty, EnvironmentPolicy, Late, Members, Promoter, PromotionPolicy, Ring, Then,
};
use kedge_model::wire::Timestamp;
use kedge_rollout::{
    Cause, Chain, ChainFacts, Counts, EnvironmentFacts, Facts, Item, Lane, MainCommit, Named, Outcome, OutcomeState,
    Person, Phase, Promotion, PromotionPhase, RingFacts, RingState, Rollout, RolloutId, Say, Word, advance, hear,
    hear_promotion, promote,
};
use proptest::prelude::*;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Counts(usize, usize, Counts),
    Quarantine(bool),
    Say(usize, Say),
    Pass(i64),
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![(0u64..6).prop_map(Amount::Number), (0u32..=10_000).prop_map(Amount::Share)]
}

fn ring(number: usize) -> impl Strategy<Value = Ring> {
    let parts = (amount(), amount(), amount(), 0u32..=10_000, 0u64..100, 0u32..3, any::<[bool; 3]>());
    parts.prop_map(move |(reached, failed, budget, converged, soak, people, [pass, back, not_author])| {
        let mut ring = Ring::new(&format!("r{number}"), Members::Rest);
        (ring.gate.reached, ring.gate.failed, ring.gate.converged) = (reached, failed, converged);
        ring.gate.empty = if pass { Empty::Pass } else { Empty::Wait };
        ring.soak = Duration::from_secs(soak);
        ring.failure.budget = budget;
        ring.failure.then = if back { Then::Rollback } else { Then::Pause };
        ring.approval = (people > 0).then_some(Approval { people, role: ApproverRole::Platform, not_author });
        ring
    })
}

fn counts() -> impl Strategy<Value = Counts> {
    let number = prop_oneof![4 => Just(0), 4 => 0u64..6, 1 => Just(u64::MAX)];
    proptest::array::uniform5(number).prop_map(|[converged, converging, failed, offline, waiting]| Counts {
        converged,
        converging,
        failed,
        offline,
        waiting,
    })
}

fn word() -> impl Strategy<Value = Say> {
    let ring = proptest::option::of("r[0-3]");
    prop_oneof![
        4 => ring.clone().prop_map(|ring| Say::Approve { ring }),
        2 => ring.prop_map(|ring| Say::Override { ring }),
        1 => Just(Say::Now),
        1 => Just(Say::Pause),
        3 => Just(Say::Resume),
        1 => Just(Say::Abort),
        1 => Just(Say::Rollback),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0usize..3, 0usize..2, counts()).prop_map(|(ring, item, counts)| Event::Counts(ring, item, counts)),
        1 => any::<bool>().prop_map(Event::Quarantine),
        4 => (0usize..4, word()).prop_map(|(who, say)| Event::Say(who, say)),
        4 => (0i64..200).prop_map(Event::Pass),
    ]
}

fn rollout(rings: Vec<Ring>, late: Late) -> Rollout {
    let mut policy = EnvironmentPolicy::new("prod", Vec::new());
    (policy.rings, policy.late) = (rings, late);
    let items = [("a", false), ("b", true)].map(|(cluster_type, removes)| Item {
        cluster_type: cluster_type.to_owned(),
        assignment: "web-prod".to_owned(),
        workload: "web".to_owned(),
        removes,
    });
    let cause = Cause { author: "p0 <p0@x>".to_owned(), ..Cause::of_commit("c") };
    Rollout::new(RolloutId(1), "prod", Lane::Platform, cause, Arc::new(policy), Arc::new(items), Timestamp(0))
}

fn word_of(who: usize, say: Say, now: i64) -> Word {
    let role = if who == 3 { "application" } else { "platform" };
    let who = format!("p{who}");
    let person = Person::new(&who, &[&format!("{who}@example.org")]);
    Word { who, person, role: role.to_owned(), at: Timestamp(now), reason: "why".to_owned(), say, new_token: false }
}

/// What no step may do.
fn check(before: &Rollout, after: &Rollout, now: i64) {
    for (place, ring) in after.rings.iter().enumerate() {
        if ring.state == RingState::Rolling && before.rings[place].state == RingState::Waiting {
            let earlier = &after.rings[..place];
            assert!(earlier.iter().all(|ring| ring.state == RingState::Passed), "a ring ahead of its order: {after:?}");
            assert!(matches!(before.phase, Phase::Active), "began while not active: {before:?}");
        }
        if ring.state == RingState::Passed && before.rings[place].state == RingState::Rolling {
            let soak = after.policy.rings[place].soak;
            let said = &after.words[ring.heard..];
            let by_person = said.iter().any(|word| {
                matches!(&word.say, Say::Override { ring: Some(name) } | Say::Approve { ring: Some(name) } if *name == ring.ring)
            });
            let steady = ring.steady_since.is_some_and(|since| now - since.0 >= soak.as_millis() as i64);
            let empty = after.policy.rings[place].gate.empty == Empty::Pass;
            assert!(by_person || steady || empty, "passed without its soak: {after:?}");
        }
    }
    if matches!(after.phase, Phase::Complete { .. }) {
        assert!(after.rings.iter().all(|ring| ring.state == RingState::Passed));
    }
    assert!(after.words.len() >= before.words.len(), "a word was lost");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn rings_keep_their_order_and_soak_and_each_step_is_at_rest(
        rings in (ring(0), ring(1), ring(2)).prop_map(|(a, b, c)| vec![a, b, c]),
        reopen in any::<bool>(),
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let mut rollout = rollout(rings, if reopen { Late::Reopen } else { Late::Show });
        let mut facts = Facts::default();
        let mut now = 0;
        for event in events {
            match event {
                Event::Counts(ring, item, counts) => {
                    let ring = facts.rings.entry(format!("r{ring}")).or_insert_with(|| RingFacts {
                        counts: vec![Counts::default(); 2],
                        checks: BTreeMap::new(),
                    });
                    ring.counts[item] = counts;
                }
                Event::Quarantine(is) => facts.quarantined = if is { vec!["a/web-prod".to_owned()] } else { vec![] },
                Event::Say(who, say) => {
                    if let Ok(next) = hear(&rollout, word_of(who, say, now)) {
                        check(&rollout, &next, now);
                        rollout = next;
                    }
                }
                Event::Pass(seconds) => now += seconds * 1_000,
            }
            if let Some(next) = advance(&rollout, &facts, Timestamp(now)) {
                check(&rollout, &next, now);
                prop_assert_eq!(advance(&next, &facts, Timestamp(now)), None);
                rollout = next;
            }
            let text = serde_json::to_string(&rollout).unwrap();
            prop_assert_eq!(serde_json::from_str::<Rollout>(&text).unwrap(), rollout.clone());
            let _ = (rollout.outcome(), rollout.closed("r0", Timestamp(now)), rollout.yields());
        }
    }

    #[test]
    fn no_environment_is_ahead_of_its_predecessors(
        steps in proptest::collection::vec((0u8..7, 0usize..3, 0usize..8, 0usize..4, word()), 1..60),
        external in any::<bool>(),
    ) {
        let names = ["dev", "qa", "prod"];
        let environments = vec![
            EnvironmentPolicy::new("dev", vec![]),
            EnvironmentPolicy::new("qa", vec!["dev".to_owned()]),
            EnvironmentPolicy::new("prod", vec!["dev".to_owned(), "qa".to_owned()]),
        ];
        let promoter = if external { Promoter::External } else { Promoter::Kedge };
        let mut chain = Chain::new(Arc::new(PromotionPolicy { promoter, environments }));
        let mut facts = ChainFacts::default();
        for name in names {
            facts.environments.insert(name.to_owned(), EnvironmentFacts::default());
        }
        for (now, (what, environment, commit, state, say)) in (0i64..).zip(steps) {
            let name = names[environment];
            let commit = format!("c{commit}");
            let state = match state {
                0 => OutcomeState::Complete { late_failed: 0 },
                1 => OutcomeState::Failed { why: "x".to_owned() },
                2 => OutcomeState::Unchanged,
                _ => OutcomeState::Held,
            };
            let place = facts.environments.get_mut(name).unwrap();
            match what {
                0 if facts.main.iter().all(|known| known.commit != commit) => {
                    facts.main.insert(0, MainCommit { commit, subject: String::new(), author: "p0".to_owned() });
                }
                1 | 2 => place.outcome = chain.environments.get(name).and_then(|standing| standing.current.clone())
                    .map(|commit| Outcome { commit, rollout: Some(RolloutId(1)), state, remark: None }),
                3 => place.named = Some(Named { commit, by: "x".to_owned(), at: Timestamp(now), why: String::new() }),
                4 => place.named = None,
                // People take the newest commits off main.
                6 => drop(facts.main.drain(..environment.min(facts.main.len()))),
                5 => if let Ok(next) = hear_promotion(&chain, name, Some(&commit), word_of(1, say, now)) {
                    chain = next;
                },
                _ => {}
            }
            let Some(next) = promote(&chain, &facts, Timestamp(now)) else { continue };
            prop_assert_eq!(promote(&next, &facts, Timestamp(now)), None);
            let order = |commit: &str| facts.main.iter().position(|known| known.commit == commit).unwrap_or(usize::MAX);
            for (name, standing) in &next.environments {
                let before = chain.environments.get(name).and_then(|standing| standing.current.clone());
                if standing.current != before && chain.environments.contains_key(name) {
                    let current = standing.current.clone().unwrap();
                    prop_assert!(next.permits(name, &current), "{} ahead in {}", current, name);
                    prop_assert!(order(&current) < facts.main.len(), "{} isn't on main", current);
                    prop_assert!(before.as_ref().is_none_or(|before| order(&current) < order(before)), "went back");
                    // Where main was rewritten, nothing comes that is older than what was here of it.
                    if before.is_some_and(|before| order(&before) == usize::MAX) {
                        let been = |one: &&Promotion| one.entered_at.is_some() && order(&one.commit) < usize::MAX;
                        let known = chain.environments[name].promotions.iter().filter(been);
                        let newest = known.map(|one| order(&one.commit)).min();
                        prop_assert!(newest.is_none_or(|newest| order(&current) <= newest), "{} is older", current);
                    }
                }
                let entered = standing.promotions.iter().filter(|one| one.phase == PromotionPhase::Entered);
                prop_assert!(entered.count() <= 1);
            }
            let text = serde_json::to_string(&next).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Chain>(&text).unwrap(), &next);
            chain = next;
        }
    }
}
