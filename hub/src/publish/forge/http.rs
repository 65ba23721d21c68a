//! One request to a forge and its answer: our own client (ring, no redirects), with time limits, a limit on what is read,
//! and the server's wish to be left alone for a while respected.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ForgeError;
use crate::config::ForgeKind;
use crate::git::Secret;

/// A forge that doesn't answer by then won't.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opening a pull request of thousands of files takes a forge some seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Fifty pull requests with long bodies fit in.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// Of a server's message.
const MESSAGE_LIMIT: usize = 300;

/// A server can't keep us away for longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Says who we are on a forge. Debug shows no secret: header values of secrets are marked sensitive.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    authorization: HeaderValue,
}

impl Client {
    pub fn new(kind: ForgeKind, secret: &Secret, repo: &str) -> Result<Client, ForgeError> {
        let text = match (kind, &secret.username) {
            (ForgeKind::GitHub, _) => format!("Bearer {}", secret.secret),
            // Gitea takes a token or a password there.
            (ForgeKind::Gitea, Some(name)) => {
                let pair = format!("{name}:{}", secret.secret);
                format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
            }
            (ForgeKind::Gitea, None) => format!("token {}", secret.secret),
        };
        let mut authorization = HeaderValue::from_str(&text).map_err(|_| ForgeError::NoCredential(repo.to_owned()))?;
        authorization.set_sensitive(true);
        Ok(Client { http: shared()?, authorization })
    }

    /// The answer as a value.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        url: &str,
        query: &[(&'static str, String)],
        body: Option<&Value>,
    ) -> Result<T, ForgeError> {
        let what = format!("{method} {url}");
        let bytes = self.send(method, url, query, body).await?;
        serde_json::from_slice(&bytes).map_err(|error| ForgeError::Malformed(what, error))
    }

    pub async fn send(
        &self,
        method: Method,
        url: &str,
        query: &[(&'static str, String)],
        body: Option<&Value>,
    ) -> Result<Vec<u8>, ForgeError> {
        let what = format!("{method} {url}");
        let address = match query.is_empty() {
            true => url.to_owned(),
            false => {
                let pairs: Vec<String> =
                    query.iter().map(|(name, value)| format!("{name}={}", segment(value))).collect();
                format!("{url}?{}", pairs.join("&"))
            }
        };
        let mut request = self.http.request(method, address).header(AUTHORIZATION, self.authorization.clone());
        request = request.header(ACCEPT, "application/json");
        if let Some(body) = body {
            request = request.json(body);
        }
        // Without the address, which the error names already.
        let unreachable = |error: reqwest::Error| ForgeError::Unreachable(what.clone(), error.without_url());
        let mut response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = read(&mut response).await.map_err(unreachable)?;
        match bytes {
            Some(bytes) if status.is_success() => Ok(bytes),
            None if status.is_success() => Err(ForgeError::TooLong(what)),
            bytes => Err(failure(what, status, &headers, &bytes.unwrap_or_default())),
        }
    }
}

/// One client for all forges: its connections are kept.
fn shared() -> Result<reqwest::Client, ForgeError> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    // An error means that the program has chosen a provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let built = reqwest::Client::builder()
        .user_agent(concat!("kedge-hub/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        // A credential goes where the configuration says and nowhere else.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| ForgeError::Unreachable("the network".to_owned(), error))?;
    Ok(CLIENT.get_or_init(|| built).clone())
}

/// None: there is more than we read.
async fn read(response: &mut Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > ANSWER_LIMIT {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

fn failure(what: String, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ForgeError {
    let code = status.as_u16();
    let limited = headers.get("x-ratelimit-remaining").is_some_and(|left| left.as_bytes() == b"0");
    if code == 429
        || (code == 403 && (limited || headers.contains_key(RETRY_AFTER)))
        || (code == 503 && headers.contains_key(RETRY_AFTER))
    {
        return ForgeError::Later(what, wait(headers, jiff::Timestamp::now().as_second()));
    }
    let message = message(body);
    match code {
        401 | 403 | 404 => ForgeError::Denied { what, status: code, message },
        300..=399 => {
            ForgeError::NoAddress(format!("{what} is answered with a redirect: the repository or the API moved"))
        }
        400..=499 => ForgeError::Refused { what, status: code, message },
        _ => ForgeError::Broken { what, status: code, message },
    }
}

/// From `Retry-After` in seconds, or GitHub's time at which the limit is over.
fn wait(headers: &HeaderMap, now: i64) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let seconds = number("retry-after").or_else(|| number("x-ratelimit-reset").map(|at| at.saturating_sub(now)))?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)).min(LONGEST_WAIT))
}

/// The sentence in an answer, on one line and not too long.
fn message(body: &[u8]) -> String {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let told = json.as_ref().and_then(|json| json.get("message")?.as_str());
    let details = json.as_ref().and_then(|json| json.get("errors")?.as_array()?.first()?.get("message")?.as_str());
    let text = match (told, details) {
        (Some(told), Some(details)) => format!("{told}: {details}"),
        (Some(told), None) => told.to_owned(),
        _ => String::from_utf8_lossy(&body[..body.len().min(MESSAGE_LIMIT)]).into_owned(),
    };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_LIMIT).collect()
}

/// As one part of a path or a query's value.
pub fn segment(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_wish_to_be_left_alone_is_respected_within_reason() {
        assert_eq!(wait(&headers(&[("retry-after", "17")]), 0), Some(Duration::from_secs(17)));
        assert_eq!(wait(&headers(&[("x-ratelimit-reset", "160")]), 100), Some(Duration::from_secs(60)));
        assert_eq!(wait(&headers(&[("x-ratelimit-reset", "60")]), 100), Some(Duration::ZERO));
        assert_eq!(wait(&headers(&[("retry-after", "999999999999")]), 0), Some(LONGEST_WAIT));
        assert_eq!(wait(&headers(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), 0), None);
    }

    #[test]
    fn a_rate_limit_is_no_refusal() {
        let limited = failure("x".to_owned(), StatusCode::FORBIDDEN, &headers(&[("x-ratelimit-remaining", "0")]), b"");
        assert!(matches!(limited, ForgeError::Later(..)));
        let denied = failure("x".to_owned(), StatusCode::FORBIDDEN, &HeaderMap::new(), br#"{"message": "no"}"#);
        assert!(matches!(denied, ForgeError::Denied { status: 403, message, .. } if message == "no"));
    }

    proptest! {
        #[test]
        fn any_answer_gives_a_bounded_message(body in prop::collection::vec(any::<u8>(), 0..2000)) {
            let told = message(&body);
            prop_assert!(told.chars().count() <= MESSAGE_LIMIT && !told.contains('\n'));
        }
    }
}
