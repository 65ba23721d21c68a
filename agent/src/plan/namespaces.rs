//! Namespaces beside each other on one host: what one of them has, no other gets. A template may make the same text of two names.

use kedge_host_policy::path::is_below;

use super::Question;
use super::others::Neighbour;
use crate::goal::Goal;
use crate::record::Failure;

/// Where the agent's own folders for workloads are.
const SETTINGS: &str = "/etc/kedge";

/// Refuses the newcomer; it is tried again, since the other may go.
pub(super) fn check(question: &Question<'_>) -> Result<(), Failure> {
    let Some(goal) = question.goal.filter(|goal| goal.namespace.is_some()) else { return Ok(()) };
    for other in &question.others.neighbours {
        if is_same(goal, other) {
            let both = (goal.namespace.as_ref(), other.namespace.as_ref());
            if let (Some(ours), Some(theirs)) = both
                && ours != theirs
            {
                let slice = goal.slice().unwrap_or_default();
                let message = format!("the slice {slice} of the namespace `{ours}` is {} already", other.name());
                return Err(Failure::passing("NotAllowed", message));
            }
            continue;
        }
        let had = |path: &str| {
            question.running.is_some_and(|running| running.goal.folders.iter().any(|folder| folder.path == path))
        };
        for path in goal.folders.iter().map(|folder| folder.path.as_str()).filter(|path| !had(path)) {
            let meets = |theirs: &&String| is_below(path, theirs) || is_below(theirs, path);
            let theirs = other.folders.iter().filter(|theirs| !is_below(theirs, SETTINGS)).find(meets);
            if let Some(theirs) = theirs.filter(|_| !is_below(path, SETTINGS)) {
                let message = format!(
                    "the folder {path} meets {theirs}, which is {}; the platform team can name another in `folders` of its HostNamespace",
                    other.name()
                );
                return Err(Failure::passing("NotAllowed", message));
            }
        }
    }
    Ok(())
}

/// By its slice: older agents wrote no name of the namespace.
pub(super) fn is_same(goal: &Goal, other: &Neighbour) -> bool {
    goal.slice().is_some() && goal.slice() == other.slice.as_deref()
}

impl Neighbour {
    /// Whose something is, for people.
    pub(super) fn name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("of the namespace `{namespace}` (assignment {})", self.assignment),
            None => format!("of the namespace of the assignment {}", self.assignment),
        }
    }
}
