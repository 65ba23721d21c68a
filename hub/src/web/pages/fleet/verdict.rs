//! The answer in one sentence, and what needs somebody: each with the list behind it.

use kedge_api::counts::ConditionCounts;
use kedge_api::fleet::FleetSummary;

use crate::web::links;
use crate::web::part::{Tone, When};

pub struct Verdict {
    pub tone: Tone,
    pub text: String,
    pub needs: Vec<Need>,
}

/// Something that somebody should look at.
pub struct Need {
    pub key: String,
    pub tone: Tone,
    pub text: String,
    pub link: String,
    pub rest: String,
    pub since: Option<When>,
}

impl Verdict {
    pub fn of(fleet: &FleetSummary) -> Verdict {
        let needs = needs(fleet);
        let sum = fleet.environments.iter().fold(ConditionCounts::default(), |sum, environment| ConditionCounts {
            converged: sum.converged + environment.conditions.converged,
            converging: sum.converging + environment.conditions.converging,
            failed: sum.failed + environment.conditions.failed,
            unknown: sum.unknown + environment.conditions.unknown,
        });
        let moving: u64 = fleet.environments.iter().map(|environment| environment.rollouts.moving).sum();
        let total = super::column::four(sum).total();
        let (tone, text) = if needs.iter().any(|need| need.tone == Tone::Failed) {
            (Tone::Failed, "Needs attention.".to_owned())
        } else if !needs.is_empty() {
            (
                Tone::Unknown,
                "Everything that was reported is as desired. Some clusters are Unknown, or an assignment is held."
                    .to_owned(),
            )
        } else if sum.converging > 0 || moving > 0 {
            (Tone::Converging, "All is right, and something moves.".to_owned())
        } else if total == 0 {
            (Tone::Unknown, "Nothing runs yet.".to_owned())
        } else {
            (Tone::Converged, "All is right.".to_owned())
        };
        let counted = match total {
            0 => String::new(),
            total => format!(" {} of {total} Converged.", sum.converged),
        };
        Verdict { tone, text: format!("{text}{counted}"), needs }
    }
}

fn needs(fleet: &FleetSummary) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut add = |key: String, tone: Tone, text: String, link: String| {
        needs.push(Need { key, tone, text, link, rest: String::new(), since: None });
    };
    for environment in &fleet.environments {
        let name = environment.name.as_str();
        let (failed, rollouts) = (environment.conditions.failed, environment.rollouts);
        for (index, notice) in environment.notices.iter().enumerate() {
            // Stopped and paused rollouts are counted below.
            let tone = match notice.kind.as_str() {
                "rolledBack" | "aborted" | "publish" | "stale" => Tone::Failed,
                "held" => Tone::Unknown,
                _ => continue,
            };
            let link = match notice.rollout {
                Some(rollout) => links::rollout(rollout),
                None => links::environment(name),
            };
            add(format!("{} {name} {index}", notice.kind), tone, format!("{name}: {}", notice.text), link);
        }
        if failed > 0 {
            let link = links::query("/conditions", &[("environment", name), ("condition", "Failed")]);
            add(format!("failed {name}"), Tone::Failed, format!("{failed} Failed in {name}"), link);
        }
        if rollouts.stopped > 0 {
            let link = links::query("/rollouts", &[("environment", name), ("state", "Stopped")]);
            let text = format!("{} stopped in {name}", counted(rollouts.stopped, "rollout"));
            add(format!("stopped {name}"), Tone::Failed, text, link);
        }
        if let Some(trouble) = &environment.trouble {
            let text = format!("{name} can't be given its commit: {trouble}");
            add(format!("trouble {name}"), Tone::Failed, text, links::environment(name));
        }
        if environment.quarantined > 0 {
            let link = links::query("/problems", &[("environment", name), ("state", "error")]);
            let text = format!("{} in quarantine in {name}", counted(environment.quarantined, "assignment"));
            add(format!("quarantined {name}"), Tone::Failed, text, link);
        }
        if environment.drifted > 0 {
            let link = links::query("/conditions", &[("environment", name), ("reality", "drifted")]);
            let text = format!("{} changed by hand in {name}", counted(environment.drifted, "assignment"));
            add(format!("drifted {name}"), Tone::Failed, text, link);
        }
        if rollouts.paused > 0 {
            let link = links::query("/rollouts", &[("environment", name), ("state", "Paused")]);
            let text = format!("{} paused in {name}", counted(rollouts.paused, "rollout"));
            add(format!("paused {name}"), Tone::Unknown, text, link);
        }
    }
    if fleet.repositories.failing > 0 {
        let text = format!("{} can't be read", counted(fleet.repositories.failing, "repository"));
        add("repositories".to_owned(), Tone::Failed, text, "/problems#repositories".to_owned());
    }
    if fleet.problems.errors > 0 {
        let link = links::query("/problems", &[("state", "error")]);
        let text = format!("{} in what Git describes", counted(fleet.problems.errors, "error"));
        add("errors".to_owned(), Tone::Failed, text, link);
    }
    for environment in fleet.environments.iter().filter(|environment| environment.clusters.unknown > 0) {
        let name = environment.name.as_str();
        let link = links::query("/clusters", &[("environment", name), ("condition", "Unknown"), ("state", "active")]);
        needs.push(Need {
            key: format!("unknown {name}"),
            tone: Tone::Unknown,
            text: format!("{} offline in {name}", counted(environment.clusters.unknown, "cluster")),
            link,
            rest: if environment.clusters.unknown > 1 { "the longest since" } else { "since" }.to_owned(),
            since: environment.oldest_unknown.as_deref().map(When::clock),
        });
    }
    needs
}

