//! Objects of the API server in a plan: what differs is applied, the platform's before the workload's and each stage before the next;
//! what is no longer wanted goes the other way. The way back applies what ran and removes what came.

use super::Question;
use crate::goal::{ObjectGoal, OnDrift, Part};
use crate::observed::ObjectState;
use crate::step::Step;

#[derive(Debug, Default)]
pub(super) struct Objects {
    pub forward: Vec<Step>,
    pub back: Vec<Step>,
}

pub(super) fn plan(question: &Question<'_>) -> Objects {
    let wanted = question.goal.map_or(&[][..], |goal| &goal.objects);
    let runs = question.running.map_or(&[][..], |running| &running.goal.objects);
    let ran = |one: &ObjectGoal| runs.iter().find(|other| other.id.is_same(&one.id));
    let stands = |one: &ObjectGoal| match question.observed.objects.get(&one.id) {
        // Who is ignored isn't looked at: that says nothing of one that was never applied.
        Some(ObjectState::AsApplied) => one.drift != OnDrift::Ignore || ran(one).is_some(),
        Some(ObjectState::Absent | ObjectState::Differs(_)) => one.drift != OnDrift::Repair && ran(one).is_some(),
        None => false,
    };
    let changes = |one: &&ObjectGoal| !stands(one) || ran(one).is_some_and(|ran| ran != *one);
    let put: Vec<&ObjectGoal> = wanted.iter().filter(changes).collect();
    let left = question.running.map_or(&[][..], |running| &running.original.objects);
    let goes = |one: &&ObjectGoal| !one.keep && !wanted.iter().any(|other| other.id.is_same(&one.id));
    let gone: Vec<&ObjectGoal> = runs.iter().chain(left).filter(goes).collect();

    let mut forward = in_order(&put);
    forward.extend(in_reverse(&gone));
    let returns = put.iter().filter_map(|one| ran(one)).chain(gone.iter().copied());
    let came: Vec<&ObjectGoal> = put.iter().copied().filter(|one| ran(one).is_none()).collect();
    let mut back = in_order(&returns.collect::<Vec<_>>());
    back.extend(in_reverse(&came));
    Objects { forward, back }
}

/// Those objects of the way back that the way forward has touched.
pub(super) fn needed(back: &[ObjectGoal], begun: &[Step]) -> Vec<ObjectGoal> {
    let touched = |one: &&ObjectGoal| begun.iter().flat_map(objects).any(|other| other.id.is_same(&one.id));
    back.iter().filter(touched).cloned().collect()
}

/// What a step applies or removes of the API server.
fn objects(step: &Step) -> &[ObjectGoal] {
    match step {
        Step::PutObjects { objects } | Step::RemoveObjects { objects } => objects,
        _ => &[],
    }
}

fn in_order(objects: &[&ObjectGoal]) -> Vec<Step> {
    groups(objects).into_iter().map(|objects| Step::PutObjects { objects }).collect()
}

fn in_reverse(objects: &[&ObjectGoal]) -> Vec<Step> {
    groups(objects).into_iter().rev().map(|objects| Step::RemoveObjects { objects }).collect()
}

