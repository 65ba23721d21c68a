//! One honest holder among those who aren't is enough; without one, nothing becomes an object.

use super::*;
use crate::swarm::chunks::NoList;

async fn fetch(content: &[u8], behaviours: &[Behaviour]) -> (Room, Site, Result<(), SwarmError>, Duration) {
    let (room, site, began) = (Room::new(), Site::of(content, behaviours), Instant::now());
    let result = room.swarm.fetch(&blob(content), &site, &room.objects).await;
    (room, site, result, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_liar_is_named_with_what_it_did_and_the_honest_finish() {
    let content = content(3 * MIB + 3);
    let of = blob(&content).digest;
    for (behaviour, said) in [
        (Behaviour::WrongBytes, "aren't what it said they were"),
        (Behaviour::FalseList, "aren't what it said they were"),
        (Behaviour::Endless, "more bytes"),
        (Behaviour::EndlessList, "more bytes"),
        (Behaviour::Nonsense, "no such list: it can't be read"),
    ] {
        let (room, site, result, took) = fetch(&content, &[behaviour, Behaviour::Paced(4 << 20)]).await;
        result.unwrap();
        room.check(&content);
        // A false list is only found out by whoever goes by it.
        let expected = if behaviour == Behaviour::FalseList { 0..=1 } else { 1..=1 };
        assert!(expected.contains(&site.misbehaviors().len()), "{behaviour:?}: {:?}", site.misbehaviors());
        for (who, misbehavior) in site.misbehaviors() {
            assert_eq!(who, 0);
            assert!(misbehavior.to_string().contains(said), "{behaviour:?}: {misbehavior}");
            assert!(misbehavior.to_string().contains(&of.to_string()));
        }
        assert!(took < Duration::from_secs(10), "{behaviour:?} {took:?}");
    }
    let (_, site, _, _) = fetch(&content, &[Behaviour::Nonsense]).await;
    assert_eq!(site.misbehaviors(), [(0, Misbehavior::List { blob: of, why: NoList::Unreadable })]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_leads_to_something_else_drops_all_who_gave_it_and_no_other() {
    let content = content(3 * MIB);
    let misbehaving = [Behaviour::OtherContent; 2];
    let (room, site, result, _) = fetch(&content, &[misbehaving[0], misbehaving[1], Behaviour::Honest]).await;
    result.unwrap();
    room.check(&content);
    let whole = Misbehavior::Whole { blob: blob(&content).digest };
    assert_eq!(site.misbehaviors(), [(0, whole.clone()), (1, whole)]);
}

#[tokio::test(start_paused = true)]
async fn an_honest_one_is_never_blamed_for_anothers_list() {
    let content = content(4 * MIB);
    for _ in 0..10 {
        let (room, site, result, _) =
            fetch(&content, &[Behaviour::FalseList, Behaviour::Honest, Behaviour::Honest]).await;
        result.unwrap();
        room.check(&content);
        assert!(site.misbehaving().iter().all(|who| *who == 0), "{:?}", site.misbehaviors());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_but_liars_leaves_no_object() {
    let content = content(2 * MIB + 5);
    for behaviour in [
        Behaviour::WrongBytes,
        Behaviour::OtherContent,
        Behaviour::FalseList,
        Behaviour::Endless,
        Behaviour::EndlessList,
        Behaviour::Nonsense,
        Behaviour::Short,
        Behaviour::Silent,
        Behaviour::Refuses,
        Behaviour::Paced(1),
    ] {
        let (room, site, result, took) = fetch(&content, &[behaviour; 3]).await;
        assert!(matches!(result, Err(SwarmError::Nobody(_))), "{behaviour:?} {result:?}");
        assert!(!room.objects.has(&blob(&content).digest));
        assert!(took <= Duration::from_secs(180), "{behaviour:?} {took:?}");
        let honest =
            matches!(behaviour, Behaviour::Short | Behaviour::Silent | Behaviour::Refuses | Behaviour::Paced(_));
        assert_eq!(site.misbehaviors().is_empty(), honest, "{behaviour:?}");
        assert!(site.misbehaviors().len() <= 3, "told once each");
        assert!(site.requests() < 60, "{behaviour:?}: {}", site.requests());
        let data = fs::metadata(room.partial(&blob(&content), "swarm")).unwrap();
        assert!(data.len() <= content.len() as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_blob_of_a_liar_is_refused_and_the_next_one_asked() {
    let content = content(1000);
    for behaviour in [Behaviour::WrongBytes, Behaviour::OtherContent, Behaviour::Endless] {
        let (_, site, result, _) = fetch(&content, &[behaviour]).await;
        assert!(result.is_err());
        assert_eq!(site.misbehaving(), [0]);
        let (room, _, result, _) = fetch(&content, &[behaviour, Behaviour::Honest]).await;
        result.unwrap();
        room.check(&content);
    }
}

#[tokio::test(start_paused = true)]
async fn the_slow_give_up_their_last_chunks_to_the_fast() {
    let content = content(6 * MIB);
    // Alone the slow one would need 50 s for its first chunk.
    let (room, site, result, took) = fetch(&content, &[Behaviour::Paced(20 << 10), Behaviour::Paced(2 << 20)]).await;
    result.unwrap();
    room.check(&content);
    assert!(took < Duration::from_secs(6), "{took:?}");
    assert_eq!(site.misbehaviors(), []);
}

#[tokio::test(start_paused = true)]
async fn two_that_are_equally_slow_take_nothing_from_each_other() {
    let content = content(2 * MIB);
    let (room, site, result, took) = fetch(&content, &[Behaviour::Paced(30 << 10); 2]).await;
    result.unwrap();
    room.check(&content);
    assert!(took < Duration::from_secs(40), "{took:?}");
    assert_eq!(site.fakes.iter().map(|fake| fake.given()).sum::<u64>(), content.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn those_who_die_or_say_nothing_cost_little_beside_one_who_gives() {
    let content = content(5 * MIB);
    let others = [Behaviour::DiesAfter(MIB as u64 / 2), Behaviour::Silent, Behaviour::Refuses, Behaviour::Short];
    let (room, site, result, took) =
        fetch(&content, &[others[0], others[1], others[2], others[3], Behaviour::Paced(4 << 20)]).await;
    result.unwrap();
    room.check(&content);
    assert_eq!(site.misbehaviors(), []);
    assert!(took < Duration::from_secs(25), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_comes_back_is_used_again() {
    let content = content(3 * MIB);
    let (room, site, result, took) = fetch(&content, &[Behaviour::AwayFor(4)]).await;
    result.unwrap();
    room.check(&content);
    assert_eq!(site.requests(), 4 + 1 + 3);
    assert!((15..20).contains(&took.as_secs()), "1 + 2 + 4 + 8 s of rest: {took:?}");
}
