//! A certificate signing request as far as we believe it: an Ed25519 key whose holder signed it. Names in it are ignored.

use kedge_model::wire::ClusterId;
use rcgen::{CertificateSigningRequestParams, PKCS_ED25519};

/// The key that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    pub public_key: [u8; 32],
    pub cluster: ClusterId,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    #[error("the certificate signing request can't be read: {0}")]
    Unreadable(String),
    #[error("the key must be Ed25519")]
    Algorithm,
}

impl Applicant {
    /// Checks the request's own signature: who asks holds the key.
    pub fn of(pem: &str) -> Result<Applicant, CsrError> {
        let request =
            CertificateSigningRequestParams::from_pem(pem).map_err(|why| CsrError::Unreadable(why.to_string()))?;
        if request.public_key.algorithm() != &PKCS_ED25519 {
            return Err(CsrError::Algorithm);
        }
        let raw = rcgen::PublicKeyData::der_bytes(&request.public_key);
        let public_key: [u8; 32] = raw.try_into().map_err(|_| CsrError::Algorithm)?;
        Ok(Applicant { public_key, cluster: ClusterId::of_public_key(&public_key) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};

    use super::*;

    fn request(key: &KeyPair) -> String {
        CertificateParams::default().serialize_request(key).unwrap().pem().unwrap()
    }

    #[test]
    fn the_cluster_is_the_hash_of_the_requests_key() {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let public: [u8; 32] = key.public_key_raw().try_into().unwrap();
        assert_eq!(Applicant::of(&request(&key)).unwrap().cluster, ClusterId::of_public_key(&public));
    }

    #[test]
    fn another_algorithm_is_refused() {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        assert_eq!(Applicant::of(&request(&key)), Err(CsrError::Algorithm));
    }

    proptest! {
        #[test]
        fn a_changed_request_is_refused(at in 60_usize..200, to in "[A-Za-z0-9+/]") {
            let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
            let whole = request(&key);
            let mut text = whole.clone();
            text.replace_range(at..at + 1, &to);
            if text.replace('\n', "") != whole.replace('\n', "") {
                prop_assert!(Applicant::of(&text).is_err());
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,300}") {
            let _ = Applicant::of(&format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n"));
        }
    }
}
