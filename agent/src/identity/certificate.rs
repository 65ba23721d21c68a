//! A certificate chain as PEM text: whose it is, from when, until when. Identity reads its own, link the hub's.

use kedge_model::wire::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What is read of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub from: Timestamp,
    pub until: Timestamp,
}

/// A chain is two or three certificates.
const MAX_CHAIN: usize = 16;

impl Validity {
    pub fn of(der: &[u8]) -> Option<Validity> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let milliseconds = |time: i64| Timestamp(time.saturating_mul(1000));
        let validity = certificate.validity();
        let (from, until) =
            (milliseconds(validity.not_before.timestamp()), milliseconds(validity.not_after.timestamp()));
        Some(Validity { from, until })
    }

    /// Two thirds of the way: there is time for a hub that is away for a while.
    pub fn renew_at(&self) -> Timestamp {
        self.renew_since(self.from)
    }

    /// The same from its issue: hubs date certificates back, for clocks that are behind.
    pub fn renew_since(&self, issued: Timestamp) -> Timestamp {
        let issued = issued.clamp(self.from, self.until.max(self.from));
        Timestamp(issued.0.saturating_add(self.until.0.saturating_sub(issued.0) / 3 * 2))
    }
}

/// The certificates of a PEM text, in order; none if one can't be read.
pub fn chain(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).take(MAX_CHAIN).collect();
    found.ok().filter(|chain| !chain.is_empty())
}

/// The 32 bytes of a certificate's Ed25519 key.
pub fn public_key(der: &[u8]) -> Option<[u8; 32]> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    certificate.public_key().subject_public_key.data.as_ref().try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_is_renewed_at_two_thirds() {
        let validity = Validity { from: Timestamp(0), until: Timestamp(90) };
        assert_eq!(validity.renew_at(), Timestamp(60));
        assert_eq!(validity.renew_since(Timestamp(60)), Timestamp(80), "it was dated back");
        assert_eq!(validity.renew_since(Timestamp(500)), Timestamp(90));
        assert_eq!(Validity { from: Timestamp(90), until: Timestamp(0) }.renew_since(Timestamp(7)), Timestamp(30));
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_certificate(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in ".{0,200}") {
            prop_assert_eq!(Validity::of(&bytes), None);
            prop_assert_eq!(public_key(&bytes), None);
            prop_assert_eq!(chain(&text), None);
        }
    }
}
