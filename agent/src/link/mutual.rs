//! TLS between two agents of one fleet: both show the certificate that the hub gave them, and each must come from an authority of the
//! key set. Whose a connection is follows from its key, never from a name or an address. Used by `peers`.

mod pinned;

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::ClusterId;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};

use super::trust::provider;
use crate::identity::certificate::{Validity, chain, public_key};
use crate::identity::key::HostKey;
use pinned::Pinned;

/// Settings of both ends.
#[derive(Clone, Debug)]
pub struct Mutual {
    pub client: Arc<ClientConfig>,
    pub server: Arc<ServerConfig>,
}

/// The authority's signature and the use for agents bind. The dates don't: a host without a way of its own to the hub can't renew,
/// and whether it still belongs to the site is said by its membership, which is looked at for everything that it asks.
#[derive(Debug)]
struct Verifier {
    chain: Arc<dyn ClientCertVerifier>,
}

/// What either end asks of the other.
trait Judge: ClientCertVerifier + ServerCertVerifier + 'static {}

impl Judge for Verifier {}

impl Judge for Pinned {}

impl Mutual {
    /// For those who share this certificate and its key.
    pub fn pinned(certificate: &str, key: &HostKey) -> Result<Mutual, Error> {
        let provider = Arc::new(provider());
        let own = chain(certificate).and_then(|chain| chain.into_iter().next());
        let own = own.ok_or_else(|| Error::General("the certificate can't be read".to_owned()))?;
        let verifier = Arc::new(Pinned { certificate: own.clone(), provider: Arc::clone(&provider) });
        Mutual::of(provider, verifier, vec![own], key)
    }

    pub fn new(authorities: &[String], certificate: &str, key: &HostKey) -> Result<Mutual, Error> {
        let provider = Arc::new(provider());
        let mut roots = RootCertStore::empty();
        // One that can't be read must not take the others with it.
        roots.add_parsable_certificates(authorities.iter().filter_map(|pem| chain(pem)).flatten());
        let judge = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .clear_root_hint_subjects()
            .build()
            .map_err(|why| Error::General(why.to_string()))?;
        let verifier = Arc::new(Verifier { chain: judge });
        // The other side has the authorities: the own certificate alone is shown.
        let own: Vec<CertificateDer<'static>> = chain(certificate).unwrap_or_default().into_iter().take(1).collect();
        Mutual::of(provider, verifier, own, key)
    }

    fn of(
        provider: Arc<CryptoProvider>,
        verifier: Arc<impl Judge>,
        own: Vec<CertificateDer<'static>>,
        key: &HostKey,
    ) -> Result<Mutual, Error> {
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>)
            .with_client_auth_cert(own.clone(), key.private())?;
        // A resumed session would skip the certificate, and each stored one costs memory.
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(own, key.private())?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Mutual { client: Arc::new(client), server: Arc::new(server) })
    }
}

/// Who is at the other end, proved by its key.
pub fn cluster_of(certificates: Option<&[CertificateDer<'_>]>) -> Option<ClusterId> {
    Some(ClusterId::of_public_key(&public_key(certificates?.first()?)?))
}

impl Verifier {
    fn judge(&self, shown: &CertificateDer<'_>, between: &[CertificateDer<'_>]) -> Result<ClientCertVerified, Error> {
        let validity = Validity::of(shown).ok_or(CertificateError::BadEncoding)?;
        let first_day = u64::try_from(validity.from.0).map_err(|_| CertificateError::BadEncoding)?;
        let then = UnixTime::since_unix_epoch(Duration::from_millis(first_day));
        self.chain.verify_client_cert(shown, between, then)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // Agents' certificates are made for the client's end; between two agents one must be the other end.
        self.judge(end_entity, intermediates).map(|_| ServerCertVerified::assertion())
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

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(end_entity, intermediates)
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
