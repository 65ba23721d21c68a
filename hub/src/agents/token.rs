//! Join tokens: made for people to hand over, checked at a join. Only a hash of the secret is kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use kedge_model::Labels;
use kedge_model::wire::digest::hex;
use kedge_model::wire::{ClusterId, Digest, Timestamp};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::store::agents::tokens::TokenRow;

/// What a person asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenOrder {
    pub environment: String,
    pub cluster_type: String,
    pub labels: Labels,
    pub site: Option<String>,
    /// The new cluster takes the whole place of this one, which is shut out from then on.
    pub replaces: Option<ClusterId>,
    pub uses: u64,
    pub expires_at: Timestamp,
    /// Who asks, for the list.
    pub created_by: String,
}

/// A new token: its row, and the secret that is told once.
pub(super) struct Made {
    pub row: TokenRow,
    pub secret: String,
}

/// No random numbers: the system is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRandom;

/// Why a token doesn't let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    Revoked,
    Expired,
    UsedUp,
}

const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

impl TokenOrder {
    pub(super) fn make(self, created_at: Timestamp) -> Result<Made, NoRandom> {
        let secret = BASE64.encode(random::<SECRET_BYTES>()?);
        let row = TokenRow {
            id: hex(&random::<ID_BYTES>()?),
            secret_hash: hash(&secret),
            environment: self.environment,
            cluster_type: self.cluster_type,
            labels: self.labels,
            site: self.site,
            replaces: self.replaces,
            uses: self.uses,
            uses_left: self.uses,
            expires_at: self.expires_at,
            created_by: self.created_by,
            created_at,
            revoked_at: None,
        };
        Ok(Made { row, secret })
    }
}

/// Takes the same time wherever the difference is: both sides are hashed again under a key of this call.
pub(super) fn opens(token: &TokenRow, secret: &str) -> Result<bool, NoRandom> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &random::<32>()?);
    let stored = hmac::sign(&key, token.secret_hash.as_bytes());
    Ok(hmac::verify(&key, hash(secret).as_bytes(), stored.as_ref()).is_ok())
}

/// Whether another cluster may come in with it.
pub(super) fn fitness(token: &TokenRow, at: Timestamp) -> Result<(), TokenRefusal> {
    match token {
        TokenRow { revoked_at: Some(_), .. } => Err(TokenRefusal::Revoked),
        TokenRow { expires_at, .. } if *expires_at <= at => Err(TokenRefusal::Expired),
        TokenRow { uses_left: 0, .. } => Err(TokenRefusal::UsedUp),
        _ => Ok(()),
    }
}

fn hash(secret: &str) -> String {
    Digest::of(secret.as_bytes()).hex()
}

fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Made {
        let order = TokenOrder {
            environment: "dev".to_owned(),
            cluster_type: "drone".to_owned(),
            labels: Labels::new(),
            site: None,
            replaces: None,
            uses: 1,
            expires_at: Timestamp(100),
            created_by: "ada".to_owned(),
        };
        order.make(Timestamp(0)).unwrap()
    }

    #[test]
    fn only_its_own_secret_opens_a_token_and_it_is_not_stored() {
        let Made { row, secret } = made();
        assert_eq!((opens(&row, &secret), opens(&row, "guess"), opens(&row, "")), (Ok(true), Ok(false), Ok(false)));
        assert!(!format!("{row:?}").contains(&secret));
    }

    #[test]
    fn a_token_ends_by_time_by_use_and_by_hand() {
        let Made { row, .. } = made();
        assert_eq!(fitness(&row, Timestamp(99)), Ok(()));
        assert_eq!(fitness(&row, Timestamp(100)), Err(TokenRefusal::Expired));
        assert_eq!(fitness(&TokenRow { uses_left: 0, ..row.clone() }, Timestamp(1)), Err(TokenRefusal::UsedUp));
        assert_eq!(
            fitness(&TokenRow { revoked_at: Some(Timestamp(1)), ..row }, Timestamp(1)),
            Err(TokenRefusal::Revoked)
        );
    }
}
