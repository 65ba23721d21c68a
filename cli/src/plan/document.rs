//! A plan for programs.

use kedge_scheduler::{AssignmentChange, PlanChange};
use serde_json::{Value, json};

use super::Compared;
use super::text::unified;
use crate::output::value_to_json;
use crate::problems::Problems;

impl Compared {
    /// Shows values as they are: who runs it has the repository.
    pub(super) fn to_json(&self, problems: &Problems) -> Value {
        let promoted = self.plan.promoted_commit.as_ref().map(|(old, new)| json!({"old": old, "new": new}));
        json!({
            "environment": self.environment,
            "from": self.sides.from.to_string(),
            "to": self.sides.to.to_string(),
            "summary": self.plan.summary(),
            "assignments": self.plan.assignments,
            "clusterTypes": self.plan.cluster_types,
            "clusterTypesAdded": self.plan.cluster_types_added.iter().map(|name| &**name).collect::<Vec<_>>(),
            "clusterTypesRemoved": self.plan.cluster_types_removed.iter().map(|name| &**name).collect::<Vec<_>>(),
            "promotedCommit": promoted,
            "changes": self.plan.changes.iter().map(|change| self.change(change)).collect::<Vec<_>>(),
            "kept": self.plan.kept.iter().map(|kept| json!({"folder": kept.folder, "reason": kept.reason})).collect::<Vec<_>>(),
            "problems": problems.to_json(),
        })
    }

    fn change(&self, change: &AssignmentChange) -> Value {
        let reasons: Vec<&str> = match &change.change {
            PlanChange::Quarantined(reasons) => reasons.iter().map(|reason| reason.message.as_str()).collect(),
            _ => Vec::new(),
        };
        let keys = change.keys.iter().map(|key| {
            json!({
                "key": &*key.key,
                "old": key.old.as_deref().map(value_to_json),
                "new": key.new.as_deref().map(value_to_json),
            })
        });
        let files = change.files.iter().map(|file| match self.with_diff {
            true => json!({"name": file.name, "diff": unified(change, file)}),
            false => json!({"name": file.name}),
        });
        json!({
            "assignment": change.id.to_string(),
            "change": kind(&change.change),
            "reasons": reasons,
            "keys": keys.collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
        })
    }
}

fn kind(change: &PlanChange) -> &'static str {
    match change {
        PlanChange::Added => "added",
        PlanChange::Changed => "changed",
        PlanChange::Removed => "removed",
        PlanChange::Quarantined(_) => "quarantined",
        PlanChange::Released => "released",
    }
}
