//! What people ask about changes: files that were published, and why a plan can't be made.

use std::collections::BTreeMap;

use http::StatusCode;
use kedge_platform::tree::{FILE_LIMIT, Tree as _};
use kedge_scheduler::ConfigFile;

use crate::api::ApiError;
use crate::git::{Mirrors, Trust};
use crate::pack::configurations::Rendered;
use crate::preview::PreviewError;

/// A plan takes a moment.
const BUSY_RETRY_S: u64 = 2;

/// Why there is no plan, for people.
pub(super) fn refuse(error: PreviewError) -> ApiError {
    let message = error.to_string();
    match error {
        PreviewError::NoEnvironment(_) => ApiError::new(StatusCode::NOT_FOUND, "NotFound", message),
        PreviewError::NoControlPlane => ApiError::conflict("NoControlPlane", message)
            .hint("set `control_plane` in [git] of the hub's configuration"),
        PreviewError::Revision { hint, .. } => hinted(ApiError::invalid("BadRevision", message), hint),
        PreviewError::Path { .. } => {
            ApiError::invalid("BadPath", message).hint("write it from the repository's root, without `..`")
        }
        PreviewError::TooMuch { .. } => {
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", message).hint("push a branch and plan that")
        }
        PreviewError::Unusable { hint, .. } => hinted(ApiError::conflict("Unusable", message), hint),
        PreviewError::Busy => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "PlanRuns", message).retry_after(BUSY_RETRY_S)
        }
        PreviewError::TooSlow => ApiError::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", message)
            .hint("`kedge plan` does it offline, on a clone of the control plane"),
        PreviewError::Store(error) => error.into(),
        PreviewError::Interrupted => ApiError::unavailable(message),
    }
}

fn hinted(error: ApiError, hint: Option<String>) -> ApiError {
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The configuration files of these folders in a commit.
pub(super) fn published(
    mirrors: &Mirrors,
    repo: &str,
    commit: &str,
    folders: Vec<String>,
) -> Option<BTreeMap<String, Option<Rendered>>> {
    let opened = mirrors.open(repo, Trust::Platform)?;
    let revision = opened.commit(commit).ok()?;
    let tree = opened.tree(&revision, repo).ok()?;
    let read = |folder: &str| {
        let files = [ConfigFile::Yaml, ConfigFile::Shell].into_iter();
        let mut found = files.filter_map(|file| {
            let bytes = tree.read(&format!("{folder}/{}", file.name()), FILE_LIMIT).ok()?;
            Some(Rendered { file, text: String::from_utf8(bytes).ok()? })
        });
        found.next()
    };
    Some(folders.into_iter().map(|folder| (folder.clone(), read(&folder))).collect())
}
