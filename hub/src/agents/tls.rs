//! Mutual TLS: the listener's own certificate, and who the other side is. A client certificate may be missing or expired here
//! (a join has none, a renewal an old one), but one that doesn't come from our authority ends the handshake.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{ClusterId, Timestamp};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use x509_parser::oid_registry::OID_SIG_ED25519;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::keys::Keys;
use crate::keys::authority::AuthorityError;

/// Who is at the other end, proved by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub cluster: ClusterId,
    pub not_after: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("the authorities can't be trusted: {0}")]
    Roots(String),
    #[error("the listener's certificate doesn't do")]
    Identity(#[source] Error),
}

/// The authorities' signature binds, at whatever time; the dates are judged per request.
#[derive(Debug)]
struct Verifier {
    chain: Arc<dyn ClientCertVerifier>,
}

/// What one handshake needs: a certificate for these names, and the authorities of the key sets.
pub fn server_config(keys: &Keys, names: &[String]) -> Result<ServerConfig, TlsError> {
    let (chain, key) = keys.authority().server_identity(names)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Verifier::new(keys, &provider)?);
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Identity)?
        .with_client_cert_verifier(verifier);
    let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Identity)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would skip the certificate, and each stored one costs memory.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

impl Verifier {
    fn new(keys: &Keys, provider: &Arc<CryptoProvider>) -> Result<Verifier, TlsError> {
        let mut roots = RootCertStore::empty();
        for authority in keys.authorities()? {
            roots.add(authority).map_err(|why| TlsError::Roots(why.to_string()))?;
        }
        let chain = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .allow_unauthenticated()
            .build()
            .map_err(|why| TlsError::Roots(why.to_string()))?;
        Ok(Verifier { chain })
    }
}

impl ClientCertVerifier for Verifier {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let dated = read(end_entity)?;
        // Looked at on its first day, so that only its authority and its use are judged here.
        let first_day = u64::try_from(dated.not_before).map_err(|_| CertificateError::BadEncoding)?;
        let then = UnixTime::since_unix_epoch(Duration::from_secs(first_day));
        self.chain.verify_client_cert(end_entity, intermediates, then)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// A certificate of a cluster, before anything about it is believed.
struct Dated {
    peer: Peer,
    /// Seconds since 1970.
    not_before: i64,
}

/// The peer of a connection whose handshake is done.
pub fn peer(chain: Option<&[CertificateDer<'_>]>) -> Result<Option<Peer>, Error> {
    chain.and_then(|chain| chain.first()).map(|own| Ok(read(own)?.peer)).transpose()
}

/// The name must be the hash of the key, so that nobody has to be believed about who it is.
fn read(der: &CertificateDer<'_>) -> Result<Dated, CertificateError> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| CertificateError::BadEncoding)?;
    let spki = certificate.public_key();
    let foreign = CertificateError::ApplicationVerificationFailure;
    if spki.algorithm.algorithm != OID_SIG_ED25519 {
        return Err(foreign);
    }
    let public: &[u8; 32] = spki.subject_public_key.data.as_ref().try_into().map_err(|_| foreign.clone())?;
    let cluster = ClusterId::of_public_key(public);
    let mut names = certificate.subject().iter_common_name().map(|name| name.as_str());
    if !matches!((names.next(), names.next()), (Some(Ok(name)), None) if name == cluster.to_string()) {
        return Err(foreign);
    }
    let validity = certificate.validity();
    let not_after = Timestamp(validity.not_after.timestamp().saturating_mul(1000));
    Ok(Dated { peer: Peer { cluster, not_after }, not_before: validity.not_before.timestamp() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_no_certificate(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(read(&CertificateDer::from(bytes)).is_err());
        }
    }
}
