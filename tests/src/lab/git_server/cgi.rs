//! Runs `git http-backend` for one request, as a web server does: the request in its environment and input, the answer from
//! its output.

use std::path::Path;
use std::process::{Command as StdCommand, Stdio};

use bytes::Bytes;
use http::{Request, Response};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::lab::git;
use crate::lab::http::plain;

/// The backend's answer to `request` for a repository below `root`.
pub(super) async fn run(root: &Path, user: Option<&str>, request: &Request<Bytes>) -> Response<Bytes> {
    let mut command = Command::from(command(root, user, request));
    let mut child = match command.kill_on_drop(true).spawn() {
        Ok(child) => child,
        Err(e) => return plain(500, &format!("git doesn't start: {e}")),
    };
    let mut input = child.stdin.take().expect("it is piped");
    let body = request.body().clone();
    let feed = async move {
        // The backend may have read enough before the end; what it says is what counts.
        let _ = input.write_all(&body).await;
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    match output {
        Ok(output) => parse(&output.stdout).unwrap_or_else(|| plain(500, &String::from_utf8_lossy(&output.stderr))),
        Err(e) => plain(500, &format!("git http-backend: {e}")),
    }
}

fn command(root: &Path, user: Option<&str>, request: &Request<Bytes>) -> StdCommand {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let mut command = git::command(root);
    command.arg("http-backend").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("REQUEST_METHOD", request.method().as_str()).env("PATH_INFO", request.uri().path());
    command.env("QUERY_STRING", request.uri().query().unwrap_or_default()).env("REMOTE_ADDR", "127.0.0.1");
    command.env("CONTENT_LENGTH", request.body().len().to_string());
    let passed = [
        ("content-type", "CONTENT_TYPE"),
        ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ("git-protocol", "GIT_PROTOCOL"),
        ("accept-encoding", "HTTP_ACCEPT_ENCODING"),
    ];
    for (name, variable) in passed {
        if let Some(value) = header(name) {
            command.env(variable, value);
        }
    }
    if let Some(user) = user {
        command.env("REMOTE_USER", user);
    }
    command
}

/// A CGI answer: headers, an empty line, the body; `Status` is a header.
fn parse(output: &[u8]) -> Option<Response<Bytes>> {
    let end = output.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&output[..end]).ok()?;
    let mut response = Response::builder();
    for line in head.split("\r\n") {
        let (name, value) = line.split_once(": ")?;
        response = match name {
            "Status" => response.status(value.split(' ').next()?),
            _ => response.header(name, value),
        };
    }
    response.body(Bytes::copy_from_slice(&output[end + 4..])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_header_becomes_the_status() {
        let response = parse(b"Status: 404 Not Found\r\nContent-Type: text/plain\r\n\r\ngone").unwrap();
        assert_eq!((response.status().as_u16(), &response.body()[..]), (404, &b"gone"[..]));
    }
}
