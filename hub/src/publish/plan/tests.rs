//! A branch as a map, and what happens to it publish by publish.

use kedge_scheduler::README_TEXT;
use proptest::prelude::*;

use super::*;
use crate::publish::fixture::schedule;
use crate::publish::tree::blob_id;

/// The branch, and what is remembered about it.
#[derive(Default)]
struct World {
    texts: BTreeMap<String, String>,
    published: HashMap<String, ObjectId>,
    confirmed: BTreeMap<String, Names>,
    memory: Memory,
}

impl World {
    fn plan(&mut self, words: &str) -> Plan {
        let files = self.texts.iter();
        let files =
            files.map(|(path, text)| (path.clone(), There { id: blob_id(text).unwrap(), plain: true })).collect();
        let existing =
            self.texts.iter().filter(|(path, _)| path.ends_with("/README.md") || assignment_of(path).is_some());
        let existing = existing.map(|(path, text)| match path.ends_with("/README.md") {
            true => (path.clone(), Existing::Readme(text.clone())),
            false => (path.clone(), Existing::Other),
        });
        let base = Base {
            tree: self.tree(),
            existing: &existing.collect(),
            files: &files,
            published: &self.published,
            confirmed: &self.confirmed,
            approved: &BTreeMap::new(),
            guard: Guard::Wait,
        };
        let planned = plan(base, &schedule(words), &mut self.memory, &|_| None).unwrap();
        // What is remembered makes it faster and nothing else.
        let (wanted, scope) = (planned.wanted.clone(), planned.scope.clone());
        let anew = plan(base, &schedule(words), &mut Memory::default(), &|_| None).unwrap();
        assert_eq!(planned, Plan { wanted, scope, ..anew });
        planned
    }

    fn tree(&self) -> Option<ObjectId> {
        Some(blob_id(&format!("{:?}", self.texts)).unwrap())
    }

    fn publish(&mut self, words: &str) -> Plan {
        let plan = self.plan(words);
        for (path, change) in &plan.changes {
            match change {
                Change::Write { text, .. } => drop(self.texts.insert(path.clone(), text.to_string())),
                Change::Delete => drop(self.texts.remove(path)),
            }
        }
        for (path, id) in &plan.settled {
            match id {
                Some(id) => drop(self.published.insert(path.clone(), *id)),
                None => drop(self.published.remove(path)),
            }
        }
        self.confirmed.extend(plan.confirmed.clone());
        let tree = self.tree();
        self.memory.hold(plan.clone(), &schedule(words), tree);
        plan
    }

    fn wanted(words: &str) -> BTreeMap<String, String> {
        schedule(words).files().map(|(path, text)| (path, text.to_string())).collect()
    }
}

#[test]
fn the_tracking_file_stays_while_a_part_waits() {
    let mut world = World::default();
    world.publish("drone/a-t drone/b-t drone/c-t large/x-t");
    let before = world.texts.clone();
    let mut next = schedule("drone/a-t large/x-t=2");
    next.promoted_commit = Some("beef".to_owned());
    let files =
        world.texts.iter().map(|(path, text)| (path.clone(), There { id: blob_id(text).unwrap(), plain: true }));
    let existing = world.texts.keys().map(|path| match path.ends_with("/README.md") {
        true => (path.clone(), Existing::Readme(README_TEXT.to_owned())),
        false => (path.clone(), Existing::Other),
    });
    let base = Base {
        tree: None,
        existing: &existing.collect(),
        files: &files.collect(),
        published: &world.published,
        confirmed: &world.confirmed,
        approved: &BTreeMap::new(),
        guard: Guard::Wait,
    };
    let waits = plan(base, &next, &mut Memory::default(), &|_| None).unwrap();
    assert_eq!(waits.changes.keys().collect::<Vec<_>>(), ["large/x-t/platform-config.yaml"]);
    let warns = plan(Base { guard: Guard::Warn, ..base }, &next, &mut Memory::default(), &|_| None).unwrap();
    assert!(warns.promotes() && warns.removals.contains_key("drone"));
    assert_eq!(warns.content, waits.content);
    assert_eq!(world.texts, before);
}

