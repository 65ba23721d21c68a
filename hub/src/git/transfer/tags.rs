//! The tags of a repository and the commits they lead to, asked of its server; nothing is fetched. Called for a
//! repository, in its turn.

use std::sync::Arc;

use gix::ObjectId;
use kedge_hub_types::causes::chain;
use kedge_platform::{Link, Mirror};
use tokio::sync::OwnedMutexGuard;

use super::{Address, Fault, LIMITS, Lack, Route, Rules, Scheme, Server};
use super::{blocking, ended_well, http_fault, parse_ref, prepare, redirect, resolve};
use crate::git::program::Program;

/// More versions than a workload ever had; the others aren't looked at.
const MAX_TAGS: usize = 20_000;

type Tags = Vec<(String, ObjectId)>;

pub(in crate::git) async fn tags(rules: &Rules, route: &Route, turn: OwnedMutexGuard<()>) -> Result<Tags, Fault> {
    match &route.address {
        Address::Local(path) => {
            let path = path.clone();
            blocking(move || of_folder(&path)).await
        }
        Address::Server(server) if server.scheme == Scheme::Ssh => over_ssh(rules, route, server).await,
        Address::Server(server) => over_http(rules, route, server, turn).await,
    }
}

fn of_folder(path: &std::path::Path) -> Result<Tags, Fault> {
    let failed = |error: &dyn std::error::Error| {
        let message = format!("the tags of `{}` can't be read: {}", path.display(), chain(error));
        Fault::passing(message, "check who may read the folder")
    };
    let repo: gix::Repository = gix::open::Options::isolated().open(path).map_err(|error| failed(&error))?.into();
    let references = repo.references().map_err(|error| failed(&error))?;
    let tags = references.tags().map_err(|error| failed(&error))?;
    let read = |mut found: gix::Reference<'_>| {
        let name = found.name().shorten().to_string();
        Some((name, found.peel_to_id().ok()?.detach()))
    };
    // A tag that can't be read is none.
    Ok(tags.flatten().filter_map(read).take(MAX_TAGS).collect())
}

async fn over_ssh(rules: &Rules, route: &Route, server: &Server) -> Result<Tags, Fault> {
    resolve(rules, server).await?;
    let url = route.address.url();
    let (path, _) = prepare(route, Vec::new()).await?;
    let key = rules.credentials.ssh_key(server, &route.reader);
    let listing = Program::new(&path).args(["ls-remote", "--tags", "--", &url]).ssh(key);
    let said = ended_well(listing.run(LIMITS.time).await?)?;
    Ok(listed(&said.out))
}

/// An annotated tag is there twice: itself, and with `^{}` what it leads to.
fn listed(lines: &str) -> Tags {
    let mut tags = std::collections::BTreeMap::new();
    for (name, id) in lines.lines().filter_map(parse_ref).take(2 * MAX_TAGS) {
        let Some(name) = name.strip_prefix("refs/tags/") else { continue };
        match name.strip_suffix("^{}") {
            Some(name) => tags.insert(name.to_owned(), id),
            None => Some(*tags.entry(name.to_owned()).or_insert(id)),
        };
    }
    tags.into_iter().collect()
}

async fn over_http(rules: &Rules, route: &Route, server: &Server, turn: OwnedMutexGuard<()>) -> Result<Tags, Fault> {
    let addresses = resolve(rules, server).await?;
    let authorization = rules.credentials.secret(server, &route.reader)?.map(|secret| secret.basic());
    let link = Link { authorization, addresses, redirects: false, limits: LIMITS };
    let turn = Arc::new(turn);
    let first = ask(route, route.address.url(), link.clone(), Arc::clone(&turn)).await;
    let Err(fault) = first else { return first };
    if !fault.error.contains(redirect::SIGN) {
        return Err(fault);
    }
    let there = redirect::destination(server, &link, &rules.credentials, &route.reader).await?;
    ask(route, there, link, turn).await
}

async fn ask(route: &Route, from: String, link: Link, turn: Arc<OwnedMutexGuard<()>>) -> Result<Tags, Fault> {
    let (folder, url) = (route.folder.clone(), route.address.url());
    let lack = Lack::of(&link, &route.reader);
    blocking(move || {
        let _turn = turn;
        let mirror = Mirror::at(&folder, &url, &url)?.with_link(link).fetching_from(&from);
        mirror.tags(MAX_TAGS).map_err(|error| http_fault(&error, &from, lack))
    })
    .await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_listing_panics_or_grows(lines in "([0-9a-f]{40}\t(refs/tags/)?[a-z^{}]{0,6}\n|\\PC{0,20}\n){0,20}") {
            prop_assert!(listed(&lines).len() <= lines.lines().count());
        }
    }

    #[test]
    fn an_annotated_tag_leads_to_its_commit() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let lines =
            format!("{one}\trefs/tags/v1\n{two}\trefs/tags/v1^{{}}\n{one}\trefs/tags/v2\n{one}\trefs/heads/x\nnoise\n");
        let found: Vec<(String, String)> =
            listed(&lines).into_iter().map(|(name, id)| (name, id.to_string())).collect();
        assert_eq!(found, [("v1".to_owned(), two), ("v2".to_owned(), one)]);
    }
}