/// One group for each part and stage.
fn groups(objects: &[&ObjectGoal]) -> Vec<Vec<ObjectGoal>> {
    let place = |one: &ObjectGoal| (one.part == Part::Workload, one.stage);
    let mut sorted: Vec<ObjectGoal> = objects.iter().map(|one| (*one).clone()).collect();
    sorted.sort_by_key(place);
    sorted.chunk_by(|one, next| place(one) == place(next)).map(<[ObjectGoal]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use std::path::Path;

    use kedge_model::wire::Digest;

    use super::*;
    use crate::goal::{Goal, ObjectId, ObjectTerms, Stage};
    use crate::observed::Observed;
    use crate::plan::debs::DebPlan;
    use crate::plan::{self, Others, Planned};
    use crate::record::Original;

    fn object(name: &str, part: Part, stage: Stage, content: &str) -> ObjectGoal {
        let id = ObjectId {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            plural: "things".to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        };
        let content = Digest::of(content.as_bytes());
        let (account, drift) = (None, OnDrift::Repair);
        let terms = ObjectTerms { id, content, part, stage, account, take: false, keep: false, recreate: false, drift };
        terms.into()
    }

    fn rest(name: &str, content: &str) -> ObjectGoal {
        object(name, Part::Workload, Stage::Rest, content)
    }

    fn run(goal: Option<&[ObjectGoal]>, running: Option<&[ObjectGoal]>, states: &[(&str, ObjectState)]) -> Planned {
        let whole = |objects: &[ObjectGoal]| Goal { objects: objects.to_vec(), ..Goal::default() };
        let (goal, running) =
            (goal.map(whole), running.map(whole).map(|goal| plan::tests::running(&goal, Original::default())));
        let mut observed = Observed::default();
        for (name, state) in states {
            observed.objects.insert(rest(name, "").id.clone(), state.clone());
        }
        let question = plan::Question {
            goal: goal.as_ref(),
            running: running.as_ref(),
            restart: false,
            observed: &observed,
            debs: &DebPlan::default(),
            others: &Others::default(),
            objects: Path::new("/objects"),
        };
        plan::plan(&question).unwrap()
    }

    fn told(steps: &[Step]) -> Vec<String> {
        let names =
            |objects: &[ObjectGoal]| objects.iter().map(|one| one.id.name.clone()).collect::<Vec<_>>().join(" ");
        let tell = |step: &Step| match step {
            Step::PutObjects { objects } => format!("put {}", names(objects)),
            Step::RemoveObjects { objects } => format!("remove {}", names(objects)),
            other => panic!("{other:?}"),
        };
        steps.iter().map(tell).collect()
    }

    #[test]
    fn the_platform_comes_first_and_webhooks_come_last() {
        let all = [
            object("hook", Part::Workload, Stage::Webhooks, ""),
            rest("web", ""),
            rest("db", ""),
            object("crd", Part::Workload, Stage::Definitions, ""),
            object("config", Part::Platform, Stage::Configuration, ""),
            object("namespace", Part::Platform, Stage::Namespaces, ""),
        ];
        let planned = run(Some(&all), None, &[]);
        assert_eq!(
            told(&planned.forward),
            ["put namespace", "put config", "put crd", "put web db", "put hook"],
            "one step for each stage of each part"
        );
        assert_eq!(
            told(&planned.back),
            ["remove hook", "remove web db", "remove crd", "remove config", "remove namespace"]
        );
    }

    #[test]
    fn only_what_changed_is_applied_and_the_way_back_is_what_ran() {
        let running = [rest("same", "1"), rest("web", "1"), rest("old", "1")];
        let wanted = [rest("same", "1"), rest("web", "2"), rest("new", "1")];
        let planned = run(Some(&wanted), Some(&running), &[("same", ObjectState::AsApplied)]);
        assert_eq!(told(&planned.forward), ["put web new", "remove old"]);
        assert_eq!(told(&planned.back), ["put web old", "remove new"]);
        let Step::PutObjects { objects } = &planned.back[0] else { panic!() };
        assert_eq!(objects[0].content, Digest::of(b"1"));
        let touched = plan::back::needed(&planned.back, &planned.forward[..1]);
        assert_eq!(told(&touched), ["put web", "remove new"], "what wasn't begun isn't taken back");
    }

    #[test]
    fn drift_is_repaired_where_that_is_wanted() {
        let reported = rest("seen", "1").with(|terms| terms.drift = OnDrift::Report);
        let running = [rest("gone", "1"), rest("edited", "1"), rest("same", "1"), reported];
        let states = [
            ("gone", ObjectState::Absent),
            ("edited", ObjectState::Differs("x".to_owned())),
            ("same", ObjectState::AsApplied),
            ("seen", ObjectState::Absent),
        ];
        assert_eq!(told(&run(Some(&running), Some(&running), &states).forward), ["put gone edited"]);
    }

    #[test]
    fn an_object_whose_drift_is_ignored_is_applied_once() {
        let wanted = [rest("mine", "1").with(|terms| terms.drift = OnDrift::Ignore)];
        let states = [("mine", ObjectState::AsApplied)];
        assert_eq!(told(&run(Some(&wanted), None, &states).forward), ["put mine"]);
        assert!(told(&run(Some(&wanted), Some(&wanted), &states).forward).is_empty());
    }

    #[test]
    fn a_removal_leaves_what_is_to_be_kept() {
        let running = [rest("web", "1"), rest("data", "1").with(|terms| terms.keep = true)];
        let planned = run(None, Some(&running), &[]);
        assert_eq!(told(&planned.forward), ["remove web"]);
        assert_eq!(told(&planned.back), ["put web"]);
    }
}
