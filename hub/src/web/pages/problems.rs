//! `/problems`: everything that needs somebody, by kind, each with its way out; and findings one by one where somebody asks for
//! those of a code or an assignment.

mod findings;
mod repositories;

use askama::Template;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use kedge_api::problems::{ProblemExample, ProblemKind, ProblemSeverity, ProblemSummary};
use kedge_api::repositories::FetchRequest;
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::objects;
use crate::api::problems::{self, ProblemsQuery};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Filters, Pages, Place, Text, When};
use crate::web::{Confirmed, Show, Viewer, WebError, links};
use findings::Findings;
use repositories::Repository;

#[derive(Template)]
#[template(path = "problems.html")]
pub struct Problems {
    frame: Frame,
    filters: Filters,
    wrong: Option<ApiError>,
    /// What is shown in one sentence.
    total: u64,
    counted: String,
    kinds: Vec<Group>,
    pages: Pages,
    findings: Option<Findings>,
    failing: Vec<Repository>,
    good: Vec<Repository>,
    /// More repositories than are shown.
    more: bool,
    may_fetch: bool,
}

/// Problems of one kind.
struct Group {
    title: &'static str,
    about: &'static str,
    rows: Vec<Row>,
}

struct Row {
    key: String,
    error: bool,
    /// How it is told apart from an error.
    tag: &'static str,
    code: String,
    message: String,
    brings: Vec<String>,
    environments: Vec<(String, String)>,
    since: Option<When>,
    hint: Option<Text>,
    command: String,
    link: String,
    examples: Vec<Example>,
    /// More than are told.
    more: u64,
}

