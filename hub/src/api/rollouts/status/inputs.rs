//! What keeps an environment from having all that Git says, though everything that was issued has arrived: assignments in
//! quarantine, and inputs that can't be read. Asked by `gather`.

use kedge_api::assignments::AssignmentSummary;
use kedge_api::environments::EnvironmentSummary;

use super::{Found, StatusQuery};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::page::MAX_CHANGES;
use crate::store::StoreError;
use crate::store::catalog::{Filter, Kind, Visible};

/// So many names stand in a sentence.
const NAMED: usize = 3;

pub async fn look(
    state: &ApiState,
    visible: &Visible,
    environment: &str,
    query: &StatusQuery,
    found: &mut Found,
) -> Result<(), ApiError> {
    let filter = Filter {
        environment: Some(environment.to_owned()),
        parent: query.cluster_type.clone(),
        state: Some("quarantined".to_owned()),
        limit: MAX_CHANGES,
        ..Filter::default()
    };
    let (shown, _) = state.store.catalog_page(Kind::Assignment, visible, &filter).await?;
    let mut names = Vec::new();
    for shown in shown {
        let view: AssignmentSummary = serde_json::from_str(&shown.body).map_err(corrupt)?;
        if query.workload.as_ref().is_none_or(|wanted| *wanted == view.workload) {
            names.push(view.name);
        }
    }
    let whole = query.workload.is_none() && query.cluster_type.is_none();
    let stale = stale(state, visible, environment).await?;
    if !names.is_empty() {
        let listed = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let are = if names.len() == 1 { "is" } else { "are" };
        found
            .broken
            .push(format!("{listed}{more} of {environment} {are} in quarantine: older content stays in force there"));
        // A repository may answer again by itself; what is in quarantine needs somebody.
        found.is_quarantined = true;
    }
    match found.is_quarantined || whole {
        true => found.broken.extend(stale),
        false => found.notes.extend(stale),
    }
    Ok(())
}

/// Inputs of which an older version is in force.
async fn stale(state: &ApiState, visible: &Visible, environment: &str) -> Result<Vec<String>, ApiError> {
    if *visible != Visible::All {
        return Ok(Vec::new());
    }
    let mut notes = Vec::new();
    if let Some(row) = state.store.catalog_row(Kind::Environment, visible, environment, environment).await? {
        let view: EnvironmentSummary = serde_json::from_str(&row.shown.body).map_err(corrupt)?;
        let failing = view.totals.map_or(0, |totals| totals.failing_inputs);
        if failing > 0 {
            let inputs = if failing == 1 { "1 input".to_owned() } else { format!("{failing} inputs") };
            notes.push(format!("{inputs} of {environment} can't be read: the last good version stays in force"));
        }
    }
    Ok(notes)
}

fn corrupt(error: serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("the catalog: {error}"))
}
