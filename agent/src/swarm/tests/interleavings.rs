//! Whatever mixture of holders in whatever order, with stops in between: the right bytes, or none.

use proptest::prelude::*;

use super::*;

fn behaviour() -> impl Strategy<Value = Behaviour> {
    prop_oneof![
        3 => Just(Behaviour::Honest),
        2 => (1_u64..200).prop_map(|rate| Behaviour::Paced(rate << 14)),
        2 => (0_u64..3 << 20).prop_map(Behaviour::DiesAfter),
        1 => prop::sample::select(vec![
            Behaviour::Silent,
            Behaviour::WrongBytes,
            Behaviour::OtherContent,
            Behaviour::FalseList,
            Behaviour::Endless,
            Behaviour::EndlessList,
            Behaviour::Nonsense,
            Behaviour::Refuses,
            Behaviour::Short,
        ]),
    ]
}

fn is_honest(behaviour: &Behaviour) -> bool {
    let always = [Behaviour::Honest, Behaviour::Silent, Behaviour::Refuses, Behaviour::Short];
    always.contains(behaviour) || matches!(behaviour, Behaviour::Paced(_) | Behaviour::DiesAfter(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_mixture_of_holders_gives_the_right_bytes_or_none(
        size in 0..(4 * MIB),
        rounds in prop::collection::vec((prop::collection::vec(behaviour(), 0..6), 1_u64..100), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let content = content(size);
        let wanted = blob(&content);
        runtime.block_on(async {
            let room = Room::new();
            for (behaviours, seconds) in &rounds {
                let site = Site::of(&content, behaviours);
                let fetching = room.swarm.fetch(&wanted, &site, &room.objects);
                let ended = tokio::time::timeout(Duration::from_secs(*seconds), fetching).await;
                for who in site.misbehaving() {
                    assert!(!is_honest(&behaviours[who]), "{:?}", site.misbehaviors());
                }
                assert_eq!(room.objects.has(&wanted.digest), matches!(ended, Ok(Ok(()))));
                if room.objects.has(&wanted.digest) {
                    room.check(&content);
                    return;
                }
            }
            // And one honest holder finishes what they began.
            let site = Site::of(&content, &[Behaviour::Honest]);
            room.swarm.fetch(&wanted, &site, &room.objects).await.unwrap();
            room.check(&content);
            assert_eq!(site.misbehaviors(), []);
        });
    }
}
