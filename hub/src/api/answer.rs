//! How a request that can't be done is answered: a status, and JSON with a stable reason, a sentence and a way out.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, http::Uri};
use serde::Serialize;
use utoipa::ToSchema;

use crate::causes::chain;
use crate::store::StoreError;

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub status: StatusCode,
    /// A stable word for programs, in CamelCase.
    pub reason: &'static str,
    pub message: String,
    pub hint: Option<String>,
    /// The name that was probably meant.
    pub nearest: Option<String>,
    /// Seconds after which another try makes sense.
    pub retry_after: Option<u64>,
}

/// The body of every answer that isn't 2xx or 304.
#[derive(Debug, Serialize, ToSchema)]
pub struct Refusal {
    /// A stable word, such as `NotFound`.
    pub reason: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// With `UnknownName`: the name that was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// The reason of a refusal, for the audit log.
#[derive(Clone, Copy, Debug)]
pub struct Reason(pub &'static str);

/// A database that was away is asked again after so long.
const DATABASE_RETRY_S: u64 = 5;

impl ApiError {
    pub fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, reason, message: message.into(), hint: None, nearest: None, retry_after: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ApiError {
        self.hint = Some(hint.into());
        self
    }

    /// With the name that was probably meant.
    #[must_use]
    pub fn near<'a>(mut self, name: &str, known: impl IntoIterator<Item = &'a str>) -> ApiError {
        self.nearest = super::names::nearest(name, known).map(str::to_owned);
        if let Some(near) = &self.nearest {
            let rest = self.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            self.hint = Some(format!("did you mean `{near}`?{rest}"));
        }
        self
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> ApiError {
        self.retry_after = Some(seconds);
        self
    }

    pub fn invalid(reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, reason, message)
    }

    /// Also for what the caller may not see: its existence is nobody's business.
    pub fn not_found(what: impl std::fmt::Display) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "NotFound", format!("there is no {what}"))
    }

    pub fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub fn conflict(reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, reason, message)
    }

    pub fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "Unavailable", message).retry_after(DATABASE_RETRY_S)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let refusal =
            Refusal { reason: self.reason.to_owned(), message: self.message, hint: self.hint, nearest: self.nearest };
        let mut response = (self.status, Json(refusal)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"kedge\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(Reason(self.reason));
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        match error {
            StoreError::Unavailable(_) => {
                tracing::warn!(error = %chain(&error), "the database doesn't answer a request");
                ApiError::unavailable("the hub's database can't be reached just now")
            }
            StoreError::Fenced(_) => ApiError::unavailable("another hub took over just now"),
            error => {
                tracing::error!(error = %chain(&error), "a request failed");
                ApiError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Internal",
                    "the hub couldn't do this; its log says why",
                )
            }
        }
    }
}

impl From<QueryRejection> for ApiError {
    fn from(error: QueryRejection) -> ApiError {
        ApiError::invalid("BadQuery", error.body_text()).hint("docs/openapi.json lists the parameters of each route")
    }
}

impl From<PathRejection> for ApiError {
    fn from(error: PathRejection) -> ApiError {
        ApiError::invalid("BadPath", error.body_text())
    }
}

impl From<JsonRejection> for ApiError {
    fn from(error: JsonRejection) -> ApiError {
        let status = error.status();
        let reason = if status == StatusCode::PAYLOAD_TOO_LARGE { "TooLarge" } else { "BadBody" };
        ApiError::new(status, reason, error.body_text())
    }
}

pub async fn no_such_route(uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "NoSuchRoute", format!("there is nothing at {path}"))
        .hint("docs/openapi.json lists what there is")
}

pub async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "WrongMethod", "this route doesn't know that method")
}
