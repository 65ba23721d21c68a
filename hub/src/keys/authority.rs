//! The hub's certificate authority: makes the agents' certificates and the hub's own for the agents' listener. P-256,
//! which every TLS library verifies. After a change of authority the old one has vouched for the new one (a cross
//! certificate), so that an agent that was away meanwhile still knows the hub.

use std::fmt;
use std::time::Duration;

use kedge_model::wire::digest::hex;
use kedge_model::wire::{ClusterId, Digest, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SerialNumber,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::store::now;

/// Signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
    not_after: Timestamp,
    /// Certificates for this authority by its predecessors, and those of the predecessors.
    ancestors: Vec<CertificateDer<'static>>,
}

/// An agent's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The agent's own alone; `Authority::certificate_pem` is what follows it in an answer.
    pub pem: String,
    /// Hexadecimal digits.
    pub serial: String,
    pub not_after: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The asker's fault.
    #[error("the certificate request can't be used: {0}")]
    Request(String),
    /// The asker's fault.
    #[error("the certificate request's key is {found}'s, not {expected}'s")]
    WrongKey { expected: ClusterId, found: ClusterId },
    /// The hub's own fault.
    #[error("the authority's certificate or key can't be used")]
    Broken(#[source] rcgen::Error),
    #[error("the authority's certificate can't be read: {0}")]
    Unreadable(String),
}

/// Pinned by agents, so its end only matters as a backstop; rotation comes earlier.
const LIFETIME: Duration = Duration::from_secs(20 * 365 * 86_400);
/// The hub renews its own certificate itself, long before.
const SERVER_LIFETIME: Duration = Duration::from_secs(90 * 86_400);
/// Clocks of agents are behind by minutes, seldom by an hour.
const BACKDATED: Duration = Duration::from_secs(3600);
/// A request with an Ed25519 key is some 400 bytes.
const MAX_REQUEST: usize = 8192;

impl Authority {
    /// A new authority: its certificate and its key, both PEM.
    pub fn generate() -> Result<(String, String), AuthorityError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Broken)?;
        let certificate = authority_params(&key).self_signed(&key).map_err(AuthorityError::Broken)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    /// `ancestors`: PEM certificates that the server sends along.
    pub fn load(pem: &str, key_pem: &str, ancestors: &[String]) -> Result<Authority, AuthorityError> {
        let key = KeyPair::from_pem(key_pem).map_err(AuthorityError::Broken)?;
        let der = read_certificate(pem)?;
        let (public, not_after) = describe(&der)?;
        if public != key.public_key_raw() {
            return Err(AuthorityError::Unreadable("its key is another one".to_owned()));
        }
        let issuer = Issuer::from_ca_cert_der(&der, key).map_err(AuthorityError::Broken)?;
        let ancestors = ancestors.iter().map(|pem| read_certificate(pem)).collect::<Result<_, _>>()?;
        Ok(Authority { issuer, pem: pem.to_owned(), der, not_after, ancestors })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// When its own certificate ends.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// What a join token carries: the digest of the certificate (DER).
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.der)
    }

    /// A certificate for a cluster's own Ed25519 key. Nothing but the key is taken from the request.
    pub fn issue(
        &self,
        csr_pem: &str,
        cluster: &ClusterId,
        lifetime: Duration,
    ) -> Result<IssuedCertificate, AuthorityError> {
        let request = read_request(csr_pem)?;
        let found = cluster_of(&request)?;
        if found != *cluster {
            return Err(AuthorityError::WrongKey { expected: *cluster, found });
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(&cluster.to_string());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Towards the hub it is a client, among the peers of its site both.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let not_after = self.set_dates(&mut params, lifetime);
        let serial = set_serial(&mut params);
        let made = params.signed_by(&request.public_key, &self.issuer).map_err(AuthorityError::Broken)?;
        Ok(IssuedCertificate { pem: made.pem(), serial, not_after })
    }

    /// A certificate and key for the agents' listener. The chain holds the authority itself, which a joining agent knows
    /// by its digest, and the ancestors.
    pub fn server_identity(
        &self,
        names: &[String],
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), AuthorityError> {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(AuthorityError::Broken)?;
        let mut params = CertificateParams::new(names.to_vec()).map_err(AuthorityError::Broken)?;
        params.distinguished_name = common_name("kedge-hub");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        self.set_dates(&mut params, SERVER_LIFETIME);
        set_serial(&mut params);
        let made = params.signed_by(&key, &self.issuer).map_err(AuthorityError::Broken)?;
        let mut chain = vec![made.der().clone(), self.der.clone()];
        chain.extend(self.ancestors.iter().cloned());
        Ok((chain, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()))))
    }

    /// A certificate (PEM) for another authority's key and name: who trusts this one then trusts that one too.
    pub fn vouch_for(&self, other: &Authority) -> Result<String, AuthorityError> {
        let mut params = authority_params(other.issuer.key());
        params.use_authority_key_identifier_extension = true;
        let made = params.signed_by(other.issuer.key(), &self.issuer).map_err(AuthorityError::Broken)?;
        Ok(made.pem())
    }

    /// No certificate outlives its authority's.
    fn set_dates(&self, params: &mut CertificateParams, lifetime: Duration) -> Timestamp {
        let end = after(lifetime).min(self.not_after);
        set_validity(params, end);
        end
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authority({})", self.fingerprint())
    }
}

