//! One request with one event, and what the answer means. Our own client: ring, no redirects, with time limits, and the
//! answer's body isn't read. Called by `dispatcher`.

use std::sync::OnceLock;
use std::time::Duration;

use kedge_hub_types::causes::chain;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use ring::hmac;

use super::sign::sign;

/// Why an event wasn't taken; typed by what happens next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The destination's fault: all its events wait.
    #[error("{why}")]
    Away { why: String, wait: Option<Duration> },
    /// It takes others, and not this one.
    #[error("it answers {0}")]
    Refused(u16),
}

/// Who doesn't answer by then won't.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(30);
/// A destination can't keep us away for longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
const MEDIA_TYPE: &str = "application/cloudevents+json; charset=utf-8";

/// Sends it, signed with the time of now.
pub async fn deliver(url: &str, key: &hmac::Key, id: &str, seconds: i64, body: Vec<u8>) -> Result<(), DeliveryError> {
    let away = |why: String| DeliveryError::Away { why, wait: None };
    let signature = sign(key, id, seconds, &body);
    let request = client()
        .map_err(away)?
        .post(url)
        .header(CONTENT_TYPE, MEDIA_TYPE)
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-signature", signature)
        .body(body);
    let answer = request.send().await.map_err(|error| away(chain(&error.without_url())))?;
    judge(answer.status(), answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()))
}

/// A status that speaks of this event is one thing; one that speaks of the destination, its address or our right to send is
/// another, and everything waits.
fn judge(status: StatusCode, retry_after: Option<&str>) -> Result<(), DeliveryError> {
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::BAD_REQUEST
        | StatusCode::CONFLICT
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::UNPROCESSABLE_ENTITY => Err(DeliveryError::Refused(status.as_u16())),
        status => {
            let wait = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            let why = format!("it answers {}", status.as_u16());
            Err(DeliveryError::Away { why, wait: wait.map(|wait| wait.min(LONGEST_WAIT)) })
        }
    }
}

/// One client for all destinations: its connections are kept.
fn client() -> Result<reqwest::Client, String> {
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
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| error.to_string())?;
    Ok(CLIENT.get_or_init(|| built).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_speaks_of_the_event_or_of_the_destination() {
        assert_eq!(judge(StatusCode::ACCEPTED, None), Ok(()));
        assert_eq!(judge(StatusCode::UNPROCESSABLE_ENTITY, None), Err(DeliveryError::Refused(422)));
        let away = |status, after| match judge(status, after) {
            Err(DeliveryError::Away { wait, .. }) => wait,
            _ => Some(Duration::ZERO),
        };
        assert_eq!(away(StatusCode::INTERNAL_SERVER_ERROR, None), None);
        assert_eq!(away(StatusCode::NOT_FOUND, None), None);
        assert_eq!(away(StatusCode::FOUND, None), None, "no redirect is followed");
        assert_eq!(away(StatusCode::TOO_MANY_REQUESTS, Some("7")), Some(Duration::from_secs(7)));
        assert_eq!(away(StatusCode::TOO_MANY_REQUESTS, Some("9999999")), Some(LONGEST_WAIT));
        assert_eq!(away(StatusCode::TOO_MANY_REQUESTS, Some("soon")), None);
    }
}
