//! Power cuts at every write of the journal and at every step, found by counting them, not from a list.

use super::*;
use crate::record::Phase;

/// What is to happen, and the worlds in which it may end.
struct Story {
    prepare: fn(&mut Lab),
    act: fn(&mut Lab),
}

const STORIES: [(&str, Story); 4] = [
    ("first", Story { prepare: |_| {}, act: |lab| lab.engine.apply(order("w", "1")) }),
    (
        "upgrade",
        Story { prepare: |lab| lab.engine.apply(order("w", "1")), act: |lab| lab.engine.apply(order("w", "2")) },
    ),
    (
        "rollback",
        Story {
            prepare: |lab| lab.engine.apply(order("w", "1")),
            act: |lab| {
                lab.host.fail("install app 2", 1);
                lab.engine.apply(order("w", "2"));
            },
        },
    ),
    ("removal", Story { prepare: |lab| lab.engine.apply(order("w", "1")), act: |lab| lab.engine.remove("w") }),
];

/// A story's beginning, to be begun as often as needed.
struct Ready {
    disk: FakeDisk,
    world: World,
}

impl Ready {
    fn of(story: &Story) -> Ready {
        let mut lab = Lab::new();
        (story.prepare)(&mut lab);
        Ready { disk: lab.disk, world: lab.host.world() }
    }

    fn lab(&self) -> Lab {
        let disk = self.disk.settled_copy();
        let host = FakeHost::of(self.world.clone()).powered_with(&disk);
        Lab::boot(host, disk, FakeTime::default())
    }
}

/// After the boot the host is old or new, wholly, and the record says which.
fn check(name: &str, cut: &str, lab: &Lab, old: &World, new: &World) {
    let mut seen = BTreeSet::new();
    for disk in lab.disk.survivors() {
        // Many disks hold the same record.
        if !seen.insert(format!("{:?}", Records::read_all(&disk, &Paths::host()))) {
            continue;
        }
        for world in lab.host.survivors() {
            // A boot starts what is enabled and nothing else.
            let mut world = world;
            world.up.retain(|unit| world.enabled.contains(unit));
            let disk = disk.settled_copy();
            let host = FakeHost::of(world).powered_with(&disk);
            let lab = Lab::boot(host, disk, lab.time.clone()).reboot();
            let now = lab.host.world();
            let record = lab.engine.records().get("w");
            let version =
                record.and_then(|record| record.running.as_ref()).and_then(|one| one.packages.version.clone());
            let expected = match version.as_deref() {
                None => empty_host(),
                Some("1") if name != "upgrade" && *old == empty_host() => new.clone(),
                Some("1") => old.clone(),
                Some(_) => new.clone(),
            };
            let trace = || record.and_then(|record| Some(record.last.as_ref()?.trace.clone()));
            assert!(
                now == expected,
                "{name}, {cut}: {}, not {}; {:#?}",
                now.against(&expected),
                expected.against(&now),
                trace()
            );
            assert!(now == *old || now == *new, "{name}, {cut}");
            assert!(record.is_none_or(|record| record.transaction.is_none()), "{name}, {cut}");
        }
    }
}

#[test]
fn a_cut_at_every_journal_write_ends_in_the_old_or_the_new_state() {
    for (name, story) in &STORIES {
        let ready = Ready::of(story);
        let (old, new) = ends(story, &ready);
        let mut cuts = 0;
        for nth in 1.. {
            let mut lab = ready.lab();
            lab.disk.cut_at(nth);
            (story.act)(&mut lab);
            let off = lab.disk.list(std::path::Path::new("/")).is_err();
            check(name, &format!("write {nth}"), &lab, &old, &new);
            cuts += 1;
            if !off {
                break;
            }
        }
        assert!(cuts > 60, "{name}: {cuts} cuts");
    }
}

#[test]
fn a_cut_at_every_step_and_in_its_middle_ends_in_the_old_or_the_new_state() {
    for (name, story) in &STORIES {
        let ready = Ready::of(story);
        let (old, new) = ends(story, &ready);
        let mut lab = ready.lab();
        (story.act)(&mut lab);
        let steps = lab.host.changes();
        assert!(steps >= 4, "{name}");
        for nth in 1..=steps {
            for half in [false, true] {
                let mut lab = ready.lab();
                lab.host.cut_at(nth, half);
                (story.act)(&mut lab);
                check(name, &format!("step {nth}, half: {half}"), &lab, &old, &new);
            }
        }
    }
}

#[test]
fn a_cut_among_very_many_files_ends_in_the_new_state() {
    let story = Story {
        prepare: |_| {},
        act: |lab| {
            let mut many = order("w", "1");
            let goal = many.goal.as_mut().unwrap();
            let file = goal.files[2].clone();
            goal.files.extend((0..90).map(|at| FileGoal { path: format!("/srv/w/{at}"), ..file.clone() }));
            lab.engine.apply(many);
        },
    };
    let ready = Ready::of(&story);
    let (old, new) = ends(&story, &ready);
    for nth in (1..110).step_by(9) {
        let mut lab = ready.lab();
        lab.host.cut_at(nth, true);
        (story.act)(&mut lab);
        check("many", &format!("step {nth}"), &lab, &old, &new);
    }
}

#[test]
fn why_says_that_the_power_was_cut_and_where() {
    let mut lab = Lab::new();
    lab.host.cut_at(5, true);
    lab.engine.apply(order("w", "1"));
    let disk = lab.disk.survivors().pop().unwrap();
    let host = FakeHost::of(lab.host.world()).powered_with(&disk);
    let lab = Lab::boot(host, disk, lab.time).reboot();
    let last = lab.record("w").last.unwrap();
    assert_eq!((last.phase, last.outcome), (Phase::Health, Some(Outcome::Committed)));
    let said = last.trace.iter().find(|line| line.what.contains("the power was cut")).unwrap();
    assert!(said.what.contains("at step 5 of ") && said.what.ends_with("going on forward"), "{}", said.what);
}

/// Where the story begins, and where it ends without a cut.
fn ends(story: &Story, ready: &Ready) -> (World, World) {
    let mut lab = ready.lab();
    let old = lab.host.world();
    (story.act)(&mut lab);
    // A failed step may succeed after a boot: then the new state is reached.
    let mut again = ready.lab();
    if old == lab.host.world() {
        again.engine.apply(order("w", "2"));
        return (old, again.host.world());
    }
    (old, lab.host.world())
}

#[test]
fn a_disk_that_refuses_any_one_write_leaves_the_old_or_the_new_state() {
    for (name, story) in &STORIES {
        let ready = Ready::of(story);
        let (old, new) = ends(story, &ready);
        for nth in 1.. {
            let mut lab = ready.lab();
            let before = lab.disk.operations();
            lab.disk.fail_at(nth, std::io::ErrorKind::StorageFull);
            (story.act)(&mut lab);
            let reached = lab.disk.operations() - before >= nth;
            let now = lab.host.world();
            assert!(now == old || now == new, "{name}, {nth}: {}", now.against(&old));
            lab.engine.look(&Scope::All, &BTreeSet::new());
            lab.disk.repair();
            let lab = lab.reboot();
            let now = lab.host.world();
            assert!(now == old || now == new, "{name}, {nth}, after a restart: {}", now.against(&old));
            if !reached {
                break;
            }
        }
    }
}
