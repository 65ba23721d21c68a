//! `/commits/{commit}`: the timeline of a commit from Git through every environment to converged clusters, with the time that each
//! step took.

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use kedge_api::history::TimelineStep;

use crate::api::fleet::chain;
use crate::api::{ApiError, ApiState, history};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Tone, When, chip};
use crate::web::{Show, Viewer, WebError, links, rings};

#[derive(Template)]
#[template(path = "commit.html")]
pub struct CommitPage {
    frame: Frame,
    commit: String,
    short: String,
    subject: String,
    columns: Vec<Column>,
    history: Option<String>,
    as_main: String,
    as_source: String,
    evidence: Option<String>,
    /// The log knows nothing of it.
    unknown: bool,
}

/// An environment that it came to.
struct Column {
    environment: String,
    link: String,
    steps: Vec<Step>,
    /// From the first step to the last.
    took: String,
}

struct Step {
    name: String,
    tone: Option<Tone>,
    when: When,
    took: String,
    detail: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    commit: Result<Path<String>, PathRejection>,
) -> Result<Show<CommitPage>, WebError> {
    let asked = commit?.0;
    let policies = state.store.policies().await.map_err(ApiError::from)?;
    let chain = policies.in_force().map(|policy| chain(policy)).unwrap_or_default();
    let timeline = match history::commit(State(state), viewer.caller.clone(), Ok(Path(asked.clone()))).await {
        Ok(timeline) => Some(timeline.0),
        Err(error) if error.status == axum::http::StatusCode::NOT_FOUND => None,
        Err(error) => return Err(error.into()),
    };
    let unknown = timeline.is_none();
    let (commit, subject, items) =
        timeline.map_or((asked, None, Vec::new()), |timeline| (timeline.commit, timeline.subject, timeline.items));
    let short = chip::short(&commit);
    Ok(Show(CommitPage {
        frame: Frame::of(&viewer, format!("Commit {short}"), Section::History),
        columns: columns(&items, &chain),
        history: (!unknown).then(|| links::query("/history", &[("commit", &commit)])),
        as_main: links::query("/rollouts", &[("mainCommit", &commit)]),
        as_source: links::query("/rollouts", &[("sourceCommit", &commit)]),
        evidence: (viewer.caller.role != Role::Application).then(|| links::query("/evidence", &[("commit", &commit)])),
        subject: subject.unwrap_or_default(),
        short,
        commit,
        unknown,
    }))
}

/// Along the promotion chain, then in the order in which environments let it in.
fn columns(items: &[TimelineStep], chain: &[String]) -> Vec<Column> {
    let time = |item: &TimelineStep| item.at.parse::<jiff::Timestamp>().ok().map(|at| at.as_millisecond());
    let pushed = items.iter().filter(|item| item.step == "pushed").filter_map(time).min();
    let mut columns: Vec<(Column, Vec<i64>)> = Vec::new();
    for item in items {
        if columns.last().is_none_or(|(column, _)| column.environment != item.environment) {
            let link = links::environment(&item.environment);
            let column = Column { environment: item.environment.clone(), link, steps: Vec::new(), took: String::new() };
            columns.push((column, Vec::new()));
        }
        if let Some((column, times)) = columns.last_mut() {
            column.steps.push(Step::of(item));
            times.extend(time(item));
        }
    }
    columns.sort_by_key(|(column, times)| {
        let place = chain.iter().position(|name| *name == column.environment).unwrap_or(usize::MAX);
        // All are pushed at once.
        (place, times.iter().filter(|at| Some(*at) != pushed.as_ref()).min().copied())
    });
    let finished = columns.into_iter().map(|(mut column, times)| {
        let span = times.iter().max().zip(times.iter().min()).map_or(0, |(last, first)| last - first);
        column.took = lasted(u64::try_from(span).unwrap_or_default());
        column
    });
    finished.collect()
}