/// `1 cluster`, `3 repositories`
pub fn counted(count: u64, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use kedge_api::fleet::{FleetEnvironment, PresenceCounts, RepositoryCounts, StandingNotice};

    use super::*;

    fn environment(conditions: ConditionCounts) -> FleetEnvironment {
        FleetEnvironment { name: "dev".to_owned(), conditions, ..FleetEnvironment::default() }
    }

    fn said(environment: FleetEnvironment) -> (Tone, String, usize) {
        let fleet = FleetSummary { environments: vec![environment], ..FleetSummary::default() };
        let verdict = Verdict::of(&fleet);
        (verdict.tone, verdict.text, verdict.needs.len())
    }

    #[test]
    fn a_quiet_fleet_is_all_right() {
        let all = ConditionCounts { converged: 4, ..ConditionCounts::default() };
        assert_eq!(said(environment(all)), (Tone::Converged, "All is right. 4 of 4 Converged.".to_owned(), 0));
    }

    #[test]
    fn silence_is_never_all_right() {
        let heard = ConditionCounts { converged: 3, unknown: 1, ..ConditionCounts::default() };
        let clusters = PresenceCounts { known: 3, unknown: 1, total: 4, joined: 0 };
        let (tone, _, needs) = said(FleetEnvironment { clusters, ..environment(heard) });
        assert_eq!((tone, needs), (Tone::Unknown, 1));
    }

    #[test]
    fn an_environment_that_was_rolled_back_is_never_all_right() {
        let all = ConditionCounts { converged: 4, ..ConditionCounts::default() };
        let notice = |kind: &str| StandingNotice {
            kind: kind.to_owned(),
            text: "1479e351da “Say Bonjour” was rolled back: customers complain".to_owned(),
            rollout: Some(7),
            since: None,
        };
        for (kind, tone) in [("rolledBack", Tone::Failed), ("stale", Tone::Failed), ("held", Tone::Unknown)] {
            let (found, text, needs) = said(FleetEnvironment { notices: vec![notice(kind)], ..environment(all) });
            assert_eq!((found, needs), (tone, 1), "{kind}");
            assert!(!text.contains("All is right"), "{text}");
        }
    }

    #[test]
    fn what_was_changed_by_hand_is_never_all_right() {
        let all = ConditionCounts { converged: 4, ..ConditionCounts::default() };
        let (tone, text, needs) = said(FleetEnvironment { drifted: 1, ..environment(all) });
        assert_eq!((tone, text.as_str(), needs), (Tone::Failed, "Needs attention. 4 of 4 Converged.", 1));
    }

    #[test]
    fn a_failure_comes_before_what_moves() {
        let one = ConditionCounts { converged: 1, converging: 2, failed: 1, unknown: 0 };
        let (tone, text, needs) = said(environment(one));
        assert_eq!((tone, text.as_str(), needs), (Tone::Failed, "Needs attention. 1 of 4 Converged.", 1));
    }

    #[test]
    fn repositories_are_counted_as_people_count() {
        let repositories = RepositoryCounts { good: 1, failing: 2 };
        let fleet = FleetSummary { repositories, ..FleetSummary::default() };
        assert_eq!(Verdict::of(&fleet).needs[0].text, "2 repositories can't be read");
    }
}
