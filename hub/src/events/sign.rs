//! The signature of a webhook, as the Standard Webhooks specification has it, so that receivers can verify it with a library:
//! HMAC-SHA256 over `id.timestamp.body`. Called by `post`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;

/// A secret with this before it is base64, as that specification writes secrets; any other text is the secret itself.
const ENCODED: &str = "whsec_";

/// The key that a secret's text stands for; none: it can't be read as what it says it is.
pub fn key(secret: &str) -> Option<hmac::Key> {
    let secret = secret.trim();
    let bytes = match secret.strip_prefix(ENCODED) {
        Some(encoded) => BASE64.decode(encoded).ok()?,
        None => secret.as_bytes().to_vec(),
    };
    (!bytes.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// What `webhook-signature` says.
pub fn sign(key: &hmac::Key, id: &str, seconds: i64, body: &[u8]) -> String {
    let mut message = format!("{id}.{seconds}.").into_bytes();
    message.extend_from_slice(body);
    format!("v1,{}", BASE64.encode(hmac::sign(key, &message)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// The example of the specification's own libraries.
    #[test]
    fn the_signature_is_that_of_the_specification() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let signed = sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn an_empty_or_broken_secret_is_none() {
        assert!(key("").is_none() && key("whsec_").is_none() && key("whsec_***").is_none());
        assert!(key("a long text").is_some());
    }
}
