//! The separate renderer: a process of its own, without secrets, volumes or network, that runs kustomize and helm for a hub
//! which can't shut them off itself. Here is the hub's side of its socket; below are what goes over it (`wire`), the
//! renderer itself (`server`), and how a program shuts itself off (`enclosed`, `calls`) and that it did (`proof`).

mod calls;
pub mod enclosed;
pub mod proof;
pub mod server;
mod wire;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::request::{RenderError, Request};
use wire::{Answer, Question};

/// A renderer by its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renderer {
    socket: PathBuf,
}

/// What a renderer has: a program's version, or why it can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answering {
    pub kustomize: String,
    pub helm: String,
}

const CONNECTING: Duration = Duration::from_secs(5);
/// A program has a minute, and waits for those before it.
const ANSWERING: Duration = Duration::from_secs(180);

impl Renderer {
    pub const HINT: &str = "start `kedge-hub renderer` with the socket that `packages.renderer` in hub.toml names (docs/hub.md); the hub retries by itself, and `kedge-hub check-config` shows whether the renderer answers";

    pub fn at(socket: PathBuf) -> Renderer {
        Renderer { socket }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub async fn render(&self, request: &Request) -> Result<Vec<u8>, RenderError> {
        request.check()?;
        let tar = request.files.tar().map_err(|error| RenderError::Refused(error.to_string()))?;
        let question = Question::Render {
            program: request.program,
            path: request.path.clone(),
            release: request.release.clone(),
            namespace: request.namespace.clone(),
            bytes: tar.len() as u64,
        };
        match self.ask(&question, &tar).await.map_err(RenderError::Away)? {
            (Answer::Rendered { .. }, output) => Ok(output),
            (Answer::Failed { why }, _) => Err(RenderError::Failed(why)),
            (Answer::Missing { path }, _) => Err(RenderError::Missing(path.into())),
            (Answer::Refused { why }, _) => Err(RenderError::Refused(format!("the renderer refused it: {why}"))),
            (Answer::Faulty { why }, _) => Err(RenderError::Away(format!("the renderer can't work: {why}"))),
            (Answer::Programs { .. }, _) => Err(RenderError::Away("the renderer answers something else".to_owned())),
        }
    }

    /// Whether it answers, and what it has.
    pub async fn programs(&self) -> Result<Answering, String> {
        match self.ask(&Question::Programs {}, &[]).await? {
            (Answer::Programs { kustomize, helm }, _) => Ok(Answering { kustomize, helm }),
            (Answer::Refused { why } | Answer::Faulty { why }, _) => Err(format!("the renderer can't work: {why}")),
            _ => Err("the renderer answers something else".to_owned()),
        }
    }

    async fn ask(&self, question: &Question, body: &[u8]) -> Result<(Answer, Vec<u8>), String> {
        let socket = self.socket.display();
        let away = |why: String| format!("the renderer at `{socket}` doesn't answer: {why}");
        let stream = timeout(CONNECTING, UnixStream::connect(&self.socket)).await;
        let stream =
            stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(|error| away(error.to_string()))?;
        let answer = timeout(ANSWERING, exchange(stream, question, body)).await;
        let answer = answer.unwrap_or_else(|_| Err(io::Error::other(format!("nothing for {} s", ANSWERING.as_secs()))));
        answer.map_err(|error| away(error.to_string()))
    }
}

async fn exchange(mut stream: UnixStream, question: &Question, body: &[u8]) -> io::Result<(Answer, Vec<u8>)> {
    // One that refuses closes early, and what it said is there all the same.
    let sent = wire::send(&mut stream, question, body).await;
    let answer: Answer = match (wire::head(&mut stream).await, sent) {
        (Ok(answer), _) => answer,
        (Err(_), Err(error)) => return Err(error),
        (Err(error), Ok(())) => return Err(error),
    };
    let output = match answer {
        Answer::Rendered { bytes } => wire::body(&mut stream, bytes, super::process::MAX_OUTPUT as u64).await?,
        _ => Vec::new(),
    };
    Ok((answer, output))
}

#[cfg(test)]
mod tests;
