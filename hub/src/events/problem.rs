//! A destination that fails for long, among the problems that people see. It is of no environment: the platform team's.

use kedge_api::findings::{Finding, FindingSummary};
use kedge_model::wire::Timestamp;

use crate::catalog::problem_labels;
use crate::store::catalog::{Changes, Kind, Row};
use crate::store::{Store, StoreError, Term};

/// Names of these rows begin so.
const PREFIX: &str = "events/";
/// Of no environment.
const NOWHERE: &str = "";

pub(super) async fn show(
    store: &Store,
    term: Term,
    destination: &str,
    why: &str,
    since: Timestamp,
) -> Result<(), StoreError> {
    let since = jiff::Timestamp::from_millisecond(since.0).map(|at| at.to_string()).unwrap_or_default();
    let hint = format!("look at [[events]] `{destination}` of the hub's configuration; nothing is lost, events wait");
    let view = FindingSummary {
        environment: NOWHERE.to_owned(),
        id: format!("{PREFIX}{destination}"),
        assignment: None,
        quarantines: false,
        finding: Finding {
            severity: "error".to_owned(),
            code: "EventsFailing".to_owned(),
            message: format!("the destination `{destination}` has taken no event since {since}: {why}"),
            hint: Some(hint),
            origin: None,
            related: Vec::new(),
            stage: "events".to_owned(),
        },
    };
    let row = Row {
        kind: Kind::Problem,
        name: view.id.clone(),
        parent: String::new(),
        workspace: String::new(),
        state: view.finding.severity.clone(),
        labels: problem_labels(&view.finding),
        body: serde_json::to_string(&view).map_err(|error| StoreError::Corrupt(error.to_string()))?,
        detail: String::new(),
        content: String::new(),
    };
    store.write_catalog(term, NOWHERE, &Changes { rows: vec![row], ..Changes::default() }).await
}

pub(super) async fn hide(store: &Store, term: Term, destinations: &[&str]) -> Result<(), StoreError> {
    let removed = destinations.iter().map(|name| (Kind::Problem, format!("{PREFIX}{name}"))).collect();
    store.write_catalog(term, NOWHERE, &Changes { removed, ..Changes::default() }).await
}

/// Those that a leader before left.
pub(super) async fn shown(store: &Store) -> Result<Vec<String>, StoreError> {
    let all = store.catalog_digests(Kind::Problem, NOWHERE, None).await?;
    Ok(all.into_keys().filter_map(|name| Some(name.strip_prefix(PREFIX)?.to_owned())).collect())
}
