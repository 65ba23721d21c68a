//! Whether new rings are looser than the old ones. Called by `loosens`.

use kedge_model::kinds::{Amount, Approval, ApproverRole, Check, Empty, Gate, Members, Ring, Then};

use crate::gate::percent;
use crate::moment::Span;

pub(super) fn rings(environment: &str, old: &[Ring], new: &[Ring], ways: &mut Vec<String>) {
    let place = |rings: &[Ring], name: &str| rings.iter().position(|ring| ring.name == name);
    let mut last = 0;
    for before in old {
        let title = format!("ring {} of {environment}", before.name);
        match place(new, &before.name) {
            None => ways.push(format!("{title} is gone")),
            Some(at) => {
                if at < last {
                    ways.push(format!("{title} comes earlier than before"));
                }
                last = last.max(at);
                members(&title, before, &new[at], ways);
                ring(&title, before, &new[at], ways);
            }
        }
    }
    // A new ring takes its clusters from the rings after it, or from those before it if it is the last: it may not be looser.
    for (at, added) in new.iter().enumerate().filter(|(_, ring)| place(old, &ring.name).is_none()) {
        let known = |ring: &&Ring| place(old, &ring.name).is_some();
        let neighbour = new[at..].iter().find(known).or_else(|| new[..at].iter().rev().find(known));
        let neighbour = neighbour.and_then(|ring| old.iter().find(|before| before.name == ring.name)).or(old.last());
        if let Some(neighbour) = neighbour {
            let title = format!("the new ring {} of {environment}, measured by {},", added.name, neighbour.name);
            ring(&title, neighbour, added, ways);
        }
    }
}

/// More clusters in a ring means more at once.
fn members(title: &str, old: &Ring, new: &Ring, ways: &mut Vec<String>) {
    match (&old.members, &new.members) {
        (Members::Share(old), Members::Share(new)) if new > old => {
            ways.push(format!("{title} takes {} instead of {}", percent(*new), percent(*old)));
        }
        (Members::Share(_), Members::Share(_)) => {}
        (old, new) if old == new => {}
        _ => ways.push(format!("{title} has other members")),
    }
}

fn ring(title: &str, old: &Ring, new: &Ring, ways: &mut Vec<String>) {
    if new.soak < old.soak {
        ways.push(format!("{title} soaks {} instead of {}", Span(new.soak), Span(old.soak)));
    }
    gate(title, &old.gate, &new.gate, ways);
    approval(title, old.approval.as_ref(), new.approval.as_ref(), ways);
    if let Some(change) = more(old.failure.budget, new.failure.budget) {
        ways.push(format!("{title} has a failure budget of {change}"));
    }
    if old.failure.then == Then::Rollback && new.failure.then == Then::Pause {
        ways.push(format!("{title} no longer rolls back after failures"));
    }
    if let Some(change) = more(old.max_unavailable, new.max_unavailable) {
        ways.push(format!("{title} changes at once {change}"));
    }
}

fn gate(title: &str, old: &Gate, new: &Gate, ways: &mut Vec<String>) {
    if new.converged < old.converged {
        ways.push(format!(
            "{title} asks for {} converged instead of {}",
            percent(new.converged),
            percent(old.converged)
        ));
    }
    // The other way round: fewer is looser.
    if more(new.reached, old.reached).is_some() {
        let change = format!("{} instead of {}", amount(new.reached), amount(old.reached));
        ways.push(format!("{title} asks for reached clusters: {change}"));
    }
    if let Some(change) = more(old.failed, new.failed) {
        ways.push(format!("{title} allows failed clusters: {change}"));
    }
    if old.empty == Empty::Wait && new.empty == Empty::Pass {
        ways.push(format!("{title} passes when there is nothing to observe"));
    }
    for check in &old.checks {
        match new.checks.iter().find(|other| other.name == check.name) {
            None => ways.push(format!("{title} no longer asks the check {}", check.name)),
            Some(other) => asked(title, check, other, ways),
        }
    }
}

fn asked(title: &str, old: &Check, new: &Check, ways: &mut Vec<String>) {
    if old.probe != new.probe {
        ways.push(format!("{title} asks something else in the check {}", old.name));
    }
    if new.every > old.every {
        ways.push(format!("{title} asks the check {} less often", old.name));
    }
}

fn approval(title: &str, old: Option<&Approval>, new: Option<&Approval>, ways: &mut Vec<String>) {
    let Some(old) = old.filter(|old| old.people > 0) else { return };
    let Some(new) = new.filter(|new| new.people > 0) else {
        ways.push(format!("{title} needs no approval any more"));
        return;
    };
    if new.people < old.people {
        ways.push(format!("{title} needs {} to approve instead of {}", new.people, old.people));
    }
    if old.role == ApproverRole::Platform && new.role == ApproverRole::Application {
        ways.push(format!("{title} may be approved by application teams"));
    }
    if old.not_author && !new.not_author {
        ways.push(format!("{title} may be approved by the author of the change"));
    }
}

/// Whether it may have become more; a number and a share can't be compared.
fn more(old: Amount, new: Amount) -> Option<String> {
    let grew = match (old, new) {
        (Amount::Number(old), Amount::Number(new)) => new > old,
        (Amount::Share(old), Amount::Share(new)) => new > old,
        // Nothing is nothing.
        (_, Amount::Number(0) | Amount::Share(0)) => false,
        _ => true,
    };
    grew.then(|| format!("{} instead of {}", amount(new), amount(old)))
}

fn amount(amount: Amount) -> String {
    match amount {
        Amount::Number(number) => number.to_string(),
        Amount::Share(share) => percent(share),
    }
}
