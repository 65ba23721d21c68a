//! Which hub is believed: at a join the one whose chain holds the authority that the token pins, then those of the key set. The
//! name must fit; the dates are judged by `era`. Makes the settings of TLS connections.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::Digest;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{self, cipher_suite, kx_group};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};

use super::era::Era;
use super::verifier::{Judge, Shown, Verifier};
use crate::identity::certificate::{Validity, chain};
use crate::identity::key::HostKey;

/// What the hub's certificate must come from.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The digest of an authority that the hub shows itself.
    Pinned(Digest),
    /// Certificates, PEM.
    Authorities(Vec<String>),
}

#[derive(Debug)]
struct Hub {
    trust: Trust,
    era: Arc<Era>,
    provider: Arc<CryptoProvider>,
}

/// Settings of connections; with a certificate and its key, or without.
pub fn settings(trust: Trust, era: Arc<Era>, own: Option<(&str, &HostKey)>) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(provider());
    let verifier = Verifier::new(Hub { trust, era, provider: Arc::clone(&provider) }, &provider);
    // The hub is ours and speaks 1.3; offering less makes every greeting smaller.
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match own {
        Some((pem, key)) => {
            // The hub has the authorities: the own certificate alone is shown.
            let own = chain(pem).unwrap_or_default().into_iter().take(1).collect();
            builder.with_client_auth_cert(own, key.private())?
        }
        None => builder.with_no_client_auth(),
    };
    // The hub resumes nothing, and each session costs memory.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
        ],
        kx_groups: vec![kx_group::X25519, kx_group::SECP256R1],
        ..ring::default_provider()
    }
}

impl Hub {
    fn roots(&self, shown: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        match &self.trust {
            Trust::Pinned(pin) => {
                let pinned = shown.iter().find(|certificate| Digest::of(certificate) == *pin);
                roots.add(pinned.ok_or(CertificateError::UnknownIssuer)?.clone().into_owned())?;
            }
            Trust::Authorities(authorities) => {
                // One that can't be read must not take the others with it.
                let readable = authorities.iter().filter_map(|pem| chain(pem)).flatten();
                roots.add_parsable_certificates(readable);
            }
        }
        Ok(roots)
    }
}

impl Judge for Hub {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error> {
        let name = shown.name.ok_or(CertificateError::NotValidForName)?;
        let roots = self.roots(shown.between)?;
        if roots.is_empty() {
            return Err(CertificateError::UnknownIssuer.into());
        }
        let validity = Validity::of(shown.certificate).ok_or(CertificateError::BadEncoding)?;
        let at = self.era.judge(validity).ok_or(CertificateError::Expired)?;
        let at = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(at.0).unwrap_or(0)));
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider))
            .build()
            .map_err(|why| Error::General(why.to_string()))?;
        verifier.verify_server_cert(shown.certificate, shown.between, name, &[], at).map(drop)
    }
}
