//! One request of a Git client: who asks, which repository, is it broken on purpose, and then `git http-backend`.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};

use super::{Fault, Login, Refusal, Repository, Shared, cgi, webhook};
use crate::lab::http::plain;

pub(super) async fn answer(shared: Arc<Shared>, request: Request<Bytes>) -> Response<Bytes> {
    let line = format!("{} {}", request.method(), request.uri());
    let response = decide(&shared, &request).await;
    shared.state().log.push(format!("{line} {}", response.status().as_u16()));
    response
}

async fn decide(shared: &Arc<Shared>, request: &Request<Bytes>) -> Response<Bytes> {
    let Some((name, service)) = place(request.uri().path()) else { return plain(404, "no such repository") };
    let (login, repository) = {
        let mut state = shared.state();
        let login = state.login.clone();
        let Some(repository) = state.repositories.get_mut(name) else { return plain(404, "no such repository") };
        repository.requests.total += 1;
        (login, repository.clone())
    };
    tokio::time::sleep(repository.delay).await;
    if !login.as_ref().is_none_or(|login| login.admits(request)) {
        shared.change(name, |repository| repository.requests.unauthorized += 1);
        let mut response = plain(401, "who are you?");
        response.headers_mut().insert("www-authenticate", "Basic realm=\"lab\"".parse().unwrap());
        return response;
    }
    if let Some(Fault::Status(status)) = repository.fault {
        return plain(status, "the lab broke this repository");
    }
    if repository.refusal == Some(Refusal::Forbidden) && is_push(request, service) {
        return plain(403, "you may not push here");
    }
    shared.change(name, |repository| repository.requests.count(service, request));
    let user = login.as_ref().map(|login| login.user.as_str());
    spoil(repository.fault, serve(shared, name, service, &repository, user, request).await)
}

async fn serve(
    shared: &Arc<Shared>,
    name: &str,
    service: &str,
    repository: &Repository,
    user: Option<&str>,
    request: &Request<Bytes>,
) -> Response<Bytes> {
    let hook = repository.webhook.as_ref().filter(|_| service == "git-receive-pack");
    let Some(hook) = hook else { return cgi::run(shared.root(), user, request).await };
    let before = webhook::references(&shared.folder(name));
    let response = cgi::run(shared.root(), user, request).await;
    if response.status().is_success() {
        let host = request.headers().get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
        let url = format!("http://{host}/{name}.git");
        let pushes = webhook::pushes(&shared.folder(name), name, &url, &before);
        // As forges do: the client has its answer, and the message follows.
        tokio::spawn(webhook::deliver(shared.clone(), hook.clone(), name.to_owned(), pushes));
    }
    response
}

/// `/team/app.git/info/refs` is the repository `team/app` and the service `info/refs`.
fn place(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix('/')?.split_once(".git/")
}

fn is_push(request: &Request<Bytes>, service: &str) -> bool {
    service == "git-receive-pack" || request.uri().query().is_some_and(|query| query.contains("git-receive-pack"))
}

fn spoil(fault: Option<Fault>, response: Response<Bytes>) -> Response<Bytes> {
    match fault {
        Some(Fault::Nonsense) => response.map(|_| Bytes::from_static(b"<html>Please log in to the hotel</html>")),
        Some(Fault::CutShort) => response.map(|body| body.slice(..body.len() / 2)),
        Some(Fault::Status(_)) | None => response,
    }
}

impl Login {
    fn admits(&self, request: &Request<Bytes>) -> bool {
        let given = request.headers().get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let basic = STANDARD.encode(format!("{}:{}", self.user, self.password));
        given == format!("Basic {basic}") || given == format!("Bearer {}", self.password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_may_be_in_folders() {
        assert_eq!(place("/team/app.git/info/refs"), Some(("team/app", "info/refs")));
        assert_eq!(place("/favicon.ico"), None);
    }
}
