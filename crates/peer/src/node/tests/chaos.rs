//! Properties: whatever is lost, repeated or comes late and in another order, those that are connected end with equal stores; and no bytes
//! do harm.

use proptest::prelude::*;

use super::*;
use crate::fixture::{START, holds};

/// Documents with who gets them first.
fn documents(agents: &[Agent]) -> Vec<(usize, Envelope)> {
    let hub = hub();
    let next = signing(61_000);
    let second = key_set(2, &[(&hub.key, KeyState::Retired), (&next, KeyState::Active)]);
    let mut all = vec![
        (0, Envelope::sign(&second, &hub.key).unwrap()),
        (0, Envelope::sign(&membership(&agents[1], 2), &next).unwrap()),
        (1, hub.state(stream("drone"), 1, &[])),
        (2, hub.state(stream("drone"), 2, &[])),
        (2, hub.sign(&holds(&agents[0], 1))),
        (1, agents[1].holds(&agents[0], 1)),
        (4, hub.sign(&Membership { retired: true, ..membership(&agents[4], 2) })),
    ];
    for (index, agent) in agents.iter().enumerate() {
        all.extend([(index, agent.status(1, 1, 1)), (index, agent.status(1, 2, 1)), (index, agent.status(2, 1, 1))]);
    }
    all
}

/// What happens to a message.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    AnswerLost,
    /// The request comes twice.
    Twice,
    /// And once more, later.
    Again,
    /// Long after the sender gave up, behind what was said since.
    Late,
}

fn fate() -> impl Strategy<Value = Fate> {
    let bad = [Fate::Lost, Fate::AnswerLost, Fate::Twice, Fate::Again, Fate::Late].map(|fate| (1, Just(fate).boxed()));
    prop::strategy::Union::new_weighted(bad.into_iter().chain([(4, Just(Fate::Arrives).boxed())]).collect())
}

/// Runs until the fates are used up.
fn storm(net: &mut Net, fates: Vec<Fate>) {
    let mut late = Vec::new();
    let mut fates = fates.into_iter();
    let mut queue: Vec<(ClusterId, Action)> = Vec::new();
    for _ in 0..5_000 {
        let Some((from, action)) = queue.pop() else {
            let (wake, id) = net.nodes.iter().map(|(id, node)| (node.wake(), *id)).min().unwrap();
            net.now = net.now.max(wake);
            let actions = net.nodes.get_mut(&id).unwrap().tick(net.now);
            queue.extend(actions.into_iter().map(|action| (id, action)));
            continue;
        };
        let Action::Send { to, message } = action else { continue };
        let Some(fate) = fates.next() else { return };
        let answer = match fate {
            Fate::Lost | Fate::Late => None,
            Fate::Twice => {
                net.say(from, to, &message);
                net.say(from, to, &message)
            }
            Fate::Arrives | Fate::AnswerLost | Fate::Again => net.say(from, to, &message),
        };
        let answer = answer.filter(|_| !matches!(fate, Fate::AnswerLost));
        let node = net.nodes.get_mut(&from).unwrap();
        let actions = match answer {
            Some(answer) => node.answered(to, answer, net.now),
            None => node.failed(to, net.now),
        };
        queue.extend(actions.into_iter().map(|action| (from, action)));
        if matches!(fate, Fate::Again | Fate::Late) {
            late.push((from, to, message));
        } else if let Some((from, to, message)) = late.pop() {
            net.say(from, to, &message);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_order_loss_and_repetition_ends_in_equal_stores(
        fates in prop::collection::vec(fate(), 0..150), order in Just((0..22).collect::<Vec<usize>>()).prop_shuffle()
    ) {
        let agents = agents(5);
        let all = documents(&agents);
        let mut net = Net::of(&hub(), &agents);
        for index in order {
            let (first, envelope) = &all[index % all.len()];
            let _ = net.node(&agents[*first]).put(envelope.clone());
        }
        storm(&mut net, fates);
        // The network is quiet and whole; and what couldn't be judged at first is put again, as an agent does.
        net.run(300);
        for (first, envelope) in &all {
            let _ = net.node(&agents[*first]).put(envelope.clone());
        }
        net.run(1_800);
        let gone = agents[4].id;
        net.nodes.remove(&gone);
        let stores: Vec<Vec<(Name, Version)>> = net
            .stores()
            .into_iter()
            // Who never heard of it needn't hear that it is over.
            .map(|store| store.into_iter().filter(|(name, _)| *name != Name::Membership(gone)).collect())
            .collect();
        prop_assert!(stores.iter().all(|store| *store == stores[0]), "{:#?}", stores);
        prop_assert_eq!(stores[0].len(), 1 + 4 + 1 + 4 + 2, "{:#?}", stores[0]);
        prop_assert!(!net.told.iter().any(|(_, told)| matches!(told, Action::Dropped { .. })), "{:?}", net.told);
    }

    #[test]
    fn any_bytes_are_no_message_and_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Message::from_json(&bytes).is_err());
    }

    #[test]
    fn any_message_leaves_the_store_as_its_owners_signed(
        reach in any::<Option<u64>>(), keys in any::<u64>(), ages in prop::collection::vec(any::<u64>(), 0..8),
        numbers in prop::collection::vec((0_usize..5, any::<u64>(), any::<u64>()), 0..40), digest in "[0-9a-f]{0,40}",
        payload in prop::collection::vec(any::<u8>(), 0..60)
    ) {
        let (me, other) = (agent(1), agent(2));
        let mut node = hub().node(&me);
        node.put(hub().member(&other)).unwrap();
        node.found(other.id, START);
        let before: Vec<_> = node.store().documents().map(|(name, version, _)| (name.clone(), version)).collect();
        let name = |kind: usize, number: u64| match kind {
            0 => Name::Keys(number),
            1 => Name::Membership(agent((number % 4) as u16).id),
            2 => Name::State(stream(if number.is_multiple_of(2) { "drone" } else { "press" })),
            3 => Name::Status(agent((number % 4) as u16).id),
            _ => Name::Holds { of: other.id, by: me.key.id() },
        };
        let message = Message {
            keys,
            reach,
            reachable: ages.iter().map(|age| (agent((age % 4) as u16).id, *age)).collect(),
            digest,
            have: numbers.iter().map(|(kind, one, two)| (name(*kind, *one), Version(*two, *one))).collect(),
            want: numbers.iter().map(|(kind, one, _)| name(*kind, *one)).collect(),
            give: vec![Envelope::sign_bytes("application/vnd.kedge.membership.v1+json", payload, &other.key)],
            ..Message::default()
        };
        let question = node.tick(after(START, 1_000));
        prop_assert!(!question.is_empty());
        for action in node.answered(other.id, Message { give: Vec::new(), ..message.clone() }, after(START, 1_001)) {
            let Action::Send { message, .. } = action else { continue };
            prop_assert!(message.check().is_ok());
            prop_assert!(Message::from_json(&message.to_json().unwrap()).is_ok());
        }
        let (answer, _) = node.heard(other.id, message, after(START, 2_000));
        prop_assert!(answer.is_none_or(|answer| Message::from_json(&answer.to_json().unwrap()).is_ok()));
        let after: Vec<_> = node.store().documents().map(|(name, version, _)| (name.clone(), version)).collect();
        prop_assert_eq!(before, after);
    }
}
