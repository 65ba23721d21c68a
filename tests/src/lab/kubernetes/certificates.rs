//! The lab's own authority for one cluster: the API server and every proxy in front of it show its certificate for loopback.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::lab::http::use_ring;

/// The files of a cluster's folder that are about keys.
#[derive(Debug, Clone)]
pub(super) struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    pub fn of(folder: &Path) -> Certificates {
        Certificates { folder: folder.to_owned() }
    }

    pub fn create(folder: &Path) -> Certificates {
        let files = Certificates::of(folder);
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of the lab");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::from([127, 0, 0, 1])));
        let certificate = params.signed_by(&key, &issuer).unwrap();
        fs::write(files.authority(), issuer.pem()).unwrap();
        fs::write(files.certificate(), certificate.pem()).unwrap();
        fs::write(files.key(), key.serialize_pem()).unwrap();
        let accounts = KeyPair::generate().unwrap();
        fs::write(files.accounts_key(), accounts.serialize_pem()).unwrap();
        fs::write(files.accounts_public(), accounts.public_key_pem()).unwrap();
        files
    }

    pub fn authority(&self) -> PathBuf {
        self.folder.join("authority.crt")
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    /// What tokens of service accounts are signed with, and checked.
    pub fn accounts_key(&self) -> PathBuf {
        self.folder.join("accounts.key")
    }

    pub fn accounts_public(&self) -> PathBuf {
        self.folder.join("accounts.pub")
    }

    /// A server that shows the certificate.
    pub fn server(&self) -> Arc<ServerConfig> {
        use_ring();
        let chain = vec![CertificateDer::from_pem_file(self.certificate()).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.key()).unwrap();
        Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap())
    }

    /// A client that trusts it.
    pub fn client(&self) -> Arc<ClientConfig> {
        use_ring();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.authority()).unwrap()).unwrap();
        Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
    }
}
