//! Units that are called like the workload's own but belong to somebody else: what systemd reads for them is neither a file of the
//! workload nor of one of its debs. Asked before every change and at every look, since an administrator may make such a unit at any time.

use std::collections::BTreeSet;

use kedge_host_policy::DROP_IN;

use super::Question;
use crate::goal::Goal;
use crate::observed::{Observed, PathState, UnitState};
use crate::record::Failure;

/// Units of others among those of a goal that was applied, each in a sentence.
pub(super) fn differences(goal: &Goal, observed: &Observed) -> Vec<String> {
    let is_own = |path: &str| goal.files.iter().any(|file| plain(&file.path) == plain(path));
    let debs = goal.debs.iter().map(|deb| deb.name.as_str()).collect();
    find(goal, observed, is_own, &debs).map(|(unit, whose)| format!("unit {unit} belongs to {whose} now")).collect()
}

/// Refuses a goal that would change somebody else's unit.
pub(super) fn check(question: &Question<'_>) -> Result<(), Failure> {
    let Some(goal) = question.goal else { return Ok(()) };
    let had = |path: &str| {
        question.running.is_some_and(|running| running.original.paths.keys().any(|own| plain(own) == plain(path)))
    };
    // A file that isn't there yet, or is as we want it, or has our drop-in beside it: of a record that was lost.
    let is_ours = |path: &str| {
        let mut files = goal.files.iter().filter(|file| plain(&file.path) == plain(path));
        files.any(|file| {
            let beside = format!("{path}.d/{DROP_IN}");
            let there = |path: &str| question.observed.paths.get(path).filter(|state| **state != PathState::Absent);
            match there(&file.path) {
                None => true,
                Some(PathState::File { content, .. }) if *content == file.content => true,
                Some(_) => there(&beside).is_some(),
            }
        })
    };
    let running = question.running.iter().flat_map(|running| &running.goal.debs);
    let debs = goal.debs.iter().chain(running).map(|deb| deb.name.as_str()).collect();
    let mut found = find(goal, question.observed, |path| had(path) || is_ours(path), &debs);
    match found.next() {
        None => Ok(()),
        Some((unit, whose)) => Err(Failure::new(
            "NotAllowed",
            format!(
                "the unit `{unit}` belongs to {whose}, not to this workload; the platform team can add `{unit}` to `allow.units` of its \
                 HostNamespace"
            ),
        )),
    }
}

/// Units that systemd reads from elsewhere, and whose they are.
fn find<'a>(
    goal: &'a Goal,
    observed: &'a Observed,
    is_own: impl Fn(&str) -> bool + 'a,
    debs: &BTreeSet<&str>,
) -> impl Iterator<Item = (&'a str, String)> {
    let foreign = goal.own_units.iter().filter_map(move |unit| {
        let UnitState { file, deb, masked, .. } = observed.units.get(unit)?;
        let file = file.as_deref().filter(|file| !masked && !is_own(file))?;
        Some((unit.as_str(), file, deb.as_deref()))
    });
    let debs: BTreeSet<String> = debs.iter().map(|name| (*name).to_owned()).collect();
    foreign.filter(move |(_, _, deb)| !deb.is_some_and(|deb| debs.contains(deb))).map(|(unit, file, deb)| {
        let whose = deb.map_or_else(|| format!("somebody else ({file})"), |deb| format!("the deb `{deb}`"));
        (unit, whose)
    })
}

