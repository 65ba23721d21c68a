//! Where the API server is, what its certificate must come from, and what it is shown: a pod's service account, or a kubeconfig. Read
//! by `Cluster::connect`. A few fields by hand, because the types of a whole kubeconfig, with programs to run and paths into their
//! output, are a tenth of the agent's memory.

mod kubeconfig;
mod token;

use std::fs;
use std::path::Path;

use http::Uri;
use http::uri::Scheme;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub use token::Token;

#[derive(Debug)]
pub struct Access {
    pub server: Uri,
    /// Certificates of the authorities; none where the server speaks HTTP.
    pub authorities: Vec<CertificateDer<'static>>,
    /// A certificate with its chain and key.
    pub identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    pub token: Token,
    pub namespace: String,
    /// What the server's certificate must say, when it isn't the address.
    pub server_name: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("this isn't a pod with a service account ({0}), and no kubeconfig was named")]
    Pod(String),
    #[error("{0}")]
    Wrong(String),
    #[error("{path} can't be read")]
    File { path: String, source: std::io::Error },
}

/// Where the kubelet puts what a pod is given.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const DEFAULT_NAMESPACE: &str = "default";
/// More than the authorities of any cluster; a bound for a wrong file.
const MAX_FILE: u64 = 1 << 20;

impl Access {
    /// By the variables and files of the pod.
    pub fn of_pod() -> Result<Access, AccessError> {
        Access::of_account(Path::new(ACCOUNT), |name| std::env::var(name).ok())
    }

    fn of_account(account: &Path, variable: impl Fn(&str) -> Option<String>) -> Result<Access, AccessError> {
        let variable = |name: &str| {
            variable(name).filter(|text| !text.is_empty()).ok_or_else(|| AccessError::Pod(format!("no {name}")))
        };
        let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let missing = |error: AccessError| AccessError::Pod(error.to_string());
        let authorities = read(&account.join("ca.crt")).map_err(missing)?;
        Ok(Access {
            server: server(&format!("https://{host}:{port}"))?,
            authorities: certificates(&authorities, "ca.crt of the service account")?,
            identity: None,
            token: Token::of_file(&account.join("token")).map_err(missing)?,
            namespace: read(&account.join("namespace")).map_err(missing)?.trim().to_owned(),
            server_name: None,
        })
    }

    pub fn of_kubeconfig(path: &Path) -> Result<Access, AccessError> {
        kubeconfig::read_access(&read(path)?, path.parent().unwrap_or(Path::new(".")))
    }

    pub fn is_secure(&self) -> bool {
        self.server.scheme() == Some(&Scheme::HTTPS)
    }
}

fn read(path: &Path) -> Result<String, AccessError> {
    let failed = |source| AccessError::File { path: path.display().to_string(), source };
    if fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(AccessError::Wrong(format!("{} is larger than {MAX_FILE} bytes", path.display())));
    }
    fs::read_to_string(path).map_err(failed)
}

fn server(text: &str) -> Result<Uri, AccessError> {
    let wrong = || AccessError::Wrong(format!("`{}` isn't the address of a server", text.escape_debug()));
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let is_known = uri.scheme() == Some(&Scheme::HTTPS) || uri.scheme() == Some(&Scheme::HTTP);
    if !is_known || uri.authority().is_none() || uri.query().is_some() {
        return Err(wrong());
    }
    Ok(uri)
}

fn certificates(pem: &str, what: &str) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(AccessError::Wrong(format!("{what} holds no certificate"))),
    }
}

fn key(pem: &str, what: &str) -> Result<PrivateKeyDer<'static>, AccessError> {
    let found = PrivateKeyDer::from_pem_slice(pem.as_bytes());
    found.map_err(|_| AccessError::Wrong(format!("{what} holds no private key")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_pod_finds_the_server_by_its_variables_and_its_accounts_files() {
        let folder = tempfile::tempdir().unwrap();
        let variable = |name: &str| {
            let host = name == "KUBERNETES_SERVICE_HOST";
            Some(if host { "fd00::1" } else { "443" }.to_owned())
        };
        let lacking = Access::of_account(folder.path(), variable).unwrap_err().to_string();
        assert!(lacking.contains("isn't a pod with a service account") && lacking.contains("ca.crt"), "{lacking}");
        let made = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
        for (name, text) in
            [("ca.crt", made.cert.pem()), ("token", "abc\n".to_owned()), ("namespace", "kedge-system\n".to_owned())]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let access = Access::of_account(folder.path(), variable).unwrap();
        assert_eq!(access.server.to_string(), "https://[fd00::1]:443/");
        assert_eq!(
            (access.namespace.as_str(), access.token.header().unwrap()),
            ("kedge-system", "Bearer abc".parse().unwrap())
        );
        let lacking = Access::of_account(folder.path(), |_| None).unwrap_err().to_string();
        assert!(lacking.contains("no KUBERNETES_SERVICE_HOST"), "{lacking}");
    }
}
