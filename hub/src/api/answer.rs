//! How a request that can't be done is answered: a status, and problem details (RFC 9457) with a stable code,
//! a sentence and a way out.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, http::Uri};
use kedge_api::error::{ErrorDetail, MEDIA_TYPE};
use kedge_hub_types::causes::chain;

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
    /// The access token that a refused login named, if the hub knows it: for the audit log, never in the answer.
    pub named: Option<Box<NamedToken>>,
}

/// A known token and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedToken {
    pub id: String,
    pub person: String,
    pub person_name: String,
}

/// The reason of a refusal, for the audit log.
#[derive(Clone, Copy, Debug)]
pub struct Reason(pub &'static str);

/// A database that was away is asked again after so long.
const DATABASE_RETRY_S: u64 = 5;

impl ApiError {
    pub fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, reason, message: message.into(), hint: None, nearest: None, retry_after: None, named: None }
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
        let title = self.status.canonical_reason().unwrap_or("Refused");
        let detail = ErrorDetail {
            hint: self.hint,
            nearest: self.nearest,
            ..ErrorDetail::new(self.status.as_u16(), title, self.reason, self.message)
        };
        let mut response = (self.status, Json(detail)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
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
                ApiError::unavailable(format!("the hub can't do this now: {error}"))
            }
            StoreError::Fenced(_) => ApiError::unavailable("another hub took over just now"),
            error => {
                tracing::error!(error = %chain(&error), "a request failed");
                ApiError::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "Internal",
                    "the hub failed to do this; see its log for the reason",
                )
            }
        }
    }
}

impl From<QueryRejection> for ApiError {
    fn from(error: QueryRejection) -> ApiError {
        let text = error.body_text();
        let told = text.rsplit_once(READING).map_or(text.as_str(), |(_, told)| told);
        if let Some((given, known)) = unknown_parameter(told) {
            let message = format!("there is no parameter `{given}` here; there are: {}", known.join(", "));
            return ApiError::invalid("BadQuery", message).near(&given, known.iter().map(String::as_str));
        }
        let message = match told.strip_prefix("missing field ") {
            Some(name) => format!("the parameter {name} is required"),
            None => format!("a parameter can't be read: {told}"),
        };
        ApiError::invalid("BadQuery", message).hint("docs/openapi.json lists the parameters of each route")
    }
}

impl From<PathRejection> for ApiError {
    fn from(error: PathRejection) -> ApiError {
        let text = error.body_text();
        let given = text.split('`').nth(1).filter(|_| ["u64", "i64", "u32"].iter().any(|kind| text.contains(kind)));
        match given {
            Some(given) => ApiError::invalid("BadPath", format!("`{}` isn't a number", super::names::harmless(given)))
                .hint("such things are named by their number, as lists show it"),
            None => ApiError::invalid("BadPath", format!("this address can't be read: {text}")),
        }
    }
}

impl From<JsonRejection> for ApiError {
    fn from(error: JsonRejection) -> ApiError {
        let status = error.status();
        let reason = if status == StatusCode::PAYLOAD_TOO_LARGE { "TooLarge" } else { "BadBody" };
        ApiError::new(status, reason, error.body_text())
    }
}

/// What is before the sentence that tells what is wrong with a query string.
const READING: &str = "Failed to deserialize query string: ";

/// `ring: unknown field `ring`, expected one of `a`, `b``: what was given, and what is known.
fn unknown_parameter(told: &str) -> Option<(String, Vec<String>)> {
    let (_, rest) = told.split_once("unknown field `")?;
    let (given, rest) = rest.split_once('`')?;
    let known = rest.split('`').skip(1).step_by(2);
    // The spelling with hyphens is for those who are used to it; one is enough to tell.
    let known: Vec<String> = known.filter(|name| !name.contains('-')).map(str::to_owned).collect();
    Some((super::names::harmless(given), known)).filter(|(_, known)| !known.is_empty())
}

pub async fn no_such_route(uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "NoSuchRoute", format!("there is nothing at {path}"))
        .hint("docs/openapi.json lists what there is")
}

pub async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "WrongMethod", "this route doesn't know that method")
}
