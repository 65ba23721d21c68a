//! Properties of plans: the goal is reached, and the way back is exact.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::collections::BTreeSet;
use std::path::Path;

use kedge_model::wire::{Digest, Generation, PackagesKey, Timestamp};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::back::needed;
use super::difference::differences;
use super::*;
use crate::engine::fake::{FakeHost, World};
use crate::goal::{ArtifactGoal, DebGoal, FileGoal, FolderGoal, Owner, Part, UnitGoal};
use crate::observed::{DebState, PathState};
use crate::paths::above;

const OBJECTS: &str = "/objects";
const FOLDERS: [&str; 3] = ["/srv/a", "/srv/a/b", "/srv/c"];
/// The last one is also in a deb.
const FILES: [&str; 7] = [
    "/etc/kedge/workloads/w/config",
    "/etc/kedge/workloads/w/platform.env",
    "/srv/a/file",
    "/etc/systemd/system/own.service",
    "/etc/systemd/system/own.service.d/zzz-kedge.conf",
    "/opt/deep/below/file",
    "/usr/share/app",
];

fn owner() -> impl Strategy<Value = Owner> {
    let user = Owner { user: "kedge-1".to_owned(), group: "kedge-1".to_owned() };
    select(vec![Owner::root(), user])
}

fn mode() -> impl Strategy<Value = u32> {
    select(vec![0o600, 0o644, 0o755])
}

prop_compose! {
    /// All goals of a sequence have the file that is also in a deb, or none: nobody knows what it would return to.
    fn any_goal(overlay: bool)(
        user in select(vec!["kedge-1", "kedge-2"]),
        folders in subsequence(FOLDERS.to_vec(), 0..=FOLDERS.len()),
        folder in (owner(), mode()),
        mut files in subsequence(FILES[..6].to_vec(), 0..=6),
        contents in prop::collection::vec((select(vec!["one", "two", "three"]), owner(), mode()), FILES.len()),
        artifact in prop::option::of(select(vec!["model-1", "model-2"])),
        debs in subsequence(vec!["app", "tool"], 0..=2),
        version in select(vec!["1", "2"]),
        states in prop::collection::vec((any::<bool>(), any::<bool>()), 3),
        restart_on in subsequence(vec!["/srv/a/file", "app", "/etc/kedge/workloads/w"], 0..=3),
    ) -> Goal {
        let folders = folders.into_iter()
            .map(|path| FolderGoal { path: path.to_owned(), owner: folder.0.clone(), mode: folder.1 }).collect();
        let part = |path: &str| if path.starts_with("/etc/kedge/") { Part::Platform } else { Part::Workload };
        files.extend(overlay.then_some(FILES[6]));
        let brings_unit = files.contains(&FILES[3]);
        let files = files.into_iter().zip(contents).map(|(path, (content, owner, mode))| FileGoal {
            path: path.to_owned(), content: Digest::of(content.as_bytes()), size: 1, owner, mode, part: part(path),
        }).collect();
        let mut units = Vec::new();
        let unit = |name: &str, state: (bool, bool)| UnitGoal {
            name: name.to_owned(), enabled: state.0, running: state.1,
            restart_on: restart_on.iter().map(|one| (*one).to_owned()).collect(),
        };
        if brings_unit {
            units.push(unit("own.service", states[0]));
        }
        if debs.contains(&"app") {
            units.push(unit("app.service", states[1]));
        }
        Goal {
            user: Some(user.to_owned()),
            folders,
            files,
            artifacts: artifact.into_iter().map(|content| ArtifactGoal {
                path: "/srv/a/model".to_owned(), content: Digest::of(content.as_bytes()), size: 1,
            }).collect(),
            debs: debs.into_iter().map(|name| DebGoal { name: name.to_owned(), version: version.to_owned(), file: None }).collect(),
            units,
            ..Goal::default()
        }
    }
}

