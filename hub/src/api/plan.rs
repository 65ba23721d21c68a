//! What a change of the control plane would do in an environment, asked of the hub: its own inputs, its own memory, its clusters.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use kedge_api::plans::{PlanDetail, PlanRequest};

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::names;
use crate::platform::preview::Part;
use crate::preview::{Audience, MAX_TEXT, Wish};
use crate::store::api::names::NameKind;
use crate::store::catalog::Kind;
use crate::store::tokens::Role;

/// A megabyte of text, escaped as JSON at its worst, and the names.
pub const MAX_BODY: usize = 2 * MAX_TEXT;

/// Plan a change: which assignments, values and clusters it would reach. Nothing is written.
#[utoipa::path(post, path = "/plan", tag = "compare", request_body = PlanRequest, responses((status = OK, body = PlanDetail)))]
pub async fn plan(
    State(state): State<ApiState>,
    caller: Caller,
    wish: Result<Json<PlanRequest>, JsonRejection>,
) -> Result<Json<PlanDetail>, ApiError> {
    let wish = wish?.0;
    let part = match wish.of.as_deref() {
        None => None,
        Some("main") => Some(Part::Main),
        Some("environment") => Some(Part::Environment),
        Some(_) => return Err(ApiError::invalid("BadPart", "`of` is `main` or `environment`")),
    };
    let revision = wish.revision.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if revision.is_none() && wish.pasted.is_empty() {
        return Err(ApiError::invalid("NothingToPlan", "a plan is of a revision or of pasted files")
            .hint("name a branch, a tag or a commit of the control plane"));
    }
    // A template may print what a caller doesn't see: who writes one has to be trusted with all of it.
    if !wish.pasted.is_empty() && caller.role != Role::Platform {
        return Err(
            ApiError::forbidden("planning pasted files is for the platform team").hint("push a branch and plan that")
        );
    }
    let name = &wish.environment;
    if state.store.catalog_row(Kind::Environment, &caller.visible(), name, name).await?.is_none() {
        return Err(names::absent(&state, &caller.visible(), NameKind::Environment, name, None).await);
    }
    let audience =
        Audience { token: caller.token.clone(), with_secrets: caller.sees_secrets(), visible: caller.visible() };
    let wish = Wish { environment: wish.environment, revision, part, files: wish.pasted };
    Ok(Json(state.services.plan(wish, audience).await?))
}
