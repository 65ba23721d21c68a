//! The host's own key (Ed25519): it is in the certificate, signs the cluster's documents, and never leaves the host.

use kedge_model::wire::{ClusterId, SigningKey};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ED25519};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::IdentityError;

/// Never printed.
pub struct HostKey {
    pair: KeyPair,
    signing: SigningKey,
    cluster: ClusterId,
}

impl HostKey {
    pub fn generate() -> Result<HostKey, IdentityError> {
        let pkcs8 = SigningKey::generate().map_err(|why| IdentityError::Key(why.to_string()))?;
        let der = PrivatePkcs8KeyDer::from(pkcs8.as_slice());
        HostKey::of(KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519))
    }

    pub fn from_pem(pem: &str) -> Result<HostKey, IdentityError> {
        HostKey::of(KeyPair::from_pkcs8_pem_and_sign_algo(pem, &PKCS_ED25519))
    }

    fn of(pair: Result<KeyPair, rcgen::Error>) -> Result<HostKey, IdentityError> {
        let pair = pair.map_err(|why| IdentityError::Key(why.to_string()))?;
        let signing =
            SigningKey::from_pkcs8(&pair.serialize_der()).map_err(|why| IdentityError::Key(why.to_string()))?;
        let cluster = ClusterId::of_public_key(signing.public().as_bytes());
        Ok(HostKey { pair, signing, cluster })
    }

    /// As it is kept: PKCS#8.
    pub fn to_pem(&self) -> String {
        self.pair.serialize_pem()
    }

    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    pub fn signing(&self) -> &SigningKey {
        &self.signing
    }

    /// A certificate signing request, PEM. It says nothing but the key: names are the hub's to give.
    pub fn request(&self) -> Result<String, IdentityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let made = params.serialize_request(&self.pair).and_then(|request| request.pem());
        made.map_err(|why| IdentityError::Key(why.to_string()))
    }

    /// A certificate of its own making, PEM: it says nothing but the key.
    pub fn certificate(&self) -> Result<String, IdentityError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let made = params.self_signed(&self.pair).map(|certificate| certificate.pem());
        made.map_err(|why| IdentityError::Key(why.to_string()))
    }

    /// For TLS.
    pub fn private(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.pair.serialize_der()))
    }
}

impl std::fmt::Debug for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostKey({})", self.cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_kept_is_the_same_cluster() {
        let key = HostKey::generate().unwrap();
        let again = HostKey::from_pem(&key.to_pem()).unwrap();
        assert_eq!(key.cluster(), again.cluster());
        assert!(!format!("{key:?}").contains("PRIVATE"));
        assert!(key.request().unwrap().contains("BEGIN CERTIFICATE REQUEST"));
    }

    #[test]
    fn a_broken_key_is_an_error_that_does_not_show_it() {
        let pem = HostKey::generate().unwrap().to_pem().replace("MC4", "MC5").replace("MF", "MG");
        let why = HostKey::from_pem(&pem).unwrap_err().to_string();
        assert!(!why.contains("PRIVATE KEY---"), "{why}");
    }
}