#[test]
fn a_change_of_values_is_planned_by_itself_and_others_with_all() {
    let mut world = World::default();
    world.publish("drone/a-t=1 drone/b-t=1 large/");
    assert!(world.publish("drone/a-t=1 drone/b-t=2 large/").scope.is_some());
    assert!(world.plan("drone/a-t=2 drone/b-t=2 large/").scope.is_some());
    for words in ["drone/a-t=1 large/", "drone/a-t=1 drone/b-t=2", "drone/a-t=1 drone/b-t=2 drone/c-t large/"] {
        assert!(world.plan(words).scope.is_none(), "{words}");
    }
    world.texts.insert("notes.md".to_owned(), "mine".to_owned());
    assert!(world.plan("drone/a-t=1 drone/b-t=3 large/").scope.is_none(), "the branch moved");
}

#[test]
fn the_content_is_named_by_what_is_wanted() {
    let content = |words: &str| World::default().plan(words).content;
    assert_eq!(content("drone/a-t=1 drone/b-t"), content("drone/b-t drone/a-t=1"));
    assert_ne!(content("drone/a-t=1"), content("drone/a-t=2"));
    assert_ne!(content("drone/a-t"), content("drone/b-t"));
}

#[test]
fn a_change_to_another_kind_of_configuration_keeps_the_assignment() {
    let mut world = World::default();
    world.publish("drone/a-t=1");
    world.texts.remove("drone/a-t/platform-config.yaml");
    world.texts.insert("drone/a-t/platform-config.sh".to_owned(), "export A=1".to_owned());
    world.published.clear();
    let plan = world.publish("drone/a-t=1");
    assert!(plan.removals.is_empty());
    assert_eq!(world.texts, World::wanted("drone/a-t=1"));
}

fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![4 => "(drone|large)/[a-d]-t=[12]", 1 => "(drone|large)/"];
    prop::collection::vec(word, 1..8).prop_map(|words| words.join(" "))
}

proptest! {
    /// Without hand edits the branch is the schedule, save for cluster types that wait; and a second look changes nothing.
    #[test]
    fn the_branch_becomes_the_schedule_or_waits(steps in prop::collection::vec(words(), 1..12)) {
        let mut world = World::default();
        world.texts.insert("docs/x.md".to_owned(), "mine".to_owned());
        for words in steps {
            let before = world.texts.clone();
            let plan = world.publish(&words);
            prop_assert!(plan.hand_edits.is_empty());
            prop_assert_eq!(world.texts.get("docs/x.md").map(String::as_str), Some("mine"));
            let waits = |path: &str| path.split('/').next().is_some_and(|name| plan.removals.contains_key(name));
            let wanted = World::wanted(&words);
            for path in wanted.keys().chain(before.keys()).filter(|path| *path != "docs/x.md" && *path != PROMOTED_COMMIT) {
                let expected = if waits(path) { before.get(path) } else { wanted.get(path) };
                prop_assert_eq!(world.texts.get(path), expected, "{}", path);
            }
            let again = world.plan(&words);
            prop_assert!(again.changes.is_empty() && again.settled.is_empty() && again.confirmed.is_empty());
        }
    }

    /// What people change stays as it is as long as the schedule wants the same of that file.
    #[test]
    fn a_hand_edit_lives_until_its_file_is_wanted_otherwise(first in words(), second in words(), which in any::<prop::sample::Index>(), delete in any::<bool>()) {
        let mut world = World::default();
        world.publish(&first);
        let path = which.get(&world.texts.keys().cloned().collect::<Vec<_>>()).clone();
        // Without a README a folder isn't ours any more.
        prop_assume!(!path.ends_with("README.md"));
        match delete {
            true => drop(world.texts.remove(&path)),
            false => drop(world.texts.insert(path.clone(), "by hand".to_owned())),
        }
        let held = world.texts.get(&path).cloned();
        let plan = world.publish(&first);
        prop_assert!(plan.changes.is_empty() && plan.hand_edits.contains(&path) || !plan.removals.is_empty());
        let plan = world.publish(&second);
        let (before, now) = (World::wanted(&first).get(&path).cloned(), World::wanted(&second).get(&path).cloned());
        if plan.removals.is_empty() {
            let expected = if before == now { held } else { now };
            prop_assert_eq!(world.texts.get(&path), expected.as_ref());
        }
    }
}
