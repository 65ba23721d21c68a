//! A server of large artifacts over HTTPS: what it sends is made while it is sent, so that gigabytes take no room. Its certificate is
//! its own; whoever should believe it gets `authority`.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ring::digest::{Context, SHA256};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

/// What is made and sent at once.
const PIECE: usize = 1 << 20;

#[derive(Debug)]
pub struct ArtifactServer {
    port: u16,
    size: u64,
    sent: Arc<AtomicU64>,
    folder: TempDir,
}

impl ArtifactServer {
    /// Every path is an artifact of so many bytes. It answers until the process ends.
    pub fn start(size: u64) -> ArtifactServer {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = tempfile::Builder::new().prefix("kedge-artifact-").tempdir().unwrap();
        std::fs::write(folder.path().join("authority.pem"), made.cert.pem()).unwrap();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, config, sent) =
            (listener.local_addr().unwrap().port(), Arc::new(config), Arc::<AtomicU64>::default());
        let counted = Arc::clone(&sent);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, sent) = (Arc::clone(&config), Arc::clone(&counted));
                // A client that hangs up is no matter for the server.
                thread::spawn(move || _ = answer(stream, config, size, &sent));
            }
        });
        ArtifactServer { port, size, sent, folder }
    }

    /// As the hub's list of hosts has it.
    pub fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub fn url(&self, name: &str) -> String {
        format!("https://{}/{name}", self.host())
    }

    /// The certificate to believe, a PEM file.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// Of the artifact, in hexadecimal.
    pub fn sha256(&self) -> String {
        let mut context = Context::new(&SHA256);
        each_piece(self.size, |piece| {
            context.update(piece);
            Ok(())
        })
        .unwrap();
        hex(context)
    }

    /// Bytes of content that were sent so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// The digest of a file, in hexadecimal.
pub fn sha256_of(path: &Path) -> String {
    let mut file = BufReader::with_capacity(PIECE, std::fs::File::open(path).unwrap());
    let mut context = Context::new(&SHA256);
    loop {
        let piece = file.fill_buf().unwrap();
        if piece.is_empty() {
            return hex(context);
        }
        context.update(piece);
        let read = piece.len();
        file.consume(read);
    }
}

fn hex(context: Context) -> String {
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>, size: u64, sent: &AtomicU64) -> io::Result<()> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut line = String::new();
    // The request has nothing that we need: its end is enough.
    while stream.read_line(&mut line)? > 2 {
        line.clear();
    }
    let stream = stream.get_mut();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n")?;
    each_piece(size, |piece| {
        stream.write_all(piece)?;
        sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
        Ok(())
    })?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// The content: no piece is like another.
fn each_piece(size: u64, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut piece: Vec<u8> = (0..PIECE).map(|place| u8::try_from(place % 251).unwrap_or_default()).collect();
    let mut done = 0;
    while done < size {
        piece[..8].copy_from_slice(&done.to_le_bytes());
        let length = usize::try_from(size - done).unwrap_or(PIECE).min(PIECE);
        take(&piece[..length])?;
        done += length as u64;
    }
    Ok(())
}
