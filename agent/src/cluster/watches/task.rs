//! One watch: lists what there is, then hears what changes, for as long as the agent runs. An expired watch is listed again, a
//! broken one goes on from where it was.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::seen::Listed;
use super::{KindKey, Shared, Standing};
use crate::cluster::ASSIGNMENT;
use crate::cluster::metadata::{Metadata, Partial, digest, or_default};
use crate::cluster::request::{ApiError, Call, METADATA, METADATA_LIST, Refusal, collection, encode};
use crate::cluster::retry::Backoff;
use crate::cluster::stream::Lines;

/// One line of a watch.
#[derive(Debug, Deserialize)]
struct Event {
    r#type: String,
    #[serde(default)]
    object: Partially,
}

/// Metadata, or a `Status` that ends the watch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Partially {
    metadata: Metadata,
    code: u16,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct List {
    metadata: ListMetadata,
    #[serde(deserialize_with = "or_default")]
    items: Vec<Partial>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    r#continue: String,
}

/// An agent that owns thousands holds few of them in memory at once.
const PAGE: usize = 100;
/// How long one watch lives; some chance is added so that they don't all end together.
const LIFE_SECONDS: u64 = 300;
/// The server is away: all watches together ask a few times in that time.
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// A kind that isn't served, or may not be seen.
const REFUSED_GAP: Duration = Duration::from_secs(60);
/// A watch that ended sooner didn't work.
const SHORT: Duration = Duration::from_secs(2);

pub(super) async fn watch(shared: Arc<Shared>, key: KindKey) {
    let mut version = None;
    let mut backoff = Backoff::new(LONGEST_GAP);
    loop {
        let (began, heard) = (Instant::now(), version.is_some());
        let went = match &version {
            None => list(&shared, &key).await.map(|listed| version = Some(listed)),
            Some(from) => hear(&shared, &key, from.clone(), &mut version).await,
        };
        if heard && began.elapsed() >= SHORT {
            backoff = Backoff::new(LONGEST_GAP);
        }
        match went {
            Ok(()) if heard && began.elapsed() < SHORT => tokio::time::sleep(backoff.gap()).await,
            Ok(()) => {}
            Err(ApiError::Refused(refusal)) if refusal.code == 410 => {
                tracing::debug!(kind = key.plural, "a watch has expired and is listed again");
                version = None;
                tokio::time::sleep(backoff.gap()).await;
            }
            Err(ApiError::Refused(refusal)) => {
                version = None;
                refuse(&shared, &key, &refusal);
                tokio::select! {
                    () = tokio::time::sleep(REFUSED_GAP) => {}
                    () = shared.served.notified() => {}
                }
            }
            Err(error) => {
                tracing::debug!(kind = key.plural, %error, "a watch broke off");
                shared.seen().hinder(&key, error.to_string());
                tokio::time::sleep(backoff.gap()).await;
            }
        }
    }
}

fn refuse(shared: &Shared, key: &KindKey, refusal: &Refusal) {
    let standing = match refusal.code {
        404 => Standing::NotServed,
        _ => Standing::Refused(refusal.sentence()),
    };
    if let (Standing::Refused(why), false) = (&standing, shared.seen().standing(key) == Some(&standing)) {
        tracing::warn!(
            kind = key.plural,
            group = key.group,
            why,
            "objects of this kind can't be watched: drift isn't seen"
        );
    }
    let concerned = shared.seen().stop(key, standing);
    shared.changed.notify_waiters();
    shared.tell(concerned);
}

/// Everything of this kind that carries our label; the version that it is of.
async fn list(shared: &Shared, key: &KindKey) -> Result<String, ApiError> {
    let (mut all, mut next): (Vec<Listed>, String) = (Vec::new(), String::new());
    loop {
        let path = format!("{}&limit={PAGE}&continue={}", base(key), encode(&next));
        let page: List = shared.cluster.call(&Call::get(path).with_accept(METADATA_LIST)).await?;
        {
            let mut seen = shared.seen();
            all.extend(page.items.iter().filter_map(|item| seen.listed(&item.metadata)));
        }
        next = page.metadata.r#continue;
        if next.is_empty() {
            let version = page.metadata.resource_version;
            let number = version.parse().unwrap_or_else(|_| digest(&version));
            let concerned = shared.seen().relist(key, all, number);
            shared.changed.notify_waiters();
            shared.tell(concerned);
            return Ok(version);
        }
    }
}

/// Hears what happens after a version, until the server ends it.
async fn hear(shared: &Shared, key: &KindKey, from: String, version: &mut Option<String>) -> Result<(), ApiError> {
    let life = LIFE_SECONDS + rand::random_range(0..LIFE_SECONDS);
    let path = format!(
        "{}&watch=true&allowWatchBookmarks=true&timeoutSeconds={life}&resourceVersion={}",
        base(key),
        encode(&from)
    );
    let mut lines = Lines::new(shared.cluster.open(&Call::get(path).with_accept(METADATA)).await?);
    while let Some(line) = lines.next().await? {
        let event: Event = serde_json::from_slice(&line)
            .map_err(|error| ApiError::Passing { message: format!("an event can't be read: {error}"), after: None })?;
        let metadata = &event.object.metadata;
        let concerned = match event.r#type.as_str() {
            "ADDED" | "MODIFIED" => shared.seen().note(key, metadata),
            "DELETED" => shared.seen().gone(key, metadata),
            "ERROR" => {
                let Partially { code, message, .. } = event.object;
                let refusal = Refusal { code, message, ..Refusal::default() };
                return Err(match code {
                    410 | 403 | 404 => ApiError::Refused(Box::new(refusal)),
                    _ => ApiError::Passing { message: refusal.sentence(), after: None },
                });
            }
            _ => None,
        };
        if !metadata.resource_version.is_empty() {
            *version = Some(metadata.resource_version.clone());
        }
        shared.tell(concerned);
    }
    Ok(())
}

fn base(key: &KindKey) -> String {
    let selector = encode(ASSIGNMENT);
    format!("{}?labelSelector={selector}", collection(&key.group, &key.version, &key.plural, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_line_is_read_or_refused(line: Vec<u8>) {
            _ = serde_json::from_slice::<Event>(&line);
            _ = serde_json::from_slice::<List>(&line);
        }
    }
}
