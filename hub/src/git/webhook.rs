//! A push as GitHub and Gitea tell it: the signature is checked over the exact bytes before anything is read. Pure;
//! called by the API's `POST /hooks/git`. A replay only makes the hub look once more.

use http::HeaderMap;
use ring::hmac;
use serde::Deserialize;

/// Larger bodies are refused before they are read; a push with thousands of commits is cut off by both forges.
pub const BODY_LIMIT: usize = 1 << 20;

/// A payload names a repository in two or three ways.
const URL_LIMIT: usize = 8;

/// What was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// Every address that the payload gives for the repository.
    pub urls: Vec<String>,
    /// `refs/heads/main`; none for an event that is no push.
    pub reference: Option<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookError {
    #[error("the body is larger than {BODY_LIMIT} bytes")]
    TooLarge,
    #[error("the request isn't signed: neither `X-Hub-Signature-256` nor `X-Gitea-Signature`")]
    Unsigned,
    #[error("the signature doesn't match")]
    Forged,
    #[error("the body isn't the JSON of an event")]
    Malformed,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "ref")]
    reference: Option<String>,
    repository: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    clone_url: Option<String>,
    html_url: Option<String>,
    ssh_url: Option<String>,
    url: Option<String>,
}

/// Reads an event. `secret` is what both sides know.
pub fn parse(headers: &HeaderMap, body: &[u8], secret: &[u8]) -> Result<Pushed, HookError> {
    if body.len() > BODY_LIMIT {
        return Err(HookError::TooLarge);
    }
    let signature = signature(headers).ok_or(HookError::Unsigned)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    // Compares in constant time. An empty secret would be one that everybody knows.
    if secret.is_empty() || hmac::verify(&key, body, &signature).is_err() {
        return Err(HookError::Forged);
    }
    let payload: Payload = serde_json::from_slice(body).map_err(|_| HookError::Malformed)?;
    let named = payload.repository.into_iter();
    let urls = named.flat_map(|named| [named.clone_url, named.ssh_url, named.html_url, named.url]);
    let urls = urls.flatten().filter(|url| url.len() < 2048).take(URL_LIMIT).collect();
    Ok(Pushed { urls, reference: payload.reference })
}

fn signature(headers: &HeaderMap) -> Option<Vec<u8>> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let hex = match text("x-hub-signature-256") {
        Some(value) => value.strip_prefix("sha256=")?,
        None => text("x-gitea-signature")?,
    };
    decode_hex(hex.trim())
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &[u8] = br#"{"ref":"refs/heads/main","repository":{"clone_url":"https://h/o/r.git","html_url":"https://h/o/r","ssh_url":"git@h:o/r.git","id":1},"commits":[]}"#;

    fn sign(body: &[u8], secret: &[u8]) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), body);
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_push_of_github_and_of_gitea_is_read() {
        let github = headers("x-hub-signature-256", &format!("sha256={}", sign(BODY, b"s")));
        let gitea = headers("x-gitea-signature", &sign(BODY, b"s"));
        for headers in [github, gitea] {
            let pushed = parse(&headers, BODY, b"s").unwrap();
            assert_eq!(pushed.reference.as_deref(), Some("refs/heads/main"));
            assert_eq!(pushed.urls, ["https://h/o/r.git", "git@h:o/r.git", "https://h/o/r"]);
        }
    }

    #[test]
    fn a_ping_names_no_ref() {
        let body = br#"{"zen":"x","repository":{"clone_url":"https://h/o/r.git"}}"#;
        let pushed = parse(&headers("x-gitea-signature", &sign(body, b"s")), body, b"s").unwrap();
        assert_eq!(pushed, Pushed { urls: vec!["https://h/o/r.git".to_owned()], reference: None });
    }

    #[test]
    fn what_is_not_signed_with_the_secret_is_refused() {
        assert_eq!(parse(&HeaderMap::new(), BODY, b"s"), Err(HookError::Unsigned));
        let right = sign(BODY, b"s");
        assert_eq!(parse(&headers("x-gitea-signature", &right), BODY, b"other"), Err(HookError::Forged));
        assert_eq!(parse(&headers("x-gitea-signature", &right), b"{}", b"s"), Err(HookError::Forged));
        assert_eq!(parse(&headers("x-gitea-signature", &sign(BODY, b"")), BODY, b""), Err(HookError::Forged));
        assert_eq!(parse(&headers("x-hub-signature-256", &right), BODY, b"s"), Err(HookError::Unsigned));
        let body = b"not json";
        assert_eq!(parse(&headers("x-gitea-signature", &sign(body, b"s")), body, b"s"), Err(HookError::Malformed));
        let large = vec![b' '; BODY_LIMIT + 1];
        assert_eq!(parse(&headers("x-gitea-signature", &sign(&large, b"s")), &large, b"s"), Err(HookError::TooLarge));
    }

    proptest! {
        #[test]
        fn any_signed_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200), value in "\\PC{0,80}") {
            let _ = parse(&headers("x-gitea-signature", &sign(&body, b"s")), &body, b"s");
            if let Ok(value) = value.parse() {
                let headers = HeaderMap::from_iter([(http::HeaderName::from_static("x-hub-signature-256"), value)]);
                prop_assert!(parse(&headers, &body, b"s").is_err());
            }
        }
    }
}