/// One folder of units under two names.
fn plain(path: &str) -> &str {
    path.strip_prefix("/usr").filter(|rest| rest.starts_with("/lib/systemd/")).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kedge_model::wire::Digest;

    use super::*;
    use crate::goal::{DebGoal, FileGoal, Owner, Part};
    use crate::plan::debs::DebPlan;
    use crate::plan::{Others, Running};

    const UNIT: &str = "w-x.service";
    const PLACE: &str = "/etc/systemd/system/w-x.service";

    fn file(path: &str, content: &[u8]) -> FileGoal {
        let (content, owner) = (Digest::of(content), Owner::root());
        FileGoal { path: path.to_owned(), content, size: 1, owner, mode: 0o644, part: Part::Workload }
    }

    fn goal(files: &[&str]) -> Goal {
        Goal {
            files: files.iter().map(|path| file(path, b"ours")).collect(),
            own_units: BTreeSet::from([UNIT.to_owned()]),
            debs: vec![DebGoal { name: "tool".to_owned(), version: "1".to_owned(), file: None }],
            ..Goal::default()
        }
    }

    fn observed(read_from: &str, deb: Option<&str>) -> Observed {
        let state = UnitState {
            known: true,
            file: Some(read_from.to_owned()),
            deb: deb.map(str::to_owned),
            ..UnitState::default()
        };
        Observed { units: [(UNIT.to_owned(), state)].into(), ..Observed::default() }
    }

    fn checked(goal: &Goal, observed: &Observed, running: Option<&Running>) -> Result<(), Failure> {
        let (debs, others) = (DebPlan::default(), Others::default());
        let question = Question {
            goal: Some(goal),
            running,
            restart: false,
            observed,
            debs: &debs,
            others: &others,
            objects: Path::new("/objects"),
        };
        check(&question)
    }

    #[test]
    fn a_drop_in_for_a_unit_of_somebody_else_is_refused_wherever_the_unit_is() {
        let goal = goal(&["/etc/systemd/system/w-x.service.d/a.conf"]);
        for (read_from, deb) in [
            (PLACE, None),
            ("/run/systemd/system/w-x.service", None),
            ("/usr/local/lib/systemd/system/w-x.service", None),
            ("/run/systemd/transient/w-x.service", None),
            ("/etc/init.d/w-x", None),
            ("/lib/systemd/system/w-x.service", Some("cups")),
            ("/lib/systemd/system/ssh.service", Some("openssh-server")),
        ] {
            let failure = checked(&goal, &observed(read_from, deb), None).unwrap_err();
            assert_eq!(failure.reason, "NotAllowed");
            assert!(failure.message.contains(UNIT) && failure.message.contains("`allow.units`"), "{}", failure.message);
            assert_eq!(differences(&goal, &observed(read_from, deb)).len(), 1, "{read_from}");
        }
        let own = observed("/lib/systemd/system/w-x.service", Some("tool"));
        assert_eq!(checked(&goal, &own, None), Ok(()));
        assert_eq!(differences(&goal, &own), Vec::<String>::new());
        let mut unknown = observed("", None);
        unknown.units.insert(UNIT.to_owned(), UnitState::default());
        assert_eq!(checked(&goal, &unknown, None), Ok(()));
    }

    #[test]
    fn a_file_that_was_there_before_is_the_administrators_until_it_is_ours() {
        let goal = goal(&[PLACE, "/etc/systemd/system/w-x.service.d/zzz-kedge.conf"]);
        let mut seen = observed(PLACE, None);
        let there = |content: &[u8]| PathState::File {
            content: Digest::of(content),
            size: 1,
            owner: Owner::root(),
            mode: 0o644,
        };
        seen.paths.insert(PLACE.to_owned(), there(b"theirs"));
        assert_eq!(checked(&goal, &seen, None).unwrap_err().reason, "NotAllowed");
        let mut original = crate::record::Original::default();
        original.paths.insert(PLACE.to_owned(), PathState::Absent);
        let running = crate::plan::tests::running(&Goal::default(), original);
        assert_eq!(checked(&goal, &seen, Some(&running)), Ok(()));
        // A record that was lost: our drop-in is still beside it, or it is as we want it.
        seen.paths.insert(format!("{PLACE}.d/{DROP_IN}"), there(b"made"));
        assert_eq!(checked(&goal, &seen, None), Ok(()));
        seen.paths.remove(&format!("{PLACE}.d/{DROP_IN}"));
        seen.paths.insert(PLACE.to_owned(), there(b"ours"));
        assert_eq!(checked(&goal, &seen, None), Ok(()));
        // One that shadows another's is refused before it is written.
        let shadow = observed("/usr/local/lib/systemd/system/w-x.service", None);
        assert_eq!(checked(&goal, &shadow, None).unwrap_err().reason, "NotAllowed");
    }
}
