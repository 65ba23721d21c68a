//! Whose a unit is when its name fits several assignments of a host: `hello-x-y.service` could be hello's, hello-x's and hello-x-y's. The
//! longest name has it, of those that the desired state names or that have a record here. The engine asks before every change and at
//! every look, since another assignment may come at any time.

use std::collections::BTreeSet;

use kedge_host_policy::unit_name;

use crate::goal::Goal;
use crate::record::Failure;

/// Units of the goal that are another assignment's, each in a sentence.
pub fn differences(assignment: &str, goal: &Goal, names: &BTreeSet<String>) -> Vec<String> {
    find(assignment, goal, names).map(|(unit, owner)| format!("unit {unit} belongs to {owner} now")).collect()
}

/// Refuses a goal with a unit of another assignment; it is tried again, since the other may go.
pub fn check(assignment: &str, goal: &Goal, names: &BTreeSet<String>) -> Result<(), Failure> {
    match find(assignment, goal, names).next() {
        None => Ok(()),
        Some((unit, owner)) => Err(Failure::passing(
            "ConflictingUnit",
            format!("the unit `{unit}` belongs to the assignment {owner} by its name; give it another name"),
        )),
    }
}

fn find<'a>(
    assignment: &'a str,
    goal: &'a Goal,
    names: &'a BTreeSet<String>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let names = || names.iter().map(String::as_str);
    goal.own_units
        .iter()
        .filter_map(move |unit| Some((unit.as_str(), unit_name::other_owner(unit, assignment, names())?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_unit_belongs_to_the_assignment_with_the_longest_name() {
        let goal = Goal {
            own_units: names(&["hello-x.service", "hello-x-y.service", "hello@kedge.service"]),
            ..Goal::default()
        };
        let failure = check("hello", &goal, &names(&["hello", "hello-x", "hello-x-y"])).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.passes), ("ConflictingUnit", true));
        assert_eq!(
            differences("hello", &goal, &names(&["hello", "hello-x", "hello-x-y"])),
            ["unit hello-x-y.service belongs to hello-x-y now", "unit hello-x.service belongs to hello-x now"]
        );
        for beside in [&["hello"][..], &["hello", "hello-xy"], &["hello", "other", "hell"]] {
            assert_eq!(check("hello", &goal, &names(beside)), Ok(()), "{beside:?}");
        }
    }
}
