//! A hub that lies: it has the real hub's authority, so agents talk to it, and answers polls with whatever a test wants them to
//! believe. It stands where the real hub stood, and keeps the status documents that it is sent.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use kedge_model::wire::{Envelope, PollAnswer};
use kedge_status::{Limits, Status};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;

use super::cluster::now;
use crate::lab::http::{Answer, Handler, answer_all, plain};

/// What it says and what it heard.
#[derive(Debug)]
pub struct MisbehavingHub {
    heard: Arc<Mutex<Heard>>,
    runtime: Option<Runtime>,
}

#[derive(Debug, Default)]
struct Heard {
    lie: Option<Envelope>,
    polls: usize,
    documents: Vec<Envelope>,
}

impl MisbehavingHub {
    /// `keys` is the folder of the real hub's keys.
    pub fn start(address: SocketAddr, keys: &Path) -> MisbehavingHub {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(server_config(address, keys)));
        let heard = Arc::new(Mutex::new(Heard::default()));
        let handler = handler(Arc::clone(&heard));
        let listener = runtime.block_on(TcpListener::bind(address)).unwrap();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, handler) = (acceptor.clone(), Arc::clone(&handler));
                tokio::spawn(async move {
                    // Who hangs up comes again.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        answer_all(stream, handler).await;
                    }
                });
            }
        });
        MisbehavingHub { heard, runtime: Some(runtime) }
    }

    /// What every poll is answered with from now on.
    pub fn say(&self, state: Envelope) {
        let mut heard = self.heard();
        (heard.lie, heard.polls) = (Some(state), 0);
    }

    /// Polls since the last lie.
    pub fn polls(&self) -> usize {
        self.heard().polls
    }

    /// What the last status document says.
    pub fn status(&self) -> Option<Status> {
        let heard = self.heard();
        kedge_status::read(heard.documents.last()?, &Limits::default()).ok()
    }

    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MisbehavingHub {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn handler(heard: Arc<Mutex<Heard>>) -> Handler {
    Arc::new(move |request: Request<Bytes>| -> Answer {
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match request.uri().path() {
            "/agent/v1/poll" => {
                heard.polls += 1;
                let state = heard.lie.clone();
                let answer = PollAnswer {
                    time: now(),
                    next: 1,
                    promise: 60,
                    key_sets: Vec::new(),
                    membership: None,
                    state,
                    holds: None,
                    want_status: true,
                    want_proof: false,
                };
                Response::new(Bytes::from(serde_json::to_vec(&answer).unwrap()))
            }
            "/agent/v1/status" => {
                heard.documents.extend(Envelope::from_json(request.body()).ok());
                Response::new(Bytes::new())
            }
            _ => plain(404, "no"),
        };
        Box::pin(async move { answer })
    })
}

fn server_config(address: SocketAddr, keys: &Path) -> rustls::ServerConfig {
    let files = fs::read_dir(keys.join("authority")).unwrap().map(|entry| entry.unwrap().path());
    let key = files.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "key")).expect("an authority");
    let pem = fs::read_to_string(key.with_extension("pem")).unwrap();
    let issuer =
        Issuer::from_ca_cert_pem(&pem, KeyPair::from_pem(&fs::read_to_string(&key).unwrap()).unwrap()).unwrap();
    let own = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![address.ip().to_string()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let made = params.signed_by(&own, &issuer).unwrap();
    let mut chain = vec![made.der().clone()];
    chain.extend(crate::agent::identity::chain(&pem));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}