struct Example {
    id: Option<String>,
    cluster: Option<String>,
    assignment: Option<(String, String)>,
    message: String,
    place: Option<Place>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    environment: String,
    kind: String,
    state: String,
    code: String,
    assignment: String,
    workspace: String,
    cursor: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct FetchForm {
    url: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<(StatusCode, Show<Problems>), WebError> {
    let wanted = query?.0;
    let filters = Filters::of("/problems")
        .choice("environment", "Environment", &wanted.environment, asked::environments(&state, &viewer).await?)
        .choice("kind", "Kind", &wanted.kind, ProblemKind::ALL.map(ProblemKind::as_str))
        .choice("state", "State", &wanted.state, ProblemSeverity::ALL.map(ProblemSeverity::as_str))
        .seldom()
        .text("code", "Code of findings", &wanted.code, "TemplateFailed")
        .text("assignment", "Findings of an assignment", &wanted.assignment, "drone/hello-test");
    let mut page = Problems {
        frame: Frame::of(&viewer, "Problems", Section::Problems),
        filters,
        wrong: None,
        total: 0,
        counted: String::new(),
        kinds: Vec::new(),
        pages: Pages::of("/problems", &[], None, None),
        findings: None,
        failing: Vec::new(),
        good: Vec::new(),
        more: false,
        may_fetch: !viewer.caller.only_looks(),
    };
    if !wanted.code.is_empty() || !wanted.assignment.is_empty() || !wanted.workspace.is_empty() {
        let (found, wrong, status) = asked::answered(findings::list(&state, &viewer, &wanted).await)?;
        (page.findings, page.wrong) = (found, wrong);
        return Ok((status, Show(page)));
    }
    let asked = ProblemsQuery {
        environment: some(&wanted.environment),
        kind: some(&wanted.kind),
        state: some(&wanted.state),
        limit: Some(ROWS),
        cursor: some(&wanted.cursor),
    };
    let (found, wrong, status) = asked::answered(problems::list(&state, &viewer.caller, &asked).await)?;
    page.wrong = wrong;
    if let Some(found) = found {
        if !page.filters.narrowed() && wanted.cursor.is_empty() {
            page.frame.problems = Some(found.total);
        }
        (page.total, page.counted) = (found.total, counted(found.errors, found.waiting, found.warnings));
        let pairs = [("environment", wanted.environment.as_str()), ("kind", &wanted.kind), ("state", &wanted.state)];
        page.pages = Pages::of("/problems", &pairs, asked.cursor.as_deref(), found.next.as_deref());
        page.kinds = groups(found.items, viewer.caller.role == Role::Platform);
        if wanted.kind.is_empty() || wanted.kind == ProblemKind::Git.as_str() {
            let of = |word| repositories::repositories(&state, &viewer, &wanted.environment, word);
            let ((failing, more), (good, others)) = (of("failing").await?, of("good").await?);
            (page.failing, page.good, page.more) = (failing, good, more || others);
        }
    }
    Ok((status, Show(page)))
}

/// The hub looks at a repository now.
pub async fn fetch(
    State(state): State<ApiState>,
    Confirmed { viewer, form }: Confirmed<FetchForm>,
) -> Result<Redirect, WebError> {
    objects::fetch_repository(State(state), viewer.caller, Ok(Json(FetchRequest { url: form.url }))).await?;
    Ok(Redirect::to("/problems#repositories"))
}

impl Problems {
    /// Nobody is needed.
    fn calm(&self) -> bool {
        self.total == 0 && self.wrong.is_none() && self.findings.is_none()
    }
}

/// In the order in which they came, which is by kind.
fn groups(items: Vec<ProblemSummary>, platform: bool) -> Vec<Group> {
    let mut groups: Vec<(ProblemKind, Group)> = Vec::new();
    for item in items {
        let kind = item.kind;
        // Those stand in the table of repositories, with the button beside them.
        if item.code == problems::REPOSITORY_FAILING {
            continue;
        }
        if groups.last().is_none_or(|(last, _)| *last != kind) {
            let (title, about) = titled(kind);
            groups.push((kind, Group { title, about, rows: Vec::new() }));
        }
        if let Some((_, group)) = groups.last_mut() {
            group.rows.push(row(item, platform));
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn titled(kind: ProblemKind) -> (&'static str, &'static str) {
    match kind {
        ProblemKind::Approvals => ("Approvals", "Somebody's decision is all that is missing."),
        ProblemKind::Rollouts => ("Rollouts", "Rollouts that need a person."),
        ProblemKind::Clusters => ("Clusters", "Hosts and what runs on them."),
        ProblemKind::Delivery => ("Delivery", "Described, and not packed or published."),
        ProblemKind::Schedule => ("Schedule", "Described in Git, and can't be used as it is."),
        ProblemKind::Git => ("Git", "Repositories that can't be read: their last good commit stays in force."),
        ProblemKind::Hub => ("Hub", "The hub itself."),
    }
}

fn row(item: ProblemSummary, platform: bool) -> Row {
    let environment = item.environments.first().cloned().unwrap_or_default();
    let told = item.examples.len() as u64;
    let finding = item.examples.iter().any(|example| example.id.is_some());
    let listed = item.examples.iter().any(|example| example.id.is_some() || example.cluster.is_some());
    // Only the platform team confirms.
    let confirms = item.code == "PublishWaiting" && !platform;
    Row {
        error: item.severity == ProblemSeverity::Error,
        tag: match item.severity {
            ProblemSeverity::Error => "",
            ProblemSeverity::Waiting => "waits for somebody",
            ProblemSeverity::Warning => "warning",
        },
        link: if confirms { links::environment(&environment) } else { item.link },
        hint: match confirms {
            true => Some(Text::of("The platform team confirms it, or restores the files in Git.")),
            // Marks of code are for terminals.
            false => item.hint.as_deref().map(|hint| Text::of(&hint.replace('`', ""))),
        },
        environments: item.environments.into_iter().map(|name| (name.clone(), links::environment(&name))).collect(),
        since: item.since.as_deref().map(When::clock),
        more: if listed { item.count.saturating_sub(told) } else { 0 },
        // One finding is its own message.
        message: if finding && item.count > 1 { String::new() } else { item.message },
        examples: if listed {
            item.examples.into_iter().map(|one| example(one, &environment, item.count)).collect()
        } else {
            Vec::new()
        },
        key: item.id,
        code: item.code,
        brings: item.brings,
        command: item.command,
    }
}

fn example(example: ProblemExample, environment: &str, count: u64) -> Example {
    let finding = example.id.is_some();
    Example {
        id: example.id,
        cluster: example.cluster,
        assignment: example.assignment.map(|name| {
            let link = links::assignment(environment, &name);
            (name, link)
        }),
        message: if finding && count == 1 { String::new() } else { example.message },
        place: Place::maybe(example.origin.as_ref()),
    }
}

/// `3 errors, 1 waits for somebody, 2 warnings`
fn counted(errors: u64, waiting: u64, warnings: u64) -> String {
    let word = |count: u64, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {several}")),
    };
    let parts = [
        word(errors, "error", "errors"),
        word(waiting, "waits for somebody", "wait for somebody"),
        word(warnings, "warning", "warnings"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
