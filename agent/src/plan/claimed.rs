//! Folders that systemd makes for a workload's units and gives to its user, by names that are the workload's own: `/var/lib/<assignment>` may
//! be another program's all the same. Asked before every change; called by the engine, which remembers what was free.

use std::collections::BTreeSet;

use crate::goal::Goal;
use crate::observed::{Observed, PathState};
use crate::record::{Failure, Running};

/// Numbers below are the system's.
const FIRST_UID: u32 = 100;

/// `known` are those that were free when this assignment asked for them first.
pub fn check(
    goal: &Goal,
    observed: &Observed,
    running: Option<&Running>,
    known: &BTreeSet<String>,
) -> Result<(), Failure> {
    // An older agent remembered none: what systemd leaves to root may be there from then.
    let is_older = running.is_some_and(|running| !running.goal.judged.is_current());
    for path in goal.claimed.iter().filter(|path| !known.contains(*path)) {
        let whose = match observed.paths.get(path) {
            None | Some(PathState::Absent) => continue,
            Some(PathState::Folder { owner, .. }) => {
                let is_own = goal.user.as_deref() == Some(owner.user.as_str());
                // Of an earlier life of the assignment, whose user is gone.
                let is_nobodys = owner.user.parse::<u32>().is_ok_and(|uid| uid >= FIRST_UID);
                let is_roots = owner.user == "root" && (path.starts_with("/run/") || path.starts_with("/etc/"));
                if is_own || is_nobodys || (is_older && is_roots) {
                    continue;
                }
                format!("belongs to `{}`", owner.user)
            }
            Some(_) => "isn't a folder".to_owned(),
        };
        return Err(Failure::new(
            "NotAllowed",
            format!(
                "{path} is on this host already and {whose}, and a unit of this workload would take it over; give the workload or its \
                 deployment target another name, or the platform team can add `{path}` to `allow.paths` of its HostNamespace"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::{Judged, Owner};
    use crate::plan::tests::running;
    use crate::record::Original;

    const STATE: &str = "/var/lib/polkit-1";
    const RUNTIME: &str = "/run/polkit-1";

    fn checked(path: &str, state: PathState, running: Option<&Running>, known: &[&str]) -> Result<(), Failure> {
        let goal =
            Goal { user: Some("kedge-1".to_owned()), claimed: BTreeSet::from([path.to_owned()]), ..Goal::default() };
        let observed = Observed { paths: [(path.to_owned(), state)].into(), ..Observed::default() };
        check(&goal, &observed, running, &known.iter().map(|path| (*path).to_owned()).collect())
    }

    fn folder_of(user: &str) -> PathState {
        PathState::Folder { owner: Owner { user: user.to_owned(), group: user.to_owned() }, mode: 0o700 }
    }

    #[test]
    fn a_folder_of_another_program_is_not_taken_over() {
        for (path, state) in [
            (STATE, folder_of("root")),
            (STATE, folder_of("polkitd")),
            (STATE, folder_of("5")),
            (RUNTIME, folder_of("root")),
            ("/etc/polkit-1", folder_of("root")),
            (STATE, PathState::Link { target: "private/polkit-1".to_owned(), owner: Owner::root() }),
        ] {
            let failure = checked(path, state, None, &[]).unwrap_err();
            assert_eq!(failure.reason, "NotAllowed");
            assert!(failure.message.contains(path) && failure.message.contains("`allow.paths`"), "{}", failure.message);
        }
    }

    #[test]
    fn its_own_folder_is_taken_again() {
        for (state, known) in [
            (PathState::Absent, &[][..]),
            (folder_of("kedge-1"), &[]),
            (folder_of("998"), &[]),
            (folder_of("root"), &[STATE]),
        ] {
            assert_eq!(checked(STATE, state.clone(), None, known), Ok(()), "{state:?}");
        }
        // A socket's folder is root's; an older agent didn't write down that it was free.
        let older: Judged = serde_json::from_str("1").unwrap();
        let goal = Goal { judged: older, ..Goal::default() };
        let older = running(&goal, Original::default());
        assert_eq!(checked(RUNTIME, folder_of("root"), Some(&older), &[]), Ok(()));
        assert!(checked(STATE, folder_of("root"), Some(&older), &[]).is_err());
    }
}
