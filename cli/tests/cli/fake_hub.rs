//! A hub that answers from a list, and remembers what it was asked. It speaks plain HTTP on a port of its own.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::stage::{Run, Stage, run};

pub struct FakeHub {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

/// Status, further headers, and the document.
pub type Canned = (u16, &'static str, Value);

/// A cluster with everything that a hub tells of each.
pub fn cluster(name: &str, cluster_type: &str) -> Value {
    json!({
        "id": name, "name": name, "environment": "dev", "clusterType": cluster_type, "ring": "all", "labels": {},
        "state": "active", "generation": 3, "joinedAt": "2026-01-01T00:00:00Z", "lastContact": "2026-01-02T03:04:05Z",
        "checkInDeadline": "2026-01-02T03:05:05Z", "certificateUntil": "2026-04-01T00:00:00Z",
        "facts": {"agentVersion": "0.1.0", "architecture": "x86_64", "system": "Debian 12"},
        "membership": 1, "token": "j1", "conditions": [], "holds": [], "warnings": [],
    })
}

impl FakeHub {
    /// Answers by `METHOD /path?query`, without `/api/v1`; the last part of a key may be left out from the `?` on.
    pub fn start(answers: &[(&str, Canned)]) -> FakeHub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: BTreeMap<String, Canned> =
            answers.iter().map(|(key, answer)| ((*key).to_owned(), answer.clone())).collect();
        let seen = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &answers, &seen);
            }
        });
        FakeHub { url, asked }
    }

    /// `kedge ARGS` with this hub and a token.
    pub fn kedge(&self, stage: &Stage, args: &[&str]) -> Run {
        run(stage.command().args(args).env("KEDGE_HUB", &self.url).env("KEDGE_TOKEN", "kedge_id_secret"))
    }

    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn answer(mut stream: TcpStream, answers: &BTreeMap<String, Canned>, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut length = 0;
    let mut token = String::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(": ").unwrap();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => token = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let key = format!("{method} {}", path.strip_prefix("/api/v1").unwrap());
    asked.lock().unwrap().push(format!("{key} {}", String::from_utf8_lossy(&body)).trim_end().to_owned());
    let found = answers.get(&key).or_else(|| answers.get(key.split('?').next().unwrap()));
    let nothing = (404, "", serde_json::json!({"code": "NotFound", "detail": format!("there is no {key}")}));
    let (status, headers, document) = match token.as_str() {
        "Bearer kedge_id_secret" => found.cloned().unwrap_or(nothing),
        _ => (401, "", serde_json::json!({"code": "UnknownToken", "detail": "the hub doesn't know this access token"})),
    };
    let text = if document.is_null() { String::new() } else { document.to_string() };
    let length = text.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{text}"
    );
}
