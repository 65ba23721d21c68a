//! Keys and certificates of a fake hub.

use std::time::Duration;

use kedge_model::wire::{
    ClusterId, Envelope, Key, KeySet, KeyState, Membership, Payload, Sequence, SigningKey, Stream, Timestamp,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PublicKeyData, SignatureAlgorithm,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::clock::{Clock as _, SystemClock};
use crate::identity::key::HostKey;
use crate::identity::{Identity, Joined};

/// Signs states and certificates.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    signing: SigningKey,
    pub keys: KeySet,
    /// Every key set from the first on.
    pub chain: Vec<Envelope>,
}

struct PublicKey(Vec<u8>);

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

pub const DAY: i64 = 24 * 60 * 60 * 1000;

impl Authority {
    pub fn new() -> Authority {
        let issuer = issuer();
        let signing = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
        let key = Key { id: signing.id(), public: signing.public(), state: KeyState::Active };
        let keys = KeySet { version: 1, created_at: now(), keys: vec![key], authorities: vec![issuer.pem()] };
        let chain = vec![Envelope::sign(&keys, &signing).unwrap()];
        Authority { issuer, signing, keys, chain }
    }

    /// The digest that a token pins.
    pub fn pin(&self) -> kedge_model::wire::Digest {
        kedge_model::wire::Digest::of(self.issuer.der())
    }

    pub fn sign<T: Payload>(&self, message: &T) -> Envelope {
        Envelope::sign(message, &self.signing).unwrap()
    }

    pub fn sign_bytes(&self, kind: &str, payload: Vec<u8>) -> Envelope {
        Envelope::sign_bytes(kind, payload, &self.signing)
    }

    /// The next key set, with a new key and the old one retired.
    pub fn rotate(&mut self) -> Envelope {
        let next = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
        self.keys.version += 1;
        self.keys.keys.iter_mut().for_each(|key| key.state = KeyState::Retired);
        self.keys.keys.push(Key { id: next.id(), public: next.public(), state: KeyState::Active });
        self.announce(next)
    }

    /// A new authority for certificates, announced by the next key set; the old one stays trusted.
    pub fn replace_issuer(&mut self) -> Envelope {
        self.issuer = issuer();
        self.keys.version += 1;
        self.keys.authorities.push(self.issuer.pem());
        let same = std::mem::replace(&mut self.signing, SigningKey::from_seed(&[1; 32]).unwrap());
        let envelope = Envelope::sign(&self.keys, &same).unwrap();
        self.signing = same;
        self.chain.push(envelope.clone());
        envelope
    }

    fn announce(&mut self, next: SigningKey) -> Envelope {
        let envelope = Envelope::sign(&self.keys, &self.signing).unwrap();
        self.signing = next;
        self.chain.push(envelope.clone());
        envelope
    }

    pub fn membership(&self, cluster: ClusterId, sequence: u64, stream: &Stream) -> Membership {
        Membership {
            cluster,
            name: "drone-1".to_owned(),
            stream: stream.clone(),
            labels: Default::default(),
            site: None,
            sequence: Sequence(sequence),
            issued_at: now(),
            remove: Vec::new(),
            unmanage: Vec::new(),
            relay: false,
            retired: false,
            requires: Vec::new(),
        }
    }

    /// A host that joined just now.
    pub fn identity(&self, hub: &str, stream: &Stream) -> Identity {
        self.identity_for(hub, stream, (now().0 - DAY / 24, now().0 + 90 * DAY))
    }

    /// The same, placed in a site.
    pub fn member(&self, hub: &str, name: &str, stream: &Stream, site: &str) -> Identity {
        let joined = self.identity(hub, stream).joined().clone();
        let key = HostKey::from_pem(&joined.key).unwrap();
        let (name, site) = (name.to_owned(), Some(site.to_owned()));
        let membership = Membership { name: name.clone(), site, ..self.membership(key.cluster(), 1, stream) };
        Identity::of(Joined { name, membership: self.sign(&membership), ..joined }).unwrap()
    }

    /// With a certificate of these dates.
    pub fn identity_for(&self, hub: &str, stream: &Stream, dates: (i64, i64)) -> Identity {
        let key = HostKey::generate().unwrap();
        Identity::of(Joined {
            key: key.to_pem(),
            hub: hub.to_owned(),
            name: "drone-1".to_owned(),
            machine: None,
            certificate: self.certify(&key.request().unwrap(), dates),
            keys: self.keys.clone(),
            membership: self.sign(&self.membership(key.cluster(), 1, stream)),
            time: now(),
            issued: Timestamp(dates.0),
        })
        .unwrap()
    }

    /// A client's certificate, PEM.
    pub fn certify(&self, csr: &str, (from, until): (i64, i64)) -> String {
        use x509_parser::prelude::FromDer as _;
        let (_, pem) = x509_parser::pem::parse_x509_pem(csr.as_bytes()).unwrap();
        let (_, request) =
            x509_parser::certification_request::X509CertificationRequest::from_der(&pem.contents).unwrap();
        let public = request.certification_request_info.subject_pki.subject_public_key.data.to_vec();
        let mut params = CertificateParams::default();
        dates(&mut params, from, until);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.signed_by(&PublicKey(public), &self.issuer).unwrap().pem()
    }

    /// The listener's own, of these dates, with the authority behind it.
    pub fn server(
        &self,
        name: &str,
        (from, until): (i64, i64),
    ) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        dates(&mut params, from, until);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let made = params.signed_by(&key, &self.issuer).unwrap();
        let chain = vec![made.der().clone(), self.issuer.der().clone()];
        (chain, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
    }
}

fn issuer() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "fake hub");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    dates(&mut params, now().0 - 3000 * DAY, now().0 + 3000 * DAY);
    CertifiedIssuer::self_signed(params, KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()).unwrap()
}

fn dates(params: &mut CertificateParams, from: i64, until: i64) {
    let at = |time: i64| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_millis(u64::try_from(time).unwrap());
    (params.not_before, params.not_after) = (at(from), at(until));
}

pub fn now() -> Timestamp {
    SystemClock.now()
}