prop_compose! {
    /// A host on which some of these things are there already.
    fn any_world()(
        folders in subsequence(vec!["/srv/a", "/srv/c", "/etc/kedge", "/opt", "/opt/deep"], 0..=5),
        files in subsequence(vec![FILES[0], FILES[2], FILES[3], FILES[5]], 0..=4),
        content in select(vec!["one", "other"]),
        deb in prop::option::of(select(vec!["1", "2", "3"])),
        held in any::<bool>(),
        unit in (any::<bool>(), any::<bool>()),
        own in (any::<bool>(), any::<bool>()),
        user in any::<bool>(),
    ) -> World {
        let mut world = World::default();
        let folder = || PathState::Folder { owner: Owner::root(), mode: 0o755 };
        for path in ["/etc", "/etc/systemd", "/etc/systemd/system", "/srv", "/usr", "/usr/share"].into_iter().chain(folders) {
            for above in above(path).chain([path]) {
                world.paths.insert(above.to_owned(), folder());
            }
        }
        for path in files {
            for above in above(path) {
                world.paths.entry(above.to_owned()).or_insert_with(folder);
            }
            world.paths.insert(path.to_owned(), World::file(content));
            if path == FILES[3] {
                if own.0 { world.enabled.insert("own.service".to_owned()); }
                if own.1 { world.up.insert("own.service".to_owned()); }
            }
        }
        if let Some(version) = deb {
            let state = DebState { version: Some(version.to_owned()), whole: true, held, ..DebState::default() };
            world.debs.insert("app".to_owned(), state);
            world.paths.insert("/usr/share/app".to_owned(), World::file(version));
            if unit.0 { world.enabled.insert("app.service".to_owned()); }
            if unit.1 { world.up.insert("app.service".to_owned()); }
        }
        if user { world.users.insert("kedge-1".to_owned()); }
        world
    }
}

