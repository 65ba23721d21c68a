//! An API server of a few lines, for what a real one does only when it is in trouble: each request is answered as the test says.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::Cluster;

#[derive(Debug)]
pub struct Fake {
    pub cluster: Cluster,
    /// The first line of each request.
    pub asked: Arc<Mutex<Vec<String>>>,
    _folder: tempfile::TempDir,
}

#[derive(Clone, Debug)]
pub enum Reply {
    /// Code, further headers, body.
    Whole(u16, &'static str, String),
    /// Lines, and whether the answer stays open after them.
    Lines(Vec<String>, bool),
    /// The connection breaks.
    Break,
}

type Answer = Arc<dyn Fn(&str, usize) -> Reply + Send + Sync>;

impl Fake {
    /// `answer` gets the request's first line and how many came before.
    pub async fn start(answer: impl Fn(&str, usize) -> Reply + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let server = format!("http://{}", listener.local_addr().unwrap());
        let config = serde_json::json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}]});
        std::fs::write(&path, config.to_string()).unwrap();
        let (asked, answer): (Arc<Mutex<Vec<String>>>, Answer) = (Arc::default(), Arc::new(answer));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&log), Arc::clone(&answer)));
            }
        });
        let cluster = Cluster::connect(Some(&path)).await.unwrap();
        Fake { cluster, asked, _folder: folder }
    }
}

async fn serve(mut stream: TcpStream, log: Arc<Mutex<Vec<String>>>, answer: Answer) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    let before = {
        let mut log = log.lock().unwrap();
        log.push(line.clone());
        log.len() - 1
    };
    let (text, stays) = match answer(&line, before) {
        Reply::Break => return,
        Reply::Whole(code, headers, body) => {
            let length = body.len();
            (
                format!("HTTP/1.1 {code} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"),
                false,
            )
        }
        Reply::Lines(lines, stays) => {
            let body: String = lines.iter().map(|line| format!("{:x}\r\n{line}\n\r\n", line.len() + 1)).collect();
            (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"), stays)
        }
    };
    _ = stream.write_all(text.as_bytes()).await;
    match stays {
        true => std::future::pending().await,
        false if text.contains("chunked") => _ = stream.write_all(b"0\r\n\r\n").await,
        false => {}
    }
}
