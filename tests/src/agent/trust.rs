//! Which hub is believed: at a join the one whose chain holds the authority that the token pins, then those of the key set.

use std::sync::Arc;

use kedge_model::wire::Digest;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::identity::{Identity, chain};

/// What a hub's certificate must come from.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The digest of an authority that the hub shows itself.
    Pinned(Digest),
    /// Certificates, PEM.
    Authorities(Vec<String>),
}

#[derive(Debug)]
struct PinVerifier {
    pin: Digest,
    provider: Arc<CryptoProvider>,
}

impl Trust {
    /// Settings of connections; with a certificate and its key, or without.
    pub fn config(&self, own: Option<(&str, &Identity)>) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("the versions of TLS");
        let builder = match self {
            Trust::Pinned(pin) => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(PinVerifier { pin: *pin, provider }))
            }
            Trust::Authorities(authorities) => builder.with_root_certificates(roots(authorities)),
        };
        let mut config = match own {
            Some((pem, identity)) => builder
                .with_client_auth_cert(chain(pem).into_iter().take(1).collect(), identity.private_key())
                .expect("a certificate that fits its key"),
            None => builder.with_no_client_auth(),
        };
        // Thousands of agents in one process, and the hub resumes nothing.
        config.resumption = rustls::client::Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

fn roots(authorities: &[String]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for authority in authorities.iter().flat_map(|pem| chain(pem)) {
        roots.add(authority).expect("an authority");
    }
    roots
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let pinned = intermediates.iter().find(|certificate| Digest::of(certificate) == self.pin);
        let pinned = pinned.ok_or(CertificateError::UnknownIssuer)?;
        let mut roots = RootCertStore::empty();
        roots.add(pinned.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|why| Error::General(why.to_string()))?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
