//! The message that a forge sends after a push, in GitHub's form and with its signature.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::Shared;
use crate::lab::{git, http, inbox};

/// A receiver that hasn't answered by then counts as failed, as at GitHub.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

const NOTHING: &str = "0000000000000000000000000000000000000000";

static NUMBER: AtomicU64 = AtomicU64::new(1);

/// Where pushes are told, and what the message is signed with.
#[derive(Debug, Clone)]
pub struct Webhook {
    pub url: String,
    pub secret: String,
}

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub repository: String,
    pub reference: String,
    /// The receiver's status, or why there is none.
    pub outcome: Result<u16, String>,
}

/// One ref that a push moved, as the message's body.
#[derive(Debug)]
pub(super) struct Push {
    reference: String,
    payload: Value,
}

pub(super) fn references(repository: &Path) -> BTreeMap<String, String> {
    let list = git::finish(git::command(repository).args(["for-each-ref", "--format=%(refname) %(objectname)"]));
    let list = list.unwrap_or_default();
    list.lines().filter_map(|line| line.split_once(' ')).map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
}

/// What moved since `before`.
pub(super) fn pushes(repository: &Path, name: &str, url: &str, before: &BTreeMap<String, String>) -> Vec<Push> {
    let after = references(repository);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let moved = names.into_iter().filter(|reference| before.get(*reference) != after.get(*reference));
    let push = |reference: &String| {
        let old = before.get(reference).map_or(NOTHING, String::as_str);
        let new = after.get(reference).map_or(NOTHING, String::as_str);
        Push { reference: reference.clone(), payload: payload(repository, name, url, reference, old, new) }
    };
    moved.map(push).collect()
}

fn payload(repository: &Path, name: &str, url: &str, reference: &str, old: &str, new: &str) -> Value {
    let (created, deleted) = (old == NOTHING, new == NOTHING);
    let kept = git::finish(git::command(repository).args(["merge-base", "--is-ancestor", old, new])).is_ok();
    let head = if deleted { Value::Null } else { head_commit(repository, new) };
    let page = url.trim_end_matches(".git");
    json!({
        "ref": reference,
        "before": old,
        "after": new,
        "created": created,
        "deleted": deleted,
        "forced": !created && !deleted && !kept,
        "base_ref": null,
        "compare": format!("{page}/compare/{old}...{new}"),
        "commits": head.as_object().map(|_| vec![head.clone()]).unwrap_or_default(),
        "head_commit": head,
        "repository": {
            "id": 1,
            "name": name.rsplit('/').next(),
            "full_name": name,
            "html_url": page,
            "clone_url": url,
            "default_branch": "main",
        },
        "pusher": {"name": "ada", "email": "ada@example.com"},
        "sender": {"login": "ada", "id": 1},
    })
}

fn head_commit(repository: &Path, id: &str) -> Value {
    let shown =
        git::finish(git::command(repository).args(["show", "--no-patch", "--format=%B%x1f%aI%x1f%an%x1f%ae", id]));
    let shown = shown.unwrap_or_default();
    let mut fields = shown.trim_end().split('\u{1f}');
    let mut field = || fields.next().unwrap_or_default().trim_end();
    json!({
        "id": id,
        "message": field(),
        "timestamp": field(),
        "author": {"name": field(), "email": field()},
    })
}

/// Sends one message for each ref, in order.
pub(super) async fn deliver(shared: Arc<Shared>, hook: Webhook, repository: String, pushes: Vec<Push>) {
    http::use_ring();
    let client = reqwest::Client::builder().timeout(ANSWER_WITHIN).no_proxy().build().unwrap();
    for push in pushes {
        let body = serde_json::to_vec(&push.payload).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let request = client
            .post(&hook.url)
            .header("content-type", "application/json")
            .header("user-agent", "GitHub-Hookshot/lab")
            .header("x-github-event", "push")
            .header("x-github-delivery", format!("00000000-0000-4000-8000-{number:012x}"))
            .header("x-hub-signature-256", inbox::signature(&hook.secret, &body))
            .body(body);
        let outcome = request.send().await.map(|answer| answer.status().as_u16()).map_err(|e| e.to_string());
        let delivery = Delivery { repository: repository.clone(), reference: push.reference, outcome };
        shared.state().deliveries.push(delivery);
    }
}
