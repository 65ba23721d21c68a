//! The user of a namespace: made for it, marked as its own, and never anybody else's. A template may make of a name what is an account
//! of the host already, and who runs as that account has what it has.

use kedge_host_policy::tenant::{MARK, mark_of, user_of};

use super::Question;
use super::namespaces::is_same;
use crate::goal::Goal;
use crate::observed::Account;
use crate::record::Failure;
use crate::step::Step;

/// Debian gives the numbers below it to accounts of its own, such as `www-data`, and this one to `nobody`.
const FIRST_UID: u32 = 100;
const NOBODY: u32 = 65_534;

#[derive(Debug, Default)]
pub(super) struct Users {
    pub add: Vec<Step>,
    /// Those of them that weren't there.
    pub new: Vec<String>,
    pub remove: Vec<String>,
    /// On the way back.
    pub again: Vec<Step>,
    /// Those of the goal that Kedge made.
    pub made: Vec<String>,
}

pub(super) fn plan(question: &Question<'_>) -> Users {
    let Question { observed, others, .. } = question;
    let wanted = question.goal.and_then(|goal| goal.user.as_ref());
    let before: &[String] = question.running.map_or(&[], |running| &running.original.users);
    let account = |name: &String| observed.users.get(name).and_then(|state| state.account.as_ref());
    let there = |name: &String| account(name).is_some();
    let ours = |name: &String| before.contains(name) || others.originals.users.contains(name) || !there(name);
    let leaves = |name: &&String| Some(*name) != wanted && !others.users.contains(*name) && there(name);
    let mark = question.goal.and_then(|goal| goal.namespace.as_deref()).map(mark_of);
    // An older agent wrote no name of a namespace.
    let unmarked =
        |name: &String| account(name).is_some_and(|one| mark.as_ref().is_some_and(|mark| one.comment != *mark));
    let add = |name: &String, goal: &Goal| Step::AddUser { name: name.clone(), namespace: goal.namespace.clone() };
    let remove: Vec<String> = before.iter().filter(leaves).cloned().collect();
    Users {
        add: wanted
            .filter(|name| !there(name) || unmarked(name))
            .zip(question.goal)
            .map(|(name, goal)| add(name, goal))
            .into_iter()
            .collect(),
        new: wanted.filter(|name| !there(name)).cloned().into_iter().collect(),
        again: question.running.iter().flat_map(|running| remove.iter().map(|name| add(name, &running.goal))).collect(),
        remove,
        made: wanted.filter(|name| ours(name)).cloned().into_iter().collect(),
    }
}

/// Refuses a user that is somebody else's.
pub(super) fn check(question: &Question<'_>) -> Result<(), Failure> {
    let Some(goal) = question.goal else { return Ok(()) };
    let (Some(user), Some(namespace)) = (&goal.user, &goal.namespace) else { return Ok(()) };
    let state = question.observed.users.get(user).cloned().unwrap_or_default();
    match state.account {
        None if state.has_group && !is_known(question, goal, user, namespace) => Err(refused(
            &format!("the group `{user}` is on this host already, and it isn't the namespace's"),
            &format!("if it isn't needed, remove it with `groupdel {user}`"),
        )),
        None => Ok(()),
        Some(account) => check_account(question, goal, user, namespace, &account),
    }
}

fn check_account(
    question: &Question<'_>,
    goal: &Goal,
    user: &str,
    namespace: &str,
    account: &Account,
) -> Result<(), Failure> {
    let mark = mark_of(namespace);
    if account.uid < FIRST_UID || account.uid == NOBODY {
        let message =
            format!("the account `{user}` is the system's own (uid {}) and is never a namespace's", account.uid);
        return Err(Failure::new("NotAllowed", format!("{message}; {LEAVE_OUT}")));
    }
    if account.comment == mark {
        return Ok(());
    }
    let mut strangers = question.others.neighbours.iter().filter(|other| !is_same(goal, other));
    let stranger = strangers.find(|other| other.user.as_deref() == Some(user));
    let was_ours = question.running.is_some_and(|running| running.original.users.iter().any(|ours| ours == user));
    let marked_for = account.comment.strip_prefix(MARK).map(str::trim).filter(|other| !other.is_empty());
    match (marked_for, stranger) {
        // Its namespace has another name now, and nobody has the user beside it.
        (Some(_), None) if was_ours => Ok(()),
        (Some(other), _) => Err(Failure::passing(
            "NotAllowed",
            format!("the account `{user}` belongs to the namespace `{other}`, not to `{namespace}`; {LEAVE_OUT}"),
        )),
        (None, Some(other)) if !was_ours => {
            let message = format!("the account `{user}` is {}, not of `{namespace}`; {LEAVE_OUT}", other.name());
            Err(Failure::passing("NotAllowed", message))
        }
        (None, _) if is_known(question, goal, user, namespace) && (was_ours || account.comment == MARK) => Ok(()),
        (None, _) => Err(refused(
            &format!(
                "the account `{user}` is on this host already, and Kedge didn't make it for the namespace `{namespace}`"
            ),
            &format!("to give it to the namespace all the same, run `usermod --comment '{mark}' {user}` on the host"),
        )),
    }
}

const LEAVE_OUT: &str = "leave `user` out of the HostNamespace, or name another";

fn refused(what: &str, way_out: &str) -> Failure {
    Failure::new("NotAllowed", format!("{what}; {LEAVE_OUT}; {way_out}"))
}

/// Whether Kedge made what has this name for this namespace: by what it remembers, or by a name that nothing else gets.
fn is_known(question: &Question<'_>, goal: &Goal, user: &str, namespace: &str) -> bool {
    let was_ours = question.running.is_some_and(|running| running.original.users.iter().any(|ours| ours == user));
    let mut beside = question.others.neighbours.iter().filter(|other| is_same(goal, other));
    was_ours || beside.any(|other| other.made && other.user.as_deref() == Some(user)) || user == user_of(namespace)
}

#[cfg(test)]
mod tests;