impl Step {
    fn of(step: &TimelineStep) -> Step {
        let name = match step.step.as_str() {
            "pushed" => "pushed to Git",
            "read" => "read by the hub",
            "scheduled" => "scheduled",
            "published" => "published to the branch",
            "packed" => "packed",
            "issued" => "desired states issued",
            "firstConverged" => "first cluster converged",
            "converged" => "all converged",
            "gatePassed" => "gate passed",
            "promoted" => "let in",
            "waiting" => "waits to come in",
            "stopped" => "stopped",
            "rolledBack" => "rolled back",
            "aborted" => "aborted",
            "failed" => "failed",
            other => other,
        };
        let number = |key: &str| step.detail[key].as_u64();
        let detail = match step.step.as_str() {
            "issued" => number("assignments").map(|count| format!("{count} assignments changed")),
            "firstConverged" | "converged" => {
                let counts = number("converged").zip(number("of")).filter(|(_, of)| *of > 0);
                counts.map(|(count, of)| format!("{count} of {of} now"))
            }
            "published" => step.detail["branch"].as_str().map(|branch| format!("branch {branch}")),
            "promoted" => Some(let_in(&step.detail)),
            "waiting" => Some(names(&step.detail["waitsFor"]).join("; ")),
            "stopped" | "rolledBack" | "aborted" | "failed" => step.detail["why"].as_str().map(str::to_owned),
            _ => None,
        };
        Step {
            tone: match step.step.as_str() {
                "converged" | "gatePassed" => Some(Tone::Converged),
                "stopped" | "rolledBack" | "aborted" | "failed" => Some(Tone::Failed),
                _ => None,
            },
            name: name.to_owned(),
            when: When::of(&step.at),
            took: step.took_ms.map(lasted).unwrap_or_default(),
            detail: detail.unwrap_or_default(),
        }
    }
}

/// Who let a commit in; nobody has to, where the policy asks nobody.
fn let_in(detail: &serde_json::Value) -> String {
    let (approved, overridden) = (names(&detail["approvedBy"]), names(&detail["overriddenBy"]));
    let mut said = Vec::new();
    if !approved.is_empty() {
        said.push(format!("approved by {}", approved.join(", ")));
    }
    if !overridden.is_empty() {
        said.push(format!("overridden by {}", overridden.join(", ")));
    }
    if said.is_empty() {
        said.push("by the policy".to_owned());
    }
    if let Some(author) = detail["author"].as_str().filter(|author| !author.is_empty()) {
        said.push(format!("written by {}", rings::person(author)));
    }
    said.join("; ")
}

fn names(list: &serde_json::Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// How long something took, as people say it.
pub fn lasted(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms / 100 % 10),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
        3_600_000..86_400_000 => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
        _ => format!("{} d {} h", ms / 86_400_000, ms / 3_600_000 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_stand_in_the_order_in_which_they_let_it_in() {
        let step = |environment: &str, step: &str, second: u8| TimelineStep {
            environment: environment.to_owned(),
            step: step.to_owned(),
            at: format!("2026-11-01T00:00:{second:02}Z"),
            took_ms: None,
            detail: serde_json::json!({}),
        };
        let items = [
            step("dev", "pushed", 1),
            step("dev", "promoted", 2),
            step("prod", "pushed", 1),
            step("prod", "promoted", 9),
            step("stage", "pushed", 1),
            step("stage", "promoted", 5),
        ];
        let names = |chain: &[&str]| -> Vec<String> {
            let chain: Vec<String> = chain.iter().map(|name| (*name).to_owned()).collect();
            columns(&items, &chain).into_iter().map(|column| column.environment).collect()
        };
        assert_eq!(names(&[]), ["dev", "stage", "prod"]);
        assert_eq!(names(&["prod", "stage", "dev"]), ["prod", "stage", "dev"], "the chain counts more");
    }

    #[test]
    fn the_author_of_a_commit_is_never_credited_with_letting_it_in() {
        let said = |approved: &[&str], overridden: &[&str]| {
            let_in(&serde_json::json!({"author": "Ann <ann@h>", "approvedBy": approved, "overriddenBy": overridden}))
        };
        assert_eq!(said(&[], &[]), "by the policy; written by Ann");
        assert_eq!(said(&["bob", "eve"], &[]), "approved by bob, eve; written by Ann");
        assert_eq!(said(&[], &["otto"]), "overridden by otto; written by Ann");
    }

    #[test]
    fn spans_are_said_as_people_say_them() {
        let said: Vec<String> = [7, 1_250, 65_000, 3_720_000, 90_000_000].into_iter().map(lasted).collect();
        assert_eq!(said, ["7 ms", "1.2 s", "1 min 5 s", "1 h 2 min", "1 d 1 h"]);
    }
}