fn ask<R>(world: &World, goal: Option<&Goal>, running: Option<&Running>, then: impl FnOnce(&Question<'_>) -> R) -> R {
    use crate::apply::Host as _;
    let others = Others::default();
    let subjects = subjects::of(goal, running.map(|running| &running.original));
    let observed = FakeHost::of(world.clone()).look(&subjects).unwrap();
    let debs = world.prepare_debs(&debs::wish(goal, running, &others));
    let objects = Path::new(OBJECTS);
    then(&Question { goal, running, restart: false, observed: &observed, debs: &debs, others: &others, objects })
}

fn planned(world: &World, goal: Option<&Goal>, running: Option<&Running>) -> Planned {
    ask(world, goal, running, |question| plan(question).unwrap())
}

fn run(world: &mut World, steps: &[Step]) {
    for step in steps {
        world.execute(step, false).unwrap_or_else(|failure| panic!("{step:?}: {}", failure.message));
    }
}

pub(super) fn running(goal: &Goal, original: Original) -> Running {
    let packages = crate::engine::tests::packages("one");
    Running {
        key: PackagesKey::of_observed(&Digest::of(b"")),
        packages,
        generation: Generation(1),
        restart: 0,
        since: Timestamp(0),
        goal: goal.clone(),
        original,
    }
}

fn missing(world: &World, goal: &Goal) -> Vec<String> {
    use crate::apply::Host as _;
    let observed = FakeHost::of(world.clone()).look(&subjects::of(Some(goal), None)).unwrap();
    differences(goal, &observed, Path::new(OBJECTS))
}

proptest! {
    #[test]
    fn forward_reaches_each_goal_and_removal_returns_to_the_beginning(
        before in any_world(),
        goals in any::<bool>().prop_flat_map(|overlay| prop::collection::vec(any_goal(overlay), 1..4)),
    ) {
        let mut world = before.clone();
        let mut now: Option<Running> = None;
        for goal in &goals {
            let plan = planned(&world, Some(goal), now.as_ref());
            run(&mut world, &plan.forward);
            prop_assert_eq!(missing(&world, goal), Vec::<String>::new());
            let reached = world.clone();
            run(&mut world, &plan.forward);
            prop_assert_eq!(&world, &reached, "forward twice is once");
            now = Some(running(goal, plan.original));
            let again = planned(&world, Some(goal), now.as_ref());
            prop_assert_eq!(again.forward, Vec::new(), "the same content needs no step");
        }
        let plan = planned(&world, None, now.as_ref());
        run(&mut world, &plan.forward);
        prop_assert_eq!(world, before);
    }

    #[test]
    fn the_way_back_from_any_prefix_ends_exactly_where_it_began(
        first in any_world(),
        goals in any::<bool>().prop_flat_map(|overlay| (any_goal(overlay), prop::option::of(any_goal(overlay)))),
        cut in 0.0..=1.0_f64,
        whole in any::<bool>(),
        half in any::<bool>(),
    ) {
        let mut before = first;
        let plan = planned(&before, Some(&goals.0), None);
        run(&mut before, &plan.forward);
        let now = running(&goals.0, plan.original);
        let plan = planned(&before, goals.1.as_ref(), Some(&now));
        let mut world = before.clone();
        let begun = (plan.forward.len() as f64 * cut) as usize;
        for step in &plan.forward[..begun] {
            for _ in 0..2 {
                world.execute(step, false).unwrap();
            }
        }
        if let (true, Some(last)) = (half, plan.forward[..begun].last()) {
            world.execute(last, true).unwrap();
        }
        let back = if whole { plan.back.clone() } else { needed(&plan.back, &plan.forward[..begun]) };
        run(&mut world, &back);
        prop_assert_eq!(&world, &before);
        run(&mut world, &back);
        prop_assert_eq!(&world, &before, "back twice is once");
    }

    #[test]
    fn every_file_that_changes_is_kept_before(before in any_world(), goal in any_goal(true)) {
        let (kept, plan) = ask(&before, Some(&goal), None, |question| {
            (paths::to_keep(question).unwrap(), plan(question).unwrap())
        });
        let touched: BTreeSet<&String> = plan.forward.iter().filter_map(|step| match step {
            Step::PutFile { path, .. } | Step::PutLink { path, .. } | Step::RemovePath { path } => Some(path),
            _ => None,
        }).filter(|path| matches!(before.paths.get(*path), Some(PathState::File { .. }))).collect();
        prop_assert_eq!(touched, kept.iter().collect());
    }
}

fn small_goal() -> Goal {
    let file = |path: &str, part| FileGoal {
        path: path.to_owned(),
        content: Digest::of(b"one"),
        size: 3,
        owner: Owner::root(),
        mode: 0o644,
        part,
    };
    let unit = |name: &str, restart_on: &[&str]| UnitGoal {
        name: name.to_owned(),
        enabled: true,
        running: true,
        restart_on: restart_on.iter().map(|one| (*one).to_owned()).collect(),
    };
    Goal {
        user: Some("kedge-1".to_owned()),
        files: vec![
            file("/etc/kedge/workloads/w/platform.env", Part::Platform),
            file("/etc/systemd/system/w.service", Part::Workload),
            file("/etc/systemd/system/w-other.service", Part::Workload),
        ],
        units: vec![unit("w.service", &["/etc/kedge/workloads/w/platform.env"]), unit("w-other.service", &[])],
        debs: vec![DebGoal { name: "app".to_owned(), version: "1".to_owned(), file: None }],
        ..Goal::default()
    }
}

fn small_world() -> World {
    let mut world = World::default();
    for path in ["/etc", "/etc/systemd", "/etc/systemd/system", "/usr", "/usr/share"] {
        world.paths.insert(path.to_owned(), PathState::Folder { owner: Owner::root(), mode: 0o755 });
    }
    world
}

#[test]
fn a_changed_platform_configuration_restarts_who_asked_and_touches_no_deb() {
    let (mut world, mut goal) = (small_world(), small_goal());
    let plan = planned(&world, Some(&goal), None);
    run(&mut world, &plan.forward);
    let now = running(&goal, plan.original);
    goal.files[0].content = Digest::of(b"two");
    let plan = planned(&world, Some(&goal), Some(&now));
    let put = |content: &[u8]| Step::PutFile {
        path: "/etc/kedge/workloads/w/platform.env".to_owned(),
        content: Digest::of(content),
        owner: Owner::root(),
        mode: 0o644,
    };
    let restart = Step::RestartUnit { name: "w.service".to_owned() };
    assert_eq!(plan.forward, [put(b"two"), restart.clone()]);
    assert_eq!(plan.back, [put(b"one"), restart]);
}

#[test]
fn a_drop_in_restarts_its_unit_also_that_of_a_template() {
    let (mut world, mut goal) = (small_world(), small_goal());
    goal.debs.clear();
    let unit = |name: &str| UnitGoal { name: name.to_owned(), enabled: false, running: true, restart_on: Vec::new() };
    goal.units = vec![unit("w@one.service"), unit("w.service")];
    goal.files[2].path = "/etc/systemd/system/w@.service.d/zzz-kedge.conf".to_owned();
    world.paths.insert("/etc/systemd/system/w@one.service".to_owned(), World::file(""));
    let plan = planned(&world, Some(&goal), None);
    run(&mut world, &plan.forward);
    let now = running(&goal, plan.original);
    goal.files[2].mode = 0o600;
    let forward = planned(&world, Some(&goal), Some(&now)).forward;
    assert_eq!(forward[1..], [Step::ReloadUnits, Step::RestartUnit { name: "w@one.service".to_owned() }]);
}

#[test]
fn a_raised_counter_restarts_what_runs_and_the_way_back_only_starts() {
    let (mut world, mut goal) = (small_world(), small_goal());
    goal.units[1].running = false;
    let plan = planned(&world, Some(&goal), None);
    run(&mut world, &plan.forward);
    let now = running(&goal, plan.original);
    let plan = ask(&world, Some(&goal), Some(&now), plan_with_restart);
    assert_eq!(plan.forward, [Step::RestartUnit { name: "w.service".to_owned() }]);
    assert_eq!(plan.back, [Step::StartUnit { name: "w.service".to_owned() }]);
}

fn plan_with_restart(question: &Question<'_>) -> Planned {
    plan(&Question { restart: true, ..*question }).unwrap()
}

#[test]
fn a_folder_in_the_way_a_masked_and_an_unknown_unit_are_refused_before_anything_changes() {
    let refused = |world: &World, goal: &Goal| ask(world, Some(goal), None, |question| plan(question).unwrap_err());
    let (mut world, mut goal) = (small_world(), small_goal());
    let folder = PathState::Folder { owner: Owner::root(), mode: 0o755 };
    world.paths.insert("/etc/systemd/system/w.service".to_owned(), folder);
    assert_eq!(refused(&world, &goal).reason, "ConflictingFile");
    goal.debs.clear();
    goal.files.truncate(1);
    assert_eq!(refused(&small_world(), &goal).reason, "UnitFailed");
}

#[test]
fn what_another_assignment_has_too_stays_and_its_original_is_inherited() {
    let (mut world, goal) = (small_world(), small_goal());
    let first = planned(&world, Some(&goal), None);
    run(&mut world, &first.forward);
    let record = |name: &str, original: &Original| crate::record::Record {
        assignment: name.to_owned(),
        running: Some(running(&goal, original.clone())),
        ..Default::default()
    };
    let others = Others::of([record("first", &first.original)].iter());
    let second = ask(&world, Some(&goal), None, |question| plan(&Question { others: &others, ..*question }).unwrap());
    assert_eq!((&second.forward[..], &second.original), (&[][..], &first.original));
    let now = running(&goal, second.original.clone());
    let removal = ask(&world, None, Some(&now), |question| {
        let debs = world.prepare_debs(&debs::wish(None, Some(&now), &others));
        plan(&Question { others: &others, debs: &debs, ..*question }).unwrap()
    });
    assert_eq!(removal.forward, [], "the first still has it all");
    let removal = planned(&world, None, Some(&now));
    run(&mut world, &removal.forward);
    assert_eq!(world, small_world(), "the last one takes it away");
    let mut other = goal.clone();
    other.files[0].content = Digest::of(b"else");
    assert_eq!(others.check(&other).unwrap_err().reason, "ConflictingFile");
    other = goal.clone();
    other.units[0].running = false;
    assert_eq!(others.check(&other).unwrap_err().reason, "ConflictingUnit");
}

#[test]
fn each_kind_of_drift_is_said_in_a_sentence() {
    let (mut world, goal) = (small_world(), small_goal());
    let plan = planned(&world, Some(&goal), None);
    run(&mut world, &plan.forward);
    let drifted = |change: &dyn Fn(&mut World)| {
        let mut world = world.clone();
        change(&mut world);
        missing(&world, &goal).join("; ")
    };
    let path = "/etc/kedge/workloads/w/platform.env";
    let put = |state: PathState| move |world: &mut World| _ = world.paths.insert(path.to_owned(), state.clone());
    let file = |content: &str, user: &str, mode| PathState::File {
        content: Digest::of(content.as_bytes()),
        size: 1,
        owner: Owner { user: user.to_owned(), group: "root".to_owned() },
        mode,
    };
    assert_eq!(drifted(&|world| _ = world.paths.remove(path)), format!("{path} was deleted"));
    assert_eq!(drifted(&put(file("x", "root", 0o644))), format!("{path} was edited"));
    assert_eq!(drifted(&put(file("one", "root", 0o666))), format!("{path} has mode 0666 instead of 0644"));
    assert_eq!(drifted(&put(file("one", "eve", 0o644))), format!("{path} belongs to eve:root instead of root:root"));
    assert_eq!(drifted(&|world| _ = world.up.remove("w.service")), "unit w.service was stopped");
    assert_eq!(drifted(&|world| _ = world.enabled.remove("w.service")), "unit w.service was disabled");
    assert_eq!(drifted(&|world| _ = world.debs.remove("app")), "deb app was removed");
    let upgraded = |world: &mut World| world.debs.get_mut("app").unwrap().version = Some("2".to_owned());
    assert_eq!(drifted(&upgraded), "deb app is 2 instead of 1");
    assert_eq!(drifted(&|world| _ = world.users.remove("kedge-1")), "user kedge-1 was removed");
}
