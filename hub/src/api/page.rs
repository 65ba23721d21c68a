//! Lists: pages by cursor, what changed since, and waiting for it.

use std::future::Future;
use std::time::{Duration, Instant};

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use kedge_api::page::Page;
use kedge_model::Selector;
use kedge_model::quantity::parse_duration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::ticks;

/// A page, and the number of the newest change that it shows (header `kedge-tick`): what to ask `after`.
#[derive(Debug)]
pub struct Listed<T> {
    pub page: Page<T>,
    pub tick: i64,
}

/// How long a list is, where it begins, and whether to wait.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// Only what changed after this number (`kedge-tick` of an answer before).
    pub after: Option<i64>,
    /// With `after`: wait so long (`30s`) for a change.
    pub wait: Option<String>,
}

/// How long a list is and where it begins: of one that doesn't tell what changed since.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// So many without a wish.
const DEFAULT_LIMIT: usize = 100;
pub const MAX_LIMIT: usize = 500;
/// A proxy in between would soon end a longer wait.
pub const MAX_WAIT: Duration = Duration::from_secs(55);
/// A cursor holds a few names.
const MAX_CURSOR: usize = 4096;
/// More changes than this are a new list.
pub const MAX_CHANGES: usize = 5000;

pub const TICK: HeaderName = HeaderName::from_static("kedge-tick");
/// What a person should know of a list that isn't wrong: such as why it is empty.
pub const NOTE: HeaderName = HeaderName::from_static("kedge-note");

impl ListQuery {
    pub fn paging(self) -> PageQuery {
        PageQuery { limit: self.limit, cursor: self.cursor, after: None, wait: None }
    }
}

impl PageQuery {
    /// How many items are asked for.
    pub fn limit(&self) -> Result<usize, ApiError> {
        self.wait()?;
        match self.limit {
            None => Ok(DEFAULT_LIMIT),
            Some(limit) if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
            Some(_) => Err(ApiError::invalid("BadLimit", format!("`limit` is between 1 and {MAX_LIMIT}"))),
        }
    }

    /// The key of the last item of the page before.
    pub fn from<K: DeserializeOwned>(&self) -> Result<Option<K>, ApiError> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let wrong = || {
            ApiError::invalid("BadCursor", "this cursor isn't one that the hub gave for such a list")
                .hint("start again without a cursor")
        };
        if cursor.len() > MAX_CURSOR {
            return Err(wrong());
        }
        let bytes = BASE64.decode(cursor).map_err(|_| wrong())?;
        serde_json::from_slice(&bytes).map(Some).map_err(|_| wrong())
    }

    pub fn wait(&self) -> Result<Duration, ApiError> {
        let Some(text) = &self.wait else { return Ok(Duration::ZERO) };
        if self.after.is_none() {
            return Err(ApiError::invalid("BadWait", "`wait` needs `after`: the number to wait for news after"));
        }
        let wait = parse_duration(text).map_err(|error| ApiError::invalid("BadWait", format!("`wait`: {error}")))?;
        Ok(wait.min(MAX_WAIT))
    }
}

/// The cursor behind an item.
pub fn cursor<K: Serialize>(key: &K) -> Option<String> {
    serde_json::to_vec(key).ok().map(|bytes| BASE64.encode(bytes))
}

pub fn selector(text: Option<&str>) -> Result<Selector, ApiError> {
    let text = text.unwrap_or_default();
    text.parse().map_err(|error| ApiError::invalid("BadSelector", format!("`labelSelector`: {error}")))
}

/// RFC 3339, from milliseconds.
pub fn moment(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| String::new(), |moment| moment.to_string())
}

/// What changed after a number: at once, or as soon as there is something, or nothing when the time is over.
pub async fn follow<T, F>(
    state: &ApiState,
    after: i64,
    wait: Duration,
    mut changes: impl FnMut() -> F,
) -> Result<Listed<T>, ApiError>
where
    F: Future<Output = Result<Page<T>, ApiError>>,
{
    let until = Instant::now() + wait;
    let mut shutdown = state.shutdown.clone();
    let _watcher = match wait.is_zero() {
        true => None,
        false => Some(state.watchers.try_acquire().map_err(|_| {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyWatchers", "too many are waiting for changes already")
                .retry_after(10)
        })?),
    };
    let mut seen = after;
    loop {
        let tick = state.ticks.current(&state.store).await?;
        if tick > seen {
            seen = tick;
            let page = changes().await?;
            if !page.items.is_empty() || !page.removed.is_empty() {
                return Ok(Listed { page, tick });
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || *shutdown.borrow_and_update() {
            return Ok(Listed { page: Page { items: Vec::new(), removed: Vec::new(), next: None }, tick: seen });
        }
        // Changes come from this hub and from others: the database's number is asked for.
        let _ = tokio::time::timeout(left.min(ticks::FRESH), shutdown.changed()).await;
    }
}

/// A watch that has missed too much begins again with a list.
pub fn too_old() -> ApiError {
    ApiError::new(StatusCode::GONE, "TooOld", "too much changed since then to say what")
        .hint("list again without `after`")
}

impl<T: Serialize> IntoResponse for Listed<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.page).into_response();
        response.headers_mut().insert(TICK, HeaderValue::from(self.tick));
        response
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_key() {
        let key = ("dev".to_owned(), "drone/hello".to_owned());
        let query = PageQuery { cursor: cursor(&key), ..PageQuery::default() };
        assert_eq!(query.from::<(String, String)>().unwrap(), Some(key));
    }

    proptest! {
        #[test]
        fn any_cursor_is_read_or_refused(text in ".{0,300}") {
            let query = PageQuery { cursor: Some(text), ..PageQuery::default() };
            if let Err(error) = query.from::<(String, String)>() {
                prop_assert_eq!(error.reason, "BadCursor");
            }
        }
    }
}
