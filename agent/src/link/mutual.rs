//! TLS between two agents of one fleet: both show the certificate that the hub gave them, and each must come from an authority of the
//! key set. Whose a connection is follows from its key, never from a name or an address. Used by `peers`.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::ClusterId;
use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore, ServerConfig};

use super::trust::provider;
use super::verifier::{Judge, Shown, Verifier};
use crate::identity::certificate::{Validity, chain, public_key};
use crate::identity::key::HostKey;

/// Settings of both ends.
#[derive(Clone, Debug)]
pub struct Mutual {
    pub client: Arc<ClientConfig>,
    pub server: Arc<ServerConfig>,
}

/// The authority's signature and the use for agents bind. The dates don't: a host without a way of its own to the hub can't renew,
/// and whether it still belongs to the site is said by its membership, which is looked at for everything that it asks.
#[derive(Debug)]
struct FromTheFleet {
    chain: Arc<dyn ClientCertVerifier>,
}

/// Both ends show one certificate, and believe no other: a cluster's agent and the caches on its nodes.
#[derive(Debug)]
struct Pinned(CertificateDer<'static>);

impl Mutual {
    /// For those who share this certificate and its key.
    pub fn pinned(certificate: &str, key: &HostKey) -> Result<Mutual, Error> {
        let provider = Arc::new(provider());
        let own = chain(certificate).and_then(|chain| chain.into_iter().next());
        let own = own.ok_or_else(|| Error::General("the certificate can't be read".to_owned()))?;
        let verifier = Verifier::new(Pinned(own.clone()), &provider);
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
        let verifier = Verifier::new(FromTheFleet { chain: judge }, &provider);
        // The other side has the authorities: the own certificate alone is shown.
        let own: Vec<CertificateDer<'static>> = chain(certificate).unwrap_or_default().into_iter().take(1).collect();
        Mutual::of(provider, verifier, own, key)
    }

    fn of(
        provider: Arc<CryptoProvider>,
        verifier: Arc<Verifier>,
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

impl Judge for FromTheFleet {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error> {
        let validity = Validity::of(shown.certificate).ok_or(CertificateError::BadEncoding)?;
        let first_day = u64::try_from(validity.from.0).map_err(|_| CertificateError::BadEncoding)?;
        let then = UnixTime::since_unix_epoch(Duration::from_millis(first_day));
        // Agents' certificates are made for the client's end; between two agents one must be the other end.
        self.chain.verify_client_cert(shown.certificate, shown.between, then).map(drop)
    }
}

impl Judge for Pinned {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error> {
        match *shown.certificate == self.0 {
            true => Ok(()),
            false => Err(CertificateError::UnknownIssuer.into()),
        }
    }
}
