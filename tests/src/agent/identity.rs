//! A cluster's key: it is in the certificate and signs the cluster's documents.

use kedge_model::wire::{ClusterId, Envelope, SigningKey, Timestamp};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ED25519};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

pub struct Identity {
    pub cluster: ClusterId,
    pub key: SigningKey,
    pkcs8: Vec<u8>,
}

impl Identity {
    pub fn generate() -> Identity {
        Identity::from_pkcs8(SigningKey::generate().expect("a new key"))
    }

    pub fn from_pkcs8(pkcs8: Vec<u8>) -> Identity {
        let key = SigningKey::from_pkcs8(&pkcs8).expect("a key of PKCS#8");
        let cluster = ClusterId::of_public_key(key.public().as_bytes());
        Identity { cluster, key, pkcs8 }
    }

    /// A certificate signing request, PEM.
    pub fn request(&self) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.serialize_request(&self.pair()).and_then(|request| request.pem()).expect("a request")
    }

    pub fn pair(&self) -> KeyPair {
        let der = PrivatePkcs8KeyDer::from(self.pkcs8.as_slice());
        KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519).expect("a key pair")
    }

    pub fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.pkcs8.clone()))
    }

    pub fn sign(&self, payload_type: &str, payload: Vec<u8>) -> Envelope {
        Envelope::sign_bytes(payload_type, payload, &self.key)
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.cluster)
    }
}

/// The certificates of a PEM text, in order.
pub fn chain(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().expect("certificates")
}

/// When the first certificate of a chain ends.
pub fn not_after(pem: &str) -> Timestamp {
    let chain = chain(pem);
    let (_, certificate) = x509_parser::parse_x509_certificate(&chain[0]).expect("a certificate");
    Timestamp(certificate.validity().not_after.timestamp() * 1000)
}