/// The cluster that a request (PEM) is from: a valid signature by an Ed25519 key.
pub fn requesting_cluster(csr_pem: &str) -> Result<(ClusterId, [u8; 32]), AuthorityError> {
    let request = read_request(csr_pem)?;
    let cluster = cluster_of(&request)?;
    let public = public_key(&request)?;
    Ok((cluster, public))
}

/// The digest by which a certificate (PEM) is called.
pub fn fingerprint(pem: &str) -> Result<Digest, AuthorityError> {
    Ok(Digest::of(&read_certificate(pem)?))
}

pub fn read_certificate(pem: &str) -> Result<CertificateDer<'static>, AuthorityError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| AuthorityError::Unreadable(error.to_string()))
}

fn read_request(csr_pem: &str) -> Result<CertificateSigningRequestParams, AuthorityError> {
    if csr_pem.len() > MAX_REQUEST {
        return Err(AuthorityError::Request(format!("it has {} bytes", csr_pem.len())));
    }
    let request = CertificateSigningRequestParams::from_pem(csr_pem);
    let request = request.map_err(|error| AuthorityError::Request(error.to_string()))?;
    if request.public_key.algorithm() != &rcgen::PKCS_ED25519 {
        return Err(AuthorityError::Request("its key isn't an Ed25519 key".to_owned()));
    }
    Ok(request)
}

fn public_key(request: &CertificateSigningRequestParams) -> Result<[u8; 32], AuthorityError> {
    let bytes = request.public_key.der_bytes();
    bytes.try_into().map_err(|_| AuthorityError::Request(format!("its key has {} bytes", bytes.len())))
}

fn cluster_of(request: &CertificateSigningRequestParams) -> Result<ClusterId, AuthorityError> {
    Ok(ClusterId::of_public_key(&public_key(request)?))
}

/// Each authority has a name of its own, from its key: TLS libraries look issuers up by name.
fn authority_params(key: &KeyPair) -> CertificateParams {
    let mut params = CertificateParams::default();
    let id = Digest::of(key.public_key_raw()).hex();
    params.distinguished_name = common_name(&format!("Kedge authority {}", &id[..16]));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut params, after(LIFETIME));
    set_serial(&mut params);
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut whole = DistinguishedName::new();
    whole.push(DnType::CommonName, name);
    whole
}

/// Random, positive and without leading zeros.
fn set_serial(params: &mut CertificateParams) -> String {
    let mut bytes = rand::random::<[u8; 16]>();
    bytes[0] = bytes[0] & 0x7f | 0x40;
    params.serial_number = Some(SerialNumber::from_slice(&bytes));
    hex(&bytes)
}

fn after(lifetime: Duration) -> Timestamp {
    Timestamp(now().0.saturating_add(i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX)))
}

/// Whole seconds: certificates know no smaller ones.
fn set_validity(params: &mut CertificateParams, end: Timestamp) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let since_epoch = |time: Timestamp| Duration::from_secs(u64::try_from(time.0 / 1000).unwrap_or(0));
    params.not_before = epoch + since_epoch(now()).saturating_sub(BACKDATED);
    params.not_after = epoch + since_epoch(end);
}

/// The public key and the end of a certificate.
fn describe(der: &CertificateDer<'_>) -> Result<(Vec<u8>, Timestamp), AuthorityError> {
    let (_, certificate) =
        x509_parser::parse_x509_certificate(der).map_err(|error| AuthorityError::Unreadable(error.to_string()))?;
    let public = certificate.public_key().subject_public_key.data.to_vec();
    Ok((public, Timestamp(certificate.validity().not_after.timestamp().saturating_mul(1000))))
}
