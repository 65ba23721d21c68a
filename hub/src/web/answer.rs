//! How a page is answered, and how a page says that it can't be shown: with the way out.

use askama::Template;
use axum::extract::Request;
use axum::extract::rejection::{FormRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use kedge_model::shown::shown;

use super::frame::{Frame, Section};
use super::links;
use crate::api::answer::{self, ApiError};
use crate::store::StoreError;

/// A page that is ready to be rendered.
#[derive(Debug)]
pub struct Show<T>(pub T);

/// Why there is no page.
#[derive(Debug)]
pub enum WebError {
    /// Nobody is logged in: first there, then here.
    Login {
        next: String,
    },
    Refused(ApiError),
}

#[derive(Template)]
#[template(path = "refused.html")]
struct Refused {
    frame: Frame,
    error: ApiError,
}

impl<T: Template> IntoResponse for Show<T> {
    fn into_response(self) -> Response {
        match self.0.render() {
            // Names and sentences of agents and tenants are on it: nothing hides or turns the order of what is read.
            Ok(text) => Html(shown(&text).into_owned()).into_response(),
            Err(error) => {
                tracing::error!(%error, "a page can't be rendered");
                (StatusCode::INTERNAL_SERVER_ERROR, "this page can't be rendered; see the hub's log for the reason")
                    .into_response()
            }
        }
    }
}

impl IntoResponse for WebError {
    fn into_response(self) -> Response {
        let error = match self {
            WebError::Login { next } => return Redirect::to(&links::login(&next)).into_response(),
            WebError::Refused(error) => error,
        };
        let (status, retry_after) = (error.status, error.retry_after);
        let title = status.canonical_reason().unwrap_or("This can't be shown");
        let page = Refused { frame: Frame::bare(title, Section::None), error };
        let mut response = (status, Show(page)).into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<ApiError> for WebError {
    fn from(error: ApiError) -> WebError {
        WebError::Refused(error)
    }
}

impl From<StoreError> for WebError {
    fn from(error: StoreError) -> WebError {
        WebError::Refused(error.into())
    }
}

impl From<QueryRejection> for WebError {
    fn from(error: QueryRejection) -> WebError {
        let error = ApiError::invalid("BadQuery", error.body_text()).hint("the address holds a filter that isn't one");
        WebError::Refused(error)
    }
}

impl From<PathRejection> for WebError {
    fn from(error: PathRejection) -> WebError {
        WebError::Refused(error.into())
    }
}

impl From<FormRejection> for WebError {
    fn from(error: FormRejection) -> WebError {
        WebError::Refused(ApiError::new(error.status(), "BadForm", error.body_text()))
    }
}

/// Programs get JSON, people a page.
pub async fn no_such_page(request: Request) -> Response {
    let accepts = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let error = answer::no_such_route(request.uri().clone()).await;
    if accepts.contains("text/html") {
        let error = ApiError { hint: None, ..error };
        return WebError::Refused(error.hint("the fleet's page leads everywhere, and / searches")).into_response();
    }
    error.into_response()
}

pub async fn wrong_method() -> WebError {
    WebError::Refused(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "WrongMethod", "a page isn't asked like that"))
}
