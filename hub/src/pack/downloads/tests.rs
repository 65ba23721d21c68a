//! Artifacts that the hub fetches from a server on loopback, which breaks off, lies or is slow.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const CONTENT: &[u8] = b"a model of many bytes, fetched in pieces";

/// A server of one file over TLS. The first answers stop after so many bytes.
struct Server {
    port: u16,
    root: reqwest::Certificate,
    requests: Arc<Mutex<Vec<String>>>,
}

/// What an answer is made of: a head and a body for a request's head.
type Answer = dyn Fn(usize, &str) -> (String, Vec<u8>) + Send + Sync;

async fn serve(answer: Box<Answer>) -> Server {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let root = reqwest::Certificate::from_der(made.cert.der()).unwrap();
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        let count = AtomicUsize::new(0);
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            seen.lock().unwrap().push(head.clone());
            let (head, body) = answer(count.fetch_add(1, Ordering::SeqCst), &head);
            let _ = stream.write_all(format!("HTTP/1.1 {head}connection: close\r\n\r\n").as_bytes()).await;
            let _ = stream.write_all(&body).await;
            let _ = stream.shutdown().await;
        }
    });
    Server { port, root, requests }
}

fn whole(_: usize, _: &str) -> (String, Vec<u8>) {
    (format!("200 OK\r\ncontent-length: {}\r\n", CONTENT.len()), CONTENT.to_vec())
}

fn download(url: String, content: &[u8]) -> Download {
    let origin = crate::pack::platform::origin("https://h/r", "main", "c", "host-workload.yaml");
    Download { url, digest: Digest::of(content), origin }
}

async fn fetch(downloads: &Downloads, wanted: &Download) -> Result<BlobRef, Box<Problem>> {
    match downloads.want(wanted) {
        Err(problem) if problem.code == "ArtifactPending" => {
            downloads.settle(&[wanted.digest], Duration::from_secs(20)).await;
            downloads.want(wanted)
        }
        other => other,
    }
}

fn downloads(folder: &tempfile::TempDir, server: &Server) -> Downloads {
    let blobs = Blobs::open(folder.path()).unwrap();
    Downloads::with_roots(blobs, vec![format!("localhost:{}", server.port)], vec![server.root.clone()])
}

#[tokio::test]
async fn an_artifact_becomes_a_blob() {
    let (folder, server) = (tempfile::tempdir().unwrap(), serve(Box::new(whole)).await);
    let downloads = downloads(&folder, &server);
    let wanted = download(format!("https://localhost:{}/model", server.port), CONTENT);
    let blob = fetch(&downloads, &wanted).await.unwrap();
    assert_eq!(blob.size, CONTENT.len() as u64);
    assert_eq!(downloads.shared.blobs.read(&blob.digest, 1000).unwrap(), CONTENT);
    // It is asked for once.
    fetch(&downloads, &wanted).await.unwrap();
    assert_eq!(server.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Box::new(|_, head| match head.contains("range: bytes=10-") {
        false => whole(0, head),
        true => {
            let length = CONTENT.len();
            let head = format!(
                "206 Partial Content\r\ncontent-length: {}\r\ncontent-range: bytes 10-{}/{length}\r\n",
                length - 10,
                length - 1
            );
            (head, CONTENT[10..].to_vec())
        }
    }))
    .await;
    let downloads = downloads(&folder, &server);
    let wanted = download(format!("https://localhost:{}/model", server.port), CONTENT);
    std::fs::write(downloads.shared.blobs.partial(&wanted.digest), &CONTENT[..10]).unwrap();
    fetch(&downloads, &wanted).await.unwrap();
    assert!(server.requests.lock().unwrap()[0].contains("range: bytes=10-"));
    assert!(!downloads.shared.blobs.partial(&wanted.digest).exists());
}

#[tokio::test]
async fn another_content_is_refused_and_not_kept() {
    let (folder, server) = (tempfile::tempdir().unwrap(), serve(Box::new(whole)).await);
    let downloads = downloads(&folder, &server);
    let wanted = download(format!("https://localhost:{}/model", server.port), b"what was promised");
    let problem = fetch(&downloads, &wanted).await.unwrap_err();
    assert_eq!(problem.code, "ArtifactFailed");
    assert!(problem.message.contains("digest"), "{}", problem.message);
    assert!(downloads.shared.blobs.size(&wanted.digest).is_none());
    assert!(!downloads.shared.blobs.partial(&wanted.digest).exists());
}

#[tokio::test]
async fn a_leftover_of_another_content_is_fetched_again_from_the_start() {
    let (folder, server) = (tempfile::tempdir().unwrap(), serve(Box::new(whole)).await);
    let downloads = downloads(&folder, &server);
    let wanted = download(format!("https://localhost:{}/model", server.port), CONTENT);
    std::fs::write(downloads.shared.blobs.partial(&wanted.digest), b"something else").unwrap();
    fetch(&downloads, &wanted).await.unwrap();
}

#[tokio::test]
async fn a_redirect_to_another_place_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(Box::new(|_, _| {
        ("302 Found\r\nlocation: https://169.254.169.254/latest\r\ncontent-length: 0\r\n".to_owned(), Vec::new())
    }))
    .await;
    let downloads = downloads(&folder, &server);
    let wanted = download(format!("https://localhost:{}/model", server.port), CONTENT);
    let problem = fetch(&downloads, &wanted).await.unwrap_err();
    assert!(problem.message.contains("isn't on the list"), "{}", problem.message);
}

#[tokio::test]
async fn places_that_are_not_on_the_list_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(folder.path()).unwrap();
    let downloads = Downloads::new(blobs, vec!["models.example.com".to_owned()]);
    for url in [
        "http://models.example.com/m",
        "https://evil.example.com/m",
        "https://models.example.com@evil.example.com/m",
        "https://user@models.example.com/m",
        "https://models.example.com:8443/m",
        "file:///etc/shadow",
        "ftp://models.example.com/m",
        "nonsense",
    ] {
        let problem = downloads.want(&download(url.to_owned(), CONTENT)).unwrap_err();
        assert_eq!(problem.code, "UrlNotAllowed", "{url}");
    }
    assert!(is_allowed(&Url::parse("https://Models.example.com/m").unwrap(), &["models.example.com".to_owned()]));
}
