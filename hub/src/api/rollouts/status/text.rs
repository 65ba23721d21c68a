//! The answer in one sentence.

use kedge_api::rollout_status::{ReasonCount, StatusUnit};
use kedge_rollout::Answer;

use super::Found;

/// "73 of 100: 66 converged, …; 27 not targeted; not complete: …"
pub fn headline(answer: &Answer, settled: bool, found: &Found, unit: StatusUnit) -> String {
    if found.state == Some("Unseen") {
        return found.notes.first().cloned().unwrap_or_default();
    }
    if found.is_replaced() && answer.complete {
        return "complete; other content has taken its place since".to_owned();
    }
    if found.only_removes() && answer.complete {
        return "complete: it only removes".to_owned();
    }
    let gone_back = answer.targeted == 0 && found.state == Some("RolledBack");
    if gone_back && let Some(why) = found.notes.first() {
        return format!("rolled back: {why}");
    }
    let whole = answer.to_string();
    let counted = match unit {
        StatusUnit::Placements => {
            whole.replacen(&format!(" of {}:", answer.of), &format!(" of {} placements:", answer.of), 1)
        }
        StatusUnit::Clusters => whole,
    };
    // What was reached is settled, and the rollout isn't at its end: that is what it hangs on.
    let nobody = answer.targeted == 0 && !found.notes.is_empty();
    // What is broken comes before what is on its way.
    let broken = found.over && matches!(found.state, Some("Failed" | "Gone"));
    if (settled || nobody || broken) && !answer.complete {
        let rest = counted.strip_suffix(&answer.completeness()).unwrap_or(&counted);
        let why = found.notes.first().map_or("an earlier ring hasn't passed yet", String::as_str);
        return format!("{rest}not complete: {why}");
    }
    counted
}

pub fn reasons(answer: &Answer) -> Vec<ReasonCount> {
    let shown = answer.failed_reasons.iter().take(5);
    shown.map(|(reason, count)| ReasonCount { reason: reason.clone(), count: *count }).collect()
}
